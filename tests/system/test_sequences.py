"""Every sequence of tests/cases/runtime-sequences, played beside a real daemon: by rename, in place, with the
daemon killed between any two steps, with its journal deleted, and stopped at each point of a turn.

What must come is the same each time. tests/cases/README.md says how to compare.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from swarmmemd.model import WorkerId
from swarmmemd.record import decode
from swarmmemd.render.episode import episode_entry
from tests.support.daemon import Daemon, Home, put_file, running

_CASES = Path(__file__).parent.parent / "cases" / "runtime-sequences"
_AT_ONCE = 4
"""Homes beside each other: a test mostly waits."""

POINTS = [
    "turn:observe",
    "turn:derive",
    "turn:record",
    "turn:applied 20??-??-??.md",
    "turn:applied SUMMARY.md",
    "turn:applied events.jsonl",
    "turn:settle",
    "commit:journal.db",
    "write:events.jsonl",
    "rename:SUMMARY.md",
]
STOPPED = [
    "redispatch-after-blocked",
    "dispatch-not-seen",
    "ledger-reviewing-then-complete",
    "timeout-after-done",
    "two-blocks-in-raw",
]


class Step:
    """One file to be put in place."""

    def __init__(self, path: Path, readable: bool) -> None:
        self.number = path.name[:2]
        self.readable = readable
        self.data = path.read_bytes()
        self.is_ledger = path.name[2:].startswith("-ledger-")


class Sequence:
    """The steps of one case, and what must come of them."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.expected: dict[str, Any] = yaml.safe_load((folder / "expected.yaml").read_text())
        self.worker = WorkerId(self.expected["worker"])
        unreadable = self.expected.get("unreadable", [])
        self.steps = [Step(path, path.name not in unreadable) for path in sorted(folder.glob("*.json"))]

    def due(self, step: Step) -> list[dict[str, Any]]:
        """The events that must be there after the step."""
        return [event for event in self.expected["events"] if event["step"] <= step.number]

    def brings(self, step: Step) -> bool:
        """Whether an event comes with the step."""
        return any(event["step"] == step.number for event in self.expected["events"])


SEQUENCES = [Sequence(path.parent) for path in sorted(_CASES.glob("*/expected.yaml"))]

Play = Callable[[Home, Sequence], None]


def play_all(play: Play, sequences: list[Sequence], folder: Path) -> None:
    """Plays sequences beside each other, each in a home of its own; tells all that failed."""

    def attempt(sequence: Sequence) -> str:
        try:
            play(Home(folder / sequence.name), sequence)
        except Exception as error:
            return f"{sequence.name}: {type(error).__name__}: {error}"
        return ""

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        failed = [message for message in pool.map(attempt, sequences) if message]
    assert not failed, f"{len(failed)} of {len(sequences)}:\n" + "\n".join(failed)


# Comparing


def check(home: Home, sequence: Sequence, step: Step) -> None:
    """What must be there after the step is there, and nothing else."""
    found = home.events()
    due = sequence.due(step)
    told = [(event["type"], event["missionId"], event["summary"]) for event in found]
    assert len(found) == len(due), f"after {step.number}: {told}, due are {due}"
    for event, wanted in zip(found, due, strict=True):
        problems = list(differences(event, wanted))
        assert not problems, f"after {step.number}: {problems} in {event}"
    for mission, status in sequence.expected.get("status_after", {}).get(step.number, {}).items():
        shown = home.status_of(sequence.worker, mission)
        assert shown == status, f"after {step.number}: {mission} is {shown}, not {status}"
    check_files(home, sequence.worker, found)


