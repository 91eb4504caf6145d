"""What a disk holds for certain, and what is gone when the power fails: a model beside the real files.

A file's bytes are certain once an fsync of it has succeeded, a name once an fsync of its folder has. Bytes that were
written before an fsync that fails count as not written, even if a later one succeeds: the system has dropped them and
says so only once. SQLite's files are left alone: it does its own.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

_REAL_FSYNC, _REAL_WRITE, _REAL_PWRITE = os.fsync, os.write, os.pwrite


class Disk:
    """The files below `base`, but for those that `beside` leaves out by the beginning of their names."""

    def __init__(self, base: Path, beside: tuple[str, ...] = ("journal.db", "search.db")) -> None:
        self._base = base
        self._beside = beside
        self._names: dict[int, dict[str, int]] = {}
        self._bytes: dict[int, bytearray] = {}
        self._dirty: dict[int, list[tuple[int, int]]] = {}
        self.failing = False
        """The next fsync fails, and what it should have made certain is gone."""

    def _settle(self) -> None:
        self._names, self._bytes, self._dirty = {}, {}, {}
        for folder, folders, files in os.walk(self._base):
            here = Path(folder)
            self._names[here.stat().st_ino] = {n: (here / n).lstat().st_ino for n in (*folders, *files)}
            for name in files:
                self._bytes[(here / name).lstat().st_ino] = bytearray((here / name).read_bytes())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notes what is written and made certain meanwhile. What is there at the beginning is certain."""
        self._settle()
        with (
            patch.object(os, "fsync", self._fsync),
            patch.object(os, "write", self._write),
            patch.object(os, "pwrite", self._pwrite),
        ):
            yield

    def _write(self, descriptor: int, data: bytes) -> int:
        count = _REAL_WRITE(descriptor, data)
        if os.path.isfile(f"/proc/self/fd/{descriptor}"):
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            self._dirty.setdefault(os.fstat(descriptor).st_ino, []).append((end - count, end))
        return count

    def _pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        count = _REAL_PWRITE(descriptor, data, offset)
        self._dirty.setdefault(os.fstat(descriptor).st_ino, []).append((offset, offset + count))
        return count

    def _fsync(self, descriptor: int) -> None:
        found, path = os.fstat(descriptor), Path(f"/proc/self/fd/{descriptor}")
        if self.failing:
            self.failing = False
            self._dirty.pop(found.st_ino, None)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        _REAL_FSYNC(descriptor)
        if path.is_dir():
            self._names[found.st_ino] = {n: (path / n).lstat().st_ino for n in os.listdir(path)}
            return
        held, now = self._bytes.setdefault(found.st_ino, bytearray()), path.read_bytes()
        held[len(now) :] = b""
        for start, end in self._dirty.pop(found.st_ino, ()):
            held.extend(bytes(max(end - len(held), 0)))
            held[start:end] = now[start:end]

    def fail(self) -> None:
        """The power fails: only what is certain is there afterwards."""
        self._restore(self._base)

    def _restore(self, folder: Path) -> None:
        certain = self._names.get(folder.stat().st_ino, {})
        for path in sorted(folder.iterdir()):
            if path.name.startswith(self._beside):
                continue
            if certain.get(path.name) != path.lstat().st_ino and not path.is_dir():
                path.unlink()
            elif path.name not in certain:
                _remove(path)
        for name, inode in certain.items():
            path = folder / name
            if name.startswith(self._beside):
                continue
            if path.is_dir():
                self._restore(path)
                continue
            data = self._bytes.get(inode, bytearray())
            if not path.exists() or path.read_bytes() != data:
                self._put(path, bytes(data))

    def _put(self, path: Path, data: bytes) -> None:
        """In place, so that a file that stays is the same file."""
        with open(path, "r+b" if path.exists() else "w+b") as file:
            file.write(data)
            file.truncate()


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _remove(path)
        else:
            path.unlink()
    folder.rmdir()
