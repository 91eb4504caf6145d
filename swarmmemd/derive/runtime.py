"""What a changed `runtime.json` means: dispatches, checkpoints, check-ins, blocks, stops and resets.

The control plane rewrites the file at every transition, and old values stay in it. So nothing is believed
for standing there; what counts is what is new since the last look, and whose it can be.
docs/contracts.md, "runtime.json".
"""

from msgspec.structs import replace

from swarmmemd.derive.blocks import block_key, checkpoint, given_to_another, said_before
from swarmmemd.derive.classify import (
    IN_PROGRESS,
    TERMINAL,
    Kind,
    agrees,
    begins,
    blocked_by_control_plane,
    blocks,
    classify,
    shows,
    stated,
)
from swarmmemd.derive.draft import Draft
from swarmmemd.fold import CONTROL_PLANE, NOTE_LATE_BLOCK, NOTE_RESET, NOTE_STOPPED, first_line
from swarmmemd.identity import digest, event_id
from swarmmemd.model import Checkpoint, CheckpointState, EventId, EventType
from swarmmemd.observation import Phase, Runtime
from swarmmemd.state import Dispatch, Look

ORIGIN = "runtime.json"
_RESULT_WITHIN = 60_000
"""ms within which the result of a dispatch writes its time once more."""


def take_up(draft: Draft, view: Runtime) -> bool:
    """Records the dispatch that `view` starts, or one that was missed, if what is new in `view` speaks of it. Says
    whether it starts one."""
    kind = classify(view, draft.state.worker)
    if _says_nothing(view, kind):
        return False
    if _starts_dispatch(draft, view):
        _answer_before(draft, view)
        _dispatch(draft, view)
        return True
    if kind is Kind.CONTROL_PLANE_BLOCK or (
        kind in (Kind.CHECK_IN, Kind.CHECKPOINT) and _is_news(draft, view, kind)
    ):
        _dispatch_of(draft, view)
    if draft.state.current is not None and not _other_work(view, draft.state.current):
        draft.tell_task(view.task)
    return False


def blocked_at(draft: Draft, view: Runtime) -> int | None:
    """When the control plane blocked the worker, ms; None if the snapshot shows no such block."""
    return draft.capped(view.check_in, view.written) if blocked_by_control_plane(view) else None


def judge(draft: Draft, view: Runtime, started: bool) -> None:
    """Adds what `view` shows and the last look did not, beside a dispatch that starts."""
    kind = classify(view, draft.state.worker)
    if started or _says_nothing(view, kind):
        return
    if kind in (Kind.STOPPED, Kind.CANCELLED):
        _stop(draft, view, kind)
    else:
        _judge(draft, view, kind)
    if _ended(view, kind) and draft.state.current is not None:
        _end(draft, draft.state.current, draft.capped(view.check_in, view.written))


def learn(draft: Draft, view: Runtime) -> None:
    """Keeps what the next look is compared with."""
    kind = classify(view, draft.state.worker)
    if not _says_nothing(view, kind):
        draft.state = replace(draft.state, look=_learned(draft.state.look, view, kind))


def _says_nothing(view: Runtime, kind: Kind) -> bool:
    return bool(view.bad_ids) or (kind is Kind.NONE and view.status != "none")


def _ended(view: Runtime, kind: Kind) -> bool:
    """Whether the control plane shows a terminal status: then the same task can be dispatched again."""
    return kind in (Kind.STOPPED, Kind.CANCELLED) or view.status in TERMINAL


def _end(draft: Draft, dispatch: Dispatch, at: int) -> None:
    if not dispatch.ended:
        ended = replace(dispatch, ended=True, ended_at=max(dispatch.ended_at, at))
        draft.state = replace(draft.state, dispatches=(*draft.state.dispatches[:-1], ended))


