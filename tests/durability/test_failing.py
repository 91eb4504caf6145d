"""System calls that fail for a while: the turn reports it and goes on; when it is over, all is as it should be."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmmemd.errors import StorageError
from swarmmemd.model import WorkerId
from swarmmemd.seam import Hook
from swarmmemd.tree import Tree
from tests.support.faults import From, calls_of, failing, hooked, is_system_call
from tests.support.trees import STORY_TYPES, Home, Undisturbed, story

ERRNOS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE)
each_errno = pytest.mark.parametrize("number", ERRNOS, ids=[errno.errorcode[n] for n in ERRNOS])


def _told(home: Home, step: Callable[[Tree], None]) -> None:
    """Tells the story to one open tree: each step is put in place and given to `step`."""
    home.put(story()[0])
    with home.tree() as tree:
        for content in story():
            home.put(content)
            home.hands.move(1.0)
            step(tree)


def _most_calls(base: Path) -> int:
    home, counts = Home(base), []

    def count(tree: Tree) -> None:
        calls = calls_of(tree.everything)
        counts.append(sum(is_system_call(*call) for call in calls))

    _told(home, count)
    return max(counts)


def _is_end(home: Home, undisturbed: Undisturbed) -> None:
    assert home.files() == undisturbed.files[-1]
    assert home.journal() == undisturbed.journals[-1]
    assert all(applied == 1 for *_, applied in home.rows())


@each_errno
@pytest.mark.parametrize("times", [1, 3, 1000], ids=["once", "thrice", "for a while"])
def test_a_call_of_a_turn_fails(
    quick_path: Path, undisturbed: Undisturbed, number: int, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run number n fails the n-th call of each turn, and the ones after it."""
    faults = 0
    for point in range(_most_calls(quick_path / "counted")):
        home = Home(quick_path / f"run-{point}")

        def step(tree: Tree, home: Home = home, point: int = point) -> None:
            nonlocal faults
            hook = From(point, failing(number), times, is_system_call)
            with hooked(hook):
                for _ in range(3 if times > 1 else 1):
                    before = len(hook.fired)
                    report = tree.everything()
                    if len(hook.fired) > before:
                        assert report.failure is not None or report.obstacles, hook.fired
                        assert not any(o.refused for found in report.obstacles.values() for o in found)
                    home.hands.move(5.0)
            faults += len(hook.fired)
            home.hands.move(120.0)
            home.turns(tree)

        _told(home, step)
        _is_end(home, undisturbed)
    with capsys.disabled():
        print(f" [{faults} faults]", end="")
    assert faults


@pytest.mark.parametrize("size", [1, 7, 64])
def test_every_write_is_short(tmp_path: Path, undisturbed: Undisturbed, size: int) -> None:
    home, writes = Home(tmp_path / "home"), 0

    def short(call: str, name: str) -> int | None:
        nonlocal writes
        if call != "write":
            return None
        writes += 1
        return size

    def step(tree: Tree) -> None:
        report = tree.everything()
        assert report.failure is None
        assert not report.obstacles

    with hooked(short):
        _told(home, step)
    assert writes > 1000 / size
    _is_end(home, undisturbed)


def _full_after(size: int, name: str) -> Hook:
    """The disk takes so many bytes of the file, then it is full."""
    written = False

    def hook(call: str, called: str) -> int | None:
        nonlocal written
        if (call, called) != ("write", name):
            return None
        if written:
            return failing(errno.ENOSPC)(call, called)
        written = True
        return size

    return hook


@pytest.mark.parametrize("name", ["2026-05-04.md", "2026-05-05.md", "SUMMARY.md", "events.jsonl"])
@pytest.mark.parametrize("size", [1, 7, 64, 200])
def test_the_disk_is_full_in_the_middle_of_a_write(
    tmp_path: Path, undisturbed: Undisturbed, name: str, size: int
) -> None:
    home = Home(tmp_path / "home")

    def step(tree: Tree) -> None:
        with hooked(_full_after(size, name)):
            tree.everything()
        home.hands.move(120.0)
        home.turns(tree)

    _told(home, step)
    _is_end(home, undisturbed)


@each_errno
def test_applied_is_not_committed_while_the_journal_cannot(home: Home, number: int) -> None:
    home.put(story()[0])
    with home.tree() as tree:
        tree.everything()
        with hooked(From(0, failing(number), 3)):
            for _ in range(3):
                with pytest.raises(StorageError) as told:
                    tree.turns.settle()
                assert told.value.mend
        assert [applied for *_, applied in home.rows()] == [0, 0]
        tree.turns.settle()
        assert [applied for *_, applied in home.rows()] == [1, 1]


def test_what_is_missed_while_nothing_can_be_recorded_is_made_up_for(home: Home) -> None:
    """A whole mission passes on a full disk. What `runtime.json` still holds is recorded, the mission whole."""
    home.put(story()[0])
    with home.tree() as tree:
        with hooked(From(0, failing(errno.ENOSPC), 10_000, is_system_call)):
            for content in story():
                home.put(content)
                home.hands.move(1.0)
                assert tree.everything().failure is not None
        home.hands.move(120.0)
        home.turns(tree)
        types = home.types()
        assert types[0] == "mission-start"
        assert types[-2:] == STORY_TYPES[-2:]


def test_one_stuck_worker_stops_nobody_else(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", WorkerId("builder-1"), WorkerId("painter-2"))
    for worker in ("builder-1", "painter-2"):
        home.put({**story()[0], "workerId": worker}, WorkerId(worker))

    def denied(call: str, name: str) -> int | None:
        return failing(errno.EACCES)(call, name) if (call, name) == ("fsync", str(denied_folder)) else None

    denied_folder = home.profiles / "builder-1"
    with home.tree() as tree, hooked(denied):
        report = tree.everything()
        assert set(report.obstacles) == {"builder-1"}
    assert set(home.files(WorkerId("painter-2"))) == {
        "episodes/2026-05-04.md",
        *(f"missions/{story()[0]['currentMissionId']}/{name}" for name in ("SUMMARY.md", "events.jsonl")),
    }
