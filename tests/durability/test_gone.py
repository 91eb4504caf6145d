"""Profiles and memory folders that go away and come back; docs/architecture.md, "Apply".

A profile is somebody else's and is never made again. The memory folder in it is ours and is.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmmemd.journal import Follower
from swarmmemd.layout import JOURNAL
from swarmmemd.tree import Tree
from tests.support.faults import calls_of, hooked
from tests.support.trees import STORY_TYPES, WORKER, Home, Undisturbed, story, tree_of


def _profile(home: Home) -> Path:
    return home.profiles / WORKER


def _waiting_and_unplaced(home: Home) -> tuple[int, int]:
    follower = Follower(home.state / JOURNAL)
    try:
        return follower.backlog()
    finally:
        follower.close()


def _removed_at(home: Home, tree: Tree, call: str, name: str) -> None:
    """One turn; at this point of it somebody removes the whole profile."""

    def remove(called: str, named: str) -> int | None:
        if (called, named) == (call, name):
            shutil.rmtree(_profile(home), ignore_errors=True)
        return None

    with hooked(remove):
        report = tree.everything()
    assert report.failure is None
    assert not report.obstacles


def test_events_of_a_removed_profile_wait_out_of_the_way(home: Home, undisturbed: Undisturbed) -> None:
    home.put(story()[0])
    with home.tree() as tree:
        _removed_at(home, tree, "turn", "record")
        assert not _profile(home).exists()
        for _ in range(3):
            home.hands.move(30.0)
            assert not tree.everything().obstacles
        assert not _profile(home).exists()
        tree.turns.settle()
        assert _waiting_and_unplaced(home) == (0, 2)
        assert [applied for *_, applied in home.rows()] == [2, 2]
        _profile(home).mkdir()
        home.put(story()[0])
        home.hands.move(30.0)
        tree.everything()
        assert home.files() == undisturbed.files[0]
    assert [applied for *_, applied in home.rows()] == [1, 1]
    assert home.journal() == undisturbed.journals[0]


def test_a_removed_profile_is_not_made_by_a_restart(home: Home, undisturbed: Undisturbed) -> None:
    home.put(story()[0])
    with home.tree() as tree:
        _removed_at(home, tree, "turn", "record")
    for _ in range(2):
        home.turn()
        assert list(home.profiles.iterdir()) == []
    _profile(home).mkdir()
    home.put(story()[0])
    home.turn()
    assert home.files() == undisturbed.files[0]
    assert home.journal() == undisturbed.journals[0]
    for content, files in zip(story()[1:], undisturbed.files[1:], strict=True):
        home.put(content)
        home.turn()
        assert home.files() == files


def test_moved_away_and_back_it_goes_on(home: Home, undisturbed: Undisturbed) -> None:
    """A profile that is renamed away in the middle of a mission keeps its memory, and goes on with it."""
    for content in story()[:2]:
        home.put(content)
        home.turn()
    home.put(story()[2])
    with home.tree() as tree:

        def moved(call: str, name: str) -> int | None:
            if (call, name) == ("turn", "record"):
                _profile(home).rename(home.base / "away")
            return None

        with hooked(moved):
            tree.everything()
        assert list(home.profiles.iterdir()) == []
    home.turn()
    assert list(home.profiles.iterdir()) == []
    (home.base / "away").rename(_profile(home))
    for step, content in enumerate(story()[3:], 3):
        home.put(content)
        home.turn()
        assert home.files() == undisturbed.files[step]
    assert home.types() == STORY_TYPES


def test_removed_at_any_point_it_is_never_made_again(quick_path: Path) -> None:
    """Nor does the turn raise, nor anything appear in its place."""
    counted = Home(quick_path / "counted")
    counted.put(story()[0])
    with counted.tree() as tree:
        calls = calls_of(tree.everything)
    for point in range(len(calls)):
        home = Home(quick_path / f"run-{point}")
        home.put(story()[0])
        seen = 0

        def remove(call: str, name: str, home: Home = home, point: int = point) -> int | None:
            nonlocal seen
            if seen == point:
                shutil.rmtree(_profile(home), ignore_errors=True)
            seen += 1
            return None

        with home.tree() as tree:
            with hooked(remove):
                tree.everything()
            for _ in range(2):
                home.hands.move(61.0)
                tree.everything()
        assert list(home.profiles.iterdir()) == [], calls[point]
        home.turn()
        assert list(home.profiles.iterdir()) == []


def test_the_whole_root_is_gone_for_a_while(home: Home, undisturbed: Undisturbed) -> None:
    """A volume that is not mounted: nothing is made where it should be, and it goes on when it is back."""
    home.put(story()[0])
    with home.tree() as tree:
        tree.everything()
        home.profiles.rename(home.base / "unmounted")
        for _ in range(3):
            tree.discover()
            assert tree.everything().failure is None
            home.hands.move(30.0)
        assert not home.profiles.exists()
        (home.base / "unmounted").rename(home.profiles)
        for content in story()[1:]:
            home.put(content)
            tree.discover()
            tree.everything()
        assert home.files() == undisturbed.files[-1]


def _memory(home: Home) -> Path:
    return home.memory()


def _missions(home: Home) -> Path:
    return home.memory() / "missions"


def _episodes(home: Home) -> Path:
    return home.memory() / "episodes"


def _mission(home: Home) -> Path:
    return home.events().parent


@pytest.mark.parametrize("folder", [_memory, _missions, _episodes, _mission])
def test_a_memory_folder_that_is_deleted_is_made_again(home: Home, folder: Callable[[Home], Path]) -> None:
    """With what is new; what was in it is the journal's to give back by `rebuild`."""
    home.put(story()[0])
    with home.tree() as tree:
        tree.everything()
        before = set(home.files())
        shutil.rmtree(folder(home))
        home.put(story()[1])
        report = tree.everything()
        assert not report.obstacles
        assert report.failure is None
    after = home.files()
    assert set(after) == before
    line = home.journal()[-1]
    gone = folder(home) != _episodes(home)
    assert home.events().read_bytes() == (line if gone else b"".join(home.journal()))
    assert b"First row laid" in home.summary().read_bytes()
    assert [applied for *_, applied in home.rows()] == [1, 1, 1]


def test_what_lies_in_the_profile_besides_is_never_touched(home: Home) -> None:
    beside = {
        "MEMORY.md": b"the profile's own",
        "memories/2026.md": b"private",
        "state.db": b"\0" * 100,
        "sessions/1.json": b"{}",
        "memory/handoffs/latest.md": b"# Handoff",
        "memory/MEMORY.md": b"pointer",
        "memory/missions/notes.txt": b"mine",
    }
    for name, data in beside.items():
        path = _profile(home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for content in story():
        home.put(content)
        home.turn()
    found = tree_of(_profile(home))
    assert {name: found[name] for name in beside} == beside
