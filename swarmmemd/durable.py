"""Files that survive: append, replace, make folders, lock. Knows nothing of events.

The only caller of writing system calls. Takes a directory handle and a name, never a path, and follows no
link, so that a symlink planted in a memory tree leads nowhere. Each call goes through `seam`, where a test can
stop, fail, shorten or kill it. docs/architecture.md, "Durability".

What this cannot promise: a disk that lies about fsync, or two machines writing to one tree.
"""

import contextlib
import errno
import fcntl
import os
import stat as mode
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from types import EllipsisType

import msgspec

from swarmmemd.seam import seam

TEMPORARY = ".swarmmemd-tmp-"
"""Prefix of the temporary files that a replace makes; left-overs of a crash are swept."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC

_unsure: set[tuple[int, int]] = set()
"""Folders, by device and inode, with a name that is not durable. After a failure, who comes by later finds the name
there and would see no reason to try again, so who opens such a folder to write there tries first."""


class Mark(msgspec.Struct, frozen=True):
    """Which file it was, and how long: (device, inode, size in bytes)."""

    device: int
    inode: int
    size: int


class Version(msgspec.Struct, frozen=True):
    """One state of a file that others write too; another state has another version."""

    device: int
    inode: int
    size: int
    mtime_ns: int


class Refused(OSError):
    """Something stands where a regular file or folder of ours should be: a symlink, a FIFO, a device."""


class Directory:
    """An open directory. Everything in it is reached by name, relative to the handle."""

    def __init__(self, descriptor: int, shown: str) -> None:
        self.descriptor = descriptor
        self.shown = shown

    @classmethod
    def root(cls, path: Path) -> "Directory":
        """Opens a root. Its own path may hold symlinks: where the operator put it is his affair."""
        return cls(os.open(path, _DIRECTORY), str(path))

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the handle; twice is once."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def child(self, name: str, create: bool = False, permissions: int = 0o777) -> "Directory":
        """The folder `name` in it. Raises `Refused` for anything that is no folder itself."""
        try:
            return self._folder(name)
        except FileNotFoundError:
            if not create:
                raise
        seam.call("mkdir", name)
        with contextlib.suppress(FileExistsError), _named(self, name):
            os.mkdir(name, permissions, dir_fd=self.descriptor)
            self.sync()
        return self._folder(name)

    def _folder(self, name: str) -> "Directory":
        try:
            descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.descriptor)
        except OSError as error:
            error.filename = f"{self.shown}/{name}"
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Refused(error.errno, "not a folder of its own", error.filename) from None
            raise
        return Directory(descriptor, f"{self.shown}/{name}")

    def descend(self, parts: tuple[str, ...], create: bool = False, sure: bool = True) -> "Directory":
        """The folder at the end of `parts`. With `create`, missing ones are made, and those on the way are durable;
        with `sure`, so are the names in it."""
        here = Directory(os.dup(self.descriptor), self.shown)
        for part in parts:
            with here:
                if create:
                    here.make_sure()
                below = here.child(part, create)
            here = below
        if create and sure:
            with contextlib.ExitStack() as on_failure:
                on_failure.callback(here.close)
                here.make_sure()
                on_failure.pop_all()
        return here

    def removed(self) -> bool:
        """Whether the folder itself is no longer anywhere."""
        return os.fstat(self.descriptor).st_nlink == 0

    def names(self) -> list[str]:
        """The names in it, sorted."""
        return sorted(os.listdir(self.descriptor))

    def sync(self) -> None:
        """Makes the names in it durable. Where that fails it is tried again before anything else is done here."""
        self.doubt()
        seam.call("fsync", self.shown)
        os.fsync(self.descriptor)
        _unsure.discard(self._identity())

    def doubt(self) -> None:
        """A name in it is not durable yet."""
        _unsure.add(self._identity())

    def make_sure(self) -> None:
        """Makes the names in it durable where one of them is not."""
        if _unsure and self._identity() in _unsure:
            self.sync()

    def _identity(self) -> tuple[int, int]:
        found = os.fstat(self.descriptor)
        return found.st_dev, found.st_ino

    def move(self, name: str, into: "Directory") -> None:
        """Moves a file into another folder, under its name."""
        seam.call("rename", name)
        with _named(self, name):
            os.rename(name, name, src_dir_fd=self.descriptor, dst_dir_fd=into.descriptor)
        into.sync()
        self.sync()

    def rename(self, name: str, other: str, durable: bool = True) -> None:
        """Gives a file another name in the same folder, over what stands there."""
        seam.call("rename", name)
        with _named(self, name):
            os.rename(name, other, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        if durable:
            self.sync()

    def unlink(self, name: str) -> None:
        """Removes the name."""
        seam.call("unlink", name)
        with _named(self, name):
            os.unlink(name, dir_fd=self.descriptor)


def make_sure(root: Directory, folders: tuple[str, ...]) -> None:
    """Makes the names in the folder at the end of `folders`, and on the way there, durable where one of them is not."""
    if _unsure:
        with root.descend(folders, create=True):
            pass


@contextlib.contextmanager
def _named(directory: Directory, name: str) -> Iterator[None]:
    """Errors in it tell the whole path: a call with a directory handle knows the name only."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = f"{directory.shown}/{name}", None
        raise


