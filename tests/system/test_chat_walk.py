"""The random walk of tests/durability/test_chat_walk.py, short, beside a real daemon that is killed now and then."""

from typing import Any

import pytest

from tests.support.chats import BUILD
from tests.support.chatwalk import Life, World
from tests.support.daemon import Daemon, Home, until

_WORKERS = {
    "builder-1": (19, "wal", "raw"),
    "builder-2": (31, "delete", "one-line"),
    "builder-3": (11, "wal", "form"),
}
_STEPS = 120
_WAITS = 75.0
"""Seconds. So long can an answer wait for its dispatch."""


class Walk:
    """Three lives in one home, and a daemon that is there most of the time."""

    def __init__(self, home: Home, seed: int) -> None:
        self.home = home
        self.world = World(seed, BUILD.ms(0), lambda ms: None, self.look, self.settle)
        self.world.watched = True
        self.lives = {
            worker: Life(self.world, home.profiles / worker, *form) for worker, form in _WORKERS.items()
        }
        self.kills = 0
        self._daemon: Daemon | None = None

    def look(self) -> None:
        """The daemon has looked at everything; it is started where it was killed."""
        if self._daemon is None:
            self._daemon = Daemon(self.home, forked=True).ready()
        self.home.looked_at()

    def settle(self) -> None:
        """A look, and all that must be recorded is recorded."""
        self.look()
        until(lambda: all(map(self._is_recorded, _WORKERS)), "what the lives have said", _WAITS)
        for life in self.lives.values():
            life.looked_at()

    def step(self) -> None:
        """One thing happens; sometimes the daemon dies."""
        random = self.world.random
        random.choice(list(self.lives.values())).step()
        chance = random.random()
        if chance < 0.07 and self._daemon is not None:
            self.end()
            self.kills += 1
        elif chance < 0.2:
            self.settle()

    def end(self) -> None:
        """kill -9."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon = None

    def said(self, worker: str) -> list[Any]:
        """The worker's recorded checkpoints."""
        return [
            (e["missionId"], e["assignmentId"], e["event"]["state"], e["event"]["result"])
            for e in self.home.events()
            if e["workerId"] == worker
            and e["type"] in ("checkpoint", "blocked")
            and e["event"]["origin"] != "control-plane"
        ]

    def _is_recorded(self, worker: str) -> bool:
        return self.said(worker) == self.lives[worker].said


@pytest.mark.parametrize("seed", [1])
def test_each_genuine_checkpoint_is_one_event(home: Home, seed: int) -> None:
    walk = Walk(home, seed)
    try:
        walk.look()
        for _ in range(_STEPS):
            walk.step()
        walk.settle()
        for worker, life in walk.lives.items():
            assert walk.said(worker) == life.said, life.story
        assert walk.kills
    finally:
        walk.end()
        for life in walk.lives.values():
            life.close()
