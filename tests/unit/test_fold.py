"""State as a fold of events, and the Status that follows. docs/architecture.md, "State"."""

from typing import Any

import pytest

from swarmmemd.fold import (
    CHECKPOINTS_SHOWN,
    CONTROL_PLANE,
    DECISIONS_SHOWN,
    DISPATCHES_KEPT,
    FILES_SHOWN,
    answers,
    blocker_lines,
    checkpoint_lines,
    decisions_of,
    ends,
    files_of,
    first_line,
    fold,
    is_open,
    newest,
    number_of,
    status,
)
from swarmmemd.model import AssignmentId, Event, EventId, EventType, MissionId, Status, WorkerId
from swarmmemd.observation import LedgerState
from swarmmemd.state import Fact, MissionState, WorkerState

ME = WorkerId("builder-1")
A, B = MissionId("mission-a"), MissionId("mission-b")
AT = 1_777_885_200_000


def event(type: EventType, summary: str = "it works", mission: MissionId | None = A, **detail: Any) -> Event:
    return Event(
        id=EventId("ev_1"),
        at=AT,
        type=type,
        worker=ME,
        mission=mission,
        assignment=AssignmentId("as-1"),
        summary=summary,
        detail=detail,
    )


def dispatch(task: str = "Lay bricks", mission: MissionId | None = A) -> Event:
    return event(EventType.DISPATCH, task, mission, task=task)


def says(state: str, **detail: Any) -> Event:
    blocking = state in ("BLOCKED", "NEEDS_INPUT")
    return event(EventType.BLOCKED if blocking else EventType.CHECKPOINT, state=state, **detail)


def gave_up() -> Event:
    return event(EventType.BLOCKED, "timeout", state="BLOCKED", blocker="timeout", origin=CONTROL_PLANE)


def folded(*steps: tuple[Event, int]) -> WorkerState:
    state = WorkerState(worker=ME)
    for one, number in steps:
        state = fold(state, one, number)
    return state


def mission(*steps: tuple[Event, int]) -> MissionState:
    return folded(*steps).missions[A]


# Status


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("DONE", "executing"),
        ("IN_PROGRESS", "executing"),
        ("HANDOFF", "executing"),
        ("NEEDS_REVIEW", "review"),
        ("BLOCKED", "blocked"),
        ("NEEDS_INPUT", "blocked"),
    ],
)
def test_the_last_own_fact_decides_the_status(state: str, word: str) -> None:
    assert status(mission((dispatch(), 1), (says(state), 1))) == word


@pytest.mark.parametrize(
    ("fact", "ledger", "closed", "word"),
    [
        (Fact.NONE, None, False, Status.PLANNING),
        (Fact.NONE, LedgerState.EXECUTING, False, Status.PLANNING),
        (Fact.DONE, LedgerState.REVIEWING, False, Status.REVIEW),
        (Fact.DISPATCHED, LedgerState.REVIEWING, False, Status.EXECUTING),
        (Fact.IN_PROGRESS, LedgerState.BLOCKED, False, Status.EXECUTING),
        (Fact.BLOCKED, LedgerState.REVIEWING, False, Status.BLOCKED),
        (Fact.BLOCKED, LedgerState.EXECUTING, True, Status.COMPLETE),
        (Fact.RESUMED, None, False, Status.EXECUTING),
    ],
)
def test_the_first_row_that_holds_is_the_status(
    fact: Fact, ledger: LedgerState | None, closed: bool, word: Status
) -> None:
    assert status(MissionState(mission=A, fact=fact, ledger=ledger, closed=closed)) is word


@pytest.mark.parametrize("kind", ["stopped", "reset"])
def test_a_stop_blocks_and_ends_the_dispatch_without_an_answer(kind: str) -> None:
    state = folded((dispatch(), 1), (event(EventType.NOTE, "Stopped via UI", kind=kind), 1))
    assert status(state.missions[A]) == "blocked"
    assert state.missions[A].blockers == ("Stopped via UI",)
    assert state.current is not None
    assert (state.current.ended, state.current.answered) == (True, False)


def test_a_note_of_a_person_changes_no_status() -> None:
    assert status(mission((dispatch(), 1), (event(EventType.NOTE, "hm"), 1))) == "executing"


def test_a_cancelled_mission_is_complete_and_a_dispatch_opens_it() -> None:
    steps = [(dispatch(), 1), (event(EventType.NOTE, kind="mission-cancelled"), 1)]
    assert status(mission(*steps)) == "complete"
    assert status(mission(*steps, (dispatch(), 2))) == "executing"


# Answers and dispatches


@pytest.mark.parametrize(
    ("one", "ending", "answering"),
    [
        (says("DONE"), True, True),
        (says("HANDOFF"), True, True),
        (says("BLOCKED"), True, True),
        (says("NEEDS_INPUT"), True, True),
        (says("IN_PROGRESS"), False, False),
        (says("NEEDS_REVIEW"), False, False),
        (gave_up(), True, False),
        (event(EventType.NOTE, kind="reset"), True, False),
        (event(EventType.NOTE, kind="late-block", origin="x"), True, False),
        (says("DONE", origin="state.db"), False, True),
        (says("writing"), False, False),
    ],
)
def test_what_ends_and_what_answers_a_dispatch(one: Event, ending: bool, answering: bool) -> None:
    assert (ends(one), answers(one)) == (ending, answering)


