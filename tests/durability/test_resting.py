"""Missions at rest, over a real tree: they are not held, and whatever names one finds it as it was.

docs/architecture.md, "State".
"""

import json
import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from swarmmemd.inbox import leave
from swarmmemd.layout import JOURNAL
from swarmmemd.model import EventType, MissionId, iso
from swarmmemd.observation import Post
from swarmmemd.tree import Tree, open_tree
from tests.support.resting import nothing_rests, witnessed
from tests.support.trees import WORKER, Home, block, tree_of

_MISSIONS = [MissionId(f"mission-{number:02}") for number in range(6)]
_LONG_AGO = 1_777_870_000


@pytest.fixture
def swarm(home: Home) -> Home:
    """A home with a worker that was never dispatched."""
    idle(home)
    return home


def idle(home: Home) -> None:
    """The worker is there."""
    home.put({"workerId": WORKER, "state": "idle", "checkpointStatus": "none"})


def dispatch(home: Home, mission: MissionId, task: str = "Lay the path") -> None:
    """The worker is dispatched, now."""
    at = int(home.hands.clock().wall() * 1000)
    content = {
        "workerId": WORKER,
        "state": "executing",
        "phase": "dispatched",
        "currentTask": task,
        "currentMissionId": mission,
        "currentAssignmentId": f"assign-{mission}",
        "checkpointStatus": "in_progress",
        "lastDispatchAt": at,
        "lastCheckIn": iso(at),
    }
    home.put(content)


def answer(home: Home, mission: MissionId, state: str, result: str) -> None:
    """The worker has answered, now."""
    at = int(home.hands.clock().wall() * 1000)
    content = {
        "workerId": WORKER,
        "state": "idle",
        "phase": state.lower(),
        "checkpointStatus": state.lower(),
        "currentMissionId": mission,
        "currentAssignmentId": f"assign-{mission}",
        "lastCheckIn": iso(at),
        "lastOutputAt": at,
        "lastResult": result,
        "checkpointRaw": block(state, result, files=f"{mission}.md"),
    }
    home.put(content)


def put_ledger(home: Home, states: Mapping[str, str]) -> None:
    """The ledger, written now, with missions of the worker."""
    now = home.hands.clock().wall()

    def told(mission: str, state: str) -> Mapping[str, Any]:
        work = {"id": f"assign-{mission}", "workerId": WORKER, "task": f"Of {mission}"}
        at = int(now * 1000)
        return {
            "id": mission,
            "title": f"Of {mission}",
            "state": state,
            "updatedAt": at,
            "assignments": [work],
        }

    path = home.workspace / ".runtime" / "swarm-missions.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": 1, "missions": [told(*one) for one in states.items()]}))
    os.utime(path, (now - 60, now - 60))


def post(home: Home, id: str, type: EventType, mission: MissionId) -> None:
    """Leaves a post in the inbox, now."""
    at = int(home.hands.clock().wall() * 1000)
    leave(home.state, Post(id=id, at=at, worker=WORKER, type=type, text=f"Posted {id}", mission=mission))


def finish(home: Home, tree: Tree, mission: MissionId, result: str = "All is laid") -> None:
    """A mission from its dispatch to its end."""
    home.hands.move(60.0)
    dispatch(home, mission)
    home.turns(tree)
    home.hands.move(60.0)
    answer(home, mission, "DONE", result)
    home.turns(tree)


def held(tree: Tree) -> set[MissionId]:
    """The missions that the daemon holds of the worker."""
    state = tree.turns.workers[WORKER].state
    return set(state.missions) if state else set()


def shown(home: Home, tree: Tree, mission: MissionId) -> bool:
    """Makes the mission's `SUMMARY.md` true, as after another writer. Says whether nothing stood in the way."""
    state = tree.turns.workers[WORKER].state
    assert state is not None
    return not tree.memory.reshow(state, mission, home.hands.now)


