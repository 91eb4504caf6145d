"""Rows of a chat database as the messages that count. Pure; docs/contracts.md, "The chat"."""

from collections.abc import Mapping

import msgspec

from swarmmemd.checkpoint import decode, own_part, parse_own
from swarmmemd.model import WorkerId
from swarmmemd.observation import Message

_ASIDE = frozenset({"cron", "subagent"})
"""Sources of sessions that are not the worker's conversation."""
_CUT_OFF = frozenset({"length", "incomplete", "content_filter"})
"""Values of `finish_reason` of an answer that the model did not finish."""
_LONGEST_LINE = 64


class Session(msgspec.Struct, frozen=True):
    """A session of the chat: where it came from, and which one it continues."""

    source: str | None
    parent: str | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row as it is stored. A column that the schema lacks has its default."""

    id: int
    session_id: str
    role: str
    content: str | None
    timestamp: float | None
    finish_reason: str | None = None
    active: int | None = 1
    uid: str | None = None
    is_summary: bool = False

    @property
    def stands(self) -> bool:
        """Whether the row is part of the conversation as it is now."""
        return self.active == 1


def is_aside(session: str, known: Mapping[str, Session]) -> bool:
    """Whether the session is a scheduled or a helper's one: its blocks belong to no dispatch."""
    found = known.get(session)
    return session.startswith("cron_") or (found is not None and found.source in _ASIDE)


def line_of(session: str, known: Mapping[str, Session]) -> str:
    """The first session of the line that this one continues."""
    for _ in range(_LONGEST_LINE):
        found = known.get(session)
        if found is None or not found.parent or found.parent == session:
            break
        session = found.parent
    return session


def message(row: Row, worker: WorkerId, sessions: Mapping[str, Session]) -> Message | None:
    """The message in a row; None for one that says nothing here: no checkpoint, or a compaction's summary."""
    if is_aside(row.session_id, sessions):
        return None
    text = decode(row.content)
    own = own_part(text)
    if not own.strip() or (row.is_summary and own == text):
        return None
    user = row.role == "user"
    blocks = () if user else parse_own(own, worker)
    if row.finish_reason in _CUT_OFF:
        blocks = tuple(block for block in blocks if block.whole)
    if not user and not blocks:
        return None
    return Message(
        row=row.id,
        session=row.session_id,
        line=line_of(row.session_id, sessions),
        at=_millis(row.timestamp),
        user=user,
        text=own if user else "",
        uid=row.uid or "",
        blocks=blocks,
    )


def _millis(timestamp: object) -> int:
    """A time of seconds in ms; 0 where there is none."""
    if isinstance(timestamp, int | float) and 0 < timestamp < 1e11:
        return round(timestamp * 1000)
    return 0
