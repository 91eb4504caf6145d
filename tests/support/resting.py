"""Derivation done twice: on a state that lets go of what rests, and on one that never lets go of anything."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

from msgspec.structs import replace

from swarmmemd import derive as derivation
from swarmmemd import turn
from swarmmemd.derive import Derived, HeardOf, Known, Recall, Safe
from swarmmemd.derive.draft import Expect
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.observation import Observation
from swarmmemd.rest import without_resting
from swarmmemd.state import MissionState, WorkerState


def same(one: Derived, other: Derived) -> None:
    """Both have found the same, in the same order."""
    assert one.events == other.events
    assert one.versions == other.versions
    assert one.refused == other.refused
    assert one.rejected == other.rejected
    assert one.heard == other.heard
    assert bare(one.state) == bare(other.state)


def bare(state: WorkerState) -> WorkerState:
    """The state without its missions."""
    return replace(state, missions={})


class Twins:
    """The states of one worker: `whole` holds every mission, `state` what does not rest. `kept` is the journal's."""

    def __init__(self, worker: WorkerId) -> None:
        self.whole = self.state = WorkerState(worker=worker)
        self.kept: dict[MissionId, MissionState] = {}
        self.rested = 0
        """How many missions came back."""

    def look(self, seen: Observation, known: Known, heard: HeardOf = lambda key: None) -> Derived:
        """One look by both. Each look lets go."""
        whole = derivation.derive(self.whole, seen, known, heard=heard)
        found = derivation.derive(self.state, seen, known, heard=heard, recall=self._recall)
        same(found, whole)
        self.rested += len(found.recalled)
        assert all(self.kept[id] is mission for id, mission in found.recalled.items())
        self.whole = whole.state
        self.kept.update(found.state.missions)
        self.state = without_resting(found.state, seen.ledger)
        assert self.kept == dict(whole.state.missions)
        return found

    def restart(self) -> None:
        """The state as a new start finds it."""
        self.state = without_resting(replace(self.state, missions=self.kept))

    def _recall(self, missions: Sequence[MissionId]) -> Mapping[MissionId, MissionState]:
        return {id: self.kept[id] for id in missions if id in self.kept and id not in self.state.missions}


class Witness:
    """Derives in the place of `derive`, and once more on states that never let go of a mission."""

    def __init__(self) -> None:
        self.looks = self.rested = 0
        self._derive = derivation.derive
        self._known: dict[WorkerId, list[WorkerState]] = {}

    def __call__(
        self,
        state: WorkerState,
        seen: Observation,
        known: Known,
        safe: Safe,
        heard: HeardOf,
        expect: Expect,
        recall: Recall,
    ) -> Derived:
        """As `derive`. A state of a look that was not recorded is forgotten, as the daemon forgets it."""
        found = self._derive(state, seen, known, safe, heard, expect, recall)
        whole = next(
            (known for known in self._known.get(state.worker, ()) if _holds(known, state, recall)), state
        )
        twin = self._derive(whole, seen, known, safe, heard, expect)
        same(found, twin)
        for id, mission in twin.state.missions.items():
            assert found.state.missions.get(id, whole.missions.get(id)) == mission
        self.looks += 1
        self.rested += len(twin.state.missions) > len(found.state.missions)
        self._known[state.worker] = [twin.state, whole]
        return found


def _holds(whole: WorkerState, state: WorkerState, recall: Recall) -> bool:
    """Whether `whole` is what was recorded: all that `state` and the journal have."""
    recorded = {**recall(tuple(whole.missions)), **state.missions}
    return bare(whole) == bare(state) and dict(whole.missions) == recorded


@contextmanager
def witnessed() -> Iterator[Witness]:
    """Whatever is derived in this process within is derived twice."""
    witness = Witness()
    with mock.patch.object(turn, "derive", witness):
        yield witness