def _judge(draft: Draft, view: Runtime, kind: Kind) -> None:
    """An answer of the worker first, then a block by the control plane: by their times that is the order."""
    found = _new_blocks(draft, view, kind)
    if found:
        dispatch = _dispatch_of(draft, view)
        at = draft.capped(view.output_at, view.check_in, view.written)
        for block in found:
            if not _is_the_chats(draft, dispatch, block):
                checkpoint(draft, dispatch, block, at=at, origin=ORIGIN)
    elif kind in (Kind.CHECK_IN, Kind.CHECKPOINT) or (
        kind is Kind.DISPATCHED and _known_dispatch(draft, view)
    ):
        _check_in(draft, view)
    if kind is Kind.CONTROL_PLANE_BLOCK:
        _control_plane_block(draft, view)


# Dispatches


def _starts_dispatch(draft: Draft, view: Runtime) -> bool:
    """Whether the snapshot is the start of a dispatch that is not recorded yet."""
    if view.phase != Phase.DISPATCHED or view.status != IN_PROGRESS:
        return False
    last = draft.state.current
    if last is None:
        return True
    same_work = (last.mission, last.assignment) == (view.mission, view.assignment)
    same = same_work and last.task == digest(view.task)
    # After a fold from files nobody knows whether the control plane saw the answer.
    ended = last.ended or (last.answered and not draft.state.look.met)
    return _dispatch_time_moved(draft, view, last, same_work, same) and (ended or not same)


def _dispatch_time_moved(draft: Draft, view: Runtime, last: Dispatch, same_work: bool, same: bool) -> bool:
    look = draft.state.look
    if view.dispatch_at is None:
        # Then only the step into this phase, or other work, tells one dispatch from the one before.
        return not same or (look.met and look.kind != Kind.DISPATCHED)
    if look.dispatch_at is not None:
        return view.dispatch_at != look.dispatch_at
    # Nothing was looked at since the state was folded from files. The dispatch result writes the time
    # once more, so only one after all that is known of the last dispatch is another dispatch; and an API call
    # can change the task alone.
    rewritten = _RESULT_WITHIN if same_work and not last.ended else 0
    return view.dispatch_at > max(last.at + rewritten, last.ended_at)


def _dispatch(draft: Draft, view: Runtime) -> Dispatch:
    at = draft.capped(view.dispatch_at, view.check_in, view.written)
    if view.mission is not None:
        ledger = draft.seen.ledger.missions.get(view.mission) if draft.seen.ledger else None
        title = ledger.title if ledger else first_line(view.task) or view.mission
        draft.start_mission(view.mission, title, view.task, at)
    number = draft.number_of(view.mission) + 1
    summary = first_line(view.task) or first_line(view.control_message) or "Dispatched without a task text"
    draft.once(
        EventType.DISPATCH,
        view.mission,
        (),
        at=at,
        summary=summary,
        detail={"task": view.task, "mode": view.dispatch_mode},
        number=number,
        assignment=view.assignment,
    )
    draft.note_task(draft.state.dispatches[-1], view.task)
    return draft.state.dispatches[-1]


def _dispatch_of(draft: Draft, view: Runtime) -> Dispatch:
    """The dispatch that the snapshot speaks of; one that was missed between two looks is recorded now."""
    last = draft.state.current
    if last is None:
        return _dispatch(draft, view)
    return _dispatch(draft, view) if _other_work(view, last) else last


def _other_work(view: Runtime, last: Dispatch) -> bool:
    other_mission = view.mission is not None and view.mission != last.mission
    return other_mission or (view.assignment is not None and view.assignment != last.assignment)


# Checkpoints


def _new_blocks(draft: Draft, view: Runtime, kind: Kind) -> tuple[Checkpoint, ...]:
    """The blocks of the kept message, if it came since the last look or is shown once more."""
    if not view.raw or (digest(view.raw) == draft.state.look.raw and view.phase == Phase.DISPATCHED):
        return ()
    found = blocks(view, draft.state.worker)
    if not found:
        return ()
    arrived = draft.state.look.met and digest(view.raw) != draft.state.look.raw
    again = kind is Kind.CHECKPOINT and _shown_again(draft, view, found[-1])
    return found if arrived or again else ()


