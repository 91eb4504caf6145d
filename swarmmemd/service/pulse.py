"""The sign of life: given by the loop when it has come round once more, and by nothing else.

A timer of its own would go on while the loop hangs. docs/operations.md, "The watchdog".
"""

import faulthandler
import math
from typing import IO

from swarmmemd.notify import notify, watchdog_interval

_PART = 4.0
"""The sign is given so many times in the time allowed."""
WITHOUT_MANAGER = 120.0
"""Seconds without progress after which the process ends itself, where the supervisor has no watchdog."""


class Silence:
    """Nobody waits for a sign."""

    next = math.inf
    """When the loop has to come round for the next one, monotonic."""

    def beat(self, now: float) -> None:
        """The loop has come round. `now` is monotonic seconds."""


class Watchdog(Silence):
    """Signs to systemd."""

    def __init__(self, allowed: float) -> None:
        self._every = allowed / _PART
        self.next = 0.0

    def beat(self, now: float) -> None:
        """Says so, not more often than needed."""
        if now >= self.next:
            self.next = now + self._every
            notify("WATCHDOG=1")


class Deadman(Silence):
    """Ends this process, its stack in `last_words`, unless the loop puts it off: launchd has no watchdog."""

    def __init__(self, last_words: IO[str], allowed: float = WITHOUT_MANAGER) -> None:
        self._last_words = last_words
        self._allowed = allowed
        self.next = 0.0

    def beat(self, now: float) -> None:
        """Puts it off."""
        if now >= self.next:
            self.next = now + self._allowed / _PART
            faulthandler.dump_traceback_later(self._allowed, exit=True, file=self._last_words)


def pulse(supervisor: str, last_words: IO[str]) -> Silence:
    """What this supervisor wants: `systemd`, `launchd` or `none`."""
    allowed = watchdog_interval()
    if allowed is not None:
        return Watchdog(allowed)
    return Deadman(last_words) if supervisor == "launchd" else Silence()
