"""Requests of other processes to the daemon: one file each in `<state_dir>/inbox`, taken away when done.

A request is written aside and renamed, so that a half one is never seen. docs/contracts.md, "Requests".
"""

import secrets
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, private_directory, read_file, replace
from swarmmemd.layout import INBOX

SUFFIX = ".request"
_LIMIT = 1 << 20


class Request(msgspec.Struct, frozen=True):
    """What is asked for: `once` is a full turn for every worker."""

    ask: str


def put(state_dir: Path, request: Request) -> Path:
    """Leaves a request for the daemon; the path is gone when it was carried out. Raises OSError."""
    with private_directory(state_dir) as state, state.child(INBOX, create=True, permissions=0o700) as inbox:
        name = secrets.token_hex(12) + SUFFIX
        replace(inbox, name, msgspec.json.encode(request), permissions=0o600)
    return state_dir / INBOX / name


def waiting(state: Directory) -> list[tuple[str, Request | None]]:
    """The requests that wait, by name; None for one that cannot be understood."""
    with state.child(INBOX, create=True, permissions=0o700) as inbox:
        return [(name, _read(inbox, name)) for name in inbox.names() if name.endswith(SUFFIX)]


def done(state: Directory, name: str) -> None:
    """Takes a request away: who waits for it sees that it was carried out."""
    with state.child(INBOX) as inbox:
        inbox.unlink(name)


def reject(state: Directory, name: str, reason: str) -> None:
    """Sets a request aside that cannot be carried out, with the reason beside it."""
    with state.child(INBOX) as inbox, inbox.child("rejected", create=True, permissions=0o700) as rejected:
        replace(rejected, f"{name}.reason", reason.encode() + b"\n", permissions=0o600)
        inbox.move(name, rejected)


def _read(inbox: Directory, name: str) -> Request | None:
    try:
        return msgspec.json.decode(read_file(inbox, name, _LIMIT) or b"", type=Request)
    except (OSError, msgspec.DecodeError):
        return None