def _shown_again(draft: Draft, view: Runtime, block: Checkpoint) -> bool:
    """Whether the old message stands for a new checkpoint: its words were written after the dispatch."""
    last = draft.state.current
    since = view.check_in is None or last is None or view.check_in >= last.at
    return since and shows(view, block)


def _answer_before(draft: Draft, view: Runtime) -> None:
    """A message that came after the last look and before this dispatch answers the dispatch before it."""
    last, look = draft.state.current, draft.state.look
    if not look.met or last is None or not view.raw or digest(view.raw) == look.raw:
        return
    if view.output_at is None or view.dispatch_at is None or not last.at <= view.output_at < view.dispatch_at:
        return
    for block in blocks(view, draft.state.worker):
        if not _is_the_chats(draft, last, block):
            checkpoint(draft, last, block, at=draft.capped(view.output_at), origin=ORIGIN)


def _is_the_chats(draft: Draft, dispatch: Dispatch, block: Checkpoint) -> bool:
    """Whether the chat has given the block to another dispatch, or has still to say whose it is."""
    key = block_key(block)
    unread = any(key == block_key(other) for message in draft.unread for other in message.blocks)
    return unread or given_to_another(draft, dispatch, block)


def _known_dispatch(draft: Draft, view: Runtime) -> bool:
    """Whether values beside a dispatch start can be a check-in: not those that the start itself wrote."""
    return draft.state.look.met and draft.state.look.dispatch_at == view.dispatch_at


def _is_news(draft: Draft, view: Runtime, kind: Kind) -> bool:
    return bool(_new_blocks(draft, view, kind)) or _checked_in(draft, view) is not None


def _check_in(draft: Draft, view: Runtime) -> None:
    """A check-in without a block of its own: what changed since the last look, if anything did."""
    new = _checked_in(draft, view)
    if new is None:
        return
    at = draft.capped(view.check_in, view.output_at, view.written)
    checkpoint(draft, _dispatch_of(draft, view), new, at=at, origin=ORIGIN)


def _checked_in(draft: Draft, view: Runtime) -> Checkpoint | None:
    state, look = stated(view), draft.state.look
    if state is None or _belongs_to_message(draft, view, state):
        return None
    new = _changed(draft, view)
    ended = view.status != look.status and state is not CheckpointState.IN_PROGRESS
    said = ended or new.result or new.blocker or (new.next_action and _met(draft))
    return replace(new, state=state) if said else None


def _met(draft: Draft) -> bool:
    """Whether a next action can be compared. The text of the dispatch itself stands there at first."""
    return draft.state.look.met or draft.state.look.next_action is not None


def _changed(draft: Draft, view: Runtime) -> Checkpoint:
    """The values that the last look did not show, as a checkpoint without a state of its own."""
    look = draft.state.look
    result = view.result if digest(view.result) != look.result and not _echoes_dispatch(view) else None
    blocker = view.blocked_reason if digest(view.blocked_reason) != look.blocker else None
    next_action = view.next_action if digest(view.next_action) != (look.next_action or "") else None
    return Checkpoint(
        state=CheckpointState.IN_PROGRESS,
        result=result or None,
        blocker=blocker or None,
        next_action=next_action or None,
    )


def _echoes_dispatch(view: Runtime) -> bool:
    """A result made up from the dispatch's own text (outsourc-e/hermes-workspace#750) is no result."""
    return digest(view.result) in (digest(view.task), digest(view.control_message)) or (
        view.result or ""
    ).startswith("Dispatched task:")


