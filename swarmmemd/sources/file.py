"""Reading one file of somebody else: now, whole, and only if it stood still meanwhile.

Most writers truncate and write in place, so an empty or half file is seen every day. Such a look says
nothing: it is `Unreadable`, the last good value stays, and the file is read again soon. A missing file is
believed to be missing only after a second. docs/contracts.md, "Sources".
"""

import os
import stat as mode
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from swarmmemd.model import Absent, Unreadable
from swarmmemd.sources.document import SIZE_LIMIT

T = TypeVar("T")

_RETRIES = (0.02, 0.05, 0.1, 0.25, 0.5)
"""Seconds until the next try while a file is being written; after them it doubles up to a minute."""
_LONGEST_WAIT = 60.0
YOUNG = 0.02
"""Seconds. A file written less than this ago can change again within one tick of its clock: read it again."""
_TAKEN_EARLIER = 1.0
"""Seconds. So much earlier than a file is looked at can the time of the look be taken."""
_GONE_AFTER = 1.0


class Unchanged(msgspec.Struct, frozen=True):
    """The source shows what it showed at the last look."""


class Signature(msgspec.Struct, frozen=True):
    """What tells one state of a file from another without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


def age_of(mtime_ns: int, wall: float) -> float | None:
    """Seconds since the file was written, at the time of the look, `wall`. 0: it may have been written after that time
    was taken. None: its time is one to come."""
    age = wall - mtime_ns / 1e9
    return max(age, 0.0) if age > -_TAKEN_EARLIER else None


def is_young(mtime_ns: int, wall: float) -> bool:
    """Whether a file of that time can change again within one tick of its clock."""
    age = age_of(mtime_ns, wall)
    return age is not None and age < YOUNG


def signature(found: os.stat_result) -> Signature:
    """The signature in a stat result."""
    return Signature(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def is_same(found: os.stat_result, seen: Signature) -> bool:
    """Whether it has that signature. Asked of every worker all the time: nothing is made for it."""
    return (
        found.st_mtime_ns == seen.mtime_ns
        and found.st_size == seen.size
        and found.st_ctime_ns == seen.ctime_ns
        and found.st_ino == seen.inode
        and found.st_dev == seen.device
    )


def has_another_name(path: str | Path) -> bool:
    """Whether it is a link, or has a second one. Raises OSError."""
    found = os.stat(path, follow_symlinks=False)
    return mode.S_ISLNK(found.st_mode) or found.st_nlink > 1


class FileSource(Generic[T]):
    """One file and the value parsed from it.

    `look` gives the value where it is new, `Unchanged` where it is not, and `Unreadable` or `Absent` as
    values: it raises nothing. `due` says when it should be looked at again without any hint (monotonic
    seconds), None if there is no need. `value` is the last good one.
    """

    def __init__(self, name: str, path: Path, parse: Callable[[bytes, int], T | Unreadable]) -> None:
        self.name = name
        self.path = path
        self._place = os.fspath(path)
        self.value: T | None = None
        self.due: float | None = None
        self.trouble: Unreadable | None = None
        self.failing_since: float | None = None
        self.read_at: float | None = None
        self.last_error: str | None = None
        self.elsewhere = False
        """The file has another name as well, by which it is written: whoever watches its folder hears nothing."""
        self._parse = parse
        self._seen: Signature | None = None
        self._hash = b""
        self._tries = 0
        self._gone_since: float | None = None

    def look(self, now: float, wall: float) -> T | Unchanged | Unreadable | Absent:
        """Reads the file if it changed. `now` is the monotonic clock, `wall` the time of day, in seconds."""
        try:
            found = signature(os.stat(self._place))
        except FileNotFoundError:
            self.elsewhere = os.path.islink(self._place)  # what it leads to can come
            return self._gone(now)
        except (OSError, ValueError) as error:
            return self._failed(now, _reason(error))
        self._gone_since = None
        if found == self._seen and self.due is None:
            return Unchanged()
        return self._read(now, wall)

    def forget(self) -> None:
        """The next look reads the file and gives its value, whatever was seen before."""
        self._seen, self._hash, self.due = None, b"", None

    def changed(self) -> bool:
        """Whether a stat shows another file than the last look did. A stat, no more: for the sweep."""
        try:
            return self._seen is None or not is_same(os.stat(self._place), self._seen)
        except (OSError, ValueError):
            return self._seen is not None and not isinstance(self.trouble, Unreadable)

    def _read(self, now: float, wall: float) -> T | Unchanged | Unreadable:
        try:
            self.elsewhere = has_another_name(self._place)
            data, found = read_still(self.path, SIZE_LIMIT)
        except (OSError, ValueError) as error:
            return self._failed(now, _reason(error))
        if data is None:
            return self._failed(now, "written while it was read")
        import hashlib  # who only wants the signature does not pay for it

        hashed = hashlib.blake2b(data, digest_size=16).digest()
        if hashed == self._hash and self.trouble is None:
            self._accept(found, hashed, now, wall)
            return Unchanged()
        value = self._parse(data, found.mtime_ns // 1_000_000)
        if isinstance(value, Unreadable):
            return self._failed(now, value.reason, found)
        same = hashed == self._hash
        self._accept(found, hashed, now, wall)
        if same:
            return Unchanged()
        self.value = value
        return value

    def _accept(self, found: Signature, hashed: bytes, now: float, wall: float) -> None:
        self._seen, self._hash = found, hashed
        self._tries, self.trouble, self.failing_since, self.read_at = 0, None, None, wall
        self.due = now + YOUNG if is_young(found.mtime_ns, wall) else None

    def _failed(self, now: float, reason: str, found: Signature | None = None) -> Unreadable:
        wait = (
            _RETRIES[self._tries]
            if self._tries < len(_RETRIES)
            else min(_RETRIES[-1] * 2.0 ** (self._tries - len(_RETRIES) + 1), _LONGEST_WAIT)
        )
        self._tries += 1
        self.due = now + wait
        self.failing_since = now if self.failing_since is None else self.failing_since
        self.trouble, self.last_error = Unreadable(reason), reason
        return self.trouble

    def _gone(self, now: float) -> Unreadable | Absent:
        self._seen = None
        if self._gone_since is None:
            self._gone_since = now
        if now - self._gone_since < _GONE_AFTER:
            # Some editors delete a file in the middle of a save.
            self.due = self._gone_since + _GONE_AFTER
            return Unreadable("missing for a moment")
        self.due, self.trouble, self.failing_since, self._tries = None, None, None, 0
        self._hash = b""
        return Absent()


def read_still(path: Path, limit: int, follow: bool = True) -> tuple[bytes | None, Signature]:
    """The bytes of a regular file that stood still while it was read, and its signature.

    None for the bytes if it changed meanwhile. Raises OSError for what cannot be read, ValueError for what is
    no regular file or larger than `limit` bytes. Never blocks on a FIFO. Without `follow` a link is no file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    try:
        before = os.fstat(descriptor)
        if not mode.S_ISREG(before.st_mode):
            raise ValueError("not a regular file")
        if before.st_size > limit:
            raise ValueError(f"longer than {limit} bytes")
        data = _all(descriptor, limit)
        after = os.fstat(descriptor)
        now = os.stat(path)
    finally:
        os.close(descriptor)
    still = signature(before) == signature(after) == signature(now) and len(data) == before.st_size
    return (data if still else None), signature(after)


def _all(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