def test_a_real_answer_clears_the_block_of_the_control_plane() -> None:
    steps = [(dispatch(), 1), (gave_up(), 1)]
    assert mission(*steps).blockers == ("timeout",)
    after = mission(*steps, (says("IN_PROGRESS"), 1))
    assert (after.blockers, status(after)) == ((), "executing")


def test_the_control_plane_takes_nothing_back_that_the_worker_said() -> None:
    after = mission(
        (dispatch(), 1), (says("BLOCKED", blocker="no key", nextAction="get it"), 1), (gave_up(), 1)
    )
    assert (after.blockers, after.next_action) == (("no key", "timeout"), "get it")
    assert after.checkpoint_count == 1


def test_a_late_answer_to_an_earlier_dispatch_is_listed_and_changes_no_status() -> None:
    after = mission((dispatch(), 1), (dispatch("Paint"), 2), (says("BLOCKED", blocker="no key"), 1))
    assert (after.fact, after.blockers, after.checkpoint_count) == (Fact.DISPATCHED, (), 1)


def test_a_dispatch_clears_the_blockers() -> None:
    assert mission((dispatch(), 1), (says("BLOCKED", blocker="no key"), 1), (dispatch(), 2)).blockers == ()


def test_dispatches_are_counted_for_each_mission_and_for_none() -> None:
    state = folded((dispatch(), 1), (dispatch(mission=B), 1), (dispatch(mission=None), 1), (dispatch(), 2))
    assert [number_of(state, of) for of in (A, B, None, MissionId("mission-c"))] == [2, 1, 1, 0]


def test_an_event_without_a_mission_makes_none() -> None:
    assert folded((dispatch(mission=None), 1)).missions == {}


def test_the_newest_dispatches_are_kept() -> None:
    state = folded(*((dispatch(f"task {n}"), n) for n in range(1, 100)))
    assert [d.number for d in state.dispatches] == list(range(100 - DISPATCHES_KEPT, 100))
    assert number_of(state, A) == 99


# What SUMMARY.md shows


def test_the_newest_checkpoints_are_shown_and_all_are_counted() -> None:
    steps = [(event(EventType.CHECKPOINT, f"n {n}", state="IN_PROGRESS"), 1) for n in range(50)]
    after = mission((dispatch(), 1), *steps)
    assert after.checkpoint_count == 50
    assert [line[-4:] for line in after.checkpoints] == [f"n {n}" for n in range(50 - CHECKPOINTS_SHOWN, 50)]


@pytest.mark.parametrize(
    ("value", "files"),
    [
        (None, ()),
        ("", ()),
        ("a.py", ("a.py",)),
        ("a.py, b.py,c.py", ("a.py", "b.py,c.py")),
        ("- a.py\n* `b.py`\n1. c.py\n2) d.py", ("a.py", "b.py", "c.py", "d.py")),
        ("a.py (new, longer), b.py", ("a.py (new, longer), b.py",)),
        (["a.py"], ()),
    ],
)
def test_files_are_taken_one_by_one(value: object, files: tuple[str, ...]) -> None:
    assert files_of(says("DONE", filesChanged=value)) == files


def test_a_decision_keeps_its_commas() -> None:
    assert decisions_of(says("DONE", decisions="- Oak, not beech\n- Nails")) == ("Oak, not beech", "Nails")


def test_files_and_decisions_are_kept_up_to_their_limits() -> None:
    steps = [(says("IN_PROGRESS", filesChanged=f"f{n}", decisions=f"d{n}"), 1) for n in range(300)]
    after = mission((dispatch(), 1), *steps)
    assert (len(after.files), after.files[-1]) == (FILES_SHOWN, "f299")
    assert (len(after.decisions), after.decisions[0]) == (DECISIONS_SHOWN, "d200")


def test_what_is_named_again_is_the_newest() -> None:
    assert newest(("a", "b", "c"), ("a",), 3) == ("b", "c", "a")
    assert newest(("a", "b", "c"), ("d",), 3) == ("b", "c", "d")
    assert newest(("a",), (), 3) == ("a",)


def test_the_control_plane_gives_a_blocker_and_no_checkpoint() -> None:
    assert (checkpoint_lines(gave_up()), blocker_lines(gave_up())) == ((), ("timeout",))


def test_a_checkpoint_line_says_when_and_what() -> None:
    assert checkpoint_lines(says("DONE")) == ("2026-05-04T09:00:00.000Z: DONE — it works",)


@pytest.mark.parametrize(
    ("title", "task", "objective"),
    [
        ("The wall", "Lay bricks", "The wall: Lay bricks"),
        ("Lay bricks", "Lay bricks", "Lay bricks"),
        ("Lay bricks", "Lay bricks\n\nin rows", "Lay bricks\n\nin rows"),
        ("The wall", None, "The wall"),
    ],
)
def test_the_objective_is_title_and_task_without_repeating(
    title: str, task: str | None, objective: str
) -> None:
    after = mission((event(EventType.MISSION_START, title, task=task), 0))
    assert (after.title, after.objective) == (title, objective)


@pytest.mark.parametrize(("text", "line"), [(None, ""), ("", ""), ("\n \n  a \nb", "a"), ("a\u2028b", "a")])
def test_the_first_line_is_the_first_that_is_not_blank(text: str | None, line: str) -> None:
    assert first_line(text) == line


@pytest.mark.parametrize("state", LedgerState)
def test_all_but_complete_and_cancelled_is_open(state: LedgerState) -> None:
    assert is_open(state) is (state not in ("complete", "cancelled"))


def test_a_mission_that_the_ledger_does_not_know_is_not_held_open_by_it() -> None:
    assert not is_open(None)
