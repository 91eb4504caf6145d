"""What the mission ledger shows of one worker: missions that open, complete or are cancelled."""

from msgspec.structs import replace

from swarmmemd.derive.draft import Draft
from swarmmemd.fold import NOTE_CANCELLED, is_open, with_mission
from swarmmemd.model import EventType, MissionId
from swarmmemd.observation import CLOSED, Ledger, LedgerMission, LedgerState
from swarmmemd.state import MissionState

_AT_ONCE = 1000
"""Missions at rest that are looked at together: a ledger may name many thousand."""


def open_missions(draft: Draft) -> None:
    """A `mission-start` for each open mission that names the worker. Past ones are base line: nothing."""
    ledger, worker = draft.seen.ledger, draft.state.worker
    if ledger is None:
        return
    for mission in ledger.of(worker):
        if is_open(mission.state):
            at = draft.capped(mission.created, mission.updated)
            draft.start_mission(mission.id, mission.title, mission.task_of(worker), at)


def close_missions(draft: Draft) -> None:
    """Takes over the ledger's state of each mission that the worker has, and what it closes."""
    ledger = draft.seen.ledger
    if ledger is None:
        return
    _wake(draft, ledger)
    # Always in the same order, whatever came back when.
    for id in sorted(draft.state.missions.keys() & ledger.missions.keys()):
        _take_over(draft, draft.state.missions[id], ledger.missions[id])


def _wake(draft: Draft, ledger: Ledger) -> None:
    """Brings back those missions at rest of which the ledger says anything new."""
    news = draft.seen.ledger_news
    named = tuple(ledger.missions) if news is None else news
    for start in range(0, len(named), _AT_ONCE):
        some = named[start : start + _AT_ONCE]
        for id, known in draft.missions.resting(some).items():
            if _may_be_news(known, ledger.missions[id]):
                draft.missions.wake(id)


def _may_be_news(known: MissionState, mission: LedgerMission) -> bool:
    return known.ledger is not mission.state or (mission.state in CLOSED and not known.closed)


def ledger_knows(draft: Draft, mission: MissionId) -> bool:
    """Whether the ledger decides about this mission. One that was never read knows what it knew last."""
    ledger = draft.seen.ledger
    if ledger is not None:
        return mission in ledger.missions
    known = draft.missions.get(mission)
    return known is not None and known.ledger is not None


def _take_over(draft: Draft, known: MissionState, mission: LedgerMission) -> None:
    changed = known.ledger is not mission.state
    if changed:
        draft.state = with_mission(draft.state, replace(known, ledger=mission.state))
    # A ledger that has not been written since the newest dispatch still shows the dispatch before it.
    fresh = changed if mission.updated is None else mission.updated >= known.dispatched_at
    if known.closed or not fresh:
        return
    at = draft.capped(mission.updated)
    if mission.state is LedgerState.COMPLETE:
        complete(draft, known, at, by="ledger")
    elif mission.state is LedgerState.CANCELLED:
        draft.once(
            EventType.NOTE,
            known.mission,
            (NOTE_CANCELLED,),
            at=at,
            summary="Mission cancelled in the ledger",
            detail={"kind": NOTE_CANCELLED},
            assignment=known.assignment,
        )


def complete(draft: Draft, known: MissionState, at: int, by: str) -> None:
    """The mission's `complete`, at most once for each dispatch of it."""
    summary = f"Mission complete: {known.title}" if known.title else "Mission complete"
    draft.once(
        EventType.COMPLETE,
        known.mission,
        (),
        at=at,
        summary=summary,
        detail={"by": by},
        assignment=known.assignment,
    )
