"""`runtime.json`: what the control plane says of a worker. Pure; docs/contracts.md, "runtime.json"."""

from collections.abc import Callable
from typing import Any, TypeVar

from swarmmemd.model import Unreadable, assignment_id, mission_id, parse_iso
from swarmmemd.observation import Runtime
from swarmmemd.sources.document import json_object, millis, text

_Id = TypeVar("_Id")


def parse_runtime(data: bytes, written: int) -> Runtime | Unreadable:
    """The snapshot in `data`; `written` is the file's mtime in ms.

    Unknown keys are left alone: every writer of the file keeps those of the others.
    """
    fields = json_object(data)
    if isinstance(fields, Unreadable):
        return fields
    bad: list[str] = []
    mission = _id(fields, "currentMissionId", mission_id, bad)
    assignment = _id(fields, "currentAssignmentId", assignment_id, bad)
    return Runtime(
        phase=text(fields, "phase"),
        status=text(fields, "checkpointStatus"),
        task=text(fields, "currentTask"),
        mission=None if bad else mission,
        assignment=None if bad else assignment,
        bad_ids=tuple(bad),
        dispatch_at=millis(fields, "lastDispatchAt"),
        dispatch_mode=text(fields, "lastDispatchMode"),
        dispatch_result=text(fields, "lastDispatchResult"),
        check_in=parse_iso(fields.get("lastCheckIn")),
        output_at=millis(fields, "lastOutputAt"),
        cancelled_at=parse_iso(fields.get("cancelledAt")),
        blocked_reason=text(fields, "blockedReason"),
        result=text(fields, "lastResult"),
        next_action=text(fields, "nextAction"),
        control_message=text(fields, "lastControlMessage"),
        cancellation=text(fields, "cancellationReason"),
        raw=text(fields, "checkpointRaw"),
        written=written,
    )


def _id(
    fields: dict[str, Any], key: str, check: Callable[[object], _Id | None], bad: list[str]
) -> _Id | None:
    value = fields.get(key)
    if value is None or value == "":
        return None
    found = check(value)
    if found is None:
        bad.append(f"{key}={str(value)[:80]!r}")
    return found
