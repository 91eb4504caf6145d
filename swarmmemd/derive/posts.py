"""What was left in the inbox for a worker's memory: notes, events and handoffs. Each counts once, by its name.

A checkpoint that is posted is the same event as one that the chat shows. docs/contracts.md, "Posts".
"""

from collections.abc import Sequence

from swarmmemd.checkpoint import parse
from swarmmemd.derive.blocks import checkpoint, id_of
from swarmmemd.derive.draft import Draft
from swarmmemd.derive.handoffs import take
from swarmmemd.derive.ledger import complete
from swarmmemd.derive.whose import current_at
from swarmmemd.fold import MIRRORED, first_line
from swarmmemd.handoff import mirror, read_handoff, sha256
from swarmmemd.model import Checkpoint, CheckpointState, EventId, EventType, MissionId, checkpoint_state
from swarmmemd.observation import HandoffFile, Post
from swarmmemd.state import Dispatch, Heard

POSTED = "posted"
"""`event.origin` and `event.by` of what was posted."""
_SAYS = {EventType.CHECKPOINT: CheckpointState.IN_PROGRESS, EventType.BLOCKED: CheckpointState.BLOCKED}
_RESERVED = frozenset({"origin", "kind"})


def look_at_posts(draft: Draft, posts: Sequence[Post]) -> None:
    """Adds what was posted and is not known."""
    for post in posts:
        if draft.heard(_key(post)) is not None:
            continue
        before, known = len(draft.events), _add(draft, post, post.mission or _current(draft, post))
        if post.id in draft.rejected:
            continue
        event = draft.events[before].id if len(draft.events) > before else known
        draft.note_heard(_key(post), _noted(post, event))


def _key(post: Post) -> str:
    return f"p:{post.id}"


def _noted(post: Post, event: EventId | None) -> Heard:
    """That the post was taken, and (where else the session stands) the id of its event."""
    return Heard(first=0, last=0, row=0, session=event or "", at=post.at, generation=0)


def _current(draft: Draft, post: Post) -> MissionId | None:
    dispatch = current_at(draft.state, post.at)
    return dispatch.mission if dispatch else None


def _add(draft: Draft, post: Post, mission: MissionId | None) -> EventId | None:
    """Adds the post's event. Gives the id of the one that says the same already, if there is one."""
    at = draft.capped(post.at)
    if post.type is EventType.HANDOFF_WRITTEN:
        _handoff(draft, post, mission)
    elif post.type in _SAYS:
        dispatch, known = _dispatch(draft, post, mission), None
        for block in _blocks(draft, post):
            known = known or id_of(draft, dispatch, block)
            checkpoint(draft, dispatch, block, at=at, origin=POSTED)
        return known
    elif post.type is EventType.MISSION_START and mission is not None:
        draft.start_mission(mission, first_line(post.text) or mission, post.text, at)
    elif post.type is EventType.COMPLETE and mission is not None:
        _completed(draft, mission, at)
    elif post.type is EventType.DISPATCH:
        _dispatched(draft, post, mission, at)
    else:
        _plain(draft, post, mission, at)
    return None


def _completed(draft: Draft, mission: MissionId, at: int) -> None:
    draft.start_mission(mission, mission, None, at)
    known = draft.missions.get(mission)
    if known is not None and not known.closed:
        complete(draft, known, at, by=POSTED)


def _plain(draft: Draft, post: Post, mission: MissionId | None, at: int) -> None:
    known = draft.missions.get(mission) if mission else None
    draft.once(
        post.type,
        mission,
        (post.id,),
        at=at,
        summary=first_line(post.text) or post.type.value,
        detail={**_detail(post), "origin": POSTED, **_rest(post)},
        assignment=post.assignment or (known.assignment if known else None),
    )


def _rest(post: Post) -> dict[str, str]:
    """The whole text, where the summary is its first line only."""
    return {"text": post.text} if post.text.strip() != first_line(post.text) else {}


def _detail(post: Post) -> dict[str, str | int | float | None]:
    return {key: value for key, value in post.detail.items() if key not in _RESERVED}


def _dispatched(draft: Draft, post: Post, mission: MissionId | None, at: int) -> None:
    if mission is not None:
        draft.start_mission(mission, first_line(post.text) or mission, post.text, at)
    draft.once(
        EventType.DISPATCH,
        mission,
        (),
        at=at,
        summary=first_line(post.text) or "Dispatched without a task text",
        detail={"task": post.text, "mode": POSTED},
        number=draft.number_of(mission) + 1,
        assignment=post.assignment,
    )
    draft.note_task(draft.state.dispatches[-1], post.text)


def _handoff(draft: Draft, post: Post, mission: MissionId | None) -> None:
    found = read_handoff(post.text, draft.state.worker, draft.missions)
    if found.refused is not None:
        draft.rejected[post.id] = found.refused
        return
    whose, data = found.mission or mission, post.text.encode("utf-8", "replace")
    path = mirror(whose) if whose else "memory/handoffs/latest.md"
    file = HandoffFile(path=path, local=True, named=whose, data=data, sha256=sha256(data), written=post.at)
    take(draft, file, found, whose, mirrored=post.detail.get(MIRRORED) != 0)


def _blocks(draft: Draft, post: Post) -> tuple[Checkpoint, ...]:
    """The checkpoint in the fields, else those in the text, else the text as a result or a blocker."""
    state = checkpoint_state(post.detail.get("state"))
    found = parse(post.text, draft.state.worker) if state is None else ()
    if found:
        return found
    state = state or _SAYS[post.type]
    blocking = state in (CheckpointState.BLOCKED, CheckpointState.NEEDS_INPUT)
    said = post.text.strip() or None
    return (
        Checkpoint(
            state=state,
            result=_text(post, "result") or (None if blocking else said),
            files_changed=_text(post, "filesChanged"),
            commands_run=_text(post, "commandsRun"),
            blocker=_text(post, "blocker") or (said if blocking else None),
            next_action=_text(post, "nextAction"),
        ),
    )


def _text(post: Post, key: str) -> str | None:
    value = post.detail.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _dispatch(draft: Draft, post: Post, mission: MissionId | None) -> Dispatch:
    """The dispatch of that mission that was current when it was posted; one that was never dispatched has number 0."""
    own = [d for d in draft.state.dispatches if d.mission == mission]
    found = next((d for d in reversed(own) if d.at <= post.at), own[0] if own else None)
    return found or Dispatch(mission=mission, assignment=post.assignment, number=0, at=0, task="")