def differences(event: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    """Where the event is another than wanted; a key that is not given is not compared."""
    for key, value in wanted.items():
        if key == "step":
            continue
        if key == "summary":
            if plain(value).lower() not in plain(event["summary"]).lower():
                yield f"summary without {value!r}"
            continue
        holder = event.get("event", {}) if key in ("state", "origin", "result", "by") else event
        shown = holder.get(key)
        if plain(shown) != plain(value):
            yield f"{key} {shown!r}, not {value!r}"


def plain(value: Any) -> Any:
    """A text with every run of white space as one blank."""
    return " ".join(value.split()) if isinstance(value, str) else value


def check_files(home: Home, worker: WorkerId, events: list[dict[str, Any]]) -> None:
    """Each event stands once in its mission's file, in order, and once among the episodes; nothing else does."""
    memory = home.profiles / worker / "memory"
    of_missions: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        line = {key: value for key, value in event.items() if key != "seq"}
        if event["missionId"] is not None:
            of_missions.setdefault(event["missionId"], []).append(line)
    files = {path.parent.name: path for path in memory.glob("missions/*/events.jsonl")}
    assert sorted(files) == sorted(of_missions)
    for mission, lines in of_missions.items():
        assert [json.loads(line) for line in files[mission].read_bytes().splitlines()] == lines, mission
    entries = "\n".join(path.read_text() for path in sorted(memory.glob("episodes/*.md")))
    assert entries.count("\n## ") == len(events), entries
    for event in events:
        entry = episode_entry(_as_event(event, worker))
        assert entry in entries, entry


def _as_event(line: dict[str, Any], worker: WorkerId) -> Any:
    return decode(json.dumps(line).encode(), worker)


def check_end(home: Home, sequence: Sequence) -> None:
    """What must hold at the end of the sequence."""
    for mission, status in sequence.expected.get("status", {}).items():
        assert home.status_of(sequence.worker, mission) == status, mission
    for mission in sequence.expected.get("absent", []):
        assert all(event["missionId"] != mission for event in home.events())
        for path in (home.profiles / sequence.worker / "memory").rglob("*"):
            assert path.name != mission
            assert path.is_dir() or mission.encode() not in path.read_bytes(), path


# Playing


def target(home: Home, sequence: Sequence, step: Step) -> Path:
    """Where the step's file belongs."""
    return home.ledger if step.is_ledger else home.runtime(sequence.worker)


def by_rename(path: Path, data: bytes) -> None:
    """As a careful writer does it."""
    put_file(path, data)


def in_place(path: Path, data: bytes) -> None:
    """As most writers do it, slowly: cut to nothing, half of it, a pause, the other half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        time.sleep(0.03)
        file.write(data[len(data) // 2 :])


def beside_a_daemon(write: Callable[[Path, bytes], None]) -> Play:
    """One daemon sees it all."""

    def play(home: Home, sequence: Sequence) -> None:
        with running(home):
            for step in sequence.steps:
                write(target(home, sequence, step), step.data)
                home.looked_at()
                check(home, sequence, step)
            check_end(home, sequence)

    return play


def killed_after_each_step(between: Callable[[Home], None], forgets: bool = False) -> Play:
    """The daemon is killed after each step; `between` is done while it is down. A daemon that `forgets` what it
    knew may read it back only when the worker's file can be read."""

    def play(home: Home, sequence: Sequence) -> None:
        for step in sequence.steps:
            daemon = Daemon(home, forked=True).ready()
            try:
                by_rename(target(home, sequence, step), step.data)
                home.looked_at()
                if step.readable or not forgets:
                    check(home, sequence, step)
            finally:
                daemon.kill()
            between(home)
        with running(home, forked=True):
            home.looked_at()
            check(home, sequence, sequence.steps[-1])
            check_end(home, sequence)

    return play


def killed_before_each_look(home: Home, sequence: Sequence) -> None:
    """Each step falls into the time when no daemon runs, and the next daemon is killed when it has seen it."""
    for step in sequence.steps:
        by_rename(target(home, sequence, step), step.data)
        daemon = Daemon(home, forked=True).ready()
        try:
            home.looked_at()
            check(home, sequence, step)
        finally:
            daemon.kill()
    check_end(home, sequence)


def stopped_at(point: str) -> Play:
    """A process that dies at the point looks first at each step that brings an event, then an ordinary daemon."""

    def play(home: Home, sequence: Sequence) -> None:
        for step in sequence.steps:
            by_rename(target(home, sequence, step), step.data)
            if sequence.brings(step):
                died = Daemon(home, plant=["--at", point], forked=True).ended()
                assert died == -signal.SIGKILL, f"step {step.number} never came to {point}"
            with running(home, forked=True):
                home.looked_at()
                check(home, sequence, step)
        check_end(home, sequence)

    return play


# The tests


def test_there_are_sequences() -> None:
    assert len(SEQUENCES) >= 30
    assert {sequence.name for sequence in SEQUENCES} >= set(STOPPED)
    for sequence in SEQUENCES:
        steps = [event["step"] for event in sequence.expected["events"]]
        assert steps == sorted(steps), sequence.name


def test_by_rename(tmp_path: Path) -> None:
    play_all(beside_a_daemon(by_rename), SEQUENCES, tmp_path)


def test_in_place_with_a_pause(tmp_path: Path) -> None:
    play_all(beside_a_daemon(in_place), SEQUENCES, tmp_path)


def test_killed_after_each_step(tmp_path: Path) -> None:
    play_all(killed_after_each_step(lambda _: None), SEQUENCES, tmp_path)


def test_killed_while_the_next_step_comes(tmp_path: Path) -> None:
    play_all(killed_before_each_look, SEQUENCES, tmp_path)


def test_the_journal_is_deleted_after_each_step(tmp_path: Path) -> None:
    play_all(killed_after_each_step(Home.drop_journal, forgets=True), SEQUENCES, tmp_path)


@pytest.mark.parametrize("point", POINTS)
def test_stopped_at_each_point_of_a_turn(tmp_path: Path, point: str) -> None:
    chosen = [sequence for sequence in SEQUENCES if sequence.name in STOPPED]
    play_all(stopped_at(point), chosen, tmp_path)