def stored(home: Home) -> dict[str, Any]:
    """The worker's row of the journal."""
    with closing(sqlite3.connect(home.state / JOURNAL)) as db:
        found: dict[str, Any] = json.loads(db.execute("SELECT state FROM worker").fetchone()[0])
    return found


def test_what_is_done_is_let_go_of_and_a_start_does_not_read_it(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS:
            finish(swarm, tree, mission)
            assert held(tree) == {mission}
    with swarm.tree() as tree:
        tree.everything()
        assert held(tree) == {_MISSIONS[-1]}


def test_who_has_just_written_the_files_of_a_mission_at_rest_waits_for_nobody(swarm: Home) -> None:
    """They are young, but not another writer's."""
    with swarm.tree() as tree:
        for mission in _MISSIONS[:2]:
            finish(swarm, tree, mission)
        for number in range(3):
            swarm.hands.move(time.time() - swarm.hands.clock().wall())
            post(swarm, f"{number:024x}", EventType.NOTE, _MISSIONS[0])
            tree.everything()
            assert tree.turns.workers[WORKER].memory.obstacles == []
            assert held(tree) == {_MISSIONS[1]}


def test_a_mission_at_rest_is_gone_on_with_where_it_was(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS[:3]:
            finish(swarm, tree, mission, f"Done with {mission}")
        finish(swarm, tree, _MISSIONS[0], "Done once more")
    summary = swarm.summary(_MISSIONS[0]).read_text()
    assert "DONE — Done with mission-00" in summary
    assert "DONE — Done once more" in summary
    types = [json.loads(line)["type"] for line in swarm.events(_MISSIONS[0]).read_bytes().splitlines()]
    assert types == ["mission-start", *["dispatch", "checkpoint", "complete"] * 2]


def test_what_another_program_writes_into_a_summary_at_rest_stays(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS[:2]:
            finish(swarm, tree, mission)
        summary = swarm.summary(_MISSIONS[0])
        text = summary.read_text().replace("## Decisions\n", "## Decisions\n\n- Bigger stones\n")
        summary.write_text(text.replace("DONE — All is laid", "DONE — Nothing is laid"))
        os.utime(summary, (_LONG_AGO, _LONG_AGO))
        assert shown(swarm, tree, _MISSIONS[0])
    assert "- Bigger stones" in summary.read_text()
    assert "DONE — All is laid" in summary.read_text()


def test_a_journal_that_does_not_say_what_rests_is_read_through(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS:
            finish(swarm, tree, mission)
    assert stored(swarm)["awake"] == [_MISSIONS[-1]]
    row = {key: value for key, value in stored(swarm).items() if key != "awake"}
    with closing(sqlite3.connect(swarm.state / JOURNAL)) as db, db:
        db.execute("UPDATE worker SET state = ?", (json.dumps(row).encode(),))
    with swarm.tree() as tree:
        tree.everything()
        assert held(tree) == {_MISSIONS[-1]}
        finish(swarm, tree, _MISSIONS[0])
    assert stored(swarm)["awake"] == [_MISSIONS[0]]


def test_archived_missions_are_looked_at_a_few_at_a_time(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS:
            finish(swarm, tree, mission)
        archived, copies = tree.shared.archived, swarm.shared / "swarm" / "missions"
        archived.look_at_all(tree.turns.workers)
        events = swarm.events(_MISSIONS[4])
        with events.open("ab") as file:
            file.write(b'{"at":"2026-05-05T09:00:00.000Z","type":"note","summary":"A line"}\n')
        looks = [archived.look(2, tree.turns.workers) for _ in range(4)]
        assert looks == [(set(), False), (set(), False), ({WORKER}, False), (set(), True)]
        swarm.turns(tree)
        copy = copies / _MISSIONS[4] / WORKER / "events.jsonl"
        assert copy.read_bytes() == events.read_bytes()


def test_of_a_long_ledger_only_what_is_the_workers_comes_back(swarm: Home) -> None:
    with swarm.tree() as tree:
        for mission in _MISSIONS[:3]:
            finish(swarm, tree, mission)
    states = {f"mission-other-{number}": "complete" for number in range(80)}
    put_ledger(swarm, {**states, _MISSIONS[0]: "complete", _MISSIONS[1]: "reviewing"})
    with swarm.tree() as tree:
        swarm.turns(tree)
        assert held(tree) == {_MISSIONS[1], _MISSIONS[2]}
        put_ledger(swarm, {**states, _MISSIONS[0]: "reviewing", _MISSIONS[1]: "complete"})
        swarm.turns(tree)
        assert held(tree) == {_MISSIONS[0], _MISSIONS[2]}


class Story:
    """What happens to one worker at random, the same for each tree that it is told to."""

    def __init__(self, home: Home, seed: int) -> None:
        self._home, self._random = home, Random(seed)
        self._states: dict[str, str] = {}
        self._current: MissionId | None = None
        self._posts = 0

    def tell(self, steps: int) -> None:
        """So many things happen, with a turn after each, and now and then another start."""
        idle(self._home)
        with ExitStack() as opened:
            tree = self._opened(opened)
            for _ in range(steps):
                self._home.hands.move(self._random.choice((1.0, 60.0, 400.0)))
                self._random.choice(
                    (
                        self._dispatch,
                        self._dispatch,
                        self._answer,
                        self._answer,
                        self._ledger,
                        self._post,
                        self._handoff,
                    )
                )()
                self._home.turns(tree)
                self._home.hands.move(2.0)
                self._home.turns(tree)
                if self._random.random() < 0.15:
                    opened.close()
                    tree = self._opened(opened)

    def _opened(self, opened: ExitStack) -> Tree:
        tree = opened.enter_context(open_tree(self._home.config, self._home.hands.clock()))
        tree.discover()
        return tree

    def _mission(self) -> MissionId:
        return self._random.choice(_MISSIONS)

    def _dispatch(self) -> None:
        self._current = self._mission()
        dispatch(self._home, self._current, self._random.choice(("Lay the path", "Paint the gate")))

    def _answer(self) -> None:
        if self._current is not None:
            state = self._random.choice(("DONE", "DONE", "BLOCKED", "HANDOFF", "IN_PROGRESS"))
            answer(self._home, self._current, state, self._random.choice(("All is laid", "It holds")))

    def _ledger(self) -> None:
        self._states[self._mission()] = self._random.choice(
            ("executing", "reviewing", "complete", "cancelled")
        )
        put_ledger(self._home, self._states)

    def _post(self) -> None:
        self._posts += 1
        type = self._random.choice(
            (EventType.NOTE, EventType.CHECKPOINT, EventType.COMPLETE, EventType.DISPATCH)
        )
        post(self._home, f"{self._posts:024x}", type, self._mission())

    def _handoff(self) -> None:
        mission, name = self._mission(), self._random.choice(("latest", str(self._mission())))
        path = self._home.memory() / "handoffs" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"# Handoff — {WORKER} — {mission}\n\n## Next exact action\n\nGo on, {self._random.random()}\n"
        path.write_text(text)
        at = _LONG_AGO + self._random.randrange(1000)
        os.utime(path, (at, at))


def left(home: Home) -> tuple[dict[str, bytes], dict[str, bytes], list[bytes]]:
    """The worker's memory, the shared folder and all events."""
    return home.files(), tree_of(home.shared), home.journal()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_what_one_writes_who_never_lets_go(tmp_path: Path, seed: int) -> None:
    homes = [Home(tmp_path / name) for name in ("lets go", "never")]
    with witnessed(homes[0].state / JOURNAL) as witness:
        Story(homes[0], seed).tell(40)
    assert witness.rested > 0
    with nothing_rests():
        Story(homes[1], seed).tell(40)
    assert left(homes[0]) == left(homes[1])
