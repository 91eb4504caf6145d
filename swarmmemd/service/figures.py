"""What the daemon counts."""

import msgspec

from swarmmemd.model import Event, WorkerId
from swarmmemd.turn import Report


class Figures(msgspec.Struct, kw_only=True):
    """What the daemon counts. Times are seconds."""

    started: float
    written: float = 0.0
    turns: int = 0
    seconds: float = 0.0
    """Spent in turns."""
    events: int = 0
    sweeps: int = 0
    skipped: int = 0
    failures: int = 0
    longest_turn: float = 0.0
    last_turn: float = 0.0
    stale: bool = False
    """`status.json` says something that is no longer so."""
    last_events: dict[WorkerId, Event] = {}
    said: dict[WorkerId, msgspec.Raw] = {}
    """What `status.json` says of each worker, until something happens to it: to find out costs stats."""

    def turn(self, seconds: float, report: Report) -> None:
        """Counts a turn."""
        self.turns += 1
        self.seconds += seconds
        self.last_turn = seconds
        self.longest_turn = max(self.longest_turn, seconds)
        self.events += len(report.recorded)
        self.last_events.update({recorded.event.worker: recorded.event for recorded in report.recorded})

    def backoff(self) -> float:
        """How long to wait after one more failure: doubles from a second to a minute."""
        self.failures += 1
        return min(2.0 ** (self.failures - 1), 60.0)
