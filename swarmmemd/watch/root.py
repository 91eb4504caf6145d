"""One watched directory: who wants it, which it was when it was armed, and when it is tried again.

Plain records without a lock or a thread; the watcher changes them. docs/architecture.md, "Watching".
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Identity = tuple[int, int]
"""Device and inode."""


class Backoff:
    """When to try again: after `first` seconds, doubling to `most`; over again after a long good time."""

    def __init__(self, first: float, most: float) -> None:
        self._first, self._most = first, most
        self.reset()

    def reset(self) -> None:
        """Ready at once."""
        self._delay = self._first
        self._due = float("-inf")

    def ready(self, now: float) -> bool:
        """Whether the wait is over."""
        return now >= self._due

    @property
    def due(self) -> float:
        """When the wait is over."""
        return self._due

    def failed(self, now: float) -> None:
        """Begins the next wait."""
        if now - self._due > self._most:
            self._delay = self._first
        self._due = now + self._delay
        self._delay = min(2 * self._delay, self._most)


class Watch(Protocol):
    """What was armed for a directory."""

    def end(self) -> None:
        """Watches it no more."""

    def heed(self) -> None:
        """Hears of writes to the files of `Root.written` from now on, as far as the listener can."""


class Root:
    """One real directory and the keys that want it. Changed under the watcher's lock, except `gone`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.keys: tuple[str, ...] = ()  # replaced whole: watching threads read it without a lock
        self.heeded: dict[str, frozenset[str]] = {}
        """Of which files each key wants to hear that they are written to."""
        self.written: frozenset[bytes] = frozenset()  # all of them; replaced whole, too
        self.identity: Identity | None = None
        self.watch: Watch | None = None
        self.verified = False  # the kernel was seen to watch it since it was scheduled
        self.gone = False  # set by a watching thread: the directory was deleted, moved or unmounted
        self.reason = ""  # why it is polled
        self.retry = Backoff(60, 3600)

    def heed(self, key: str, names: frozenset[str]) -> None:
        """Notes of which files the key wants to hear that they are written to."""
        self.heeded[key] = names
        self.written = frozenset(os.fsencode(name) for names in self.heeded.values() for name in names)

    def tell(self, mark: Callable[[str, str], None], name: str) -> None:
        """Hints each key with the name."""
        for key in self.keys:
            mark(key, name)

    def forget_watch(self) -> None:
        """Nothing watches it now."""
        self.watch, self.verified, self.gone = None, False, False


def look(directory: Path) -> tuple[Identity | None, str]:
    """Device and inode of the directory; else None, and why it cannot be told ("": there is none)."""
    try:
        status = os.stat(directory)  # noqa: PTH116 - asked of every worker all the time
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return None, text(error)
    return ((status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None), ""


def text(error: Exception) -> str:
    """The system's own words where there are some."""
    return (error.strerror if isinstance(error, OSError) else None) or f"{type(error).__name__}: {error}"


def confirm(root: Root, armed: frozenset[int]) -> bool:
    """Whether the directory's inode is among those that the kernel watches; noted if it is."""
    confirmed = root.identity is not None and root.identity[1] in armed
    root.verified = root.verified or confirmed
    return confirmed
