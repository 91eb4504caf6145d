"""The watcher against real directories and the real kernel; docs/architecture.md, "Watching".

Each test is run both ways: with the one thread for all watches, and with a thread for each, unless it says that
it is about one of them.

Nothing here sleeps for an event: each waits for its condition, with a deadline. That nothing comes is shown
by a later change that does come: events of one directory keep their order.
"""

import ctypes
import errno
import itertools
import logging
import logging.config
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import watchdog.observers.inotify_move_event_grouper as grouper
from watchdog.events import DirMovedEvent
from watchdog.observers import inotify_c
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify import InotifyEmitter
from watchdog.observers.inotify_c import InotifyEvent, InotifyFD, Mask, WatchDescriptor

from swarmmemd.watch import Armed, Watcher, WatchHealth, inotify, kernel, observer, watcher
from swarmmemd.watch.observer import LOGGERS, Handler
from swarmmemd.watch.root import Root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify")

DEADLINE = 20.0
OVERFLOW = "Inotify queue overflowed; filesystem events were lost"


class Clock:
    """A monotonic clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Caller:
    """What the watcher calls back, and the watcher."""

    def __init__(self, mountinfo: Callable[[], str] = kernel.read_mountinfo) -> None:
        self.hints: list[tuple[str, str]] = []
        self.losses: list[str] = []
        self.clock = Clock()
        self.watcher = Watcher(self.hint, self.losses.append, clock=self.clock, mountinfo=mountinfo)

    def hint(self, key: str, name: str) -> None:
        self.hints.append((key, name))

    def take(self) -> list[tuple[str, str]]:
        taken, self.hints[:] = list(self.hints), []
        return taken

    def await_hint(self, key: str, name: str) -> None:
        wait_for(lambda: (key, name) in self.hints, f"hint {key} {name!r}, have {self.hints}")

    def after(self, seconds: float) -> WatchHealth:
        self.clock.now += seconds
        return self.watcher.check()


def wait_for(condition: Callable[[], bool], what: str = "the condition") -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.002)


def replace(path: Path, text: str = "x") -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.rename(path)


@pytest.fixture(autouse=True)
def quiet_thread_deaths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are killed on purpose here; the hook below ours says nothing."""
    monkeypatch.setattr(threading, "excepthook", lambda args: None)


ONE_THREAD, OBSERVER = "one thread", "observer"


