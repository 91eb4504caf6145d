"""Reads `tests/cases`, and plays what a worker's files show through the pure functions."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from swarmmemd.derive import derive
from swarmmemd.fold import status
from swarmmemd.model import Absent, Event, EventId, MissionId, Status, Unreadable, WorkerId
from swarmmemd.observation import Ledger, Observation, Runtime
from swarmmemd.record import decode, encode
from swarmmemd.remember import Line, remember
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.runtime import parse_runtime
from swarmmemd.state import WorkerState

CASES = Path(__file__).resolve().parents[1] / "cases"
START = 1_777_885_200_000
"""The time at which most cases begin, ms."""
LATER = 1_800_000_000_000
"""A look at this time is later than everything in the cases, ms."""


def expected(folder: str) -> dict[str, Any]:
    """The `expected.yaml` of a folder of cases."""
    found: dict[str, Any] = yaml.safe_load((CASES / folder / "expected.yaml").read_text("utf-8"))
    return found


def case_bytes(folder: str, name: str) -> bytes:
    """The bytes of one case, as they are."""
    return (CASES / folder / name).read_bytes()


class Step(msgspec.Struct, frozen=True):
    """One file of a sequence."""

    number: str
    name: str
    data: bytes

    @property
    def is_ledger(self) -> bool:
        return self.name[2:].startswith("-ledger-")


class Sequence(msgspec.Struct, frozen=True):
    """One folder of `runtime-sequences`: what stands in place step by step, and what it must give."""

    name: str
    worker: WorkerId
    steps: tuple[Step, ...]
    expected: Mapping[str, Any]


def sequence_names() -> list[str]:
    """The names of all sequences."""
    return sorted(path.parent.name for path in (CASES / "runtime-sequences").glob("*/expected.yaml"))


def sequence(name: str) -> Sequence:
    """One sequence, its steps in order."""
    folder = CASES / "runtime-sequences" / name
    answers = expected(f"runtime-sequences/{name}")
    files = sorted(folder.glob("[0-9][0-9]-*.json"))
    steps = tuple(Step(path.name[:2], path.name, path.read_bytes()) for path in files)
    return Sequence(name, WorkerId(answers["worker"]), steps, answers)


class Player:
    """One worker as the daemon knows it: looks are derived, folded and kept, without a file or a clock.

    `recorded` holds each event with the name of the step in which it came.
    """

    def __init__(self, worker: WorkerId) -> None:
        self.worker = worker
        self.state = WorkerState(worker=worker)
        self.recorded: list[tuple[str, Event]] = []
        self.step = ""
        self._ids: set[EventId] = set()
        self._looks = 0

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for _, event in self.recorded)

    def look(
        self,
        runtime: Runtime | Unreadable | Absent | None = None,
        ledger: Ledger | None = None,
        at: int | None = None,
    ) -> tuple[Event, ...]:
        """One look: the events that are new."""
        self._looks += 1
        moment = LATER + self._looks * 1000 if at is None else at
        seen = Observation(at=moment, runtime=runtime, ledger=ledger)
        found = derive(self.state, seen, self._ids.__contains__)
        self.state = found.state
        self.recorded += [(self.step, event) for event in found.events]
        self._ids |= {event.id for event in found.events}
        return found.events

    def lines(self) -> dict[MissionId, list[bytes]]:
        """What stands in the `events.jsonl` of each mission."""
        files: dict[MissionId, list[bytes]] = {}
        for event in self.events:
            if event.mission is not None:
                files.setdefault(event.mission, []).append(encode(event))
        return files

    def lose_the_journal(self, others: Mapping[MissionId, list[bytes]] | None = None) -> tuple[Event, ...]:
        """Forgets all but what the `events.jsonl` files say: the events that they tell of.

        `others` are lines of another writer that stand behind ours.
        """
        files = self.lines()
        for mission, lines in (others or {}).items():
            files[mission] = [*files.get(mission, []), *lines]
        self.state, events = remember(self.worker, read_lines(self.worker, files))
        self._ids = {event.id for event in events}
        return events

    def status(self, mission: str) -> Status:
        """The Status word of a mission."""
        return status(self.state.missions[MissionId(mission)])


def read_lines(
    worker: WorkerId, files: Mapping[MissionId, list[bytes]]
) -> Iterator[tuple[MissionId, list[Line]]]:
    """The lines of files (with line breaks), decoded; those that say nothing are left out."""
    for mission in sorted(files):
        decoded = (decode(line[:-1], worker) for line in files[mission])
        yield mission, [line for line in decoded if line is not None]


class Scene:
    """What stands on the disk while a sequence is played."""

    def __init__(self) -> None:
        self.runtime: Runtime | Unreadable | None = None
        self.ledger: Ledger | None = None

    def put(self, step: Step) -> None:
        """Puts the file of the step in place. A ledger that cannot be read leaves the one that was known."""
        if step.is_ledger:
            ledger = parse_ledger(step.data, START)
            self.ledger = self.ledger if isinstance(ledger, Unreadable) else ledger
        else:
            self.runtime = parse_runtime(step.data, START)


def snapshot(fields: Mapping[str, Any], written: int = START) -> Runtime:
    """The `Runtime` of a `runtime.json` with these fields."""
    found = parse_runtime(json.dumps(fields).encode(), written)
    assert isinstance(found, Runtime)
    return found


def ledger_of(*missions: Mapping[str, Any]) -> Ledger:
    """The `Ledger` of these missions."""
    found = parse_ledger(json.dumps({"version": 1, "missions": missions}).encode(), START)
    assert isinstance(found, Ledger)
    return found
