"""Files that survive: replace and append at every fault, links, modes; docs/architecture.md, "Durability"."""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarmmemd.durable import (
    TEMPORARY,
    Appending,
    Directory,
    Moved,
    Refused,
    Version,
    hold,
    private_directory,
    read_file,
    replace,
    stands,
    sweep_temporaries,
    version_at,
    versions_below,
)
from tests.support.faults import KILLED, From, calls_of, failing, hooked, in_child, kill

OLD, NEW = b"old text\n" * 50, b"new text, longer\n" * 90
LIMIT = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Directory]:
    with Directory.root(tmp_path) as opened:
        yield opened


def _path(folder: Directory, name: str = "file") -> Path:
    return Path(folder.shown) / name


def _replaced(folder: Directory) -> None:
    replace(folder, "file", NEW)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("before", [OLD, None], ids=["over a file", "new"])
def test_replace_is_whole_or_nothing_at_each_failure(
    folder: Directory, number: int, before: bytes | None
) -> None:
    points = calls_of(lambda: _replaced(folder))
    assert [call for call, _ in points] == ["create", "write", "fsync", "rename", "fsync"]
    for point, (call, name) in enumerate(points):
        _path(folder).unlink()
        if before is not None:
            _path(folder).write_bytes(before)
        with hooked(From(point, failing(number))), pytest.raises(OSError) as told:
            _replaced(folder)
        assert told.value.errno == number
        renamed = (call, name) == ("fsync", folder.shown)
        assert read_file(folder, "file", LIMIT) == (NEW if renamed else before), call
        assert [name for name in folder.names() if name != "file"] == []
        _replaced(folder)
        assert read_file(folder, "file", LIMIT) == NEW


def test_replace_is_whole_or_nothing_at_each_kill(folder: Directory) -> None:
    for point in range(5):
        _path(folder).write_bytes(OLD)

        def work(point: int = point) -> None:
            with hooked(From(point, kill)):
                _replaced(folder)

        assert in_child(work) == KILLED
        assert read_file(folder, "file", LIMIT) == (NEW if point == 4 else OLD)
        left = [name for name in folder.names() if name != "file"]
        assert all(name.startswith(TEMPORARY) for name in left)
        assert sweep_temporaries(folder) == len(left)
        assert folder.names() == ["file"]


@pytest.mark.parametrize("size", [1, 7, 64, 4096])
def test_short_writes_are_completed(folder: Directory, size: int) -> None:
    def short(call: str, name: str) -> int | None:
        return size if call == "write" else None

    with hooked(short):
        replace(folder, "file", NEW)
        with Appending(folder, "grown") as file:
            file.append(NEW)
            file.append(OLD)
    assert read_file(folder, "file", LIMIT) == NEW
    assert read_file(folder, "grown", LIMIT) == NEW + OLD


def test_append_leaves_a_prefix_at_each_failure(folder: Directory) -> None:
    for size in (1, 7, 64, len(NEW) - 1):
        _path(folder).write_bytes(OLD)
        written = 0

        def short(call: str, name: str, size: int = size) -> int | None:
            nonlocal written
            if call != "write":
                return None
            if written:
                return failing(errno.ENOSPC)(call, name)
            written += 1
            return size

        with hooked(short), Appending(folder, "file") as file, pytest.raises(OSError, match="No space"):
            file.append(NEW)
        assert read_file(folder, "file", LIMIT) == OLD + NEW[:size]


def test_appending_makes_the_name_durable_once(folder: Directory) -> None:
    with Appending(folder, "file") as file:
        assert calls_of(lambda: file.append(b"1\n"))[-1] == ("fsync", folder.shown)
        assert calls_of(lambda: file.append(b"2\n")) == [("write", "file"), ("fsync", "file")]
    with Appending(folder, "file") as file:
        assert calls_of(lambda: file.append(b"3\n")) == [("write", "file"), ("fsync", "file")]
        assert file.read(2) == b"2\n3\n"
        assert file.mark().size == 6


