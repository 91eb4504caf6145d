"""`swarm-missions.json`: the control plane's mission ledger. Pure; docs/contracts.md, "Ledger"."""

from typing import Any

from swarmmemd.checkpoint import parse
from swarmmemd.foreign import said
from swarmmemd.model import (
    Checkpoint,
    Unreadable,
    WorkerId,
    assignment_id,
    checkpoint_state,
    mission_id,
    worker_id,
)
from swarmmemd.observation import Ledger, LedgerAssignment, LedgerMission, LedgerState
from swarmmemd.sources.document import json_object, millis, text

_STATES = {state.value: state for state in LedgerState}


def parse_ledger(data: bytes, written: int) -> Ledger | Unreadable:
    """The missions in `data`. One without a valid id or a known state is left out; the others count."""
    fields = json_object(data)
    if isinstance(fields, Unreadable):
        return fields
    listed = fields.get("missions")
    if not isinstance(listed, list):
        return Unreadable("missions is no list")
    found = [mission for item in listed if isinstance(item, dict) and (mission := _mission(item))]
    by_worker: dict[WorkerId, list[LedgerMission]] = {}
    for mission in found:
        for worker in dict.fromkeys(assignment.worker for assignment in mission.assignments):
            by_worker.setdefault(worker, []).append(mission)
    return Ledger(
        missions={mission.id: mission for mission in found},
        by_worker={worker: tuple(missions) for worker, missions in by_worker.items()},
    )


def _mission(fields: dict[str, Any]) -> LedgerMission | None:
    id, state = mission_id(fields.get("id")), _STATES.get(text(fields, "state") or "")
    if id is None or state is None:
        return None
    listed = fields.get("assignments")
    assignments = listed if isinstance(listed, list) else []
    return LedgerMission(
        id=id,
        title=text(fields, "title") or id,
        state=state,
        created=millis(fields, "createdAt"),
        updated=millis(fields, "updatedAt"),
        assignments=tuple(
            found for item in assignments if isinstance(item, dict) and (found := _assignment(item))
        ),
    )


def _assignment(fields: dict[str, Any]) -> LedgerAssignment | None:
    worker = worker_id(fields.get("workerId"))
    if worker is None:
        return None
    return LedgerAssignment(
        id=assignment_id(fields.get("id")),
        worker=worker,
        task=text(fields, "task"),
        dispatched=millis(fields, "dispatchedAt"),
        completed=millis(fields, "completedAt"),
        checkpoint=_checkpoint(fields.get("checkpoint"), worker),
    )


def _checkpoint(fields: object, worker: WorkerId) -> Checkpoint | None:
    """The checkpoint as its message says it, else as its fields do."""
    if not isinstance(fields, dict):
        return None
    found = parse(text(fields, "raw") or "", worker)
    state = checkpoint_state(fields.get("stateLabel"))
    if found or state is None:
        return found[-1] if found else None
    return Checkpoint(
        state=state,
        result=said(text(fields, "result")),
        files_changed=said(text(fields, "filesChanged")),
        commands_run=said(text(fields, "commandsRun")),
        blocker=said(text(fields, "blocker")),
        next_action=said(text(fields, "nextAction")),
    )
