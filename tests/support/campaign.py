"""A story in which everything is written that there is, and what must be the same whatever goes wrong on the way.

Roster, ledger, chat, transcripts, handoffs, people who write too, an archive, the audit log and a backfill.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd import layout
from swarmmemd.audit import names
from swarmmemd.backfill import backfill
from swarmmemd.errors import StorageError
from swarmmemd.recall.verify import verify
from swarmmemd.tree import Tree
from swarmmemd.turn import Report
from tests.support.chats import BUILD
from tests.support.trees import WORKER, Home, tree_of

MISSION = "mission-mo5a0001-aaaaaa"
_PAST = "mission-mo5a0000-zzzzzz"
_TASK, _PAST_TASK = "Lay the garden path", "Oil the hinges of the gate"
_LONG_AGO = 1777852800


class Step(msgspec.Struct, frozen=True):
    """Something that happens to the sources, and what the daemon does about it."""

    name: str
    happen: Callable[[Home], None]
    work: Callable[[Home, Tree], None]


def _turn(home: Home, tree: Tree) -> None:
    _ended(tree.everything())


def _backfilled(home: Home, tree: Tree) -> None:
    _turn(home, tree)
    try:
        backfill(tree, WORKER, 0, dry=False)
    except OSError as error:
        raise StorageError(str(error), "Try again.") from error
    _turn(home, tree)


def _ended(report: Report) -> None:
    assert not any(one.refused for found in report.obstacles.values() for one in found)


# What happens


def _put(path: Path, text: str, minutes: float = 0) -> None:
    """A file that somebody put there whole, at that time of the story."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.aside")
    aside.write_text(text)
    _stamp(aside, minutes)
    aside.replace(path)


def _stamp(path: Path, minutes: float) -> None:
    at = BUILD.T0 + minutes * 60
    os.utime(path, (at, at))


def _ledger(home: Home, state: str) -> None:
    def mission(id: str, task: str, state: str, minute: float) -> dict[str, object]:
        over = {"completedAt": BUILD.ms(minute + 20)} if state == "complete" else {}
        assignment = {"id": f"assign-{id[-6:]}", "workerId": WORKER, "task": task, "state": "done"}
        return {
            "id": id,
            "title": task,
            "state": state,
            "createdAt": BUILD.ms(minute),
            "updatedAt": BUILD.ms(minute + 20),
            "assignments": [{**assignment, "dispatchedAt": BUILD.ms(minute), **over}],
        }

    missions = [mission(_PAST, _PAST_TASK, "complete", -600), mission(MISSION, _TASK, state, 0)]
    _put(layout.ledger(home.workspace), json.dumps({"version": 1, "missions": missions}), 30)


def _profile(home: Home) -> Any:
    return BUILD.Profile(home.profiles / WORKER, journal="delete")


def _still(home: Home) -> None:
    """What the agent writes is long past: it stands still."""
    for name in ("runtime.json", "state.db"):
        os.utime(home.profiles / WORKER / name, (_LONG_AGO, _LONG_AGO))


def _begins(home: Home) -> None:
    _put(home.workspace / "swarm.yaml", f"workers:\n  - id: {WORKER}\n    name: Builder\n    role: Builder\n")
    _ledger(home, "executing")
    with _profile(home) as profile:
        profile.session("main", at=-600)
        profile.say("user", BUILD.prompt(_PAST_TASK), -599)
        profile.say("assistant", BUILD.block("DONE", "The hinges are oiled"), -590)
        profile.dispatch(_TASK, MISSION, f"assign-{MISSION[-6:]}", at=0)
        profile.say("user", BUILD.prompt(_TASK), 0.1)
    _still(home)


def _works(home: Home) -> None:
    with _profile(home) as profile:
        profile.say("assistant", BUILD.block("IN_PROGRESS", "First row laid — 砂", files="path/plan.svg"), 5)
    _still(home)
    said = BUILD.block("IN_PROGRESS", "Second row laid", files="path/list.md")
    _put(home.profiles / WORKER / "checkpoint.md", f"# Checkpoint\n\n{said}\n", 6)


def _hands_over(home: Home) -> None:
    text = f"# Handoff — {WORKER} — {MISSION}\n\n## Next exact action\n\nLay the third row\n"
    _put(home.memory() / "handoffs" / "latest.md", text, 8)
    summary = home.summary()
    _put(summary, summary.read_text().replace("## Decisions\n", "## Decisions\n\n- Sand, not gravel\n", 1), 9)
    with home.events().open("a") as file:
        file.write('{"at":"2026-05-04T09:08:30.000Z","type":"note","summary":"Somebody else was here"}\n')


def _ends(home: Home) -> None:
    with _profile(home) as profile:
        done = BUILD.block("DONE", "The path is laid", files="path/photo.txt", next_action="Water the lawn")
        profile.say("assistant", done, 20)
        profile.runtime_done(done, "The path is laid", 20)
    _ledger(home, "complete")
    _still(home)


def _nothing(home: Home) -> None:
    """Somebody only asks for the past."""


STORY = (
    Step("begin", _begins, _turn),
    Step("work", _works, _turn),
    Step("handoff", _hands_over, _turn),
    Step("end", _ends, _turn),
    Step("backfill", _nothing, _backfilled),
)


# What must be the same


class Standing(msgspec.Struct, frozen=True):
    """All that is the same in every run: the files, the record, and how often the audit log names each event for each
    file that grows. (The line of a file that is replaced can be missing; docs/contracts.md, "Audit log".)"""

    memory: dict[str, bytes]
    shared: dict[str, bytes]
    journal: list[bytes]
    audited: Counter[tuple[str, str]]


def standing(home: Home) -> Standing:
    """How it stands."""
    return Standing(home.files(), tree_of(home.shared), home.journal(), _audited(home))


def _audited(home: Home) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for name in names(os.listdir(home.state), layout.AUDIT):
        for line in (home.state / name).read_bytes().splitlines():
            record: Mapping[str, Any] = msgspec.json.decode(line)
            if "appended" in record:
                path = os.path.relpath(record["path"], home.base)
                found.update((path, event) for event in record["events"])
    return found


def calm(home: Home, tree: Tree) -> None:
    """Turns until nothing waits any more."""
    home.turns(tree)
    home.hands.move(5.0)
    home.turns(tree)


def done(home: Home, step: Step) -> None:
    """The step's work, and turns until nothing waits: what a run without faults does."""
    with home.tree() as tree:
        step.work(home, tree)
        calm(home, tree)


def told(base: Path) -> list[Standing]:
    """How it stands after each step of a run without faults."""
    home, found = Home(base), []
    for step in STORY:
        step.happen(home)
        done(home, step)
        found.append(standing(home))
        assert verify(home.config).findings == []
    return found
