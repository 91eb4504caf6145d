"""What the parts of a running daemon share."""

from typing import Protocol

from swarmmemd.config import Config
from swarmmemd.log import Log, Troubles
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.schedule import Schedule, Wake
from swarmmemd.service.figures import Figures
from swarmmemd.tree import Tree
from swarmmemd.turn import Clock, Turns
from swarmmemd.watchplan import WatchPlan


class Api(Protocol):
    """The HTTP API where it is served: its address, or what stands in the way of it."""

    address: str | None
    trouble: str | None

    def tend(self, now: float) -> None:
        """Tries again what stands in the way. `now`: monotonic seconds."""

    def reconfigure(self, config: Config) -> None:
        """Takes over a configuration with the same roots."""


class Running:
    """The opened tree, the clocks, the watches, and when who is looked at. `api`: None where it is not wanted."""

    def __init__(self, tree: Tree, clock: Clock, log: Log, wake: Wake, api: Api | None = None) -> None:
        self.tree = tree
        self.clock = clock
        self.log = log
        self.wake = wake
        self.api = api
        self.schedule = Schedule()
        self.plan = WatchPlan(tree.config, wake)
        self.troubles = Troubles(log)
        self.figures = Figures(started=clock.wall())

    @property
    def config(self) -> Config:
        """The configuration that is in force."""
        return self.tree.config

    @property
    def turns(self) -> Turns:
        """The turns over the workers that are watched."""
        return self.tree.turns

    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.monotonic()

    def show_again(self, worker: WorkerId, mission: MissionId, others: tuple[bytes, ...] = ()) -> None:
        """Makes the mission's `SUMMARY.md` true again after somebody else wrote it."""
        one = self.turns.workers.get(worker)
        if one is None or one.state is None:
            return
        try:
            obstacles = self.tree.memory.reshow(one.state, mission, self.now(), others)
        except FileNotFoundError:
            return  # the profile is gone; the next listing retires the worker
        if obstacles:
            self.turns.show_later(one, mission)
            self.schedule.at(worker, self.now() + min(obstacle.retry for obstacle in obstacles))
