"""One checkpoint becomes one event, whichever source shows it first."""

from swarmmemd.derive.draft import Draft
from swarmmemd.derive.ledger import complete, ledger_knows
from swarmmemd.foreign import said_digest
from swarmmemd.identity import digest, event_id, fold
from swarmmemd.model import BLOCKING, Checkpoint, CheckpointState, EventId, EventType
from swarmmemd.state import Dispatch


def checkpoint(
    draft: Draft, dispatch: Dispatch, block: Checkpoint, *, at: int, origin: str, occurrence: int = 1
) -> bool:
    """Adds the event of `block`, given to `dispatch`, and the `complete` that may follow from it.

    `occurrence` counts how often the dispatch has said the same. Says whether the event is new.
    """
    if occurrence == 1 and _said_by_others(dispatch, block):
        if block.state is CheckpointState.DONE:
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
    added = draft.once(
        _type(block),
        dispatch,
        _words(block),
        at=at,
        summary=_summary(block),
        detail=detail,
        occurrence=occurrence,
    )
    if added and block.state is CheckpointState.DONE:
        _complete_by_worker(draft, dispatch, at)
    return added


def said_before(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> bool:
    """Whether this dispatch has the block already, in a line of ours or of another writer."""
    return draft.has(_id(draft, dispatch, block, 1)) or _said_by_others(dispatch, block)


def block_key(block: Checkpoint) -> str:
    """The key under which it is known where the block was seen: blocks of the same words are one."""
    return "a:" + digest("\n".join([f"{len(word)} {word}" for word in map(fold, _words(block))]))


def occurrence_after(draft: Draft, dispatch: Dispatch, block: Checkpoint, count: int) -> int:
    """The number of the next event with these words, of which the dispatch has `count` or more."""
    occurrence = count + 1
    while draft.has(_id(draft, dispatch, block, occurrence)):
        occurrence += 1
    return occurrence


def id_of(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> EventId:
    """The id of the block's first event in the dispatch."""
    return _id(draft, dispatch, block, 1)


def given_to_another(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> bool:
    """Whether the worker said this in its chat, and for another dispatch. The control plane takes what it finds
    in the chat for the answer to the dispatch that runs now."""
    known = draft.heard(block_key(block))
    elsewhere = known is not None and known.count > 0
    return (
        elsewhere
        and known is not None
        and (known.mission, known.number) != (dispatch.mission, dispatch.number)
    )


def _said_by_others(dispatch: Dispatch, block: Checkpoint) -> bool:
    return bool(dispatch.said) and said_digest(block.state, _summary(block)) in dispatch.said


def _id(draft: Draft, dispatch: Dispatch, block: Checkpoint, occurrence: int) -> EventId:
    worker = draft.state.worker
    return event_id(worker, dispatch.mission, dispatch.number, _type(block), _words(block), occurrence)


def _complete_by_worker(draft: Draft, dispatch: Dispatch, at: int) -> None:
    """DONE of the newest dispatch completes a mission that no ledger decides about."""
    mission = dispatch.mission
    known = draft.missions.get(mission) if mission else None
    if known is None or dispatch.number < known.dispatches:
        return
    if not ledger_knows(draft, known.mission) and not known.closed:
        complete(draft, known, at, by="worker")


def _type(block: Checkpoint) -> EventType:
    return EventType.BLOCKED if block.state in BLOCKING else EventType.CHECKPOINT


def _words(block: Checkpoint) -> tuple[str | None, ...]:
    return (block.state, block.result, block.blocker, block.next_action)


def _summary(block: Checkpoint) -> str:
    first, second = block.result, block.blocker
    if block.state in BLOCKING:
        first, second = second, first
    return first or second or block.next_action or block.state.value
