"""The log in the state folder: JSON lines, in files of a limited size and number. docs/operations.md, "Logs".

It is no record: lines are not made durable, and a disk that refuses one is no reason to stop.
"""

import os
import threading
from pathlib import Path

from swarmmemd.durable import Directory, open_file, private_directory

NAME = "swarmmemd.log"
"""The newest file; `.1` is the one before, and so on."""


class LogFile:
    """Files in a folder of their own, together at most `files * limit` bytes. Only one process may write them."""

    def __init__(self, folder: Path, files: int, limit: int) -> None:
        self._folder = folder
        self._files = files
        self._limit = limit
        self._lock = threading.Lock()
        self._directory: Directory | None = None
        self._descriptor = -1
        self._size = 0

    def write(self, line: str) -> None:
        """Appends a line. What is longer than a whole file is cut."""
        data = line.encode("utf-8", "replace")[: self._limit - 1] + b"\n"
        with self._lock:
            try:
                self._append(data)
            except OSError:
                self._close()  # opened anew for the next line

    def close(self) -> None:
        """Closes it; the next line would open it again."""
        with self._lock:
            self._close()

    def _append(self, data: bytes) -> None:
        directory = self._opened()
        if self._size + len(data) > self._limit and self._size:
            self._rotate(directory)
        self._size += os.write(self._descriptor, data)

    def _opened(self) -> Directory:
        if self._directory is None:
            self._directory = private_directory(self._folder)
        if self._descriptor < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = open_file(self._directory, NAME, flags, 0o600)
            self._size = os.fstat(self._descriptor).st_size
        return self._directory

    def _rotate(self, directory: Directory) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
        for number in range(self._files - 1, 0, -1):
            if name_of(number - 1) in directory.names():
                directory.rename(name_of(number - 1), name_of(number))
        if self._files == 1:
            directory.unlink(NAME)
        self._opened()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        if self._directory is not None:
            self._directory.close()
        self._descriptor, self._directory = -1, None


def name_of(number: int) -> str:
    """The name of a file of the log; 0 is the newest."""
    return f"{NAME}.{number}" if number else NAME
