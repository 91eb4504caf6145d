"""What a command may not read or write: it says where, and ends with the exit code for it.

docs/commands.md, "Exit codes".
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.daemon import Home, dispatched, until
from tests.support.rights import CAN_BE_REFUSED, bound_by_modes, closed, running_bound_by_modes

pytestmark = pytest.mark.skipif(not CAN_BE_REFUSED, reason="root may read everything")

_MEMORY = "profiles/swarm5/memory"
_READING = {
    "search": ("search", "fence"),
    "search of one": ("search", "--worker", "swarm5", "fence"),
    "resume": ("resume", "swarm5"),
    "context": ("context", "fence"),
    "show": ("show", "--worker", "swarm5"),
    "show profile": ("show", "--worker", "swarm5", "--kind", "profile"),
    "show episodic": ("show", "--worker", "swarm5", "--kind", "episodic"),
    "rebuild --journal": ("rebuild", "--journal", "--dry-run"),
    "skill": ("skill", "install"),
}
_JOURNAL = {
    "tail": ("tail",),
    "tail -f": ("tail", "-f"),
    "handoff show": ("handoff", "show", "swarm5"),
    "handoff history": ("handoff", "history", "swarm5"),
    "verify": ("verify",),
    "promote": ("promote", "ev_0123456789abcdef0123456789abcd"),
    "archive": ("archive", "mission-x"),
    "backfill": ("backfill",),
    "rebuild": ("rebuild",),
    "once": ("once",),
}
_STATE = {
    "status": ("status",),
    "note": ("note", "--worker", "swarm5", "x"),
    "handoff write": ("handoff", "write", "swarm5"),
    **{name: line for name, line in _JOURNAL.items() if name != "tail -f"},
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One worker with a memory, and an inbox."""
    home = Home(tmp_path_factory.mktemp("rights") / "home")
    home.write("swarm5", dispatched("mission-x"))
    assert home.command("once").returncode == 0
    assert home.command("note", "--worker", "swarm5", "painted").returncode == 0
    assert home.command("once").returncode == 0
    return home


def refused(home: Home, line: tuple[str, ...], path: Path) -> str:
    """What a command says that must be refused by a path."""
    with closed(path):
        done = bound_by_modes(home, *line, text="text")
    assert done.returncode == 77, (done.returncode, done.stdout, done.stderr)
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("name", _READING)
def test_profiles_that_may_not_be_read(told: Home, name: str) -> None:
    assert "ermission" in refused(told, _READING[name], told.profiles)


@pytest.mark.parametrize("name", [name for name in _READING if name not in ("resume", "skill")])
def test_a_memory_that_may_not_be_read(told: Home, name: str) -> None:
    refused(told, _READING[name], told.profiles / "swarm5" / "memory")


def test_one_file_that_may_not_be_read_does_not_hide_the_others(told: Home) -> None:
    closed_file = told.profiles / "swarm5" / "memory" / "missions" / "mission-x" / "SUMMARY.md"
    with closed(closed_file):
        done = bound_by_modes(told, "show", "--worker", "swarm5", "--json", text="text")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"]) == (0, True)
    assert [file["name"] for file in found["files"]] == ["events.jsonl"]
    assert f"{closed_file}: permission denied" in done.stderr


@pytest.mark.parametrize("name", ["search", "context", "show profile"])
def test_what_could_not_be_read_is_not_called_well(told: Home, name: str) -> None:
    with closed(told.profiles / "swarm5" / "memory"):
        done = bound_by_modes(told, *_READING[name], "--json", text="text")
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (77, False)


@pytest.mark.parametrize("name", _JOURNAL)
def test_a_journal_that_may_not_be_read(told: Home, name: str) -> None:
    refused(told, _JOURNAL[name], told.state / "journal.db")


@pytest.mark.parametrize("name", _STATE)
def test_a_state_folder_that_may_not_be_entered(told: Home, name: str) -> None:
    refused(told, _STATE[name], told.state)


@pytest.mark.parametrize("name", ["note", "handoff write"])
def test_an_inbox_that_may_not_be_written(told: Home, name: str) -> None:
    assert "Check" in refused(told, _STATE[name], told.state / "inbox")


