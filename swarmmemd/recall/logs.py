"""Reads the log in the state folder, over its rotation. docs/operations.md, "Logs"."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from swarmmemd.logfile import NAME, name_of

_POLL = 0.2
_MOST = 100


def newest(folder: Path, count: int) -> list[str]:
    """The newest `count` lines, oldest first."""
    lines: deque[str] = deque(maxlen=count) if count else deque(maxlen=0)
    for number in range(_MOST, -1, -1):
        try:
            with (folder / name_of(number)).open(encoding="utf-8", errors="replace") as file:
                lines.extend(line.rstrip("\n") for line in file)
        except FileNotFoundError:
            continue
    return list(lines)


def follow(folder: Path, poll: float = _POLL) -> Iterator[str]:
    """Lines as they are written from now on, for ever; over rotation, and before there is a file."""
    path = folder / NAME
    file = path.open("rb") if path.exists() else None
    if file is not None:
        file.seek(0, os.SEEK_END)
    torn = b""
    while True:
        if file is None and path.exists():
            file = path.open("rb")
        data = file.read() if file is not None else b""
        *whole, torn = (torn + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
        if data:
            continue
        if file is not None and _another(file.fileno(), path):
            # Read once more first: a line may have come between the last read and the rotation.
            last = file.read()
            file.close()
            yield from (line.decode("utf-8", "replace") for line in (torn + last).split(b"\n") if line)
            file, torn = None, b""
            continue
        time.sleep(poll)


def _another(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return True
    found = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) != (found.st_dev, found.st_ino)
