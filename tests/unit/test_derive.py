"""Derivation from `runtime.json` and the ledger: the rules that the cases do not hold.

docs/contracts.md, "Events". The file is written here as the control plane writes it: each transition lays its
own keys over those that stand there.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swarmmemd.derive.classify import STALE, TIMEOUT, Kind, classify
from swarmmemd.model import Absent, Event, Unreadable, WorkerId, iso
from swarmmemd.observation import Ledger, Runtime
from swarmmemd.state import MissionState
from tests.support.cases import LATER, START, Player, ledger_of, snapshot

ME = WorkerId("builder-1")
A, B = "mission-a", "mission-b"
MINUTE = 60_000
SECOND = 1000


def block(
    state: str = "DONE", result: str = "it works", blocker: str = "none", next_action: str = "rest"
) -> str:
    return (
        f"STATE: {state}\nFILES_CHANGED: a.py\nCOMMANDS_RUN: make\nRESULT: {result}\n"
        f"BLOCKER: {blocker}\nNEXT_ACTION: {next_action}"
    )


class ControlPlane:
    """Writes `runtime.json` transition by transition. `now` is its clock, ms."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.now = START

    def later(self, ms: int = MINUTE) -> "ControlPlane":
        self.now += ms
        return self

    def put(self, **fields: Any) -> Runtime:
        self.fields.update(fields)
        return snapshot(self.fields, self.now)

    def dispatch(
        self, task: str = "Lay bricks", mission: str | None = A, assignment: str = "as-1"
    ) -> Runtime:
        return self.put(
            state="executing",
            phase="dispatched",
            checkpointStatus="in_progress",
            currentTask=task,
            currentMissionId=mission,
            currentAssignmentId=assignment,
            blockedReason=None,
            lastDispatchAt=self.now,
            lastDispatchMode="tmux",
            lastDispatchResult="Dispatch queued",
            lastCheckIn=iso(self.now),
            lastSummary=f"Dispatched task: {task}",
            lastControlMessage=f"Dispatched task: {task}",
            nextAction="Worker carries out the task and reports back.",
        )

    def delivered(self) -> Runtime:
        return self.put(lastDispatchAt=self.now, lastDispatchResult="Delivered", lastCheckIn=iso(self.now))

    def answer(
        self, state: str = "DONE", result: str = "it works", blocker: str = "none", next_action: str = "rest"
    ) -> Runtime:
        word = state.lower()
        runtime = {"done": "idle", "handoff": "idle", "in_progress": "executing", "needs_input": "waiting"}
        return self.put(
            state=runtime.get(word, "blocked"),
            phase=word,
            checkpointStatus=word,
            currentTask=self.fields["currentTask"] if word == "in_progress" else None,
            blockedReason=blocker if word in ("blocked", "needs_input") else None,
            lastCheckIn=iso(self.now),
            lastOutputAt=self.now,
            lastResult=result,
            lastSummary=result,
            lastControlMessage=None,
            nextAction=next_action,
            checkpointRaw=block(state, result, blocker, next_action),
        )

    def flip_back(self) -> Runtime:
        """The result of a one-shot dispatch, which comes after the checkpoint."""
        return self.put(
            state="executing",
            checkpointStatus="in_progress",
            lastDispatchAt=self.now,
            lastDispatchMode="oneshot",
            lastDispatchResult="ran",
            blockedReason=None,
            lastCheckIn=iso(self.now),
        )

    def loop_pass(self, state: str = "DONE") -> Runtime:
        return self.put(
            phase=state.lower(),
            checkpointStatus=state.lower(),
            lastCheckIn=iso(self.now),
            lastOutputAt=self.now,
            orchestratorProcessedRaw=self.fields["checkpointRaw"],
        )

    def timeout(self, reason: str = TIMEOUT) -> Runtime:
        return self.put(
            state="blocked",
            phase="blocked",
            checkpointStatus="blocked",
            blockedReason=reason,
            lastDispatchResult=reason,
            lastCheckIn=iso(self.now),
            lastOutputAt=self.now,
        )

    def stale(self) -> Runtime:
        return self.put(
            state="waiting", checkpointStatus="needs_input", blockedReason=STALE, lastCheckIn=iso(self.now)
        )

    def stop(self) -> Runtime:
        return self.put(
            state="idle",
            phase="stopped",
            checkpointStatus="none",
            currentTask=None,
            blockedReason=None,
            lastDispatchResult="Stopped via UI",
            lastOutputAt=self.now,
        )

    def reset(self, reason: str = "the plan changed") -> Runtime:
        return self.put(
            state="idle",
            phase="cancelled",
            checkpointStatus="none",
            currentTask=None,
            currentMissionId=None,
            currentAssignmentId=None,
            blockedReason=None,
            checkpointRaw=None,
            lastCheckIn=iso(self.now),
            lastControlMessage=f"Reset by operator: {reason}",
            cancelledAt=iso(self.now),
            cancellationReason=reason,
        )

    def check_in(self, **fields: Any) -> Runtime:
        return self.put(lastCheckIn=iso(self.now), lastOutputAt=self.now, **fields)


