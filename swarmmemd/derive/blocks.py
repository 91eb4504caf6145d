"""One checkpoint becomes one event, whichever source shows it first."""

from swarmmemd.derive.draft import Draft
from swarmmemd.derive.ledger import complete, ledger_knows
from swarmmemd.fold import number_of
from swarmmemd.foreign import said_digest
from swarmmemd.identity import event_id
from swarmmemd.model import BLOCKING, Checkpoint, CheckpointState, EventId, EventType
from swarmmemd.state import Dispatch


def checkpoint(draft: Draft, dispatch: Dispatch, block: Checkpoint, *, at: int, origin: str) -> bool:
    """Adds the event of `block`, given to `dispatch`, and the `complete` that may follow from it."""
    if said_before(draft, dispatch, block):
        if block.state is CheckpointState.DONE and _said_by_others(dispatch, block):
            _complete_by_worker(draft, dispatch, at)
        return False
    detail = {
        "state": block.state.value,
        "result": block.result,
        "filesChanged": block.files_changed,
        "commandsRun": block.commands_run,
        "blocker": block.blocker,
        "nextAction": block.next_action,
        "origin": origin,
    }
    if block.decisions:
        detail["decisions"] = block.decisions
    added = draft.once(_type(block), dispatch, _words(block), at=at, summary=_summary(block), detail=detail)
    if added and block.state is CheckpointState.DONE:
        _complete_by_worker(draft, dispatch, at)
    return added


def said_before(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> bool:
    """Whether this dispatch has the block already, in a line of ours or of another writer."""
    return draft.has(_first_id(draft, dispatch, block)) or _said_by_others(dispatch, block)


def _said_by_others(dispatch: Dispatch, block: Checkpoint) -> bool:
    return said_digest(block.state, _summary(block)) in dispatch.said


def _first_id(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> EventId:
    return event_id(draft.state.worker, dispatch.mission, dispatch.number, _type(block), _words(block), 1)


def _complete_by_worker(draft: Draft, dispatch: Dispatch, at: int) -> None:
    """DONE of the newest dispatch completes a mission that no ledger decides about."""
    mission = dispatch.mission
    if mission is None or dispatch.number < number_of(draft.state, mission):
        return
    if not ledger_knows(draft, mission) and not draft.state.missions[mission].closed:
        complete(draft, mission, at, by="worker")


def _type(block: Checkpoint) -> EventType:
    return EventType.BLOCKED if block.state in BLOCKING else EventType.CHECKPOINT


def _words(block: Checkpoint) -> tuple[str | None, ...]:
    return (block.state, block.result, block.blocker, block.next_action)


def _summary(block: Checkpoint) -> str:
    first = (block.blocker, block.result) if block.state in BLOCKING else (block.result, block.blocker)
    return next(filter(None, (*first, block.next_action)), block.state.value)
