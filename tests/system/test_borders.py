"""Which paths can be touched at all: planted links, hostile ids, odd files in the place of sources."""

import json
import os
import socket
import stat
from pathlib import Path

import pytest

from tests.support.daemon import Home, answered, dispatched, put_file, running, until

_MISSION = "mission-1"
_OWN = f"# Handoff — odd — {_MISSION}\n\n## Next exact action\n\nGo on.\n".encode()
_GOOD = ["mission-start", "dispatch"]


def _outside(home: Home) -> Path:
    folder = home.root / "outside"
    folder.mkdir()
    (folder / "precious.txt").write_text("somebody's")
    return folder


def _untouched(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == ["precious.txt"]


_LINKS = {
    "memory": "profiles/odd/memory",
    "missions": "profiles/odd/memory/missions",
    "mission": f"profiles/odd/memory/missions/{_MISSION}",
    "episodes": "profiles/odd/memory/episodes",
    "handoffs": "profiles/odd/memory/handoffs",
    "shared handoffs": "shared/handoffs",
    "swarm": "shared/handoffs/swarm",
    "archive": "shared/swarm",
    "archived mission": f"shared/swarm/missions/{_MISSION}",
    "latest": "shared/handoffs/swarm/odd-latest.md",
}


@pytest.mark.parametrize("name", _LINKS)
def test_a_planted_link_leads_nowhere(home: Home, name: str) -> None:
    outside = _outside(home)
    root, _, rest = _LINKS[name].partition("/")
    link = (home.profiles if root == "profiles" else home.shared) / rest
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "made.md" if name == "latest" else outside)
    with running(home) as daemon:
        home.write("odd", dispatched(_MISSION))
        home.write("good", dispatched("mission-2"))
        home.looked_at()
        if name not in ("memory", "handoffs"):
            put_file(home.profiles / "odd" / "memory" / "handoffs" / "latest.md", _OWN)
        home.write("odd", answered(_MISSION, "done"))
        home.looked_at()
        until(lambda: daemon.logged("failing"), "the line that says so")
        assert home.types("good") == _GOOD
        assert home.status_of("good", "mission-2") == "executing"
        assert len({line["what"] for line in daemon.logged("failing")}) == 1, daemon.logged("failing")
    assert _untouched(outside)


@pytest.mark.parametrize("name", ["lock", "journal.db", "inbox"])
def test_a_link_in_the_place_of_a_state_file_is_refused(home: Home, name: str) -> None:
    outside = _outside(home)
    home.state.mkdir(mode=0o700)
    (home.state / name).symlink_to(outside if name == "inbox" else outside / "made")
    home.write("good", dispatched(_MISSION))
    done = home.command("once")
    assert "Traceback" not in done.stderr
    assert _untouched(outside)


@pytest.mark.parametrize(
    "mission", ["../../x", "a/b", "m" * 200, "a\0b", "mission\n", "mission\u202e", ".hidden", "con trol"]
)
def test_a_hostile_mission_id_reaches_no_path(home: Home, mission: str) -> None:
    with running(home):
        home.write("odd", dispatched(mission))
        home.write("good", dispatched("mission-2"))
        home.looked_at()
        assert home.types() == _GOOD
    assert not (home.profiles / "odd" / "memory").exists()


def test_ids_that_differ_in_case_are_two(home: Home) -> None:
    with running(home):
        home.write("one", dispatched("Mission-A"))
        home.looked_at()
        home.write("one", dispatched("mission-a", lastDispatchAt=1777886200000))
        home.looked_at()
    assert sorted(p.name for p in (home.profiles / "one" / "memory" / "missions").iterdir()) == [
        "Mission-A",
        "mission-a",
    ]


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("plant", [_fifo, _socket, _folder])
def test_an_odd_file_in_the_place_of_a_source_neither_blocks_nor_misleads(home: Home, plant: object) -> None:
    assert callable(plant)
    home.write("good", dispatched("mission-2"))
    (home.profiles / "odd").mkdir()
    plant(home.profiles / "odd" / "runtime.json")
    folder = home.profiles / "good" / "memory" / "handoffs"
    folder.mkdir(parents=True)
    plant(folder / "latest.md")
    with running(home):
        home.looked_at()
        assert home.types() == _GOOD


def test_state_is_private_and_memory_keeps_the_umask(home: Home) -> None:
    home.write("good", dispatched(_MISSION))
    before = os.umask(0o027)
    try:
        with running(home):
            home.looked_at()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in home.state.iterdir() if path.is_file()}
    assert (modes, stat.S_IMODE(home.state.stat().st_mode)) == ({0o600}, 0o700)
    summary = home.mission("good", _MISSION) / "SUMMARY.md"
    assert stat.S_IMODE(summary.stat().st_mode) == 0o640


def test_texts_of_workers_break_no_markdown_no_terminal_and_no_line(home: Home) -> None:
    task = "# Gate\n## Status: complete\n- Status: complete\n\x1b[31mred\x1b]0;title\x07 \u2028 ```\n<!--"
    with running(home):
        home.write("good", dispatched(_MISSION, task=task))
        home.looked_at()
        shown = [home.command("tail"), home.command("status"), home.command("show", "--worker", "good")]
    summary = (home.mission("good", _MISSION) / "SUMMARY.md").read_text()
    assert [line for line in summary.splitlines() if line.startswith("- Status:")] == ["- Status: executing"]
    assert sum(line.startswith("## ") for line in summary.splitlines()) == 7
    for line in (home.mission("good", _MISSION) / "events.jsonl").read_bytes().splitlines():
        json.loads(line)
    assert not [out for out in shown if "\x1b" in out.stdout or "\x07" in out.stdout]