def mission(
    state: str = "executing", updated: int = START, id: str = A, workers: Sequence[str] = (ME,)
) -> dict[str, Any]:
    return {
        "id": id,
        "title": "The wall",
        "state": state,
        "createdAt": START,
        "updatedAt": updated,
        "assignments": [{"id": f"as-{n}", "workerId": w, "task": "Lay"} for n, w in enumerate(workers, 1)],
    }


def ledger(state: str = "executing", updated: int = START, workers: Sequence[str] = (ME,)) -> Ledger:
    return ledger_of(mission(state, updated, workers=workers))


def types(events: Sequence[Event]) -> list[str]:
    return [event.type.value for event in events]


def begun(plane: ControlPlane) -> Player:
    """A worker that was met when it was dispatched."""
    player = Player(ME)
    assert types(player.look(plane.dispatch())) == ["mission-start", "dispatch"]
    return player


STARTED = ["mission-start", "dispatch"]

# Dispatches


@pytest.mark.parametrize("state", ["DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF", "IN_PROGRESS"])
def test_a_one_shot_flip_back_is_no_dispatch_and_no_second_checkpoint(state: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert len(player.look(plane.later().answer(state, blocker="no key"))) >= 1
    assert player.look(plane.later(50).flip_back()) == ()
    assert player.look(plane.later().loop_pass(state)) == ()


@pytest.mark.parametrize("state", ["DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF"])
def test_an_answer_that_is_seen_only_after_its_flip_back_counts_once(state: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer(state, blocker="no key")
    (answer, *_) = player.look(plane.later(50).flip_back())
    assert answer.detail["state"] == state
    assert player.look(plane.later().loop_pass(state)) == ()
    assert player.look(plane.later(50).flip_back()) == ()


def test_a_flip_back_after_a_lost_journal_is_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.lose_the_journal()
    assert player.look(plane.later(50).flip_back()) == ()


def test_the_same_task_after_a_flip_back_is_a_second_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.look(plane.later(50).flip_back())
    assert types(player.look(plane.later().dispatch())) == ["dispatch"]


def test_a_changed_task_alone_is_no_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later(SECOND).delivered())
    assert player.look(plane.later().check_in(currentTask="Lay bricks, but slowly")) == ()
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]


def test_another_task_with_a_new_time_is_a_dispatch_without_an_answer_before_it() -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert types(player.look(plane.later().dispatch("Paint the wall"))) == ["dispatch"]


def test_another_task_is_a_dispatch_where_the_file_gives_no_time() -> None:
    player = Player(ME)
    fields = {"phase": "dispatched", "checkpointStatus": "in_progress", "currentMissionId": A}
    assert types(player.look(snapshot({**fields, "currentTask": "Lay bricks"}))) == STARTED
    assert player.look(snapshot({**fields, "currentTask": "Lay bricks"}, START + 5)) == ()
    assert types(player.look(snapshot({**fields, "currentTask": "Paint"}))) == ["dispatch"]


