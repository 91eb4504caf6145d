"""Links, FIFOs and modes in a memory tree, through whole turns; docs/contracts.md, "Paths"."""

import os
import stat
from pathlib import Path

import pytest

from swarmmemd.durable import TEMPORARY
from swarmmemd.memory.obstacles import Obstacle
from tests.support.trees import MISSION, WORKER, Home, story, tree_of

LEVELS = {
    "memory": "memory",
    "missions": "memory/missions",
    "mission": f"memory/missions/{MISSION}",
    "episodes": "memory/episodes",
    "SUMMARY.md": f"memory/missions/{MISSION}/SUMMARY.md",
    "events.jsonl": f"memory/missions/{MISSION}/events.jsonl",
    "episode": "memory/episodes/2026-05-04.md",
}
FOLDERS = ("memory", "missions", "mission", "episodes")


def _blocked(home: Home, level: str) -> Path:
    """The place, with the folders above it made and nothing in it."""
    path = home.profiles / WORKER / LEVELS[level]
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _obstacles(home: Home) -> list[Obstacle]:
    with home.tree() as tree:
        report = tree.everything()
        assert report.failure is None
        assert [r.event.type.value for r in report.recorded] == ["checkpoint"]
        found = report.obstacles.get(WORKER, [])
        home.hands.move(1.0)
        assert not tree.everything().obstacles, "what is refused is not tried again at once"
        home.hands.move(61.0)
        assert tree.everything().obstacles
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_that_is_put_in_the_place_of_a_file_or_folder_is_refused(home: Home, level: str) -> None:
    """The memory is moved away and linked to, as somebody does who wants it elsewhere."""
    home.put(story()[0])
    home.turn()
    path = _blocked(home, level)
    outside = home.base / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    before = tree_of(outside) if outside.is_dir() else {"": outside.read_bytes()}
    home.put(story()[1])
    found = _obstacles(home)
    refused = [obstacle for obstacle in found if obstacle.refused]
    assert refused
    assert all(str(path) in obstacle.path for obstacle in refused)
    assert found == refused
    after = tree_of(outside) if outside.is_dir() else {"": outside.read_bytes()}
    assert after == before
    path.unlink()
    outside.rename(path)
    home.hands.move(120.0)
    home.turn()
    assert [applied for *_, applied in home.rows()] == [1, 1, 1]
    assert home.journal()[-1] in home.events().read_bytes()


@pytest.mark.parametrize("level", [*FOLDERS, "SUMMARY.md", "episode"])
def test_a_dangling_link_makes_nothing_where_it_points(home: Home, level: str) -> None:
    home.put(story()[0])
    home.turn()
    path = _blocked(home, level)
    path.rename(home.base / "kept")
    path.symlink_to(home.base / "nowhere")
    home.put(story()[1])
    assert any(obstacle.refused and str(path) in obstacle.path for obstacle in _obstacles(home))
    assert not (home.base / "nowhere").exists()


@pytest.mark.parametrize("level", ["episodes", "SUMMARY.md", "episode"])
def test_a_link_at_the_first_meeting_is_refused(home: Home, level: str) -> None:
    path, outside = _blocked(home, level), home.base / "outside"
    outside.mkdir()
    path.symlink_to(outside)
    home.put(story()[0])
    with home.tree() as tree:
        report = tree.everything()
        assert report.failure is None
        assert [o.path for o in report.obstacles[WORKER] if o.refused]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("level", ["SUMMARY.md", "events.jsonl", "episode"])
def test_a_fifo_in_the_place_of_a_file_does_not_block(home: Home, level: str) -> None:
    home.put(story()[0])
    home.turn()
    path = _blocked(home, level)
    path.rename(home.base / "kept")
    os.mkfifo(path)
    home.put(story()[1])
    (obstacle,) = _obstacles(home)
    assert obstacle.refused
    assert obstacle.path == str(path)
    path.unlink()
    (home.base / "kept").rename(path)
    home.hands.move(120.0)
    home.turn()
    assert [applied for *_, applied in home.rows()] == [1, 1, 1]


@pytest.mark.parametrize("level", ["SUMMARY.md", "events.jsonl", "episode"])
def test_what_is_stuck_stops_only_its_own(home: Home, level: str) -> None:
    """A later line must not be seen before the rest: `events.jsonl` waits for the other two."""
    home.put(story()[0])
    home.turn()
    path = _blocked(home, level)
    before = home.files()
    path.rename(home.base / "kept")
    path.mkdir()
    home.put(story()[1])
    home.turn()
    path.rmdir()
    (home.base / "kept").rename(path)
    after = home.files()
    events = f"missions/{MISSION}/events.jsonl"
    changed = {name for name in after if after[name] != before[name]}
    assert events not in changed
    assert changed == {*before} - {events, str(path.relative_to(home.memory()))}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_modes_of_existing_files_are_kept(home: Home, mode: int) -> None:
    home.put(story()[0])
    home.turn()
    for path in (p for p in home.memory().rglob("*") if p.is_file()):
        path.chmod(mode)
    home.put(story()[1])
    home.turn()
    modes = {stat.S_IMODE(p.stat().st_mode) for p in home.memory().rglob("*") if p.is_file()}
    assert modes == {mode}


@pytest.mark.parametrize(("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_new_memory_files_have_the_mode_of_the_umask(home: Home, umask: int, file: int, folder: int) -> None:
    before = os.umask(umask)
    try:
        home.put(story()[0])
        home.turn()
    finally:
        os.umask(before)
    paths = list(home.memory().rglob("*"))
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_file()} == {file}
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_dir()} == {folder}


def test_temporary_files_of_a_crash_are_swept_from_the_state_directory(home: Home) -> None:
    home.put(story()[0])
    home.turn()
    (home.state / f"{TEMPORARY}0123456789ab").write_bytes(b"half")
    (home.state / "mine.tmp").write_bytes(b"not ours")
    home.turn()
    assert not [path for path in home.state.iterdir() if path.name.startswith(TEMPORARY)]
    assert (home.state / "mine.tmp").exists()


def test_nothing_is_written_outside_of_memory_and_state(home: Home) -> None:
    for content in story():
        home.put(content)
        home.turn()
    outside = {path for path in tree_of(home.base) if not path.startswith(("state/", "shared/"))}
    expected = {f"profiles/{WORKER}/memory/{name}" for name in home.files()}
    assert outside == {*expected, f"profiles/{WORKER}/runtime.json"}


@pytest.mark.parametrize("name", ["events", "episode"])
def test_a_file_with_another_name_is_not_appended_to(home: Home, name: str) -> None:
    victim = home.base / "outside" / "victim"
    victim.parent.mkdir()
    victim.write_bytes(b"somebody's\n")
    path = {"events": home.events(), "episode": home.memory() / "episodes" / "2026-05-04.md"}[name]
    path.parent.mkdir(parents=True)
    path.hardlink_to(victim)
    home.put(story()[0])
    with home.tree() as tree:
        tree.everything()
        assert victim.read_bytes() == b"somebody's\n"
        assert [problem for problem in tree.problems() if path.name in problem and "another name" in problem]
        own = path.with_name("own")
        own.write_bytes(path.read_bytes())
        own.replace(path)
        home.hands.move(120.0)
        home.turns(tree)
        assert tree.problems() == ()
    assert path.stat().st_size > len(b"somebody's\n")
    assert victim.read_bytes() == b"somebody's\n"