def open_file(directory: Directory, name: str, flags: int, permissions: int = 0o666) -> int:
    """A descriptor of the regular file `name`. Raises `Refused` for a link or anything that is no regular file."""
    try:
        descriptor = os.open(
            name, flags | _NOFOLLOW | os.O_NONBLOCK, permissions, dir_fd=directory.descriptor
        )
    except OSError as error:
        error.filename = f"{directory.shown}/{name}"
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise Refused(error.errno, "not a regular file", error.filename) from None
        raise
    if not mode.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(errno.EINVAL, "not a regular file", f"{directory.shown}/{name}")
    return descriptor


def version_of(found: os.stat_result) -> Version:
    """The version in a stat result."""
    return Version(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def write_all(descriptor: int, data: bytes, name: str) -> None:
    """Writes all of `data`. On a full disk a part of it may stand there when OSError is raised."""
    view = memoryview(data)
    while view:
        short = seam.call("write", name)
        view = view[os.write(descriptor, view if short is None else view[: max(short, 1)]) :]


def sync(descriptor: int, name: str) -> None:
    """fsync; on macOS the call that reaches the platter. A failure means: the data counts as not written."""
    seam.call("fsync", name)
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def shorten(descriptor: int, path: str, limit: int) -> None:
    """Empties an open file in place where it is the one at `path` and longer than `limit` bytes: somebody else,
    such as launchd, keeps it open, and a new file would not be seen."""
    try:
        found, named = os.fstat(descriptor), os.stat(path)
    except OSError:
        return
    same = (found.st_dev, found.st_ino) == (named.st_dev, named.st_ino)
    if same and mode.S_ISREG(found.st_mode) and found.st_size > limit:
        os.ftruncate(descriptor, 0)


class Appending:
    """A file that only ever grows by a suffix, open for one append."""

    def __init__(
        self, directory: Directory, name: str, create: bool = True, permissions: int = 0o666
    ) -> None:
        self.name = name
        self._directory = directory
        flags = os.O_RDWR | os.O_APPEND
        try:
            self._descriptor = open_file(directory, name, flags)
        except FileNotFoundError:
            if not create:
                raise
            seam.call("create", name)
            self._descriptor = open_file(directory, name, flags | os.O_CREAT, permissions)
            directory.doubt()

    def __enter__(self) -> "Appending":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def mark(self) -> Mark:
        """Identity and size now."""
        found = os.fstat(self._descriptor)
        return Mark(found.st_dev, found.st_ino, found.st_size)

    def read(self, start: int, limit: int | None = None) -> bytes:
        """The bytes from `start` on."""
        parts: list[bytes] = []
        at, left = start, limit if limit is not None else sys.maxsize
        while left > 0 and (part := os.pread(self._descriptor, min(left, 1 << 20), at)):
            parts.append(part)
            at, left = at + len(part), left - len(part)
        return b"".join(parts)

    def write_again(self, start: int, data: bytes) -> None:
        """Writes at `start` what was read there. After an fsync that failed the system may hold bytes that it will
        never write, and the next fsync does not tell."""
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)
        try:
            view = memoryview(data)
            while view:
                short = seam.call("write", self.name)
                part = view if short is None else view[: max(short, 1)]
                written = os.pwrite(self._descriptor, part, start)
                start, view = start + written, view[written:]
        finally:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)

    def append(self, data: bytes) -> None:
        """Appends and makes durable. Raises `Refused` as `write` does."""
        self.write(data)
        self.finish()

    def write(self, data: bytes) -> None:
        """Appends. It can be read at once, and counts as written only after `finish`.

        Raises `Refused` for a file that has another name too, a hard link: that one can lie anywhere.
        """
        if data and os.fstat(self._descriptor).st_nlink > 1:
            where = f"{self._directory.shown}/{self.name}"
            raise Refused(errno.EMLINK, "it has another name too, a hard link: not written to", where)
        if data:
            write_all(self._descriptor, data, self.name)

    def finish(self) -> None:
        """Makes what was written durable, the file's name too where it is new."""
        sync(self._descriptor, self.name)
        if os.fstat(self._descriptor).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "deleted while it was written", self.name)
        self._directory.make_sure()


