"""Lines that another program wrote into `events.jsonl`: what they say, and whether it is what we say.

hermes-workspace appends to the same files, without ids, in slightly other words, sometimes twice.
docs/contracts.md, "Beside another writer". Pure.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from swarmmemd.identity import digest, fold
from swarmmemd.model import (
    AssignmentId,
    CheckpointState,
    Event,
    EventType,
    MissionId,
    assignment_id,
    checkpoint_state,
    mission_id,
    parse_iso,
)

_PREFIXES = ("Mission started: ", "Dispatched task: ")
_WORDS_COMPARED = 100
_CLOCKS_APART = 60_000
"""A line can be stamped this much (ms) before the event that it tells of, never more."""

_TYPES = {type.value: type for type in EventType}
_WORDLESS = frozenset({EventType.COMPLETE, EventType.HANDOFF_REQUESTED})
_SAID = frozenset({EventType.CHECKPOINT, EventType.BLOCKED})


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """What another writer's line says. `state` is set for a worker's checkpoint only."""

    type: EventType
    at: int
    mission: MissionId | None
    assignment: AssignmentId | None
    text: str
    state: CheckpointState | None = None
    detail: Mapping[str, Any] = {}


def understand(line: Mapping[str, Any]) -> Foreign | None:
    """What a foreign record says; None where that is nothing that an event of ours could say."""
    named = line.get("type")
    type = _TYPES.get(named) if isinstance(named, str) else None
    if type is None:
        return None
    given = line.get("event")
    detail: Mapping[str, Any] = given if isinstance(given, dict) else {}
    summary, at = line.get("summary"), parse_iso(line.get("at"))
    state = _state(detail)
    if not isinstance(summary, str) or at is None or (type in _SAID and state is None):
        return None
    return Foreign(
        type=type,
        at=at,
        mission=mission_id(line.get("missionId")),
        assignment=assignment_id(line.get("assignmentId")),
        text=_without_prefix(summary),
        state=state if type in _SAID else None,
        detail=detail,
    )


def _state(detail: Mapping[str, Any]) -> CheckpointState | None:
    return checkpoint_state(detail.get("stateLabel") or detail.get("state"))


def _without_prefix(summary: str) -> str:
    for prefix in _PREFIXES:
        if summary.startswith(prefix):
            return summary[len(prefix) :]
    return summary


def said_digest(state: CheckpointState | None, text: str | None) -> str:
    """A digest of a checkpoint's gist: its state and the beginning of what it says, whatever the case."""
    return digest(f"{state or ''} {fold(text).casefold()[:_WORDS_COMPARED]}")


def in_time(line: int, event: int) -> bool:
    """Whether a foreign line of this time (ms) can tell of an event of that time: earlier by a minute at most."""
    return line >= event - _CLOCKS_APART


def gist(event: Event) -> str:
    """The digest of what a checkpoint event says, comparable with that of a foreign line."""
    return said_digest(checkpoint_state(event.detail.get("state")), event.summary)


def same(event: Event, other: Foreign) -> bool:
    """Whether the foreign line says what `event` says."""
    if event.type is EventType.MISSION_START:
        return other.type is event.type
    if not in_time(other.at, event.at):
        return False
    if event.type in _WORDLESS:
        return other.type is event.type
    if event.type is EventType.DISPATCH:
        return other.type is EventType.DISPATCH and other.assignment == event.assignment
    return (
        event.type in _SAID
        and other.state is not None
        and said_digest(other.state, other.text) == gist(event)
    )


_NOTHING = frozenset({"", "none", "none.", "n/a", "-"})


def values(other: Foreign) -> dict[str, Any]:
    """The checkpoint values of a foreign line under the names and with the nulls of ours."""
    given = {name: said(other.detail.get(name)) for name in ("filesChanged", "commandsRun")}
    blocker, next_action = (said(other.detail.get(name)) for name in ("blocker", "nextAction"))
    state = other.state.value if other.state else None
    return {"state": state, "result": other.text, **given, "blocker": blocker, "nextAction": next_action}


def said(text: object) -> str | None:
    """The value that a program noted; None where its words say that there is none."""
    return text if isinstance(text, str) and text.strip().lower() not in _NOTHING else None
