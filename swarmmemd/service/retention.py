"""Drops what is older than `retention.days`: once a day, a slice a second. docs/contracts.md, "Retention"."""

from swarmmemd.errors import StorageError
from swarmmemd.schedule import beat
from swarmmemd.service.running import Running

_DAY = 24 * 60 * 60
_ASKED = 60.0


class Retention:
    """Goes through the journal once a day."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._due = running.now()
        self._after = 0
        self._dropped = 0

    def tick(self, now: float) -> float:
        """One slice, if it is time, and when to ask again: a configuration that changes can ask for it at any time.
        `now` is monotonic seconds."""
        running, days = self._running, self._running.config.retention.days
        if not days or now < self._due:
            return beat(now, _ASKED)
        before = int((running.clock.wall() - days * _DAY) * 1000)
        try:
            last, dropped = running.tree.journal.forget(self._after, before)
        except StorageError:
            self._due = now + 60.0  # a full disk: the journal says so itself when it is written
            return self._due
        self._dropped += dropped
        if last is not None:
            self._after = last
            return beat(now, 1.0)
        if self._dropped:
            running.log.info("old bodies dropped", count=self._dropped, days=days)
        self._due, self._after, self._dropped = now + _DAY, 0, 0
        return beat(now, _ASKED)
