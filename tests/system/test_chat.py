"""The chat scenarios: every schema, both journal modes; beside a real daemon, with none during each step,
and with a look between any two writes of a step.

tests/cases/README.md says how to compare.
"""

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from swarmmemd.config import Config
from swarmmemd.tree import open_tree
from swarmmemd.turn import Clock
from tests.support.chats import EXPECTED, SCENARIOS, Scenario, all_there, scenarios
from tests.support.daemon import Home, running

_LAST = max(scenario["steps"] for scenario in EXPECTED.values())
_FORMS = [(schema, journal) for schema in (11, 19, 31) for journal in ("wal", "delete")]
_SOON = 1.0
_UNSEEN = ("rewound", 1)
"""What is taken back in this step of this scenario was seen by nobody."""


def _config(home: Home) -> Config:
    return Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )


def _start_and_stop(home: Home) -> None:
    """A start, one turn, and what waits for a moment; then the end."""
    clock = Clock(time.monotonic, time.time)
    with open_tree(_config(home), clock, allow_root=True) as tree:
        tree.discover()
        end = clock.monotonic() + _SOON
        while True:
            tree.everything()
            due = min((one.due for one in tree.turns.workers.values() if one.due is not None), default=end)
            if due >= end:
                break
            time.sleep(max(due - clock.monotonic(), 0.0))


@pytest.mark.parametrize(("schema", "journal"), _FORMS)
def test_beside_a_running_daemon(home: Home, schema: int, journal: str) -> None:
    played = scenarios(home, schema, journal)
    with running(home) as daemon:
        for number in range(1, _LAST + 1):
            for scenario in played:
                daemon.signal(signal.SIGSTOP if (scenario.name, number) == _UNSEEN else signal.SIGCONT)
                scenario.play(number)
            daemon.signal(signal.SIGCONT)
            home.looked_at()
            all_there(home, played, number)
    for scenario in played:
        scenario.ends_well()
        scenario.close()
    verified = home.command("verify")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize(("schema", "journal"), _FORMS)
def test_stopped_during_each_step(home: Home, schema: int, journal: str) -> None:
    played = scenarios(home, schema, journal)
    for number in range(1, _LAST + 1):
        for scenario in played:
            scenario.play(number)
        _start_and_stop(home)
        all_there(home, played, number)
    for scenario in played:
        scenario.ends_well()
        scenario.close()


class _Between:
    """Lets a daemon look, or not, after each single write of a scenario."""

    def __init__(self, home: Home, seed: str) -> None:
        self._home, self._random, self._now = home, random.Random(seed), 0.0
        self._looks = True
        self.trace: list[str] = []

    @contextmanager
    def daemon(self) -> Iterator[None]:
        """The tree is open, and its clock goes as the looks go."""
        began = time.time()
        clock = Clock(lambda: self._now, lambda: began + self._now)
        with open_tree(_config(self._home), clock, allow_root=True) as self._tree:
            yield

    def watch(self, profile: Any) -> None:
        """Looks between the writes of this profile too."""
        for name in ("runtime", "session", "say", "say_bytes"):
            setattr(profile, name, self._then_maybe_look(getattr(profile, name)))

    def begin(self, step: int, looks: bool) -> None:
        """Begins a step, with looks between its writes or none."""
        self._looks = looks
        self.trace.append(f"step {step}")

    def settle(self, seconds: float) -> None:
        """Looks until nothing waits for a moment within that time."""
        self._tree.discover()
        end = self._now + seconds
        while self._now < end:
            self._tree.everything()
            due = min(
                (one.due for one in self._tree.turns.workers.values() if one.due is not None), default=end
            )
            self._now = max(self._now + 0.001, min(due, end))

    def _look(self, after: str) -> None:
        seconds = self._random.choice((0.0, 0.0, 0.01, 0.01, 2.0))
        self.trace.append(f"{after} {seconds:g}")
        self.settle(seconds)

    def _then_maybe_look(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def both(*arguments: Any, **named: Any) -> Any:
            looks, self._looks = self._looks, False  # none within the write
            result = write(*arguments, **named)
            self._looks = looks
            if looks:
                self._look(write.__name__)
            return result

        return both


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", range(2))
def test_a_look_may_come_after_any_write(home: Home, name: str, seed: int) -> None:
    between = _Between(home, f"{name} {seed}")
    scenario = Scenario(home, name, 19, ("wal", "delete")[seed % 2])
    with between.daemon():
        between.watch(scenario.profile)
        for number in range(1, _LAST + 1):
            between.begin(number, looks=(name, number) != _UNSEEN)
            scenario.play(number)
            between.settle(_SOON)
            assert not scenario.differs(number, home.events()), between.trace
    scenario.ends_well()
    scenario.close()
