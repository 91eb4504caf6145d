"""Beside the writer that is already there: a stand-in that appends to the same files in its own words.

It logs a checkpoint before, at once after or a while after the daemon, some of them twice, as hermes-workspace does.
docs/contracts.md, "Beside another writer".
"""

import json
import random
import threading
from pathlib import Path

import pytest

from swarmmemd.model import iso
from tests.support.daemon import Home, answered, dispatched, running, until

_WORKER, _MISSION = "worker-1", "mission-1"
_CHECKPOINTS = 500
_AT = 1_777_885_800_000


class Other:
    """Appends records without ids, and replaces SUMMARY.md with one more `## Update`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.updates: list[str] = []
        self._timers: list[threading.Timer] = []
        self._lock = threading.Lock()

    def later(self, number: int, seconds: float) -> None:
        timer = threading.Timer(seconds, self.log, (number,))
        self._timers.append(timer)
        timer.start()

    def log(self, number: int) -> None:
        event = {"stateLabel": "IN_PROGRESS", "blocker": "none", "nextAction": "none"}
        line = {
            "at": iso(_AT + number * 60_000 + 900),
            "type": "checkpoint",
            "workerId": _WORKER,
            "missionId": _MISSION,
            "assignmentId": None,
            "summary": f"Row {number} laid",
            "event": event,
        }
        text = json.dumps(line, ensure_ascii=False)
        with self._lock, (self.folder / "events.jsonl").open("a") as file:
            file.write(text + "\n")
            self.lines.append(text)

    def update(self, number: int) -> None:
        heading = f"## Update — {iso(_AT + number)}"
        path = self.folder / "SUMMARY.md"
        aside = path.with_name(".other.tmp")
        aside.write_text(f"{path.read_text()}\n{heading}\n\n- row {number}\n")
        aside.replace(path)
        self.updates.append(heading)

    def finish(self) -> None:
        for timer in self._timers:
            timer.join()


def _checkpoint(number: int) -> dict[str, object]:
    at = _AT + number * 60_000
    times = {"lastOutputAt": at, "lastCheckIn": iso(at)}
    return {**answered(_MISSION, f"Row {number} laid", "IN_PROGRESS"), **times}


@pytest.mark.timeout(600)
def test_each_checkpoint_is_known_once_and_no_line_of_the_other_is_changed(home: Home) -> None:
    dice = random.Random(7)
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        home.looked_at()
        other = Other(home.mission(_WORKER, _MISSION))
        for number in range(_CHECKPOINTS):
            when = dice.choice(["before", "at once", "later", "twice", "never"])
            if when == "before":
                other.log(number)
            home.write(_WORKER, _checkpoint(number))
            if when in ("at once", "twice"):
                other.log(number)
            if when in ("later", "twice"):
                other.later(number, dice.uniform(0.1, 3.0))
            wanted = number + 3
            until(lambda wanted=wanted: len(home.types()) >= wanted, f"checkpoint {number}")  # type: ignore[misc]
            if number % 25 == 0:
                other.update(number)
        other.finish()
        home.looked_at()
        until(lambda: home.backlog() == (0, 0), "everything to be in its files")
        verified = home.command("verify")
        assert verified.returncode == 0, verified.stdout
        tail = home.command("tail", "-n", "10000", "--json").stdout.splitlines()
    lines = (other.folder / "events.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [line for line in lines if line in set(other.lines)] == other.lines
    said = [json.loads(line)["summary"] for line in tail if json.loads(line)["type"] == "checkpoint"]
    assert said == [f"Row {number} laid" for number in range(_CHECKPOINTS)]
    ours = [record["summary"] for record in records if record["type"] == "checkpoint" and "id" in record]
    assert len(ours) == len(set(ours))
    assert {record["summary"] for record in records if record["type"] == "checkpoint"} == set(said)
    summary = (other.folder / "SUMMARY.md").read_text()
    newest = [f"IN_PROGRESS — Row {number} laid" for number in range(_CHECKPOINTS - 20, _CHECKPOINTS)]
    assert [summary.count(bullet) for bullet in newest] == [1] * 20
    assert [heading for heading in other.updates if summary.count(heading) != 1] == []