def test_a_rewritten_dispatch_time_with_the_same_task_is_no_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert player.look(plane.later(SECOND).delivered()) == ()
    assert player.look(plane.later().delivered()) == ()


def test_a_dispatch_time_that_moved_unseen_before_stale_is_no_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later(SECOND).delivered()
    assert types(player.look(plane.later(10 * MINUTE).stale())) == ["blocked"]
    assert player.look(plane.later(10 * MINUTE).stale()) == ()
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]


def test_the_same_task_after_stale_is_a_second_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later(10 * MINUTE).stale())
    assert types(player.look(plane.later().dispatch())) == ["dispatch"]
    assert player.status(A) == "executing"


@pytest.mark.parametrize("ending", ["DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF"])
def test_the_same_task_after_a_terminal_answer_is_a_second_dispatch(ending: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer(ending, blocker="no key"))
    assert types(player.look(plane.later().dispatch())) == ["dispatch"]


@pytest.mark.parametrize("end", ["stop", "reset"])
def test_the_same_task_after_a_stop_or_reset_is_a_second_dispatch(end: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert types(player.look(getattr(plane.later(), end)())) == ["note"]
    assert types(player.look(plane.later().dispatch())) == ["dispatch"]
    assert player.status(A) == "executing"


def test_a_dispatch_that_was_missed_comes_before_the_block_of_the_control_plane() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().dispatch("Paint", B, "as-2")
    assert types(player.look(plane.later().timeout())) == [*STARTED, "blocked"]
    assert {event.mission for event in player.events[-3:]} == {B}


def test_a_dispatch_without_a_mission_is_counted_on_its_own() -> None:
    plane = ControlPlane()
    player = Player(ME)
    assert types(player.look(plane.dispatch(mission=None))) == ["dispatch"]
    assert types(player.look(plane.later().answer())) == ["checkpoint"]
    assert types(player.look(plane.later().dispatch(mission=None))) == ["dispatch"]
    assert types(player.look(plane.later().answer())) == ["checkpoint"]
    assert len({event.id for event in player.events}) == 4


# Checkpoints


def test_an_old_message_says_nothing_about_the_next_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    assert types(player.look(plane.later().dispatch("Paint", B, "as-2"))) == STARTED
    assert player.look(plane.later(SECOND).delivered()) == ()
    assert types(player.look(plane.later(10 * MINUTE).stale())) == ["blocked"]
    assert player.status(B) == "blocked"


def test_an_old_message_says_nothing_after_a_lost_journal() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.look(plane.later().dispatch("Paint", B, "as-2"))
    player.lose_the_journal()
    assert player.look(plane.later(SECOND).delivered()) == ()
    assert player.status(B) == "executing"


def test_the_same_answer_to_a_second_dispatch_of_the_same_task_counts_again() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.look(plane.later().dispatch())
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]
    assert len({event.id for event in player.events}) == len(player.events) == 7


def test_the_same_answer_to_a_second_dispatch_counts_again_when_the_dispatch_was_not_looked_at() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    plane.later().dispatch("Paint", A, "as-2")
    assert types(player.look(plane.later().answer())) == ["dispatch", "checkpoint", "complete"]


def test_an_answer_that_the_next_dispatch_hid_belongs_to_the_dispatch_before() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer("DONE", "bricks laid")
    found = player.look(plane.later().dispatch("Paint", B, "as-2"))
    assert types(found) == ["checkpoint", "complete", *STARTED]
    assert [event.mission for event in found] == [A, A, B, B]
    assert player.look(plane.later(SECOND).delivered()) == ()


def test_a_check_in_uses_only_values_that_changed() -> None:
    plane = ControlPlane()
    player = begun(plane)
    (first,) = player.look(plane.later().check_in(lastResult="half", nextAction="the rest"))
    assert (first.detail["result"], first.detail["nextAction"]) == ("half", "the rest")
    (second,) = player.look(plane.later().check_in(nextAction="a quarter"))
    assert (second.detail["result"], second.detail["nextAction"]) == (None, "a quarter")
    assert second.summary == "a quarter"