def test_appending_does_not_make_what_it_should_not(folder: Directory) -> None:
    with pytest.raises(FileNotFoundError), Appending(folder, "file", create=False):
        pass
    assert folder.names() == []


# Compare-and-swap


def _by_rename(path: Path) -> None:
    aside = path.with_name("aside")
    aside.write_bytes(OLD)
    aside.replace(path)


def _longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _same_length(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"OLD")
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


def _truncated(path: Path) -> None:
    os.truncate(path, 0)


def _removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [_by_rename, _longer, _same_length, _truncated, _removed])
@pytest.mark.parametrize("at", ["create", "write", "fsync"])
def test_moved_when_somebody_else_wrote_it(
    folder: Directory, change: Callable[[Path], None], at: str
) -> None:
    _path(folder).write_bytes(OLD)
    held = hold(folder, "file", LIMIT)
    assert held is not None

    def meanwhile(call: str, name: str) -> int | None:
        if call == at:
            change(_path(folder))
        return None

    with hooked(meanwhile), pytest.raises(Moved):
        replace(folder, "file", NEW, held.version)
    theirs = read_file(folder, "file", LIMIT)
    assert theirs != NEW
    assert [name for name in folder.names() if name.startswith(TEMPORARY)] == []
    now = version_at(folder, "file")
    replace(folder, "file", NEW, now)
    assert read_file(folder, "file", LIMIT) == NEW
    held.close()


def test_moved_when_a_file_appeared_where_none_was(folder: Directory) -> None:
    def meanwhile(call: str, name: str) -> int | None:
        if call == "fsync":
            _path(folder).write_bytes(OLD)
        return None

    with hooked(meanwhile), pytest.raises(Moved):
        replace(folder, "file", NEW, None)
    assert read_file(folder, "file", LIMIT) == OLD


def test_the_version_that_was_written_is_the_one_that_stands(folder: Directory) -> None:
    version: Version | None = None
    for text in (b"", NEW, OLD, OLD):
        version = replace(folder, "file", text, version)
        assert version == version_at(folder, "file")


@pytest.mark.parametrize("at", ["rename", "fsync"])
def test_what_comes_into_the_replaced_file_can_still_be_read(folder: Directory, at: str) -> None:
    """A writer that has the old file open goes on after it was replaced."""
    _path(folder).write_bytes(OLD)
    held = hold(folder, "file", LIMIT)
    assert held is not None
    with _path(folder).open("ab", buffering=0) as writer:
        replace(folder, "file", NEW, held.version)
        assert held.reread() is None
        writer.write(b"late 1")
        assert held.reread() == OLD + b"late 1"
        assert held.reread() is None
        writer.write(b"late 2")
        assert held.reread() == OLD + b"late 1late 2"
    held.close()
    held.close()
    assert held.reread() is None


# What is no file or folder of its own


