"""Derivation done twice: on a state that lets go of what rests, and on one that never lets go of anything."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

import msgspec
from msgspec.structs import replace

from swarmmemd import derive as derivation
from swarmmemd import rest, turn
from swarmmemd.derive import Derived, HeardOf, Known, Recall, Safe
from swarmmemd.derive.draft import Expect
from swarmmemd.journal import writer
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
    """Derives in the place of `derive`, and once more on the state with every mission that is recorded."""

    def __init__(self, journal: Path) -> None:
        self.looks = self.rested = 0
        self._journal = journal
        self._derive = derivation.derive

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
        """As `derive`."""
        recorded = self._recorded(state.worker)
        found = self._derive(state, seen, known, safe, heard, expect, recall)
        whole = replace(state, missions={**recorded, **state.missions})
        twin = self._derive(whole, seen, known, safe, heard, expect)
        same(found, twin)
        assert {**recorded, **found.state.missions} == dict(twin.state.missions)
        self.looks += 1
        self.rested += len(found.recalled)
        return found

    def _recorded(self, worker: WorkerId) -> dict[MissionId, MissionState]:
        with closing(sqlite3.connect(self._journal)) as db:
            rows = db.execute("SELECT state FROM mission WHERE worker = ?", (worker,)).fetchall()
        states = [msgspec.json.decode(row, type=MissionState) for (row,) in rows]
        return {state.mission: state for state in states}


@contextmanager
def witnessed(journal: Path) -> Iterator[Witness]:
    """Whatever is derived within, in this process, is derived twice."""
    witness = Witness(journal)
    with mock.patch.object(turn, "derive", witness):
        yield witness


@contextmanager
def nothing_rests() -> Iterator[None]:
    """A program that never lets go of a mission."""

    def never(*_: object) -> bool:
        return False

    with mock.patch.object(rest, "rests", never), mock.patch.object(writer, "rests", never):
        yield