def test_a_check_in_beside_an_old_message_is_a_checkpoint_of_its_own() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.look(plane.later().dispatch("Paint", B, "as-2"))
    found = player.look(plane.later().check_in(checkpointStatus="done", phase="done", lastResult="painted"))
    assert types(found) == ["checkpoint", "complete"]
    assert (found[0].mission, found[0].detail["result"]) == (B, "painted")


def test_fields_of_a_kept_message_are_that_message() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer("IN_PROGRESS", "half", next_action="the rest"))
    assert player.look(plane.later().check_in(lastSummary="half", lastResult="half")) == ()


@pytest.mark.parametrize("echo", ["Lay bricks", "Dispatched task: Lay bricks", "  Lay\n bricks "])
@pytest.mark.parametrize("phase", ["dispatched", "in_progress", "working"])
def test_progress_made_up_from_the_dispatch_is_nothing(echo: str, phase: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert player.look(plane.later(SECOND).check_in(phase=phase, lastResult=echo)) == ()
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]


def test_only_busy_words_and_clocks_are_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    for state in ("thinking", "writing", "syncing", "running", "a word of tomorrow"):
        assert player.look(plane.later().check_in(state=state, phase=state)) == ()


@pytest.mark.parametrize("status", ["checkpoint-timeout", "DONE", "", "archived"])
def test_an_unknown_status_gives_nothing_and_loses_nothing(status: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer()
    assert player.look(plane.put(checkpointStatus=status)) == ()
    assert types(player.look(plane.later().loop_pass())) == ["checkpoint", "complete"]


def test_a_status_of_another_type_gives_nothing_and_loses_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer()
    assert player.look(plane.put(checkpointStatus=["done"])) == ()
    assert types(player.look(plane.later().loop_pass())) == ["checkpoint", "complete"]


def test_a_bad_id_hides_a_snapshot_and_loses_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer()
    assert player.look(plane.put(currentMissionId="../x")) == ()
    assert types(player.look(plane.put(currentMissionId=A))) == ["checkpoint", "complete"]


@pytest.mark.parametrize("shown", [Unreadable("empty"), Absent(), None])
def test_a_file_that_cannot_be_read_changes_nothing(shown: Unreadable | Absent | None) -> None:
    plane = ControlPlane()
    player = begun(plane)
    before = player.state
    assert player.look(shown) == ()
    assert player.state == before


# Times


def test_no_event_is_later_than_the_look() -> None:
    plane = ControlPlane()
    player = Player(ME)
    plane.later(90 * MINUTE).dispatch()
    found = player.look(plane.later().answer(), ledger("executing", START + 100 * MINUTE), at=START + MINUTE)
    assert types(found) == [*STARTED, "checkpoint"]
    assert [event.at for event in found] == [START, START + MINUTE, START + MINUTE]


def test_events_have_the_times_of_their_source() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    assert [event.at for event in player.events] == [START, START, START + MINUTE, START + MINUTE]


@pytest.mark.parametrize("missing", [{}, {"lastCheckIn": "yesterday", "lastDispatchAt": "soon"}])
def test_missing_times_are_those_of_the_file(missing: dict[str, Any]) -> None:
    player = Player(ME)
    fields = {"phase": "dispatched", "checkpointStatus": "in_progress", "currentTask": "Lay", **missing}
    (event,) = player.look(snapshot(fields, START + 7))
    assert event.at == START + 7


def test_a_file_without_any_time_is_as_old_as_the_look() -> None:
    player = Player(ME)
    fields = {"phase": "dispatched", "checkpointStatus": "in_progress", "currentTask": "Lay"}
    (event,) = player.look(snapshot(fields, 0), at=LATER)
    assert event.at == LATER


# First meeting


@pytest.mark.parametrize("end", ["stop", "reset"])
def test_a_stop_or_reset_at_first_meeting_is_base_line(end: str) -> None:
    plane = ControlPlane()
    plane.dispatch()
    player = Player(ME)
    assert player.look(getattr(plane.later(), end)()) == ()
    assert player.look(getattr(plane.later(), end)()) == ()
    assert types(player.look(plane.later().dispatch("Paint", B, "as-2"))) == STARTED


def test_past_missions_of_the_ledger_are_base_line() -> None:
    player = Player(ME)
    past = ledger_of(mission("complete"), mission("cancelled", id=B))
    idle = snapshot({"state": "idle", "checkpointStatus": "none"})
    assert player.look(idle, past) == ()
    touched = ledger_of(mission("complete", START + MINUTE), mission("cancelled", START + MINUTE, id=B))
    assert player.look(idle, touched) == ()


@pytest.mark.parametrize("state", ["planning", "dispatching", "executing", "reviewing", "blocked"])
def test_open_missions_of_the_ledger_are_news(state: str) -> None:
    player = Player(ME)
    (event,) = player.look(snapshot({"checkpointStatus": "none"}), ledger(state))
    assert (event.type.value, event.summary, event.at) == ("mission-start", "The wall", START)


def test_a_mission_that_names_others_only_is_not_the_workers() -> None:
    player = Player(ME)
    assert player.look(snapshot({"checkpointStatus": "none"}), ledger(workers=["scout-2"])) == ()


# Control-plane blocks, stops and resets


def test_two_reasons_of_the_control_plane_are_two_blocks() -> None:
    plane = ControlPlane()
    player = begun(plane)
    assert types(player.look(plane.later().timeout())) == ["blocked"]
    assert types(player.look(plane.later().stale())) == ["blocked"]
    assert player.look(plane.later().timeout()) == ()
    assert [event.summary for event in player.events[-2:]] == [TIMEOUT, STALE]


def test_a_block_once_more_with_new_clocks_is_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().timeout())
    for _ in range(3):
        assert player.look(plane.later().timeout()) == ()


