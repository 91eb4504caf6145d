"""Runs a command of swarmmemd that dies, or is refused something, at a named point. A process of its own:

    python -m tests.support.stopping --at 'turn:record' -- run --state-dir ...

A point is `call:name` of the seam, as a glob: `turn:observe`, `turn:applied events.jsonl`, `commit:*`.
"""

import argparse
import errno
import os
import random
import signal
import sys
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from unittest.mock import patch

from swarmmemd.cli.main import run
from swarmmemd.seam import Hook, seam


def stop_at(point: str, passes: int) -> Hook:
    """A hook that kills the process when it passes the point for the `passes`-th time."""
    passed = count(1)

    def hook(call: str, name: str) -> int | None:
        if fnmatchcase(f"{call}:{name}", point) and next(passed) == passes:
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    return hook


def hang_at(point: str) -> Hook:
    """A hook that never comes back from the point."""

    def hook(call: str, name: str) -> int | None:
        while fnmatchcase(f"{call}:{name}", point):
            signal.pause()
        return None

    return hook


def flaky(seed: int, tally: str) -> Hook:
    """A hook that refuses one call in thirty, or cuts a write short. Each one is a byte more in the file `tally`."""
    dice = random.Random(seed)
    counted = os.open(tally, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hook(call: str, name: str) -> int | None:
        if call == "turn" or dice.random() >= 1 / 30:
            return None
        os.write(counted, b".")
        if call == "write" and dice.random() < 0.5:
            return dice.randint(1, 64)
        number = dice.choice((errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE))
        raise OSError(number, os.strerror(number), name)

    return hook


def without_inotify() -> None:
    """There are no watches to be had, as where too many programs watch already."""
    from watchdog.observers.inotify_c import InotifyFD

    def refuse(_: type[InotifyFD]) -> int:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    patch.object(InotifyFD, "_create_inotify_fd", classmethod(refuse)).start()


def deafened() -> None:
    """Everything is alive and watches, and no event ever comes."""
    from swarmmemd.watch.inotify import InotifyWatch

    patch.object(InotifyWatch, "on_event", lambda *_: None).start()


def deny(folder: str) -> None:
    """The folder and what is below it cannot be opened, as if it were somebody else's: nobody denies root."""
    system_open = os.open

    def guarded(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if Path(path).is_relative_to(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return system_open(path, flags, mode, dir_fd=dir_fd)

    patch.object(os, "open", guarded).start()


def main(arguments: list[str]) -> int:
    """Plants what was asked for and runs the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", default="")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--hang", default="")
    parser.add_argument("--flaky", type=int)
    parser.add_argument("--tally", default=os.devnull)
    parser.add_argument("--no-inotify", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--deny", default="")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    if given.at:
        seam.call = stop_at(given.at, given.passes)
    if given.hang:
        seam.call = hang_at(given.hang)
    if given.flaky is not None:
        seam.call = flaky(given.flaky, given.tally)
    if given.no_inotify:
        without_inotify()
    if given.deaf:
        deafened()
    if given.deny:
        deny(given.deny)
    return run(given.command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
