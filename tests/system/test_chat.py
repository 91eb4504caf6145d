"""The chat scenarios: every schema, both journal modes; beside a real daemon, and with none during each step.

tests/cases/README.md says how to compare.
"""

import signal
import time

import pytest

from swarmmemd.config import Config
from swarmmemd.tree import open_tree
from swarmmemd.turn import Clock
from tests.support.chats import EXPECTED, all_there, scenarios
from tests.support.daemon import Home, running

_LAST = max(scenario["steps"] for scenario in EXPECTED.values())
_FORMS = [(schema, journal) for schema in (11, 19, 31) for journal in ("wal", "delete")]
_SOON = 1.0


def _start_and_stop(home: Home) -> None:
    """A start, one turn, and what waits for a moment; then the end."""
    config = Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )
    clock = Clock(time.monotonic, time.time)
    with open_tree(config, clock, allow_root=True) as tree:
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
                # What is taken back in it was seen by nobody.
                unseen = scenario.name == "rewound" and number == 1
                daemon.signal(signal.SIGSTOP if unseen else signal.SIGCONT)
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