def _belongs_to_message(draft: Draft, view: Runtime, state: CheckpointState) -> bool:
    """Whether status and values are those of a kept message, or of the chat's, that has been counted already."""
    last, found, look = draft.state.current, blocks(view, draft.state.worker), draft.state.look
    if last is not None and _is_what_the_chat_said(draft, last, view, state):
        return True
    if last is None or not found or found[-1].state is not state or not agrees(view, found[-1]):
        return False
    new = _changed(draft, view)
    values_came_later = (
        look.met and digest(view.raw) == look.raw and (new.result or new.next_action or new.blocker)
    )
    return not values_came_later and said_before(draft, last, found[-1])


def _is_what_the_chat_said(draft: Draft, last: Dispatch, view: Runtime, state: CheckpointState) -> bool:
    """Whether the fields are the values of the checkpoint that the chat gave last."""
    said = draft.state.said
    if said is None or (said.mission, said.number) != (last.mission, last.number):
        return False
    new, block = _changed(draft, view), said.block
    pairs = (
        (new.result, block.result),
        (new.blocker, block.blocker),
        (new.next_action, block.next_action),
    )
    return block.state is state and all(value is None or begins(value, other) for value, other in pairs)


# Blocks by the control plane, stops and resets


def _control_plane_block(draft: Draft, view: Runtime) -> None:
    """The control plane gave up. News once for each dispatch and reason, whatever clocks move later."""
    assert blocked_by_control_plane(view)
    dispatch, reason = _dispatch_of(draft, view), view.blocked_reason or ""
    at = draft.capped(view.check_in, view.written)
    words = (CONTROL_PLANE, None, reason, None)
    type, other = EventType.BLOCKED, EventType.NOTE
    detail: dict[str, object] = {
        "state": "BLOCKED",
        "result": None,
        "filesChanged": None,
        "commandsRun": None,
        "blocker": reason,
        "nextAction": None,
        "origin": CONTROL_PLANE,
    }
    if dispatch.answered:
        type, other = other, type
        detail = {"kind": NOTE_LATE_BLOCK, "origin": CONTROL_PLANE}
    counted = event_id(draft.state.worker, dispatch.mission, dispatch.number, other, words, 1)
    if not draft.has(counted):
        draft.once(type, dispatch, words, at=at, summary=reason, detail=detail)


def _stop(draft: Draft, view: Runtime, kind: Kind) -> None:
    """A stop or reset. One that is there at first meeting, with nothing known to run, is base line."""
    look, last = draft.state.look, draft.state.current
    again = look.met and look.kind != kind
    if last is None and not again:
        return
    note = NOTE_STOPPED if kind is Kind.STOPPED else NOTE_RESET
    text = view.dispatch_result if kind is Kind.STOPPED else view.control_message or view.cancellation
    at = draft.capped(
        view.output_at if kind is Kind.STOPPED else view.cancelled_at, view.check_in, view.written
    )
    occurrence = 1
    while again and draft.has(_stop_id(draft, last, note, occurrence)):
        occurrence += 1
    draft.once(
        EventType.NOTE,
        last,
        (note,),
        at=at,
        summary=text or f"Worker {note}",
        detail={"kind": note},
        occurrence=occurrence,
        number=0,
    )


def _stop_id(draft: Draft, last: Dispatch | None, note: str, occurrence: int) -> EventId:
    mission, number = (last.mission, last.number) if last else (None, 0)
    return event_id(draft.state.worker, mission, number, EventType.NOTE, (note,), occurrence)


def _learned(look: Look, view: Runtime, kind: Kind) -> Look:
    """What the next look is compared with. A field that is not given keeps what was known of it: a writer
    that could not parse the file leaves only its own keys in it."""

    def text(value: str | None, before: str) -> str:
        return before if value is None else digest(value)

    return Look(
        met=True,
        kind=kind,
        dispatch_at=view.dispatch_at if view.dispatch_at is not None else look.dispatch_at,
        raw=text(view.raw, look.raw),
        status=view.status or look.status,
        result=text(view.result, look.result),
        blocker="" if view.blocked_reason is None else digest(view.blocked_reason),
        next_action=look.next_action if view.next_action is None else digest(view.next_action),
    )
