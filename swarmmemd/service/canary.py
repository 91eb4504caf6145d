"""Proves that notifications come at all: a file of our own is renamed now and then, and its hint must follow.

Every part of the watcher can look alive while nothing comes. docs/architecture.md, "Watching".
"""

from collections.abc import Callable

from swarmmemd.durable import Directory, replace
from swarmmemd.layout import CANARY
from swarmmemd.service.running import Running

EVERY = 30.0
"""Seconds between two proofs; doubled up to `_SELDOM` while they fail."""
LATE = 2.0
"""Seconds after which a hint that did not come is missed."""
_SELDOM = 3600.0
_KEY = "notifications"


class Canary:
    """Sends and waits. `send` makes a hint happen and says whether one is to be expected; `missed` is called when it
    did not come. `heard` is called from the watching thread, the rest from the loop."""

    def __init__(self, send: Callable[[], bool], missed: Callable[[], object]) -> None:
        self._send, self._missed = send, missed
        self._every = EVERY
        self._due = float("-inf")
        self._since: float | None = None
        self._ticks = 0
        self._came = False

    @property
    def deaf(self) -> bool:
        """Whether the newest proof has failed: sweeps are all that finds a change."""
        return self._every > EVERY

    def heard(self) -> None:
        """The hint came."""
        self._came = True

    def tick(self, now: float) -> float:
        """Looks whether it is time, and says when to ask again. `now` is monotonic seconds."""
        if self._since is None:
            if now >= self._due:
                self._begin(now)
            return self._due if self._since is None else now + LATE
        self._ticks += 1
        if self._came:
            self._since, self._every, self._due = None, EVERY, now + EVERY
        elif now - self._since >= LATE and self._ticks > 1:
            # The second tick: one that comes first after the process was stopped can be before the hint.
            self._since, self._every = None, min(self._every * 2, _SELDOM)
            self._due = now + self._every
            self._missed()
        return now + 1.0 if self._since is not None else self._due

    def _begin(self, now: float) -> None:
        self._came, self._ticks, self._due = False, 0, now + self._every
        self._since = now if self._send() else None


def canary_of(running: Running) -> Canary:
    """The daemon's: a file in the state folder; where its hint is missed, all is watched anew and looked at."""

    def send() -> bool:
        try:
            with running.tree.state.child(CANARY, create=True, permissions=0o700) as folder:
                if not running.plan.hears_canary():
                    return False
                _flutter(folder)
        except OSError:
            return False  # a full disk proves nothing of the watcher
        return True

    def missed() -> None:
        running.plan.renew("no notification came")

    canary = Canary(send, missed)
    running.plan.canary = canary.heard
    return canary


def tell(running: Running, canary: Canary) -> None:
    """One line when nothing comes, one when it comes again."""
    why = f"none came within {LATE:g} s: watching anew, and sweeping meanwhile" if canary.deaf else None
    running.troubles.update(_KEY, why, running.now())


def _flutter(folder: Directory) -> None:
    """Gives the file its other name."""
    for before, after in (("one", "other"), ("other", "one")):
        try:
            folder.rename(before, after, durable=False)
        except FileNotFoundError:
            continue
        return
    replace(folder, "one", b"", permissions=0o600)
