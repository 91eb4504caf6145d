"""State as a fold of events: (State, Event) -> State, and the Status that follows from it. Pure.

docs/architecture.md, "State"; docs/contracts.md, "Status".
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from swarmmemd.cut import shortened
from swarmmemd.handoff import Author, is_local, rank
from swarmmemd.identity import digest
from swarmmemd.model import (
    BLOCKING,
    CheckpointState,
    Event,
    EventType,
    MissionId,
    Status,
    checkpoint_state,
    iso,
)
from swarmmemd.observation import CLOSED, LedgerState
from swarmmemd.state import Dispatch, Fact, Kept, MissionState, WorkerState

DISPATCHES_KEPT = 64
CHECKPOINTS_SHOWN = 20
FILES_SHOWN = 200
DECISIONS_SHOWN = 100
COMMANDS_KEPT = 20
LINE_KEPT = 2000

CONTROL_PLANE = "control-plane"
"""`event.origin` of a block that the control plane made up, not the worker."""

CHAT = "state.db"
TRANSCRIPT = "transcript"
LEDGER = "ledger"
"""`event.origin` of what the worker printed itself, whether or not the control plane ever saw it, and of what only the
ledger still tells of the past."""

NOTE_STOPPED = "stopped"
NOTE_RESET = "reset"
NOTE_CANCELLED = "mission-cancelled"
NOTE_LATE_BLOCK = "late-block"
"""`event.kind` of the notes that the daemon writes itself."""

_FACTS = {
    CheckpointState.DONE: Fact.DONE,
    CheckpointState.BLOCKED: Fact.BLOCKED,
    CheckpointState.NEEDS_INPUT: Fact.BLOCKED,
    CheckpointState.HANDOFF: Fact.HANDOFF,
    CheckpointState.IN_PROGRESS: Fact.IN_PROGRESS,
    CheckpointState.NEEDS_REVIEW: Fact.REVIEW,
}
_ENDING = BLOCKING | {CheckpointState.DONE, CheckpointState.HANDOFF}
"""States after which the same task may be dispatched again, and which answer a dispatch."""

MIRRORED = "mirrorShared"
"""Key of a `handoff-written` that is false where the handoff is not for the shared folder."""


def status(mission: MissionState) -> Status:
    """The Status word: the first row of the table that holds."""
    if mission.closed:
        return Status.COMPLETE
    if mission.fact is Fact.BLOCKED:
        return Status.BLOCKED
    reviewing = mission.fact is Fact.DONE and mission.ledger is LedgerState.REVIEWING
    if mission.fact is Fact.REVIEW or reviewing:
        return Status.REVIEW
    return Status.PLANNING if mission.fact is Fact.NONE else Status.EXECUTING


def fold(state: WorkerState, event: Event, number: int) -> WorkerState:
    """The state after `event`, which belongs to dispatch `number` of its mission (0: to none)."""
    step = _STEPS.get(event.type)
    if event.type is EventType.DISPATCH:
        state = _dispatched(state, event, number)
    elif step and number:
        state = _with_dispatch(state, event, number)
    if event.mission is None:
        return state
    after = state.missions.get(event.mission) or MissionState(mission=event.mission)
    if step:
        after = step(after, event, number)
    if event.at > after.updated:
        after = replace(after, updated=event.at)
    if event.type is EventType.HANDOFF_WRITTEN and event.detail.get("sha256"):
        state = replace(state, handed_off=event.mission)
    return with_mission(state, after)


def with_mission(state: WorkerState, mission: MissionState) -> WorkerState:
    """The state with this mission in the place of what was known of it."""
    return replace(state, missions={**state.missions, mission.mission: mission})


def number_of(state: WorkerState, mission: MissionId | None) -> int:
    """How many dispatches of the mission there were."""
    if mission is not None:
        known = state.missions.get(mission)
        return known.dispatches if known else 0
    return max((d.number for d in state.dispatches if d.mission is None), default=0)


def event_state(event: Event) -> CheckpointState | None:
    """The STATE of a checkpoint or blocked event, None where its line names none that is known."""
    return checkpoint_state(event.detail.get("state"))


def made_by_control_plane(event: Event) -> bool:
    """Whether a blocked event is the control plane's and not the worker's word."""
    return event.detail.get("origin") == CONTROL_PLANE


def ends(event: Event) -> bool:
    """Whether the event is a terminal status of its dispatch, as the control plane shows it.

    What the worker printed answers the dispatch and does not end it: the control plane may write the start of
    the same dispatch once more after the answer.
    """
    if event.type is EventType.NOTE:
        return stops(event) or event.detail.get("kind") == NOTE_LATE_BLOCK
    origin = event.detail.get("origin")
    return origin == CONTROL_PLANE or (origin not in (CHAT, TRANSCRIPT) and event_state(event) in _ENDING)


def stops(event: Event) -> bool:
    """Whether the event is the note of a stop or reset."""
    return event.type is EventType.NOTE and event.detail.get("kind") in (NOTE_STOPPED, NOTE_RESET)


def answers(event: Event) -> bool:
    """Whether the event is the worker's own answer to its dispatch."""
    return event_state(event) in _ENDING and not made_by_control_plane(event)


