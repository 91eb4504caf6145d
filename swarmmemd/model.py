"""The vocabulary of the project as frozen values. Imports nothing of the project.

Times are integer milliseconds since the epoch, UTC. Ids are checked once, where they enter: a value of
type `WorkerId`, `MissionId` or `AssignmentId` is safe to use as one path component. docs/contracts.md,
"Identifiers" and "Events".
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NewType

import msgspec

WorkerId = NewType("WorkerId", str)
MissionId = NewType("MissionId", str)
AssignmentId = NewType("AssignmentId", str)
EventId = NewType("EventId", str)

_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MISSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


def worker_id(text: object) -> WorkerId | None:
    """The worker id that `text` is, or None. The whole string must match: a final line break is no id."""
    return WorkerId(text) if isinstance(text, str) and _WORKER.fullmatch(text) else None


def mission_id(text: object) -> MissionId | None:
    """The mission id that `text` is, or None."""
    return MissionId(text) if isinstance(text, str) and _MISSION.fullmatch(text) else None


def assignment_id(text: object) -> AssignmentId | None:
    """The assignment id that `text` is, or None."""
    return AssignmentId(text) if isinstance(text, str) and _MISSION.fullmatch(text) else None


_MINUTE = 60_000
_DAY = 86_400_000


@lru_cache(maxsize=256)
def iso(at: int) -> str:
    """`at` as the specification writes times: `2026-04-28T00:00:00.000Z`."""
    minute, rest = divmod(at, _MINUTE)
    digits = str(100_000 + rest)
    return f"{_minute(minute)}:{digits[1:3]}.{digits[3:]}Z"


@lru_cache(maxsize=64)
def _minute(minute: int) -> str:
    """The date and time of a minute, counted since the epoch."""
    day, rest = divmod(minute * _MINUTE, _DAY)
    return f"{_date(day)}T{rest // _MINUTE // 60:02}:{rest // _MINUTE % 60:02}"


@lru_cache(maxsize=64)
def _date(day: int) -> str:
    """The date of a day, counted since the epoch."""
    return datetime.fromtimestamp(day * _DAY // 1000, UTC).isoformat()[:10]


_LAST = 253_402_300_799_999
"""The end of the year 9999 in ms: a time after it, or before the epoch, is none that can be written as ISO."""


def parse_iso(text: object) -> int | None:
    """Milliseconds of an ISO time with or without a fraction; None for anything else. No zone means UTC."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at = int(aware.timestamp() * 1000 + 0.5)
        return at if 0 <= at <= _LAST else None
    except (ValueError, OverflowError):
        return None


def utc_day(at: int) -> str:
    """The UTC day of `at`, `YYYY-MM-DD`: it names the episode file."""
    return _date(at // _DAY)


class EventType(StrEnum):
    """The specification's nine event types."""

    MISSION_START = "mission-start"
    DISPATCH = "dispatch"
    CHECKPOINT = "checkpoint"
    HANDOFF_REQUESTED = "handoff-requested"
    HANDOFF_WRITTEN = "handoff-written"
    RESUME = "resume"
    BLOCKED = "blocked"
    COMPLETE = "complete"
    NOTE = "note"


class CheckpointState(StrEnum):
    """What a worker says of itself in the STATE line of a checkpoint."""

    DONE = "DONE"
    BLOCKED = "BLOCKED"
    NEEDS_INPUT = "NEEDS_INPUT"
    HANDOFF = "HANDOFF"
    IN_PROGRESS = "IN_PROGRESS"
    NEEDS_REVIEW = "NEEDS_REVIEW"


def checkpoint_state(word: object) -> CheckpointState | None:
    """The state that `word` is, or None."""
    return _STATES.get(word) if isinstance(word, str) else None


_STATES = {state.value: state for state in CheckpointState}

BLOCKING = frozenset({CheckpointState.BLOCKED, CheckpointState.NEEDS_INPUT})


class Status(StrEnum):
    """The Status word of `SUMMARY.md`."""

    PLANNING = "planning"
    EXECUTING = "executing"
    BLOCKED = "blocked"
    REVIEW = "review"
    COMPLETE = "complete"


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One checkpoint as the worker gave it. A value of none, n/a or a dash is None."""

    state: CheckpointState
    result: str | None = None
    files_changed: str | None = None
    commands_run: str | None = None
    blocker: str | None = None
    next_action: str | None = None
    decisions: str | None = None
    whole: bool = True
    """All six labels stood there. A row that the model cut off counts only if they did."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of one worker; what a line of `events.jsonl` holds.

    `at` is when it happened according to its source, in ms, never later than it was observed. `detail` is
    the line's `event` object, its keys in writing order.
    """

    id: EventId
    at: int
    type: EventType
    worker: WorkerId
    mission: MissionId | None
    assignment: AssignmentId | None
    summary: str
    detail: dict[str, Any] = {}


class Unreadable(msgspec.Struct, frozen=True):
    """A source that cannot be read or believed now. It says nothing about what the source holds."""

    reason: str


class Absent(msgspec.Struct, frozen=True):
    """A source whose file is not there. That is not emptiness: what was known of it stays."""
