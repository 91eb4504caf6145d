"""What is held of the files of missions, while their workers hold the missions themselves and a little longer."""

from collections.abc import Container
from typing import Generic, TypeVar

from swarmmemd.model import MissionId, WorkerId

_V = TypeVar("_V")
_NEWEST = 8
"""Missions at rest of a worker of whose files something is held on: who has just written a file must know it for his
own if its mission is named at once."""


class OfMissions(Generic[_V]):
    """A value for each mission of each worker. What is let go of is as if it was never there."""

    def __init__(self) -> None:
        self._values: dict[WorkerId, dict[MissionId, _V]] = {}

    def get(self, worker: WorkerId, mission: MissionId) -> _V | None:
        """The value; None where there is none."""
        values = self._values.get(worker)
        return None if values is None else values.get(mission)

    def put(self, worker: WorkerId, mission: MissionId, value: _V) -> None:
        """Holds the value."""
        values = self._values.setdefault(worker, {})
        values.pop(mission, None)
        values[mission] = value

    def drop(self, worker: WorkerId, mission: MissionId) -> None:
        """Lets go of one value."""
        self._values.get(worker, {}).pop(mission, None)

    def keep(self, worker: WorkerId, missions: Container[MissionId]) -> None:
        """Lets go of what is held of the worker's other missions, but for the newest few."""
        values = self._values.get(worker, {})
        for mission in [mission for mission in values if mission not in missions][:-_NEWEST]:
            del values[mission]

    def forget(self, worker: WorkerId) -> None:
        """Lets go of all that is held of the worker's missions."""
        self._values.pop(worker, None)
