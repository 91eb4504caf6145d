"""Workers that are not Hermes, beside a real daemon: README.md, "Workers that are not Hermes"."""

import json
import re
from pathlib import Path

from tests.support.daemon import Home, running, until

_README = Path(__file__).parents[2] / "README.md"
_WORKER = "painter"


def _form() -> str:
    """The block that the README shows."""
    section = _README.read_text("utf-8").split("### Workers that are not Hermes")[1]
    found = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def _block(result: str, state: str = "IN_PROGRESS") -> str:
    return _form().replace("The fence is painted", result).replace("STATE: DONE", f"STATE: {state}")


def _enrol(home: Home) -> Path:
    """A folder below the profiles, named in the roster: no chat, no `runtime.json`."""
    folder = home.profiles / _WORKER
    folder.mkdir()
    (home.workspace / "swarm.yaml").write_text(
        f"version: 1\nworkers:\n  - id: {_WORKER}\n    name: Painter\n"
    )
    return folder


def _due(home: Home, *results: str) -> None:
    def there() -> list[str]:
        return [event["event"]["result"] for event in home.events() if event["type"] == "checkpoint"]

    until(lambda: there() == list(results), f"{results}, not {there()}")


def test_a_checkpoint_file_that_is_written_anew(home: Home) -> None:
    folder = _enrol(home)
    with running(home, forked=True):
        (folder / "checkpoint.md").write_text(_form())
        _due(home, "The fence is painted")
        (folder / "checkpoint.md").write_text(_block("The gate is painted"))
        _due(home, "The fence is painted", "The gate is painted")
    episode = "\n".join(path.read_text() for path in (folder / "memory" / "episodes").iterdir())
    assert "The fence is painted" in episode
    assert "The gate is painted" in episode
    assert not (folder / "memory" / "missions").exists()


def test_a_log_that_grows_is_rotated_and_outlives_the_daemon(home: Home) -> None:
    folder = _enrol(home)
    log = folder / "pane.log"
    log.write_text("painting\n")
    with running(home, "--transcripts", "*.log*", forked=True):
        home.looked_at()
        with log.open("a") as pane:
            pane.write(f"$ paint\n\x1b[32m{_block('One wall is white')}\x1b[0m\n$ rest\n")
        _due(home, "One wall is white")
        log.rename(folder / "pane.log.1")
        log.write_text(f"{_block('Two walls are white')}\n$ rest\n")
        _due(home, "One wall is white", "Two walls are white")
    with log.open("a") as pane:
        pane.write(f"{_block('Three walls are white')}\n$ rest\n")
    with running(home, "--transcripts", "*.log*", forked=True):
        _due(home, "One wall is white", "Two walls are white", "Three walls are white")


def test_the_ledger_says_whose_mission_it_is(home: Home) -> None:
    folder = _enrol(home)
    assignment = {"id": "assign-1", "workerId": _WORKER, "task": "Paint the fence"}
    mission = {"id": "mission-1", "title": "Fences", "state": "executing", "assignments": [assignment]}
    home.ledger.write_text(json.dumps({"version": 1, "missions": [mission]}))
    with running(home, forked=True):
        (folder / "checkpoint.md").write_text(_form())
        _due(home, "The fence is painted")
        assert [event["missionId"] for event in home.events() if event["type"] == "checkpoint"] == [
            "mission-1"
        ]
        until(lambda: home.status_of(_WORKER, "mission-1") == "executing", "the summary")
