"""Asking the running daemon for what only the holder of the locks can do."""

from typing import TYPE_CHECKING

from swarmmemd.errors import HeldError, NotRunningError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from swarmmemd.inbox import Answer, Request

PATIENCE = 60.0
"""Seconds that a command waits for an answer, where the work itself is short."""


def answered(state_dir: "Path", request: "Request", held: HeldError, patience: float = PATIENCE) -> "Answer":
    """The daemon's answer, in `patience` seconds at most.

    Raises `held` where the locks are another program's and not a daemon's on this state folder, `NotRunningError` where
    nobody answers in time.
    """
    from swarmmemd.inbox import ask
    from swarmmemd.instance import is_running

    if is_running(state_dir) is None:
        raise held
    answer = ask(state_dir, request, patience, lambda: is_running(state_dir) is not None)
    if answer is None and is_running(state_dir) is None:
        raise NotRunningError(
            "The daemon ended before it answered", "Ask again: what it has done already is not done twice."
        )
    if answer is None:
        raise NotRunningError(f"The daemon did not answer in {patience:.0f} s", "See: swarmmemd status")
    return answer


def succeeded(answer: "Answer") -> "Answer":
    """The answer, if what was asked for could be done. Raises `StorageError` where not."""
    if answer.problems:
        raise StorageError("; ".join(answer.problems), "Check what stands there.")
    return answer