class Held:
    """A version of a replaceable file, kept open: what is written into it later can still be read."""

    def __init__(self, descriptor: int, version: Version, data: bytes) -> None:
        self.version = version
        self.data = data
        self._descriptor = descriptor

    def close(self) -> None:
        """Lets go of it; twice is once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def reread(self) -> bytes | None:
        """What the old file holds now, if that is something else than was read; None if not."""
        if self._descriptor < 0 or version_of(os.fstat(self._descriptor)) == self.version:
            return None
        data = _read_all(self._descriptor)
        self.version = version_of(os.fstat(self._descriptor))
        if data == self.data:
            return None
        self.data = data
        return data


def _read_all(descriptor: int, begin: int = 0) -> bytes:
    parts: list[bytes] = []
    at = begin
    while part := os.pread(descriptor, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def hold(directory: Directory, name: str, limit: int) -> Held | None:
    """Reads a file and keeps it open; None if there is none. Raises `Refused` beyond `limit` bytes."""
    try:
        descriptor = open_file(directory, name, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        if found.st_size > limit:
            raise Refused(errno.EFBIG, f"longer than {limit} bytes", f"{directory.shown}/{name}")
        return Held(descriptor, version_of(found), _read_all(descriptor))
    except BaseException:
        os.close(descriptor)
        raise


def read_file(directory: Directory, name: str, limit: int) -> bytes | None:
    """The bytes of a file; None if there is none."""
    held = hold(directory, name, limit)
    if held is None:
        return None
    held.close()
    return held.data


def newest_lines(directory: Directory, name: str, limit: int) -> bytes | None:
    """The whole lines at the end of a file that grows, at most `limit` bytes; None if there is no file."""
    try:
        descriptor = open_file(directory, name, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        begin = max(0, os.fstat(descriptor).st_size - limit)
        data = _read_all(descriptor, begin)[-limit:]
    finally:
        os.close(descriptor)
    return data if begin == 0 else data.partition(b"\n")[2]


class Moved(Exception):
    """Somebody else wrote the file between reading and replacing it: merge again. `data` is his version where
    ours stands in its place already, and it is nowhere else."""

    def __init__(self, name: str, data: bytes | None = None) -> None:
        super().__init__(name)
        self.data = data


def replace(
    directory: Directory,
    name: str,
    data: bytes,
    expected: Version | EllipsisType | None = ...,
    permissions: int | None = None,
    sure: bool = True,
) -> Version:
    """Puts `data` in the place of `name`, whole and durable, or leaves everything as it was. Without `sure` the caller
    sees to it that the name gets durable (`Directory.make_sure`): until then it may show the version before.

    With `expected` (a version, or None for "no such file") it is compare-and-swap: raises `Moved` if the file
    is not what was read. `permissions` are those of a new file, by default those of the umask or of the file.
    """
    import secrets  # who only reads does not pay for it

    temporary = f"{TEMPORARY}{secrets.token_hex(6)}"
    seam.call("create", temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = open_file(directory, temporary, flags, 0o666 if permissions is None else permissions)
    try:
        try:
            _keep_mode(directory, name, descriptor, permissions)
            write_all(descriptor, data, name)
            sync(descriptor, name)
            written = version_of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if expected is not ... and version_at(directory, name) != expected:
            raise Moved(name)
        seam.call("rename", name)
        if expected is ... or expected is None:
            _put(directory, temporary, name, new=expected is None)
        else:
            _swap(directory, temporary, name, expected)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory.descriptor)
        raise
    if sure:
        directory.sync()
    else:
        directory.doubt()
    return written


def _put(directory: Directory, temporary: str, name: str, new: bool) -> None:
    """Gives the file its name; with `new` only if nobody has taken it meanwhile."""
    there = {"src_dir_fd": directory.descriptor, "dst_dir_fd": directory.descriptor}
    if not new:
        os.rename(temporary, name, **there)
        return
    try:
        os.link(temporary, name, follow_symlinks=False, **there)
    except FileExistsError:
        raise Moved(name) from None
    os.unlink(temporary, dir_fd=directory.descriptor)


def _swap(directory: Directory, temporary: str, name: str, expected: Version) -> None:
    """Exchanges the two and looks at what came out: a version that somebody put there since it was compared
    is not lost. Where the file system cannot exchange, it is renamed over."""
    from swarmmemd.exchange import exchange  # brings ctypes with it

    if not exchange(directory.descriptor, temporary, name):
        os.rename(temporary, name, src_dir_fd=directory.descriptor, dst_dir_fd=directory.descriptor)
        return
    try:
        other = (
            None
            if version_at(directory, temporary) == expected
            else read_file(directory, temporary, sys.maxsize)
        )
    finally:
        os.unlink(temporary, dir_fd=directory.descriptor)
    if other is not None:
        raise Moved(name, other)


def _keep_mode(directory: Directory, name: str, descriptor: int, permissions: int | None) -> None:
    if permissions is not None:
        return
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
        if mode.S_ISREG(found.st_mode):
            os.fchmod(descriptor, found.st_mode & 0o777)


def version_at(directory: Directory, name: str) -> Version | None:
    """The version that stands there now; None for no file. A link is refused."""
    try:
        with _named(directory, name):
            found = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not mode.S_ISREG(found.st_mode):
        raise Refused(errno.EINVAL, "not a regular file", f"{directory.shown}/{name}")
    return version_of(found)


Versions = tuple[Version | None, ...]


def versions_below(root: Path, folders: Sequence[str], names: Iterable[str]) -> Versions | None:
    """The versions that stand there now, None for no file of its own, by stats alone: for a sweep, which decides
    nothing by them. None where a folder on the way is none, or a link."""
    ways = list(accumulate(folders, "{}/{}".format, initial=os.fspath(root)))
    if not all(map(_is_folder, ways[1:])):
        return None
    return tuple([_version_of(f"{ways[-1]}/{name}") for name in names])


def stands(path: str, version: Version | None) -> bool:
    """Whether this version stands there, None for no file of its own, by one stat: for a sweep, which makes nothing
    for it."""
    try:
        found = os.lstat(path)
    except OSError:
        return version is None
    if not mode.S_ISREG(found.st_mode):
        return version is None
    return (
        version is not None
        and found.st_mtime_ns == version.mtime_ns
        and found.st_size == version.size
        and found.st_ino == version.inode
        and found.st_dev == version.device
    )


def _is_folder(path: str) -> bool:
    try:
        return mode.S_ISDIR(os.stat(path, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _version_of(path: str) -> Version | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return version_of(found) if mode.S_ISREG(found.st_mode) else None


def sweep_temporaries(directory: Directory) -> int:
    """Removes what a replace left behind when it was killed. Only one daemon writes to a tree: none is in use."""
    left = [name for name in directory.names() if name.startswith(TEMPORARY)]
    for name in left:
        with contextlib.suppress(FileNotFoundError):
            directory.unlink(name)
    return len(left)


@contextlib.contextmanager
def flock(descriptor: int) -> Iterator[bool]:
    """Takes the exclusive lock of an open file or directory if it is free. The kernel lets go of it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            raise
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def make_root(path: Path) -> None:
    """Makes a root that is missing, with the umask's permissions."""
    seam.call("mkdir", path.name)
    path.mkdir(parents=True, exist_ok=True)


def private_directory(path: Path) -> Directory:
    """The state directory, made when missing, 0700. The last part must be no link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Directory.root(path.parent) as parent:
        found = parent.child(path.name, create=True, permissions=0o700)
    os.fchmod(found.descriptor, 0o700)
    return found
