"""Faults at the seam: count the calls of a piece of work, then stop, fail, shorten or kill it at one of them."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator

from swarmmemd.seam import Hook, seam

Call = tuple[str, str]
KILLED = 9
"""Exit status of a child that was killed at its point."""


@contextlib.contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Plants a hook at the seam, and takes it away again whatever happens."""
    before, seam.call = seam.call, hook
    try:
        yield
    finally:
        seam.call = before


def calls_of(work: Callable[[], object]) -> list[Call]:
    """The calls at the seam that the work makes, in order."""
    calls: list[Call] = []

    def note(call: str, name: str) -> None:
        calls.append((call, name))

    with hooked(note):
        work()
    return calls


class From:
    """Calls `fault` at the call number `first` (from 0) that `matching` takes, and at `times` calls in all."""

    def __init__(
        self,
        first: int,
        fault: Hook,
        times: int = 1,
        matching: Callable[[str, str], bool] = lambda call, name: True,
    ) -> None:
        self.fired: list[Call] = []
        self.seen = 0
        self._first, self._fault, self._times, self._matching = first, fault, times, matching

    def __call__(self, call: str, name: str) -> int | None:
        if not self._matching(call, name):
            return None
        at, self.seen = self.seen, self.seen + 1
        if not self._first <= at < self._first + self._times:
            return None
        self.fired.append((call, name))
        return self._fault(call, name)


def kill(call: str, name: str) -> int | None:
    """The process ends here: nothing is flushed, closed or cleaned up."""
    os._exit(KILLED)


def torn(bytes_written: int, name: str, after: Hook = kill) -> Hook:
    """The first write to `name` stops short after so many bytes, and what follows meets `after`."""
    begun: list[str] = []

    def hook(call: str, called: str) -> int | None:
        if begun:
            return after(call, called)
        if (call, called) != ("write", name):
            return None
        if bytes_written == 0:
            return after(call, called)
        begun.append(call)
        return bytes_written

    return hook


def failing(number: int) -> Hook:
    """The system call fails with this errno."""

    def hook(call: str, name: str) -> int | None:
        raise OSError(number, os.strerror(number), name)

    return hook


def is_system_call(call: str, name: str) -> bool:
    """Whether the point stands for a call that the system can refuse, not for a step of the turn."""
    return call != "turn"


def in_child(work: Callable[[], object]) -> int:
    """Runs the work in a child process; its exit status: 0, `KILLED`, or 70 for an exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 70
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