@pytest.fixture(autouse=True, params=[ONE_THREAD, OBSERVER])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How changes are heard. A library without its reader, as far as we can see, leaves the observer."""
    if request.param == OBSERVER:
        monkeypatch.setitem(sys.modules, inotify_c.__name__, ModuleType("another"))
    return str(request.param)


only_one_thread = pytest.mark.parametrize("way", [ONE_THREAD], indirect=True)
only_observer = pytest.mark.parametrize("way", [OBSERVER], indirect=True)


def reader() -> threading.Thread:
    """The thread that reads inotify."""
    return next(thread for thread in threading.enumerate() if isinstance(thread, InotifyFD))


@pytest.fixture
def caller() -> Iterator[Caller]:
    made = Caller()
    made.watcher.start()
    yield made
    made.watcher.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "watched"
    made.mkdir()
    return made


# -- what a hint is given for


def test_a_replace_by_rename_is_hinted_with_both_names(caller: Caller, directory: Path) -> None:
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    replace(directory / "runtime.json")
    caller.await_hint("k", "runtime.json")
    caller.await_hint("k", "runtime.json.tmp")


def test_a_write_in_place_is_hinted(caller: Caller, directory: Path) -> None:
    target = directory / "f"
    target.write_text("old")
    caller.watcher.arm("k", directory)
    with open(target, "r+") as file:
        file.write("new")
    caller.await_hint("k", "f")


@only_one_thread
def test_a_write_to_a_file_that_stays_open_is_hinted_where_it_is_heeded(
    caller: Caller, directory: Path
) -> None:
    caller.watcher.arm("k", directory)
    with (
        (directory / "log").open("ab", buffering=0) as log,
        (directory / "other").open("ab", buffering=0) as other,
    ):
        caller.await_hint("k", "other")
        caller.take()
        assert caller.watcher.heeded_keys() == []
        caller.watcher.heed("k", frozenset({"log"}))
        assert caller.watcher.heeded_keys() == ["k"]
        other.write(b"x")
        log.write(b"x")
        caller.await_hint("k", "log")
        caller.watcher.heed("k", frozenset())
        assert caller.watcher.heeded_keys() == []
        caller.take()
        log.write(b"y")
        replace(directory / "last")
        caller.await_hint("k", "last")
        heard = {name for _, name in caller.take()}
        assert not heard & {"log", "other"}
    assert caller.after(61).armed == 1


@only_observer
def test_an_observer_hears_no_writes_and_says_so(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    caller.watcher.heed("k", frozenset({"log"}))
    assert caller.watcher.hears("k")
    assert caller.watcher.heeded_keys() == []


def test_a_rename_out_does_not_hold_up_what_follows(caller: Caller, directory: Path, tmp_path: Path) -> None:
    (directory / "f").write_text("x")
    caller.watcher.arm("k", directory)
    (directory / "f").rename(tmp_path / "elsewhere")
    caller.await_hint("k", "f")


@only_observer
def test_the_delay_of_renames_is_taken_out(caller: Caller) -> None:
    assert grouper.InotifyMoveEventGrouper.delay == 0


def test_a_rename_in_is_hinted(caller: Caller, directory: Path, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    caller.watcher.arm("k", directory)
    (tmp_path / "f").rename(directory / "f")
    caller.await_hint("k", "f")


def test_a_hard_link_a_symlink_and_a_deletion_are_hinted(caller: Caller, directory: Path) -> None:
    (directory / "f").write_text("x")
    caller.watcher.arm("k", directory)
    os.link(directory / "f", directory / "hard")
    (directory / "soft").symlink_to("f")
    (directory / "f").unlink()
    for name in ("hard", "soft", "f"):
        caller.await_hint("k", name)


def test_directories_made_moved_and_removed_are_hinted(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    (directory / "memory").mkdir()
    caller.await_hint("k", "memory")
    (directory / "memory").rename(directory / "moved")
    caller.await_hint("k", "moved")
    caller.take()
    (directory / "moved").rmdir()
    caller.await_hint("k", "moved")


def test_what_happens_below_is_not_watched(caller: Caller, directory: Path) -> None:
    (directory / "sub").mkdir()
    caller.watcher.arm("k", directory)
    (directory / "sub" / "deep").write_text("x")
    (directory / "last").write_text("x")
    caller.await_hint("k", "last")
    assert {name for _, name in caller.hints} == {"last"}


def test_reading_gives_no_hint(caller: Caller, directory: Path) -> None:
    (directory / "f").write_text("x")
    caller.watcher.arm("k", directory)
    for _ in range(50):
        (directory / "f").read_text()
        os.listdir(directory)
        os.stat(directory / "f")
    (directory / "last").write_text("x")
    caller.await_hint("k", "last")
    assert {name for _, name in caller.hints} == {"last"}


def test_names_that_are_no_text_and_files_that_are_no_files(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    odd = os.fsencode(directory) + b"/\xff\xfe" + b"n" * 250
    with open(odd, "wb"):
        pass
    os.mkfifo(directory / "fifo")
    caller.await_hint("k", os.fsdecode(os.path.basename(odd)))
    caller.await_hint("k", "fifo")
    assert caller.watcher.check().alive


# -- keys and directories


def test_two_keys_share_one_watch(caller: Caller, directory: Path) -> None:
    (directory.parent / "link").symlink_to(directory)
    assert caller.watcher.arm("a", directory) is Armed.EVENTS
    assert caller.watcher.arm("b", Path(f"{directory.parent}/link/")) is Armed.EVENTS
    assert caller.watcher.check().armed == 1
    assert caller.watcher.check().wanted == 2
    replace(directory / "f")
    caller.await_hint("a", "f")
    caller.await_hint("b", "f")
    caller.watcher.disarm("a")
    caller.take()
    replace(directory / "g")
    caller.await_hint("b", "g")
    assert {key for key, _ in caller.hints} == {"b"}
    caller.watcher.disarm("b")
    caller.watcher.disarm("b")
    assert caller.watcher.check() == WatchHealth("events", "", 0, 0, 0, 0, True)


def test_a_symlinked_directory_is_heard_and_its_new_target_too(caller: Caller, directory: Path) -> None:
    other = directory.parent / "other"
    other.mkdir()
    link = directory.parent / "link"
    link.symlink_to(directory)
    caller.watcher.arm("k", link)
    replace(directory / "f")
    caller.await_hint("k", "f")
    link.unlink()
    link.symlink_to(other)
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", link) is Armed.EVENTS
    assert not caller.watcher.stale("k")
    replace(other / "g")
    caller.await_hint("k", "g")
    assert caller.watcher.check().armed == 1


def test_arming_again_changes_nothing(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.watcher.arm("k", directory)
    monkeypatch.setattr(InotifyFD, "add_callback", None)
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    assert not caller.watcher.stale("k")


def test_a_missing_directory_and_a_file_in_its_place(caller: Caller, directory: Path) -> None:
    missing = directory / "memory"
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", missing) is Armed.MISSING
    assert not caller.watcher.stale("k")
    missing.write_text("no directory")
    assert caller.watcher.arm("k", missing) is Armed.MISSING
    missing.unlink()
    missing.mkdir()
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", missing) is Armed.EVENTS


def test_a_directory_deleted_and_made_again_is_heard_once_armed_again(
    caller: Caller, directory: Path
) -> None:
    """Often with the old inode, which alone would tell nothing (syncthing/syncthing#10870)."""
    caller.watcher.arm("k", directory)
    for turn in range(5):
        shutil.rmtree(directory)
        caller.await_hint("k", "")
        assert caller.watcher.stale("k")
        assert caller.watcher.arm("k", directory) is Armed.MISSING
        directory.mkdir()
        assert caller.watcher.arm("k", directory) is Armed.EVENTS
        caller.take()
        replace(directory / f"f{turn}")
        caller.await_hint("k", f"f{turn}")
    assert caller.watcher.check().armed == 1


def test_a_directory_made_again_before_anybody_looked(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    directory.rmdir()
    directory.mkdir()
    caller.await_hint("k", "")
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    replace(directory / "f")
    caller.await_hint("k", "f")


def test_another_directory_under_the_old_name(caller: Caller, directory: Path) -> None:
    """The moved one reports under its old path until it is armed anew (syncthing/syncthing#7076)."""
    moved = directory.parent / "moved"
    caller.watcher.arm("k", directory)
    directory.rename(moved)
    assert caller.watcher.stale("k")
    directory.mkdir()
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    assert caller.watcher.arm("m", moved) is Armed.EVENTS
    assert not caller.watcher.stale("k")
    replace(directory / "in-new")
    replace(moved / "in-moved")
    caller.await_hint("k", "in-new")
    caller.await_hint("m", "in-moved")
    assert ("k", "in-moved") not in caller.hints
    assert ("m", "in-new") not in caller.hints


def test_three_hundred_directories_on_one_instance(caller: Caller, tmp_path: Path) -> None:
    """gorakhargosh/watchdog#275: not an inotify instance for each."""
    before = len(inotify_descriptors())
    for number in range(300):
        (tmp_path / f"w{number}").mkdir()
        assert caller.watcher.arm(f"k{number}", tmp_path / f"w{number}") is Armed.EVENTS
    assert len(inotify_descriptors()) == before
    health = caller.watcher.check()
    assert (health.armed, health.polled, health.reason) == (300, 0, "")
    armed = kernel.fully_armed() or frozenset()
    for number in range(300):
        assert os.stat(tmp_path / f"w{number}").st_ino in armed
        replace(tmp_path / f"w{number}" / "f")
    for number in range(300):
        caller.await_hint(f"k{number}", "f")


@only_one_thread
def test_many_directories_take_one_thread(caller: Caller, tmp_path: Path) -> None:
    threads = threading.active_count()
    for number in range(300):
        (tmp_path / f"w{number}").mkdir()
        caller.watcher.arm(f"k{number}", tmp_path / f"w{number}")
    assert threading.active_count() == threads
    assert reader().is_alive()


@only_one_thread
def test_a_directory_that_is_moved_away_is_told(caller: Caller, directory: Path) -> None:
    """Without a look at its parent, and although the same directory may stand there again."""
    caller.watcher.arm("k", directory)
    directory.rename(directory.parent / "moved")
    caller.await_hint("k", "")
    (directory.parent / "moved").rename(directory)
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    assert not caller.watcher.stale("k")
    replace(directory / "f")
    caller.await_hint("k", "f")


@only_one_thread
def test_two_paths_of_one_directory_are_told_apart(caller: Caller, directory: Path) -> None:
    """One watch of the kernel's: it goes with the last of them."""
    moved = directory.parent / "moved"
    caller.watcher.arm("k", directory)
    directory.rename(moved)
    caller.await_hint("k", "")
    assert caller.watcher.arm("m", moved) is Armed.EVENTS
    caller.watcher.disarm("k")
    replace(moved / "f")
    caller.await_hint("m", "f")
    assert {key for key, name in caller.hints if name} == {"m"}
    caller.watcher.disarm("m")
    assert moved.stat().st_ino not in (kernel.fully_armed() or ())


@only_one_thread
def test_a_directory_that_is_unmounted_is_told(caller: Caller, directory: Path) -> None:
    """The kernel says UNMOUNT, then that it watches it no more."""
    caller.watcher.arm("k", directory)
    listening = reader()
    assert isinstance(listening, InotifyFD)
    descriptor = max(listening._watch_for_wd)
    for mask in (0x2000, 0x8000):
        listening.handle_event(InotifyEvent(descriptor, Mask(mask), 0, b""))
    assert caller.hints == [("k", "")]
    assert caller.watcher.stale("k")
    assert caller.watcher.arm("k", directory) is Armed.EVENTS


def test_programs_that_are_started_inherit_no_descriptor(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    listening = reader()
    assert isinstance(listening, InotifyFD)
    assert not os.get_inheritable(listening._inotify_fd)


def inotify_descriptors() -> list[str]:
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            continue
    return [link for link in links if "inotify" in link]


# -- what goes wrong


def test_a_hint_that_raises_kills_nothing(directory: Path) -> None:
    """gorakhargosh/watchdog#793."""
    seen: list[str] = []
    losses: list[str] = []

    def hint(key: str, name: str) -> None:
        seen.append(name)
        raise ValueError(name)

    made = Watcher(hint, losses.append)
    made.start()
    made.arm("k", directory)
    for name in ("first", "second"):
        replace(directory / name)
        wait_for(partial(seen.__contains__, name))
    assert made.check().alive
    assert "a hint failed: ValueError" in losses[0]
    made.close()


def test_a_dead_reader_is_replaced(caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tirth8205/code-review-graph#811: deaf, with all other threads alive."""
    caller.watcher.arm("k", directory)
    dead = kill_reader(caller, directory, monkeypatch)
    assert not dead.is_alive()
    health = caller.watcher.check()
    assert health == WatchHealth("events", "", 1, 1, 0, 0, True)
    assert "InotifyFD died" in caller.losses[0]
    assert "watching again" in caller.losses[0]
    replace(directory / "next")
    caller.await_hint("k", "next")
    caller.watcher.check()
    assert len(caller.losses) == 1


def kill_reader(caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch) -> threading.Thread:
    dying = reader()

    def fail(self: InotifyFD, event: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(InotifyFD, "handle_event", fail)
        replace(directory / "fatal")
        dying.join(DEADLINE)
    return dying


def test_a_reader_that_dies_while_reading_leaves_no_descriptor(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.watcher.arm("k", directory)
    before = len(inotify_descriptors())
    dying = reader()

    def fail(self: InotifyFD) -> bool:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(InotifyFD, "_check_inotify_fd", fail)
        replace(directory / "fatal")
        dying.join(DEADLINE)
    assert caller.watcher.check().alive
    assert len(inotify_descriptors()) == before


def test_a_reader_that_dies_at_once_again_is_not_replaced_every_second(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.watcher.arm("k", directory)
    kill_reader(caller, directory, monkeypatch)
    assert caller.watcher.check().alive
    kill_reader(caller, directory, monkeypatch)
    health = caller.after(0.5)
    assert (health.mode, health.alive, health.polled) == ("poll", False, 1)
    assert "ZeroDivisionError" in health.reason
    assert caller.watcher.arm("k", directory) is Armed.POLL
    assert caller.after(1).mode == "events"
    assert caller.watcher.arm("k", directory) is Armed.EVENTS


@only_observer
def test_a_dead_observer_is_replaced(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    dying = next(thread for thread in threading.enumerate() if isinstance(thread, BaseObserver))
    dying.event_queue.put("no event at all")
    dying.join(DEADLINE)
    assert caller.watcher.check().alive
    assert "InotifyObserver died" in caller.losses[0]
    replace(directory / "next")
    caller.await_hint("k", "next")


@only_observer
def test_a_dead_emitter_brings_a_new_observer(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.watcher.arm("k", directory)

    def fail(self: InotifyEmitter, event: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(InotifyEmitter, "build_and_queue_event", fail)
        replace(directory / "fatal")
        wait_for(lambda: bool(caller.watcher._fatal))
    assert caller.watcher.check().alive
    assert "InotifyEmitter died" in caller.losses[0]
    replace(directory / "next")
    caller.await_hint("k", "next")


@only_observer
@pytest.mark.parametrize("name", ["watchdog.observers.inotify_c", "watchdog.observers.inotify"])
def test_an_overflow_is_a_loss(caller: Caller, name: str) -> None:
    """gorakhargosh/watchdog#654: it is a line in the log, no more."""
    logging.getLogger(name).warning(OVERFLOW)
    assert caller.losses == ["overflow"]
    assert caller.watcher.check().overflows == 1


@only_observer
def test_an_overflow_is_heard_with_the_root_logger_at_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "level", logging.ERROR)
    made = Caller()
    made.watcher.start()
    logging.getLogger(LOGGERS[0]).warning(OVERFLOW)
    made.watcher.close()
    assert made.losses == ["overflow"]


@only_observer
def test_an_overflow_is_heard_after_logging_was_configured() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
        assert logging.getLogger(LOGGERS[0]).disabled
        made = Caller()
        made.watcher.start()
        logging.getLogger(LOGGERS[0]).warning(OVERFLOW)
        assert made.losses == ["overflow"]
        # Again while it runs: mended at the next check, and what was missed until then is made good.
        logging.config.dictConfig({"version": 1, "loggers": {LOGGERS[0]: {"level": "ERROR"}}})
        made.watcher.check()
        assert "overflows could not be heard" in made.losses[1]
        logging.getLogger(LOGGERS[0]).warning(OVERFLOW)
        assert made.losses[2:] == ["overflow"]
        made.watcher.check()
        assert len(made.losses) == 3
        made.watcher.close()
    finally:
        root.handlers[:], root.level = handlers, level
        for known in logging.root.manager.loggerDict.values():
            if isinstance(known, logging.Logger):
                known.disabled = False


@only_one_thread
def test_an_overflow_is_heard_whatever_logging_does(caller: Caller, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        caller.watcher.arm(name, tmp_path / name)
    logging.disable(logging.CRITICAL)
    try:
        overflow()
        assert caller.losses == ["overflow"]
        assert caller.watcher.check() == WatchHealth("events", "", 3, 3, 0, 1, True)
    finally:
        logging.disable(logging.NOTSET)


@only_one_thread
def test_the_next_overflow_is_another_loss(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    overflow()
    replace(directory / "f")
    caller.await_hint("k", "f")
    overflow()
    assert caller.losses == ["overflow", "overflow"]


def overflow() -> None:
    """What the kernel says when its queue was full."""
    listening = reader()
    assert isinstance(listening, InotifyFD)
    listening.handle_event(InotifyEvent(WatchDescriptor(-1), Mask(0x4000), 0, b""))


@only_observer
def test_logging_switched_off_is_said(caller: Caller) -> None:
    logging.disable(logging.CRITICAL)
    try:
        assert "overflows go unseen" in caller.watcher.check().reason
    finally:
        logging.disable(logging.NOTSET)


@only_observer
def test_another_warning_is_a_loss_and_no_overflow(caller: Caller) -> None:
    logging.getLogger("watchdog.observers.inotify").error("Unable to rebuild")
    assert caller.losses == ["watchdog: Unable to rebuild"]
    assert caller.watcher.check().overflows == 0


def test_a_lost_that_raises_is_called_again_by_check(directory: Path) -> None:
    calls: list[str] = []

    def lost(reason: str) -> None:
        calls.append(reason)
        if len(calls) == 1:
            raise ValueError

    made = Watcher(lambda key, name: None, lost)
    made.start()
    made.arm("k", directory)
    overflow()
    made.check()
    made.close()
    assert calls == ["overflow", "overflow"]


def test_a_real_overflow_is_heard(caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 20_000:
        pytest.skip("the kernel's queue is too long to fill here")
    caller.watcher.arm("k", directory)
    gate = threading.Event()
    original = InotifyFD.read_events

    def held(self: InotifyFD) -> object:
        gate.wait(DEADLINE)
        return original(self)

    with monkeypatch.context() as patched:
        patched.setattr(InotifyFD, "read_events", held)
        (directory / "wakes").write_text("x")  # the reader comes back from its read, and is held
        first, second = directory / "a", directory / "b"
        first.write_text("x")
        for _ in range(limit // 2 + 10):
            os.rename(first, second)
            os.rename(second, first)
        gate.set()
        wait_for(lambda: "overflow" in caller.losses)
    assert caller.losses == ["overflow"]
    assert caller.watcher.check().overflows == 1
    caller.take()
    replace(directory / "after")
    caller.await_hint("k", "after")


# -- what cannot be watched is polled, and tried again


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "inotify watch limit reached"),
        OSError(errno.EMFILE, "too many"),
        PermissionError(errno.EACCES, "denied"),
    ],
)
def test_a_refused_watch_is_polled_and_tried_again(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    calls: list[float] = []

    def refuse(self: InotifyFD, *args: object) -> object:
        calls.append(caller.clock.now)
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(InotifyFD, "add_callback", refuse)
        assert caller.watcher.arm("k", directory) is Armed.POLL
        health = caller.watcher.check()
        assert (health.mode, health.armed, health.polled, health.reason) == ("events", 0, 1, error.strerror)
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert not caller.watcher.stale("k")
        for _ in range(4 * 3600):
            caller.after(1)
        waits = [after - before for before, after in itertools.pairwise(calls)]
        assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert caller.hints == []
    assert caller.after(3600).armed == 1
    assert caller.hints == [("k", "")]
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    replace(directory / "f")
    caller.await_hint("k", "f")


def test_another_directory_is_tried_at_once(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(kernel, "fully_armed", frozenset)
        assert caller.watcher.arm("k", directory) is Armed.POLL
    assert caller.watcher.arm("k", directory) is Armed.POLL
    directory.rename(directory.parent / "away")
    directory.mkdir()
    assert caller.watcher.arm("k", directory) is Armed.EVENTS


@only_observer
def test_no_thread_left(caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library leaves the kernel watch and a growing queue behind; another observer frees them."""
    other = directory.parent / "other"
    other.mkdir()
    caller.watcher.arm("fine", other)

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert directory.stat().st_ino in (kernel.fully_armed() or ())  # the orphan
        before = caller.watcher._listener
        caller.after(30)
        assert caller.watcher._listener is before
    health = caller.after(31)
    assert (health.mode, health.armed, health.polled, health.reason) == ("events", 2, 0, "")
    assert caller.watcher._listener is not before
    assert "lack of threads" in caller.losses[0]
    replace(directory / "f")
    replace(other / "g")
    caller.await_hint("k", "f")
    caller.await_hint("fine", "g")


@only_one_thread
def test_a_directory_that_the_kernel_denies_is_polled(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library swallows EACCES and answers as if it watched."""

    def deny(*_: object) -> int:
        ctypes.set_errno(errno.EACCES)
        return -1

    with monkeypatch.context() as patched:
        patched.setattr(inotify_c, "inotify_add_watch", deny)
        assert caller.watcher.arm("k", directory) is Armed.POLL
    assert caller.watcher.check().reason == "not readable"
    listening = reader()
    assert isinstance(listening, InotifyFD)
    assert -1 not in listening._watch_for_wd
    assert caller.after(60).armed == 1


def test_a_directory_that_the_kernel_does_not_watch_is_polled(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an unreadable one: the library swallows EACCES, and is deaf also once it is readable."""
    with monkeypatch.context() as patched:
        patched.setattr(kernel, "fully_armed", lambda: frozenset({1}))
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert caller.watcher.check().reason == "the kernel does not watch it"
    assert caller.after(60).armed == 1
    assert caller.hints == [("k", "")]


def test_an_unreadable_directory_is_polled(
    caller: Caller, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda *args, **kwargs: False)
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert caller.watcher.check().reason == "not readable"
    assert caller.after(60).armed == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_without_permission_is_polled(caller: Caller, directory: Path) -> None:
    directory.chmod(0o000)
    assert caller.watcher.arm("k", directory) is Armed.POLL
    assert caller.watcher.arm("below", directory / "below") is Armed.POLL
    directory.chmod(0o700)
    assert caller.watcher.stale("below")
    assert caller.watcher.arm("below", directory / "below") is Armed.MISSING
    assert caller.after(60).armed == 1


def test_many_directories_are_verified_by_the_next_check(
    caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "VERIFY_AT_ONCE", 1)
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        assert caller.watcher.arm(name, tmp_path / name) is Armed.EVENTS
    seen = {(tmp_path / name).stat().st_ino for name in ("a", "b")}
    monkeypatch.setattr(kernel, "fully_armed", lambda: frozenset(seen))
    health = caller.watcher.check()
    assert (health.armed, health.polled) == (2, 1)
    assert caller.hints == [("c", "")]
    assert caller.watcher.arm("c", tmp_path / "c") is Armed.POLL


@only_observer
def test_the_audit_arms_again_where_another_schedule_replaced_the_mask(
    caller: Caller, directory: Path
) -> None:
    """A second schedule with another filter replaces the mask; the first handler gets nothing any more."""
    caller.watcher.arm("k", directory)
    scheduling = next(thread for thread in threading.enumerate() if isinstance(thread, BaseObserver))
    foreign = scheduling.schedule(
        Handler(Root("elsewhere"), caller.hint),
        f"{directory}/.",
        event_filter=[DirMovedEvent],
    )
    scheduling.unschedule(foreign)
    audited(caller, directory)


def test_the_audit_arms_again_what_the_kernel_has_forgotten(caller: Caller, directory: Path) -> None:
    """The mask of a directory is replaced behind the watcher's back."""
    caller.watcher.arm("k", directory)
    listening = reader()
    assert isinstance(listening, InotifyFD)
    inotify_c.inotify_add_watch(listening._inotify_fd, os.fsencode(directory), Mask(0x400))
    audited(caller, directory)


def audited(caller: Caller, directory: Path) -> None:
    """A directory with a wrong mask is armed again by the audit, not before, and heard."""
    assert directory.stat().st_ino not in (kernel.fully_armed() or ())
    caller.after(59)
    assert caller.hints == []
    assert caller.after(1).armed == 1
    assert caller.hints == [("k", "")]
    assert directory.stat().st_ino in (kernel.fully_armed() or ())
    replace(directory / "f")
    caller.await_hint("k", "f")


def test_the_audit_finds_a_directory_whose_deletion_nobody_heard(caller: Caller, directory: Path) -> None:
    caller.watcher.arm("k", directory)
    directory.rmdir()
    caller.await_hint("k", "")
    caller.take()
    caller.after(60)
    assert caller.hints == [("k", "")]
    assert caller.watcher.arm("k", directory) is Armed.MISSING


def test_network_and_user_space_file_systems_are_polled(directory: Path) -> None:
    """microsoft/WSL#4739: no events for what another kernel or a program writes."""
    caller = Caller(lambda: f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {directory} rw - nfs4 host:/ rw\n")
    caller.watcher.start()
    assert caller.watcher.arm("k", directory) is Armed.POLL
    health = caller.watcher.check()
    assert health.mode == "events"
    assert "nfs4" in health.reason
    caller.watcher.close()


def test_the_file_system_of_a_path() -> None:
    text = (
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        "2 1 0:5 / /home/my\\040share rw - fuse.sshfs host: rw\n"
        "3 1 0:6 / /mnt rw - ext4 /dev/b rw\n"
        "4 3 0:7 / /mnt rw master:2 - 9p C: rw\n"
        "torn line\n"
    )
    assert kernel.file_system("/etc", text) == "ext4"
    assert kernel.file_system("/home/my share/a", text) == "fuse.sshfs"
    assert kernel.file_system("/home/my sharer", text) == "ext4"
    assert kernel.file_system("/mnt", text) == "9p"
    assert kernel.file_system("/etc", "") == ""
    assert [
        kind for kind in ("ext4", "fuse.sshfs", "fuseblk", "nfs", "tmpfs", "") if kernel.is_foreign(kind)
    ] == [
        "fuse.sshfs",
        "fuseblk",
        "nfs",
    ]


def test_no_instance_to_be_had_is_poll_mode_and_ends(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gorakhargosh/watchdog#846: all instances used up, often by the user's desktop."""
    caller = Caller()

    def refuse(cls: type[InotifyFD]) -> int:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    with monkeypatch.context() as patched:
        patched.setattr(InotifyFD, "_create_inotify_fd", classmethod(refuse))
        caller.watcher.start()
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert caller.watcher.arm("missing", directory / "missing") is Armed.POLL
        health = caller.watcher.check()
        assert health == WatchHealth("poll", "inotify instance limit reached", 0, 2, 2, 0, True)
        caller.after(60)
    assert caller.after(60).mode == "poll"
    assert caller.after(60).mode == "events"
    assert caller.losses == ["watching again"]
    replace(directory / "f")
    caller.await_hint("k", "f")
    caller.watcher.close()


def test_no_thread_for_the_observer_leaks_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller()
    before = len(os.listdir("/proc/self/fd"))

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        caller.watcher.start()
    assert "can't start new thread" in caller.watcher.check().reason
    assert len(os.listdir("/proc/self/fd")) == before
    caller.watcher.close()


@pytest.mark.parametrize("module", ["watchdog.observers.kqueue", "watchdog.observers.polling"])
def test_a_platform_without_native_notification_is_poll_mode(
    directory: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setattr(observer, "Observer", type("Observer", (), {"__module__": module}))
    caller = Caller()
    caller.watcher.start()
    assert caller.watcher.arm("k", directory) is Armed.POLL
    assert not caller.watcher.stale("k")
    health = caller.after(4000)
    assert (health.mode, health.polled, health.alive) == ("poll", 1, True)
    assert module in health.reason
    assert caller.losses == []
    caller.watcher.close()


@only_observer
def test_a_library_without_the_rename_delay_is_noted(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        def __init__(self) -> None:
            """Has no attribute of that name."""

    monkeypatch.setattr(grouper, "InotifyMoveEventGrouper", Other)
    caller = Caller()
    caller.watcher.start()
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    health = caller.watcher.check()
    assert (health.mode, health.reason) == ("events", "the delay of renames cannot be set")
    caller.watcher.close()


def test_a_kernel_that_tells_nothing_is_no_error(
    caller: Caller, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernel.fully_armed(tmp_path / "no-proc") is None
    monkeypatch.setattr(kernel, "fully_armed", lambda: None)
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    assert caller.after(60).reason == ""


# -- beginning and end


class OtherCall(InotifyFD):
    """A later library: watches are asked for in another way."""

    def add_callback(self, watch: object) -> WatchDescriptor:  # type: ignore[override]
        raise NotImplementedError


class OtherMaking(InotifyFD):
    """A later library: the reader is made in another way."""

    def __init__(self, size: int) -> None:
        raise NotImplementedError


class OtherEvents(InotifyFD):
    """A later library: events are called back in another form."""

    def handle_event(self, event: InotifyEvent) -> None:
        for watch in self._watch_for_wd.values():
            for callback in watch.callbacks.values():
                callback.on_event((event.wd, event.mask, event.name))  # type: ignore[arg-type]


class Silent(InotifyFD):
    """A later library: calls back nothing."""

    def handle_event(self, event: InotifyEvent) -> None:
        """Nobody is called."""


@only_one_thread
@pytest.mark.parametrize("other", [OtherCall, OtherMaking, OtherEvents, Silent])
def test_a_library_whose_reader_differs_is_used_by_its_public_interface(
    directory: Path, monkeypatch: pytest.MonkeyPatch, other: type[InotifyFD]
) -> None:
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    later = ModuleType("later")
    vars(later)["InotifyFD"] = other
    monkeypatch.setitem(sys.modules, inotify_c.__name__, later)
    monkeypatch.setattr(inotify, "PROOF_SECONDS", 0.3)
    caller = Caller()
    caller.watcher.start()
    assert caller.watcher.arm("k", directory) is Armed.EVENTS
    assert any(isinstance(thread, BaseObserver) for thread in threading.enumerate())
    assert not any(isinstance(thread, other) for thread in threading.enumerate())
    replace(directory / "f")
    caller.await_hint("k", "f")
    assert caller.watcher.check() == WatchHealth("events", "", 1, 1, 0, 0, True)
    caller.watcher.close()
    assert set(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors


@only_one_thread
def test_a_system_that_has_no_watch_left_says_nothing_of_the_library(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    caller = Caller()
    with monkeypatch.context() as patched:
        patched.setattr(inotify_c, "inotify_add_watch", refuse)
        caller.watcher.start()
        assert caller.watcher.arm("k", directory) is Armed.POLL
        assert caller.watcher.check().reason == "inotify watch limit reached"
    assert not any(isinstance(thread, BaseObserver) for thread in threading.enumerate())
    assert caller.after(60).armed == 1
    caller.watcher.close()


def test_what_was_armed_before_the_start_is_watched_from_it(directory: Path) -> None:
    caller = Caller()
    assert caller.watcher.arm("k", directory) is Armed.POLL
    assert caller.watcher.check().reason == "not started"
    caller.watcher.start()
    caller.watcher.start()
    assert caller.watcher.check().armed == 1
    replace(directory / "f")
    caller.await_hint("k", "f")
    caller.watcher.close()


def test_closing_leaves_nothing_behind(directory: Path) -> None:
    threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    hook = threading.excepthook
    levels = [logging.getLogger(name).level for name in LOGGERS]
    caller = Caller()
    caller.watcher.start()
    caller.watcher.arm("k", directory)
    caller.watcher.arm("p", directory.parent)
    assert threading.excepthook is not hook
    caller.watcher.close()
    assert caller.hints == []
    caller.watcher.close()
    assert set(threading.enumerate()) == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert threading.excepthook is hook
    assert [logging.getLogger(name).level for name in LOGGERS] == levels
    assert all(not logging.getLogger(name).handlers for name in LOGGERS)
    assert caller.watcher.check().mode == "poll"
    assert caller.watcher.arm("k", directory) is Armed.POLL


def test_a_hook_put_before_ours_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller()
    caller.watcher.start()
    ours = threading.excepthook
    seen: list[threading.ExceptHookArgs] = []

    def theirs(args: threading.ExceptHookArgs) -> None:
        seen.append(args)
        ours(args)

    threading.excepthook = theirs
    caller.watcher.close()
    assert threading.excepthook is theirs
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert len(seen) == 1


def test_arming_many_times_under_writes_converges(caller: Caller, directory: Path) -> None:
    """rsyslog/rsyslog#3465."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            replace(directory / "f")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert caller.watcher.arm("k", directory) is Armed.EVENTS
            caller.watcher.disarm("k")
        caller.watcher.arm("k", directory)
    finally:
        stop.set()
        writer.join()
    caller.take()
    replace(directory / "last")
    caller.await_hint("k", "last")
    assert caller.watcher.check().alive
    assert caller.losses == []
