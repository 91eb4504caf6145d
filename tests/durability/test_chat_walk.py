"""A random walk over all that happens to a chat and to `runtime.json`, over three workers, with looks, restarts and
kills at random: afterwards each genuine checkpoint is in exactly one event, on its dispatch, and in order.

Seeds beside those of the suite: SWARMMEMD_WALK_SEEDS=100-150; longer walks: SWARMMEMD_WALK_STEPS=5000.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from swarmmemd.layout import CHAT, JOURNAL
from swarmmemd.model import WorkerId
from swarmmemd.tree import Tree, open_tree
from tests.support.chats import BUILD
from tests.support.chatwalk import STYLES, Life, World
from tests.support.faults import From, hooked, in_child, kill
from tests.support.resting import witnessed
from tests.support.trees import Hands, Home

_HOLD = 61_000
_WORKERS = ("builder-1", "builder-2", "builder-3")


def _seeds() -> list[int]:
    first, _, last = os.environ.get("SWARMMEMD_WALK_SEEDS", "1-3").partition("-")
    return list(range(int(first), int(last or first) + 1))


_LENGTH = int(os.environ.get("SWARMMEMD_WALK_STEPS", "300"))


class Walk:
    """Three lives in one home, and a tree that looks at them: open, or closed between two of its looks."""

    def __init__(self, base: Path, seed: int) -> None:
        self.home = Home(base, *map(WorkerId, _WORKERS))
        start = BUILD.ms(0)
        self.home.hands = Hands(start / 1000)
        self.world = World(seed, start, self._pass, self.look, self.settle)
        random = self.world.random
        self.lives = {
            worker: Life(
                self.world,
                self.home.profiles / worker,
                random.choice(BUILD.SCHEMAS),
                random.choice(BUILD.JOURNALS),
                random.choice(STYLES),
            )
            for worker in _WORKERS
        }
        self._writes = 0
        self._events: list[dict[str, Any]] = []
        self._open = ExitStack()
        self._tree: Tree | None = None
        self.look()

    def _pass(self, ms: int) -> None:
        self.home.hands.move(ms / 1000)

    def look(self) -> None:
        """A turn for every worker."""
        tree = self._opened()
        self._stamp()
        tree.everything()
        held = self._held()
        for worker, life in self.lives.items():
            if worker not in held:
                life.looked_at()
        if not held:
            self.check()

    def _held(self) -> list[str]:
        """The workers of whom a checkpoint waits for its dispatch."""
        tracked = self._tree.turns.workers.values() if self._tree else ()
        return [one.id for one in tracked if one.state and one.state.chat and one.state.chat.held]

    def settle(self) -> None:
        """A look, and one when nothing that waits for its dispatch waits any more."""
        self.look()
        if self._held():
            self.world.wait(_HOLD, _HOLD)
            self.look()

    def restart(self) -> None:
        """The daemon ends; the next look begins a new one."""
        self._open.close()
        self._open, self._tree = ExitStack(), None

    def killed(self) -> None:
        """The daemon ends in the middle of a look."""
        self.restart()
        for life in self.lives.values():
            life.close()
        self._stamp()
        point = self.world.random.randrange(60)

        def work() -> None:
            with hooked(From(point, kill)):
                self.home.turn()

        assert in_child(work) in (0, 9)

    def _opened(self) -> Tree:
        if self._tree is None:
            self._tree = self._open.enter_context(open_tree(self.home.config, self.home.hands.clock()))
            self._tree.discover()
        return self._tree

    def _stamp(self) -> None:
        """Each write has a time of its own, as on a machine that is not this quick."""
        self._writes += 1
        at = (self.world.now - 1000) * 1_000_000 + self._writes
        for worker in _WORKERS:
            for name in ("runtime.json", *CHAT):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(self.home.profiles / worker / name, ns=(at, at))

    def step(self) -> None:
        """One thing happens."""
        random = self.world.random
        random.choice(list(self.lives.values())).step()
        chance = random.random()
        if chance < 0.45:
            self.look()
        elif chance < 0.5:
            self.restart()
        elif chance < 0.53:
            self.killed()

    def recorded(self) -> list[dict[str, Any]]:
        """All events in recording order."""
        for line in self.home.journal()[len(self._events) :]:
            self._events.append(json.loads(line))
        return self._events

    def check(self) -> None:
        """What must be recorded is recorded, and nothing else."""
        events = self.recorded()
        for worker, life in self.lives.items():
            mine = [event for event in events if event["workerId"] == worker]
            where = f"{worker}, {life.style}, schema {life.profile.schema}, {life.profile.journal}"
            _same(_dispatches(mine), [(one.mission, one.assignment) for one in life.given], where, life)
            _same(_checkpoints(mine), [tuple(one) for one in life.said], where, life)
            _same(_requests(mine), life.requested, where, life)


def _dispatches(events: list[dict[str, Any]]) -> list[Any]:
    return [(e["missionId"], e["assignmentId"]) for e in events if e["type"] == "dispatch"]


def _checkpoints(events: list[dict[str, Any]]) -> list[Any]:
    return [
        (e["missionId"], e["assignmentId"], e["event"]["state"], e["event"]["result"])
        for e in events
        if e["type"] in ("checkpoint", "blocked") and e["event"]["origin"] != "control-plane"
    ]


def _requests(events: list[dict[str, Any]]) -> list[Any]:
    return [e["missionId"] for e in events if e["type"] == "handoff-requested"]


def _same(found: list[Any], due: list[Any], where: str, life: Life) -> None:
    if found == due:
        return
    pairs = zip_longest(found, due)
    n, (one, other) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    story = "\n".join(life.story[-25:])
    told = (f"{where}: number {n} is {one}, due is {other}, after", story, f"now: {life.doing}{life.told}")
    raise AssertionError("\n".join((*told, f"found {found[-4:]}", f"due {due[-4:]}")))


@contextmanager
def _walk(base: Path, seed: int) -> Iterator[Walk]:
    walk = Walk(base, seed)
    try:
        yield walk
    finally:
        walk.restart()
        for life in walk.lives.values():
            life.close()


@pytest.mark.parametrize("seed", _seeds())
def test_each_genuine_checkpoint_is_one_event(quick_path: Path, seed: int) -> None:
    with _walk(quick_path, seed) as walk:
        for _ in range(_LENGTH):
            walk.step()
        walk.settle()
        walk.settle()
        walk.check()


def test_a_walk_is_told_alike_by_one_who_never_lets_go_of_a_mission(quick_path: Path) -> None:
    with _walk(quick_path, 7) as walk, witnessed(walk.home.state / JOURNAL) as witness:
        for _ in range(_LENGTH):
            walk.step()
        assert witness.rested > 0
