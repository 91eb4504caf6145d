"""Drops what is older than `retention.days`: once a day, a slice a second. docs/contracts.md, "Retention"."""

from swarmmemd.errors import StorageError
from swarmmemd.service.running import Running

_DAY = 24 * 60 * 60


class Retention:
    """Goes through the journal once a day. `tick` is called once a second."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._due = running.now()
        self._after = 0
        self._dropped = 0

    def tick(self, now: float) -> None:
        """One slice, if it is time. `now` is monotonic seconds."""
        running, days = self._running, self._running.config.retention.days
        if not days or now < self._due:
            return
        before = int((running.clock.wall() - days * _DAY) * 1000)
        try:
            last, dropped = running.tree.journal.forget(self._after, before)
        except StorageError:
            self._due = now + 60.0  # a full disk: the journal says so itself when it is written
            return
        self._dropped += dropped
        if last is not None:
            self._after = last
            return
        if self._dropped:
            running.log.info("old bodies dropped", count=self._dropped, days=days)
        self._due, self._after, self._dropped = now + _DAY, 0, 0
