"""Leaving something in the inbox, and waiting until it is recorded. Shared by `note` and `handoff write`."""

import json
import time
from typing import TYPE_CHECKING

from swarmmemd.cli.output import say_line
from swarmmemd.errors import Exit, NotRunningError, StorageError, UsageError, system_error

if TYPE_CHECKING:
    from swarmmemd.config import Config
    from swarmmemd.model import EventType, MissionId, WorkerId

PATIENCE = 30.0
LONGEST = 1 << 20
"""Characters of a text that is taken; the same as of a body that is sent to the API."""
_POLL = 0.02
_BESIDE = 2048
"""Bytes of a line of `events.jsonl` that are not the text."""


def post(
    config: "Config",
    worker: "WorkerId",
    mission: "MissionId | None",
    type: "EventType",
    text: str,
    wait: bool,
) -> int:
    """Leaves it for the daemon, durably, and says so; with `wait` until the daemon has recorded it.

    Raises `UsageError` for an empty text, one that is too long and an unknown worker, `NotRunningError` where nobody
    records it in time, `StorageError` where the daemon cannot take it.
    """
    from swarmmemd.inbox import leave, new_id
    from swarmmemd.instance import is_running
    from swarmmemd.layout import INBOX
    from swarmmemd.observation import Post
    from swarmmemd.text import whole

    text = whole(text)  # what was no UTF-8 on the command line
    if not text.strip():
        raise UsageError("there is no text", "Give it as an argument, in a file or on stdin.")
    if len(text) > LONGEST:
        raise UsageError(
            f"the text is longer than {LONGEST} characters", "Shorten it, and say where the rest is."
        )
    if not (config.profiles_root / worker).is_dir():
        raise UsageError(f"{worker} has no profile in {config.profiles_root}", "See: swarmmemd status")
    one = Post(id=new_id(), at=int(time.time() * 1000), worker=worker, mission=mission, type=type, text=text)
    try:
        leave(config.state_dir, one)
    except OSError as error:
        raise system_error(config.state_dir / INBOX, error) from error
    if type != "handoff-written" and _is_cut(text):
        say_line("It is longer than an event can be: its end is cut, and the cut is marked", err=True)
    if wait:
        say_line(f"recorded as {_recorded(config, worker, one.id)}")
    elif is_running(config.state_dir) is None:
        say_line(f"left as {one.id}; no daemon runs, the next one records it")
    else:
        say_line(f"left as {one.id}; the daemon records it")
    return Exit.DONE


def _is_cut(text: str) -> bool:
    """Whether the text is too long for a line of `events.jsonl`."""
    from swarmmemd.record import LINE_LIMIT

    return len(json.dumps(text, ensure_ascii=False).encode()) > LINE_LIMIT - _BESIDE


def _recorded(config: "Config", worker: "WorkerId", id: str) -> str:
    from swarmmemd.inbox import is_waiting, why_rejected
    from swarmmemd.journal import Follower
    from swarmmemd.layout import JOURNAL

    end = time.monotonic() + PATIENCE
    while is_waiting(config.state_dir, id):
        if time.monotonic() > end:
            raise NotRunningError(
                f"nobody recorded it in {PATIENCE:.0f} s",
                "It waits in the inbox for the daemon: swarmmemd status",
            )
        time.sleep(_POLL)
    reason = why_rejected(config.state_dir, id)
    if reason is not None:
        raise StorageError(f"it cannot be taken: {reason}", "It is kept in the inbox, under rejected.")
    follower = Follower(config.state_dir / JOURNAL)
    try:
        return follower.posted(worker, id) or "what is known already"
    finally:
        follower.close()