def test_a_block_once_more_after_the_answer_is_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().timeout())
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]
    assert player.look(plane.later().timeout()) == ()
    assert player.status(A) == "complete"


@pytest.mark.parametrize("state", ["DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF"])
def test_a_block_after_the_answer_is_a_note_that_changes_no_status(state: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer(state, blocker="no key"))
    before = player.status(A)
    (event,) = player.look(plane.later().timeout())
    assert (event.type.value, event.summary, player.status(A)) == ("note", TIMEOUT, before)
    assert player.look(plane.later().timeout()) == ()


@pytest.mark.parametrize("state", ["IN_PROGRESS", "NEEDS_REVIEW"])
def test_a_block_after_what_is_no_answer_blocks(state: str) -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().put(checkpointRaw=block(state, "half"), phase=state.lower()))
    assert types(player.events[2:]) == ["checkpoint"]
    (event,) = player.look(plane.later().timeout())
    assert (event.type.value, event.detail["origin"], player.status(A)) == (
        "blocked",
        "control-plane",
        "blocked",
    )


def test_an_answer_found_with_the_block_comes_first_and_makes_it_a_note() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.later().answer()
    assert types(player.look(plane.later().timeout())) == ["checkpoint", "complete", "note"]


def test_the_same_reason_after_a_second_dispatch_blocks_again() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().timeout())
    player.look(plane.later().dispatch())
    assert types(player.look(plane.later().timeout())) == ["blocked"]


def test_a_block_of_the_control_plane_after_a_lost_journal_is_nothing_new() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().timeout())
    player.lose_the_journal()
    assert player.look(plane.later().timeout()) == ()
    assert player.status(A) == "blocked"


def test_a_note_after_the_answer_is_nothing_new_after_a_lost_journal() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    player.look(plane.later().timeout())
    player.lose_the_journal()
    assert player.look(plane.later().timeout()) == ()
    assert player.status(A) == "complete"