def test_a_file_for_a_handoff_that_may_not_be_read(told: Home, tmp_path: Path) -> None:
    file = tmp_path / "handoff.md"
    file.write_text("x")
    refused(told, ("handoff", "write", "swarm5", str(file)), file)
    assert told.command("handoff", "write", "swarm5", str(tmp_path / "none.md")).returncode == 2
    assert told.command("handoff", "write", "swarm5", str(tmp_path)).returncode == 2


@pytest.mark.parametrize("name", ["search", "search of one", "resume", "context", "show"])
def test_who_reads_memory_needs_no_state_folder(told: Home, name: str) -> None:
    with closed(told.state):
        done = bound_by_modes(told, *_READING[name])
    assert (done.returncode, done.stderr.partition("==")[0]) == (0, "")


@pytest.mark.parametrize(
    "closed_place",
    [
        "",
        "missions",
        "missions/mission-x/events.jsonl",
        "missions/mission-x/SUMMARY.md",
        "episodes",
        "handoffs",
        "SOUL.md",
    ],
)
def test_a_briefing_says_what_is_missing_in_it(told: Home, tmp_path: Path, closed_place: str) -> None:
    home = Home(tmp_path / "home")
    shutil.copytree(told.profiles, home.profiles, dirs_exist_ok=True)
    path = home.profiles / "swarm5" / "memory" / closed_place
    if not path.suffix:
        path.mkdir(exist_ok=True)
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept\n")
    with closed(path):
        done = bound_by_modes(home, "resume", "swarm5", "--max-chars", "1000")
        found = json.loads(bound_by_modes(home, "resume", "swarm5", "--json").stdout)
    assert done.returncode == 0
    assert str(path) in done.stderr
    assert "Not all of it could be read" in done.stdout
    assert str(path) in done.stdout
    assert any(str(path) in text for text in found["unread"])


def test_a_working_folder_that_may_not_be_looked_at_is_not_gone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("swarm5", dispatched("mission-x", cwd=str(home.root / "closed" / "worktree")))
    (home.root / "closed" / "worktree").mkdir(parents=True)
    with closed(home.root / "closed"):
        done = bound_by_modes(home, "resume", "swarm5")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is gone" not in done.stdout


def test_another_worker_s_closed_profile_stops_no_search(told: Home, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    shutil.copytree(told.profiles, home.profiles, dirs_exist_ok=True)
    (home.workspace / "swarm.yaml").write_text("workers: [{id: swarm5}, {id: swarm6}]\n")
    (home.profiles / "swarm6" / "memory").mkdir(parents=True)
    (home.profiles / "private" / "memory").mkdir(parents=True)
    with closed(home.profiles / "swarm6"), closed(home.profiles / "private"):
        for line in (("search", "fence"), ("context", "fence")):
            done = bound_by_modes(home, *line)
            assert done.returncode == 0
            assert "swarm6" in done.stderr
            assert "private" not in done.stderr
        assert bound_by_modes(home, "search", "xylophone").returncode == 77
    assert home.command("search", "xylophone").returncode == 1


@pytest.mark.parametrize("part", ["", "memory", "memory/handoffs", "memory/missions"])
def test_the_daemon_goes_on_where_one_worker_is_closed_to_it(home: Home, part: str) -> None:
    for worker in ("swarm5", "swarm6"):
        home.write(worker, dispatched("mission-x"))
        (home.profiles / worker / "memory" / "handoffs").mkdir(parents=True)
    with running_bound_by_modes(home) as daemon:
        until(lambda: len(home.types()) == 4 and home.backlog() == (0, 0), "the dispatches")
        with closed(home.profiles / "swarm5" / part):
            for worker in ("swarm5", "swarm6", "swarm5", "swarm6"):
                done = home.command("note", "--worker", worker, "--wait", "painted")
                assert done.returncode == 0, done.stderr
            home.looked_at()
        until(lambda: home.backlog() == (0, 0), "what waited")
        lines = (home.mission("swarm5", "mission-x") / "events.jsonl").read_text()
        assert lines.count('"painted"') == 2
        assert daemon.poll() is None