def _dispatched(state: WorkerState, event: Event, number: int) -> WorkerState:
    dispatch = Dispatch(
        mission=event.mission,
        assignment=event.assignment,
        number=number,
        at=event.at,
        task=digest(event.detail.get("task")),
    )
    return replace(state, dispatches=(*state.dispatches, dispatch)[-DISPATCHES_KEPT:])


def _with_dispatch(state: WorkerState, event: Event, number: int) -> WorkerState:
    """Marks the dispatch that the event ends or answers."""
    ended, answered = ends(event), answers(event)
    if not (ended or answered):
        return state

    def mark(dispatch: Dispatch) -> Dispatch:
        if dispatch.mission != event.mission or dispatch.number != number:
            return dispatch
        return replace(
            dispatch,
            ended=dispatch.ended or ended,
            ended_at=max(dispatch.ended_at, event.at),
            answered=dispatch.answered or answered,
        )

    return replace(state, dispatches=tuple(map(mark, state.dispatches)))


def _start(mission: MissionState, event: Event, number: int) -> MissionState:
    task = str(event.detail.get("task") or "")
    repeated = digest(task).startswith(digest(event.summary)) or digest(first_line(task)) == digest(
        event.summary
    )
    objective = task if repeated else ": ".join(filter(None, (event.summary, task)))
    return replace(mission, title=_shown(event.summary), objective=_shown(objective))


def _dispatch(mission: MissionState, event: Event, number: int) -> MissionState:
    return replace(
        mission,
        dispatches=number,
        dispatched_at=event.at,
        fact=Fact.DISPATCHED,
        closed=False,
        assignment=event.assignment,
        blockers=(),
    )


def _checkpoint(mission: MissionState, event: Event, number: int) -> MissionState:
    said = event_state(event)
    if said is None:
        return mission
    if made_by_control_plane(event):
        return _blocked_from_outside(mission, event)
    # The answer to an earlier dispatch, come late, says nothing about the one that runs now.
    late = number < mission.dispatches
    return replace(
        mission,
        checkpoints=(*mission.checkpoints, _checkpoint_line(event, said))[-CHECKPOINTS_SHOWN:],
        checkpoint_count=mission.checkpoint_count + 1,
        files=newest(mission.files, files_of(event), FILES_SHOWN),
        decisions=newest(mission.decisions, decisions_of(event), DECISIONS_SHOWN),
        commands=newest(mission.commands, commands_of(event), COMMANDS_KEPT),
        handoff_asked=mission.handoff_asked and said is not CheckpointState.HANDOFF,
        fact=mission.fact if late else _FACTS[said],
        blockers=mission.blockers if late else blocker_lines(event),
        next_action=mission.next_action if late else _next_action(event),
    )


def _blocked_from_outside(mission: MissionState, event: Event) -> MissionState:
    """The control plane gave up, or somebody stopped the worker: nothing that the worker said is taken back."""
    return replace(
        mission, fact=Fact.BLOCKED, blockers=newest(mission.blockers, blocker_lines(event), FILES_SHOWN)
    )


def _complete(mission: MissionState, event: Event, number: int) -> MissionState:
    return replace(mission, closed=True, blockers=(), completed=event.at)


def _handoff(mission: MissionState, event: Event, number: int) -> MissionState:
    by, path, sha256 = (event.detail.get(key) for key in ("by", "path", "sha256"))
    mission = replace(mission, handoff_asked=False)
    if by not in set(Author) - {Author.NOBODY} or not isinstance(sha256, str):
        return mission
    local = event.detail.get(MIRRORED) is False
    return kept(mission, Kept(sha256, rank(Author(by), local=is_local(str(path))), local))


def kept(mission: MissionState, handoff: Kept) -> MissionState:
    """The mission with this handoff, unless one that counts more stands already. Among equals the later."""
    counts = mission.handoff is None or handoff.rank >= mission.handoff.rank
    return replace(mission, handoff=handoff) if counts else mission