def test_a_reset_without_ids_notes_the_mission_that_was_running() -> None:
    plane = ControlPlane()
    player = begun(plane)
    (event,) = player.look(plane.later().reset())
    assert (event.mission, event.assignment) == (A, "as-1")
    assert event.summary == "Reset by operator: the plan changed"
    assert (event.at, player.status(A)) == (START + MINUTE, "blocked")


def test_a_reset_that_still_stands_there_is_nothing() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().reset())
    assert player.look(plane.later().put(lastSummary="x")) == ()
    player.lose_the_journal()
    assert player.look(plane.later().put(lastSummary="y")) == ()


def test_a_stop_after_a_reset_is_a_second_note() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().reset())
    assert types(player.look(plane.later().stop())) == ["note"]


# The ledger


def test_a_ledger_older_than_the_newest_dispatch_completes_nothing() -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger())
    player.look(plane.later().answer(), ledger())
    assert types(player.look(None, ledger("complete", plane.now))) == ["complete"]
    again = plane.later().dispatch()
    assert types(player.look(again, ledger("complete", plane.now - MINUTE))) == ["dispatch"]
    assert player.look(again, ledger("complete", plane.now - 1)) == ()
    assert player.status(A) == "executing"
    assert types(player.look(again, ledger("complete", plane.now + MINUTE))) == ["complete"]


def test_a_mission_is_complete_at_most_once_for_each_dispatch() -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger())
    player.look(plane.later().answer(), ledger())
    for n in range(3):
        player.look(None, ledger("complete", plane.now + n))
        player.look(None, ledger("executing", plane.now + n))
    assert types(player.events).count("complete") == 1


def test_a_worker_completes_a_mission_that_the_ledger_does_not_know_once() -> None:
    plane = ControlPlane()
    player = begun(plane)
    (_, complete) = player.look(plane.later().answer(result="first"))
    assert complete.detail == {"by": "worker"}
    assert types(player.look(plane.later().answer(result="second"))) == ["checkpoint"]
    assert player.look(None, ledger("complete", plane.now + MINUTE)) == ()


def test_done_leaves_a_mission_open_that_the_ledger_knows() -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger())
    assert types(player.look(plane.later().answer(), ledger())) == ["checkpoint"]
    assert player.status(A) == "executing"


def test_a_ledger_that_is_not_there_any_more_still_decides() -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger())
    assert types(player.look(plane.later().answer(), None)) == ["checkpoint"]


@pytest.mark.parametrize("state", ["blocked", "planning", "dispatching", "executing"])
def test_what_others_did_in_the_ledger_changes_no_status(state: str) -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger("executing", workers=[ME, "scout-2"]))
    assert player.look(None, ledger(state, START + MINUTE, workers=[ME, "scout-2"])) == ()
    assert player.status(A) == "executing"


def test_a_cancelled_mission_gets_one_note_and_is_complete() -> None:
    plane = ControlPlane()
    player = Player(ME)
    player.look(plane.dispatch(), ledger())
    (event,) = player.look(None, ledger("cancelled", START + MINUTE))
    assert (event.type.value, event.at, player.status(A)) == ("note", START + MINUTE, "complete")
    assert player.look(None, ledger("cancelled", START + 2 * MINUTE)) == ()


def test_a_dispatch_opens_a_completed_mission_again() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    assert player.status(A) == "complete"
    player.look(plane.later().dispatch("Paint", A, "as-2"))
    assert player.status(A) == "executing"


# A file that a writer has emptied


def test_a_wiped_file_says_nothing_and_the_same_task_after_it_is_no_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.fields = {"notifySessionKey": "main"}
    assert player.look(plane.later().put()) == ()
    assert player.look(plane.later().put(lastCheckIn=iso(plane.now), state="thinking")) == ()
    plane.fields["currentTask"] = "Lay bricks"
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]


def test_a_wiped_file_does_not_make_an_old_answer_new() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer())
    kept = dict(plane.fields)
    plane.fields = {}
    assert player.look(plane.later().put()) == ()
    plane.fields = kept
    assert player.look(plane.later().loop_pass()) == ()


