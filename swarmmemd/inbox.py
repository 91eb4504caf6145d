"""What other processes leave for the daemon in `<state_dir>/inbox`: one file each, taken away when done.

A request asks for something now, and is withdrawn if nobody answers. A post waits until it is recorded, with or
without a daemon. Both are written aside and renamed, so that a half one is never seen. docs/contracts.md,
"Requests" and "Posts".
"""

import contextlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, private_directory, read_file, replace
from swarmmemd.layout import INBOX
from swarmmemd.model import assignment_id, mission_id, worker_id
from swarmmemd.observation import Post

SUFFIX = ".request"
_POST = ".post"
_ANSWER = ".answer"
_LIMIT = 1 << 20
_LONGEST_POST = 8 << 20
_LONGEST_ANSWER = 64 << 20
_LOOK = 1.0
"""Seconds between two looks whether anybody listens."""


class Request(msgspec.Struct, frozen=True):
    """What is asked for: `once` is a full turn for every worker, `archive` the archive of a mission, `backfill` the
    past of a worker, from `since` (ms) on (with `dry` it is only counted), `rebuild` that the files of a
    worker, a mission or all are made right again, `promote` that a lesson from
    an event goes into its worker's memory, `access` which roots the daemon cannot use."""

    ask: str
    mission: str | None = None
    worker: str | None = None
    since: int = 0
    dry: bool = False
    event: str | None = None
    text: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What came of it: how many workers and new events, and what could not be done."""

    workers: int
    events: int
    problems: tuple[str, ...] = ()
    changed: int | None = None
    """Files of the archive that changed; None where no worker has completed the mission."""
    files: tuple[str, ...] = ()
    """Files that were made right."""


def ask(
    state_dir: Path, request: Request, patience: float, listens: Callable[[], object] = lambda: True
) -> Answer | None:
    """Leaves a request for the daemon and waits for the answer; None if it does not come within `patience`
    seconds, or if nobody `listens` any more, which is asked once a second. Raises OSError."""
    name = secrets.token_hex(12)
    with private_directory(state_dir) as state, state.child(INBOX, create=True, permissions=0o700) as inbox:
        replace(inbox, name + SUFFIX, msgspec.json.encode(request), permissions=0o600)
        now = time.monotonic()
        end, look, heard = now + patience, now + _LOOK, True
        while heard and now < end:
            if now > look:
                look, heard = now + _LOOK, bool(listens())  # asked before its last answer is looked for
            data = read_file(inbox, name + _ANSWER, _LONGEST_ANSWER)
            if data is not None:
                inbox.unlink(name + _ANSWER)
                return msgspec.json.decode(data, type=Answer)
            time.sleep(0.02)
            now = time.monotonic()
        with contextlib.suppress(FileNotFoundError):
            inbox.unlink(name + SUFFIX)
    return None


def leave(state_dir: Path, post: Post) -> None:
    """Leaves a post: when this returns it survives a crash and a power cut. Raises OSError."""
    with private_directory(state_dir) as state, state.child(INBOX, create=True, permissions=0o700) as inbox:
        replace(inbox, post_name(post.id), msgspec.json.encode(post), permissions=0o600)


def new_id() -> str:
    """A name for a post."""
    return secrets.token_hex(12)


def posts(state: Directory) -> list[tuple[str, Post | str]]:
    """The posts that wait, by file name; in the place of one that is none the reason. Raises OSError."""
    try:
        inbox = state.child(INBOX)
    except FileNotFoundError:
        return []
    with inbox:
        return [(name, _post(inbox, name)) for name in inbox.names() if name.endswith(_POST)]


def _post(inbox: Directory, name: str) -> Post | str:
    try:
        post = msgspec.json.decode(read_file(inbox, name, _LONGEST_POST) or b"", type=Post)
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        return str(error)
    known = worker_id(post.worker) is not None
    known = known and (post.mission is None or mission_id(post.mission) is not None)
    if not (known and (post.assignment is None or assignment_id(post.assignment) is not None)):
        return "an id in it is not valid"
    return post if post_name(post.id) == name else "its id is not its name"


def post_name(id: str) -> str:
    """The name of the post's file."""
    return id + _POST


def take_away(state: Directory, id: str) -> None:
    """The post is recorded."""
    with state.child(INBOX) as inbox, contextlib.suppress(FileNotFoundError):
        inbox.unlink(post_name(id))


def is_waiting(state_dir: Path, id: str) -> bool:
    """Whether the post is still to be recorded."""
    return (state_dir / INBOX / post_name(id)).exists()


def why_rejected(state_dir: Path, id: str) -> str | None:
    """Why the post was set aside; None if it was not."""
    try:
        return (state_dir / INBOX / "rejected" / f"{post_name(id)}.reason").read_text("utf-8").strip()
    except OSError:
        return None


def is_empty(state: Directory) -> bool:
    """Whether neither a post nor a request waits. Raises OSError."""
    with state.child(INBOX, create=True, permissions=0o700) as inbox:
        return not any(name.endswith((_POST, SUFFIX)) for name in inbox.names())


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
    """Sets a request aside that cannot be carried out, with the reason beside it: first the reason, so that it is
    there for who waits until nothing waits any more."""
    with state.child(INBOX) as inbox, inbox.child("rejected", create=True, permissions=0o700) as rejected:
        replace(rejected, f"{name[:200]}.reason", reason.encode() + b"\n", permissions=0o600)
        inbox.move(name, rejected)


def _read(inbox: Directory, name: str) -> Request | None:
    try:
        return msgspec.json.decode(read_file(inbox, name, _LIMIT) or b"", type=Request)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