@pytest.mark.parametrize("what", ["link", "dangling link", "fifo", "folder", "socket"])
def test_anything_but_a_regular_file_is_refused(
    folder: Directory, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret"
    outside.write_bytes(b"theirs")
    path = _path(folder)
    if what == "link":
        path.symlink_to(outside)
    elif what == "dangling link":
        path.symlink_to(outside.with_name("nothing"))
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.open(".", os.O_RDONLY)
            os.chdir(folder.descriptor)
            try:
                bound.bind("file")
            finally:
                os.chdir(here)
                os.close(here)
    for attempt in (
        lambda: read_file(folder, "file", LIMIT),
        lambda: Appending(folder, "file"),
        lambda: replace(folder, "file", NEW, None),
        lambda: version_at(folder, "file"),
    ):
        with pytest.raises(Refused) as told:
            attempt()
        assert str(path) in str(told.value.filename)
    assert outside.read_bytes() == b"theirs"
    assert sorted(outside.parent.iterdir()) == [outside]
    assert folder.names() == ["file"]


@pytest.mark.parametrize("what", ["link", "dangling link", "file", "fifo"])
def test_anything_but_a_folder_is_refused(folder: Directory, tmp_path: Path, what: str) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    path = _path(folder, "below")
    if what == "file":
        path.write_bytes(b"")
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(outside if what == "link" else outside / "nothing")
    for create in (False, True):
        with pytest.raises(Refused) as told:
            folder.child("below", create)
        assert told.value.filename == str(path)
        with pytest.raises(Refused):
            folder.descend(("below", "deeper"), create)
    assert list(outside.iterdir()) == []


def test_too_long_is_refused(folder: Directory) -> None:
    _path(folder).write_bytes(bytes(101))
    assert read_file(folder, "file", 101) == bytes(101)
    with pytest.raises(Refused, match="longer than 100 bytes"):
        read_file(folder, "file", 100)


# Modes


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o660])
def test_the_mode_of_a_file_is_kept(folder: Directory, mode: int) -> None:
    _path(folder).write_bytes(OLD)
    _path(folder).chmod(mode)
    before = os.umask(0o022)
    try:
        replace(folder, "file", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(_path(folder).stat().st_mode) == mode


@pytest.mark.parametrize(
    ("umask", "file", "below"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775)]
)
def test_new_files_and_folders_have_the_mode_of_the_umask(
    folder: Directory, umask: int, file: int, below: int
) -> None:
    before = os.umask(umask)
    try:
        replace(folder, "replaced", NEW)
        with Appending(folder, "appended") as appending:
            appending.append(b"line\n")
        folder.child("below", create=True).close()
        replace(folder, "private", NEW, permissions=0o600)
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE(_path(folder, name).stat().st_mode) for name in folder.names()}
    assert modes == {"appended": file, "below": below, "private": 0o600, "replaced": file}


def test_the_state_directory_is_made_private_and_no_link(tmp_path: Path) -> None:
    private_directory(tmp_path / "deep" / "er" / "state").close()
    assert stat.S_IMODE((tmp_path / "deep/er/state").stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    with pytest.raises(Refused):
        private_directory(tmp_path / "link")
    private_directory(tmp_path / "link" / "er" / "state").close()


def test_no_descriptor_is_left_open(folder: Directory) -> None:
    """Neither by success nor by a failure at any point."""

    def open_now() -> int:
        return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0

    before = open_now()
    _path(folder).write_bytes(OLD)
    for point in range(8):
        with hooked(From(point, failing(errno.EIO))):
            for work in (
                lambda: _replaced(folder),
                lambda: replace(folder, "file", NEW, None),
                lambda: folder.descend(("a", "b", "c"), create=True).close(),
                lambda: _append(folder),
                lambda: read_file(folder, "file", 3),
            ):
                try:
                    work()
                except (OSError, Moved):
                    continue
    assert open_now() == before


def _append(folder: Directory) -> None:
    with Appending(folder, "grown") as file:
        file.append(NEW)


def test_versions_by_stats_alone_follow_no_link(tmp_path: Path) -> None:
    """What stands as it was left is known by itself; for anything else the way is looked at."""
    there = tmp_path / "a" / "b"
    there.mkdir(parents=True)
    (there / "file").write_text("x")
    with Directory.root(there) as folder:
        known = (version_at(folder, "file"), None)
    assert versions_below(tmp_path, ("a", "b"), ("file", "missing")) == known
    assert versions_below(tmp_path, ("a", "c"), ("file", "missing")) is None
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert versions_below(tmp_path, ("link", "b"), ("file", "missing")) is None
    assert all(map(stands, (f"{tmp_path}/link/b/file", f"{tmp_path}/link/b/missing"), known))
    (there / "missing").symlink_to(there / "file")
    assert versions_below(tmp_path, ("a", "b"), ("file", "missing")) == known
    assert stands(f"{there}/missing", None)
    (there / "missing").unlink()
    (there / "missing").write_text("x")
    assert not stands(f"{there}/missing", None)
    (there / "file").write_text("other")
    assert not stands(f"{there}/file", known[0])