def test_an_answer_without_ids_after_a_wiped_file_and_a_lost_journal_is_the_running_dispatchs() -> None:
    plane = ControlPlane()
    player = begun(plane)
    plane.fields = {"currentTask": None}
    player.look(plane.later().put())
    player.lose_the_journal()
    found = player.look(plane.later().answer())
    assert types(found) == ["checkpoint", "complete"]
    assert {event.mission for event in found} == {A}


# Properties

TEXTS = (
    "",
    " ",
    "none",
    "Lay bricks",
    block(),
    block("BLOCKED", "stuck", "no key"),
    "STATE: DONE",
    "\ud83e",
    "\0",
)
WORDS = ("dispatched", "stopped", "cancelled", "done", "in_progress", "blocked", "needs_input", "handoff")
IDS = (A, B, "release:2026", "../x", "a\n", "é")
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64),
    st.integers(START, START + 10),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from((*TEXTS, *WORDS, *IDS, TIMEOUT, STALE, "2026-05-04T09:00:00Z", "9999-99-99")),
    st.text(max_size=20),
    st.lists(st.none() | st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
# fmt: off
KEYS = (
    "phase", "checkpointStatus", "currentTask", "currentMissionId", "currentAssignmentId", "lastDispatchAt",
    "lastDispatchMode", "lastDispatchResult", "lastCheckIn", "lastOutputAt", "cancelledAt", "blockedReason",
    "lastResult", "nextAction", "lastControlMessage", "cancellationReason", "checkpointRaw", "state",
)
# fmt: on
LIKELY = {
    "phase": st.sampled_from(WORDS),
    "checkpointStatus": st.sampled_from(("none", *WORDS)),
    "currentMissionId": st.sampled_from((A, B, None)),
    "currentAssignmentId": st.sampled_from(("as-1", "as-2", None)),
    "checkpointRaw": st.sampled_from(TEXTS),
}
LIKELY_FIELDS = st.fixed_dictionaries(LIKELY, optional={key: ODD for key in KEYS if key not in LIKELY})
FIELDS = st.one_of(LIKELY_FIELDS, st.dictionaries(st.sampled_from(KEYS), ODD))
LEDGERS = st.one_of(
    st.none(),
    st.builds(
        ledger, st.sampled_from(("executing", "reviewing", "complete", "cancelled")), st.integers(1, LATER)
    ),
)


LOOKS = st.lists(st.tuples(FIELDS, LEDGERS), min_size=1, max_size=5)


@given(LOOKS)
@settings(deadline=None)
def test_any_object_is_looked_at_without_an_error(looks: list[tuple[dict[str, Any], Any]]) -> None:
    player = Player(ME)
    for fields, missions in looks:
        for event in player.look(snapshot(fields), missions, at=LATER):
            assert event.at <= LATER
            assert event.worker == ME
    ids = [event.id for event in player.events]
    assert len(ids) == len(set(ids))


@given(LOOKS, st.lists(st.integers(START, START + 3), min_size=5, max_size=5))
@settings(deadline=None)
def test_a_second_look_at_any_object_with_a_dispatch_time_is_no_news(
    looks: list[tuple[dict[str, Any], Any]], times: list[int]
) -> None:
    player = Player(ME)
    for (fields, missions), dispatched in zip(looks, times, strict=False):
        view = snapshot({**fields, "lastDispatchAt": dispatched})
        player.look(view, missions, at=LATER)
        before = player.state
        assert player.look(view, missions, at=LATER) == ()
        assert player.state == before


@given(FIELDS)
@settings(deadline=None)
def test_any_object_has_a_kind(fields: dict[str, Any]) -> None:
    assert classify(snapshot(fields), ME) in Kind


RESULTS = st.sampled_from(("first", "second"))
MOVES = st.one_of(
    st.tuples(
        st.just("dispatch"),
        st.sampled_from(("Lay", "Paint")),
        st.sampled_from((A, B)),
        st.sampled_from(("as-1", "as-2")),
    ),
    st.tuples(
        st.just("answer"),
        st.sampled_from(("DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF", "IN_PROGRESS")),
        RESULTS,
        st.sampled_from(("none", "no key")),
        st.sampled_from(("rest", "go")),
    ),
    st.sampled_from((("delivered",), ("flip_back",), ("stale",), ("stop",), ("reset",))),
    st.sampled_from((("timeout",), ("timeout", "tmux: no server"))),
)
STORIES = st.lists(MOVES, max_size=8)


def views(story: list[tuple[str, ...]]) -> list[Runtime]:
    """What the control plane writes in this story, which begins with a dispatch. A result comes only after
    what it is the result of."""
    plane = ControlPlane()
    shown, before = [plane.dispatch("Lay", A, "as-1")], "dispatch"
    for move, *values in story:
        if (move, before) in POSSIBLE or move not in ("delivered", "flip_back"):
            shown.append(getattr(plane.later(), move)(*values))
            before = move
    return shown


POSSIBLE = {("delivered", "dispatch"), ("flip_back", "answer")}


@given(STORIES, st.lists(st.integers(1, 3), min_size=9, max_size=9))
@settings(deadline=None)
def test_repeated_snapshots_do_not_change_the_events(
    story: list[tuple[str, ...]], repeats: list[int]
) -> None:
    once, often = Player(ME), Player(ME)
    for view, times in zip(views(story), repeats, strict=False):
        once.look(view)
        for _ in range(times):
            often.look(view)
    assert often.events == once.events
    assert often.state == once.state


@given(STORIES)
@settings(deadline=None)
def test_a_lost_journal_does_not_change_the_events(story: list[tuple[str, ...]]) -> None:
    kept, lost = Player(ME), Player(ME)
    for view in views(story):
        kept.look(view)
        lost.look(view)
        told = lost.lose_the_journal()
        assert {event.id for event in told} == {event.id for event in lost.events}
        assert lost.look(view) == ()
    assert lost.events == kept.events
    assert _told(lost) == _told(kept)


def _told(player: Player) -> list[MissionState]:
    """The missions as events tell of them: a handoff of ours is none, its file brings it back."""
    return [replace(mission, handoff=None) for mission in player.state.missions.values()]


def test_the_same_task_after_progress_is_no_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer("IN_PROGRESS", "half"))
    assert player.look(plane.later().dispatch()) == ()


