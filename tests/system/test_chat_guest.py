"""A guest in a chat database: an agent that writes without rest notices nothing of the daemon that reads along.

docs/contracts.md, "The chat".
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chats import BUILD
from tests.support.chatwriter import EVERY
from tests.support.daemon import Home, dispatched, running, until

_WORKER, _MISSION = "worker-1", "mission-1"
_REPOSITORY = Path(__file__).parents[2]
_LARGEST_LOG = 5 * 1024 * 1024


def _written(home: Home, journal: str, commits: int, a_second: int) -> dict[str, Any]:
    """What the writer saw, while a daemon read along and recorded each checkpoint."""
    profile = home.profiles / _WORKER
    home.write(_WORKER, dispatched(_MISSION, "Write without rest", lastDispatchAt=BUILD.ms(0)))
    with running(home):
        command = [sys.executable, "-m", "tests.support.chatwriter", str(profile), journal]
        writer = subprocess.Popen(
            [*command, str(commits), str(a_second)],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with writer:
            due = [f"Piece {n} of the work" for n in range(1, commits // EVERY + 1)]
            until(lambda: _results(home) == due, f"{len(due)} checkpoints", 60.0)
            home.looked_at()
            told, _ = writer.communicate()
        assert writer.returncode == 0
    found: dict[str, Any] = json.loads(told)
    return found


def _results(home: Home) -> list[str]:
    return [event["event"]["result"] for event in home.events() if event["type"] == "checkpoint"]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_writer_of_300_rows_a_second_sees_no_error(home: Home, journal: str) -> None:
    found = _written(home, journal, 600, 300)
    assert found["errors"] == []


def test_the_log_stays_the_writers_and_small(home: Home) -> None:
    found = _written(home, "wal", 10_000, 0)
    assert found["errors"] == []
    assert found["inodes"] == 1, "the log was made anew"
    assert not found["shrunk"], "the log was shortened"
    assert 0 < found["largest"] <= _LARGEST_LOG
    assert found["left"] == 0, "the writer's last close could not fold the log back"


def test_the_owner_changes_the_journal_mode(home: Home) -> None:
    found = _written(home, "switch", 600, 300)
    assert found["errors"] == []
