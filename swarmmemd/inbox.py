"""Requests of other processes to the daemon: one file each in `<state_dir>/inbox`, taken away when done.

A request is written aside and renamed, so that a half one is never seen. docs/contracts.md, "Requests".
"""

import contextlib
import secrets
import time
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, private_directory, read_file, replace
from swarmmemd.layout import INBOX

SUFFIX = ".request"
_ANSWER = ".answer"
_LIMIT = 1 << 20
_LONGEST_ANSWER = 64 << 20


class Request(msgspec.Struct, frozen=True):
    """What is asked for: `once` is a full turn for every worker, `archive` the archive of a mission, `backfill` the
    past of a worker, from `since` (ms) on (with `dry` it is only counted), `rebuild` that the files of a
    worker, a mission or all are made right again, `access` which roots the daemon cannot use."""

    ask: str
    mission: str | None = None
    worker: str | None = None
    since: int = 0
    dry: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What came of it: how many workers and new events, and what could not be done."""

    workers: int
    events: int
    problems: tuple[str, ...] = ()
    changed: int | None = None
    """Files of the archive that changed; None where no worker has completed the mission."""
    files: tuple[str, ...] = ()
    """Files that were made right."""


def ask(state_dir: Path, request: Request, patience: float) -> Answer | None:
    """Leaves a request for the daemon and waits for the answer; None if it does not come within `patience`
    seconds. Raises OSError."""
    name = secrets.token_hex(12)
    with private_directory(state_dir) as state, state.child(INBOX, create=True, permissions=0o700) as inbox:
        replace(inbox, name + SUFFIX, msgspec.json.encode(request), permissions=0o600)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            data = read_file(inbox, name + _ANSWER, _LONGEST_ANSWER)
            if data is not None:
                inbox.unlink(name + _ANSWER)
                return msgspec.json.decode(data, type=Answer)
            time.sleep(0.02)
        with contextlib.suppress(FileNotFoundError):
            inbox.unlink(name + SUFFIX)
    return None


def waiting(state: Directory) -> list[tuple[str, Request | None]]:
    """The requests that wait, by name; None for one that cannot be understood."""
    with state.child(INBOX, create=True, permissions=0o700) as inbox:
        return [(name, _read(inbox, name)) for name in inbox.names() if name.endswith(SUFFIX)]


def answer(state: Directory, name: str, content: Answer) -> None:
    """Answers a request and takes it away."""
    with state.child(INBOX) as inbox:
        replace(inbox, name.removesuffix(SUFFIX) + _ANSWER, msgspec.json.encode(content), permissions=0o600)
        with contextlib.suppress(FileNotFoundError):
            inbox.unlink(name)


def reject(state: Directory, name: str, reason: str) -> None:
    """Sets a request aside that cannot be carried out, with the reason beside it."""
    with state.child(INBOX) as inbox, inbox.child("rejected", create=True, permissions=0o700) as rejected:
        inbox.move(name, rejected)
        replace(rejected, f"{name[:200]}.reason", reason.encode() + b"\n", permissions=0o600)


def _read(inbox: Directory, name: str) -> Request | None:
    try:
        return msgspec.json.decode(read_file(inbox, name, _LIMIT) or b"", type=Request)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