def test_an_old_block_is_not_the_answer_when_the_control_plane_blocks_the_next_dispatch() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer("BLOCKED", "waiting", "no key"))
    player.look(plane.later().dispatch())
    (event,) = player.look(plane.later().timeout())
    assert (event.type.value, event.detail["origin"]) == ("blocked", "control-plane")


def test_a_second_look_at_an_answered_dispatch_without_a_time_is_no_news() -> None:
    player = Player(ME)
    fields = {"phase": "dispatched", "checkpointStatus": "in_progress", "currentMissionId": A}
    assert types(player.look(snapshot(fields))) == ["mission-start", "dispatch"]
    answered = snapshot({**fields, "checkpointRaw": block()})
    assert types(player.look(answered)) == ["checkpoint", "complete"]
    assert player.look(answered) == ()


def test_a_changed_task_alone_is_no_dispatch_after_a_lost_journal() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later(1000).delivered())
    player.look(plane.later().check_in(currentTask="Lay bricks, but slowly"))
    player.lose_the_journal()
    assert player.look(plane.later().check_in()) == ()


def test_an_old_block_is_not_the_answer_when_the_next_dispatch_cannot_be_delivered() -> None:
    plane = ControlPlane()
    player = begun(plane)
    player.look(plane.later().answer("BLOCKED", "waiting", "no key"))
    player.look(plane.later().dispatch("Paint", "mission-b", "as-2"))
    (event,) = player.look(plane.later().timeout("tmux: no server running"))
    assert event.detail["origin"] == "control-plane"
