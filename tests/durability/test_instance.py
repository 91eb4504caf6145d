"""One daemon a tree: the second is refused and told who holds it; docs/architecture.md, "One daemon a tree"."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from swarmmemd.errors import Exit, HeldError
from swarmmemd.instance import is_running
from tests.support.faults import KILLED, in_child, kill
from tests.support.trees import Home, story


def _beside(home: Home, name: str, **roots: Path) -> Home:
    """Another home on some of the same roots."""
    other = Home(home.base.parent / name)
    other.config = replace(other.config, **roots)
    return other


def _refused(home: Home) -> HeldError:
    with pytest.raises(HeldError) as told:
        home.turn()
    assert told.value.code is Exit.LOCKED
    assert int(told.value.code) == 75
    assert told.value.mend
    return told.value


def test_the_state_directory_is_held(home: Home) -> None:
    with home.tree():
        error = _refused(_beside(home, "other", state_dir=home.state))
        assert f"process {os.getpid()}, running since 2026-05-05T12:00:00.000Z" in str(error)
        assert str(home.state) in str(error)
        running = is_running(home.state)
        assert running is not None
        assert running.pid == os.getpid()
    assert is_running(home.state) is None
    home.put(story()[0])
    home.turn()


@pytest.mark.parametrize("root", ["profiles_root", "shared_root"])
def test_the_roots_are_held_with_another_state_directory(home: Home, root: str) -> None:
    path = getattr(home.config, root)
    with home.tree():
        other = _beside(home, "other", **{root: path})
        error = _refused(other)
        assert str(path) in str(error)
        if sys.platform == "linux":
            assert f"process {os.getpid()}" in str(error)
        assert is_running(other.state) is None, "what was refused holds nothing"
    other.turn()


def test_the_same_root_by_another_name_is_held(home: Home) -> None:
    link = home.base / "by-another-name"
    link.symlink_to(home.profiles)
    with home.tree():
        _refused(_beside(home, "other", profiles_root=link))


def test_a_shared_root_that_opens_later_is_held_before_it_is_written(home: Home) -> None:
    home.shared.rmdir()
    home.shared.write_text("no folder")
    with home.tree() as tree:
        home.shared.unlink()
        home.shared.mkdir()
        other = _beside(home, "other", shared_root=home.shared)
        with other.tree(), pytest.raises(HeldError):
            tree.shared.opened()
        tree.shared.opened().close()
        _refused(other)


def test_the_refused_one_leaves_everything_as_it_was(home: Home) -> None:
    home.put(story()[0])
    home.turn()
    home.put(story()[1])
    files, rows = home.files(), home.rows()
    with home.tree():
        holder = (home.state / "holder.json").read_bytes()
        _refused(home)
        _refused(_beside(home, "other", profiles_root=home.profiles))
        assert (home.state / "holder.json").read_bytes() == holder
    assert home.files() == files
    assert home.rows() == rows


def _in_another_process(holds: Home, work: Callable[[int], None], ended: Callable[[], object]) -> None:
    """`work` while another process, whose id it gets, holds the tree; `ended` ends that process."""
    ready, done = os.pipe(), os.pipe()

    def hold() -> None:
        with holds.tree():
            os.write(ready[1], os.getpid().to_bytes(8, "big"))
            os.read(done[0], 1)
            ended()

    def both() -> None:
        child = os.fork()
        if child == 0:
            try:
                hold()
                os._exit(0)
            finally:
                os._exit(70)
        pid = int.from_bytes(os.read(ready[0], 8), "big")
        assert pid == child
        work(pid)
        os.write(done[1], b".")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, KILLED)

    try:
        both()
    finally:
        for pipe in (*ready, *done):
            os.close(pipe)


@pytest.mark.parametrize("end", ["in order", "killed"])
def test_another_process_is_named_and_when_it_ends_all_is_free(home: Home, end: str) -> None:
    """By its own words in the state directory, and by the kernel's for a root. No PID file is believed."""
    other = _beside(home, "other", profiles_root=home.profiles)
    home.put(story()[0])

    def refused(pid: int) -> None:
        assert f"process {pid}" in str(_refused(home))
        if sys.platform == "linux":
            assert f"process {pid}" in str(_refused(other))

    _in_another_process(home, refused, lambda: None if end == "in order" else kill("", ""))
    assert (home.state / "holder.json").exists()
    assert is_running(home.state) is None
    other.turn()
    home.turn()


def test_stale_words_of_a_holder_hold_nothing(home: Home) -> None:
    def died() -> None:
        with home.tree():
            kill("", "")

    assert in_child(died) == KILLED
    assert (home.state / "holder.json").exists()
    (home.state / "holder.json").write_bytes(b"\xff no json")
    assert is_running(home.state) is None
    home.turn()


def test_a_root_that_appears_later_is_taken_then(home: Home) -> None:
    home.profiles.rename(home.base / "later")
    with home.tree() as tree:
        assert tree.discover().trouble
        (home.base / "later").rename(home.profiles)
        other = _beside(home, "other", profiles_root=home.profiles)
        with other.tree(), pytest.raises(HeldError):
            tree.discover()
        tree.discover()
        _refused(other)