def _handoff_requested(mission: MissionState, event: Event, number: int) -> MissionState:
    return replace(mission, handoff_asked=True)


def _resume(mission: MissionState, event: Event, number: int) -> MissionState:
    return replace(mission, fact=Fact.RESUMED, handoff_asked=False)


def _note(mission: MissionState, event: Event, number: int) -> MissionState:
    kind = event.detail.get("kind")
    if kind == NOTE_CANCELLED:
        return replace(mission, closed=True, blockers=())
    if kind in (NOTE_STOPPED, NOTE_RESET):
        return _blocked_from_outside(mission, event)
    return mission


_STEPS: dict[EventType, Callable[[MissionState, Event, int], MissionState]] = {
    EventType.MISSION_START: _start,
    EventType.DISPATCH: _dispatch,
    EventType.CHECKPOINT: _checkpoint,
    EventType.BLOCKED: _checkpoint,
    EventType.COMPLETE: _complete,
    EventType.HANDOFF_WRITTEN: _handoff,
    EventType.HANDOFF_REQUESTED: _handoff_requested,
    EventType.RESUME: _resume,
    EventType.NOTE: _note,
}


def _shown(text: str) -> str:
    return shortened(text, LINE_KEPT)


def first_line(text: str | None) -> str:
    """The first line of `text` that is not blank; empty for none."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def newest(known: tuple[str, ...], more: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """The newest `limit` different texts, oldest first; one that comes again is new again."""
    if not more or known[-len(more) :] == more:
        return known
    return tuple(dict.fromkeys(reversed((*known, *more))))[:limit][::-1]


def checkpoint_lines(event: Event) -> tuple[str, ...]:
    """The text of the event's bullet under Checkpoints; none for what is no checkpoint of the worker's own."""
    said = event_state(event)
    if said is None or made_by_control_plane(event):
        return ()
    return (_checkpoint_line(event, said),)


def _checkpoint_line(event: Event, said: CheckpointState) -> str:
    return f"{iso(event.at)}: {said} — {_shown(event.summary)}"


def blocker_lines(event: Event) -> tuple[str, ...]:
    """The texts that the event puts under Blockers."""
    blocker = event.detail.get("blocker")
    if event.type is EventType.BLOCKED:
        return (_shown(str(blocker or event.summary)),)
    if stops(event):
        return (_shown(event.summary),)
    return (_shown(str(blocker)),) if blocker else ()


def next_action_of(event: Event) -> str | None:
    """The next action that a checkpoint names: empty where it names none, None for another event."""
    if event_state(event) is None or made_by_control_plane(event):
        return None
    return _next_action(event)


def _next_action(event: Event) -> str:
    return _shown(str(event.detail.get("nextAction") or ""))


def files_of(event: Event) -> tuple[str, ...]:
    """The paths that a checkpoint names, one each, without list marks."""
    return _items(event.detail.get("filesChanged"), split=True)


def commands_of(event: Event) -> tuple[str, ...]:
    """The commands that a checkpoint names, one each, without list marks."""
    return _items(event.detail.get("commandsRun"), split=False)


def decisions_of(event: Event) -> tuple[str, ...]:
    """The decisions that a checkpoint names, one each, without list marks."""
    return _items(event.detail.get("decisions"), split=False)


def _items(value: Any, split: bool) -> tuple[str, ...]:
    """The items of a list, a line or, where `split`, a run of commas. A comma inside of brackets is text."""
    return _items_of(value, split) if isinstance(value, str) and value else ()


@lru_cache(maxsize=64)
def _items_of(value: str, split: bool) -> tuple[str, ...]:
    """Workers name the same files and commands again and again."""
    parts = value.splitlines()
    if split:
        parts = [part for line in parts for part in _commas(line)]
    return tuple([_shown(item) for part in parts if (item := _without_mark(part))])


def _commas(line: str) -> list[str]:
    return line.replace(", ", ",\n").split(",\n") if "(" not in line else [line]


def _without_mark(item: str) -> str:
    text = item.strip().strip(",").strip()
    head, _, rest = text.partition(" ")
    if head in ("-", "*", "+", "•") or (head[:-1].isdigit() and head[-1:] in (".", ")")):
        text = rest.strip()
    return text.strip("`")


def is_open(state: LedgerState | None) -> bool:
    """Whether the ledger holds a mission of this state open."""
    return state is not None and state not in CLOSED
