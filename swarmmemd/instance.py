"""One daemon a tree: locks that the kernel lets go of, and who holds them.

Locked are `<state_dir>/lock` and the roots themselves, so that two daemons with different state directories
cannot write one tree. No PID file is believed. docs/architecture.md, "One daemon a tree".
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Directory, flock, open_file, read_file, replace
from swarmmemd.errors import HeldError, system_error

_ASKED_WITHIN = 0.25
"""Seconds in which `is_running` lets go of the lock again."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lock, by its own words."""

    pid: int
    version: str
    since: str
    profiles_root: str
    shared_root: str


class Instance:
    """The locks of one running daemon."""

    def __init__(self, state: Directory) -> None:
        self.state = state
        self._held = contextlib.ExitStack()
        self._roots: dict[Path, tuple[tuple[int, int], contextlib.ExitStack]] = {}

    def take_state(self) -> None:
        """Locks the state directory. Raises `HeldError`, naming the holder."""
        descriptor = open_file(self.state, layout.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._held.callback(os.close, descriptor)
        if not _locked(self._held, descriptor):
            holder = holder_of(self.state)
            who = f"process {holder.pid}, running since {holder.since}" if holder else _by_kernel(descriptor)
            raise HeldError(
                f"Another swarmmemd holds {self.state.shown}: {who}",
                "One is enough. See what it does with: swarmmemd status",
            )

    def take_root(self, root: Path) -> bool:
        """Locks a root, and again where another folder has come in its place; False while there is none.

        Raises `HeldError`, or OSError where it cannot be opened.
        """
        try:
            found = root.stat()
            known = self._roots.get(root)
            if known is not None and known[0] == (found.st_dev, found.st_ino):
                return True
            directory = Directory.root(root)
        except FileNotFoundError:
            return False
        held = contextlib.ExitStack()
        held.callback(directory.close)
        if not held.enter_context(flock(directory.descriptor)):
            who = _by_kernel(directory.descriptor)
            held.close()
            raise HeldError(
                f"Another swarmmemd writes to {root}: {who}",
                "It has another state directory. Stop it, or use its --state-dir.",
            )
        if known is not None:
            known[1].close()
        found = os.fstat(directory.descriptor)
        self._roots[root] = ((found.st_dev, found.st_ino), held)
        return True

    def say(self, holder: Holder) -> None:
        """Leaves word in the state directory about who holds it."""
        replace(self.state, "holder.json", msgspec.json.encode(holder), permissions=0o600)

    def release(self) -> None:
        """Lets go of everything; the files stay."""
        for _, held in self._roots.values():
            held.close()
        self._roots = {}
        self._held.close()


def _locked(held: contextlib.ExitStack, descriptor: int) -> bool:
    """Takes the lock. Who only asks whether a daemon runs holds it for a moment: that is waited for."""
    end = time.monotonic() + _ASKED_WITHIN
    while not held.enter_context(flock(descriptor)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def holder_of(state: Directory) -> Holder | None:
    """What the last holder said of itself. Only the lock tells whether it lives."""
    try:
        data = read_file(state, "holder.json", 1 << 16)
        return msgspec.json.decode(data, type=Holder) if data else None
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def is_running(state_dir: Path) -> Holder | None:
    """The daemon that holds this state directory; None if there is none. Takes no lock that others would miss."""
    try:
        with Directory.root(state_dir) as state:
            descriptor = open_file(state, layout.LOCK, os.O_RDWR)
            try:
                with flock(descriptor) as free:
                    return (
                        None
                        if free
                        else holder_of(state)
                        or Holder(pid=0, version="?", since="?", profiles_root="?", shared_root="?")
                    )
            finally:
                os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise system_error(
            state_dir / (error.filename or ""), error, "Check its owner and permissions."
        ) from error


def _by_kernel(descriptor: int) -> str:
    """Who holds the lock of this file, as the kernel tells it; on macOS it does not."""
    found = os.fstat(descriptor)
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path("/proc/locks").read_text().splitlines():
                fields = line.split()
                if fields[1] == "FLOCK" and fields[5] == wanted:
                    return f"process {fields[4]}"
    return "a process that cannot be named here"
