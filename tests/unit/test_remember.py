"""A worker's state from the lines of its files. docs/architecture.md, "Without a journal"."""

import json
from typing import Any

from swarmmemd.model import Event, EventType, MissionId, WorkerId, iso
from swarmmemd.record import decode, encode
from swarmmemd.remember import Line, bullets_before, remember
from swarmmemd.state import WorkerState
from tests.support.cases import Player
from tests.unit.test_derive import A, B, ControlPlane, types

ME = WorkerId("builder-1")
AT = 1_777_885_200_000
MISSION = MissionId(A)


def raw(type: str = "checkpoint", summary: str = "it works", at: int = AT, **values: Any) -> bytes:
    fields = {
        "at": iso(at),
        "type": type,
        "workerId": ME,
        "missionId": A,
        "assignmentId": "as-1",
        "summary": summary,
        "event": {"state": "DONE"} if type == "checkpoint" else {},
    }
    return json.dumps({**fields, **values}).encode() + b"\n"


def foreign(type: str = "checkpoint", summary: str = "it works", at: int = AT, **values: Any) -> Line:
    found = decode(raw(type, summary, at, **values)[:-1], ME)
    assert found is not None
    return found


def told(*lines: Line) -> tuple[WorkerState, tuple[Event, ...]]:
    return remember(ME, [(MISSION, lines)])


def played(*states: str) -> Player:
    plane, player = ControlPlane(), Player(ME)
    player.look(plane.dispatch())
    for state in states:
        player.look(plane.later().answer(state, f"said {state}", "no key"))
    return player


def read_back(player: Player) -> list[Line]:
    lines = [decode(encode(event)[:-1], ME) for event in player.events]
    return [line for line in lines if line is not None]


def test_no_files_are_no_memory() -> None:
    assert remember(ME, []) == (WorkerState(worker=ME), ())


def test_own_lines_give_the_state_that_they_were_recorded_with() -> None:
    player = played("IN_PROGRESS", "BLOCKED", "DONE")
    state, events = told(*read_back(player))
    assert events == player.events
    assert (state.missions, state.dispatches) == (player.state.missions, player.state.dispatches)
    assert not state.look.met


def test_a_line_that_stands_there_twice_counts_once() -> None:
    player = played("DONE")
    lines = read_back(player)
    assert told(*lines, *lines, lines[-1]) == told(*lines)


def test_lines_of_several_missions_are_merged_by_their_times() -> None:
    plane, player = ControlPlane(), Player(ME)
    player.look(plane.dispatch())
    player.look(plane.later().dispatch("Paint", B, "as-2"))
    player.look(plane.later().answer())
    player.look(plane.later().dispatch("Clean", A, "as-3"))
    files: dict[str, list[Line]] = {}
    for line in read_back(player):
        files.setdefault(str(line.mission), []).append(line)
    state, events = remember(ME, [(MissionId(name), files[name]) for name in (B, A)])
    assert [event.id for event in events] == [event.id for event in player.events]
    assert state.current == player.state.current


def test_an_older_time_in_a_later_line_does_not_move_it_before_its_file() -> None:
    """Lines of one file stand in recording order, whatever their times say."""
    first = foreign("dispatch", "Lay", AT)
    _, events = told(first, foreign(at=AT - 5000))
    assert types(events) == ["dispatch", "checkpoint"]


# Another writer's lines


def test_foreign_lines_alone_make_events_and_a_state() -> None:
    lines = [
        foreign("mission-start", "Mission started: The wall"),
        foreign("dispatch", "Dispatched task: Lay", event={"task": "Lay bricks\nin rows"}),
        foreign(at=AT + 5),
    ]
    state, events = told(*lines)
    assert types(events) == ["mission-start", "dispatch", "checkpoint"]
    assert events[1].detail == {"task": "Lay bricks\nin rows", "mode": None}
    assert (state.missions[MISSION].title, state.missions[MISSION].checkpoint_count) == ("The wall", 1)


def test_a_foreign_line_that_says_what_ours_said_is_no_event() -> None:
    player = played("DONE")
    state, events = told(*read_back(player), foreign(summary="SAID  done"), foreign("complete", "x"))
    assert events == player.events
    assert state.missions == player.state.missions


def test_a_foreign_checkpoint_that_stands_there_twice_counts_once() -> None:
    _, events = told(foreign("dispatch", "Lay"), foreign(), foreign(at=AT + 900))
    assert types(events) == ["dispatch", "checkpoint"]


def test_a_foreign_checkpoint_is_not_derived_again_from_the_file() -> None:
    plane, player = ControlPlane(), Player(ME)
    player.look(plane.dispatch())
    player.lose_the_journal({MISSION: [raw(at=AT + 60_000)]})
    assert types(player.look(plane.later().answer())) == ["complete"]
    assert player.state.missions[MISSION].checkpoint_count == 1


def test_a_foreign_blocked_line_of_type_checkpoint_is_a_blocked_event() -> None:
    _, events = told(foreign("dispatch", "Lay"), foreign(summary="stuck", event={"state": "BLOCKED"}))
    assert events[1].type is EventType.BLOCKED


def test_the_same_foreign_words_after_a_second_dispatch_count_again() -> None:
    later = AT + 60_000
    _, events = told(
        foreign("dispatch", "Lay"),
        foreign(at=AT + 1),
        foreign("dispatch", "Lay", later),
        foreign(at=later + 1),
    )
    assert types(events) == ["dispatch", "checkpoint", "dispatch", "checkpoint"]


def test_the_bullet_that_was_made_before_the_journal_was_lost_is_ours() -> None:
    """The line has another time than the event, and perhaps other words at its end."""
    _, events = told(foreign("dispatch", "x", AT - 9), foreign("checkpoint", "it WORKS", AT))
    ours = f"- {iso(AT + 800)}: DONE — it works"
    others = (
        f"- {iso(AT + 61_000)}: DONE — it works",
        f"- {iso(AT + 800)}: BLOCKED — it works",
        f"- {iso(AT + 800)}: DONE — it does not",
        "- it works",
    )
    assert bullets_before(events, [(MISSION, line) for line in (*others, ours, "- ")]) == [(MISSION, ours)]
    assert bullets_before(events, [(MissionId(B), ours)]) == []


def test_one_event_explains_one_bullet_and_none_if_its_own_stands_there() -> None:
    _, events = told(foreign("dispatch", "x", AT - 9), foreign("checkpoint", "it works", AT))
    two = [(MISSION, f"- {iso(AT + ms)}: DONE — it works") for ms in (0, 900)]
    assert bullets_before(events, two) == []
    assert bullets_before(events, two[1:] * 2) == two[1:]


def test_a_foreign_line_of_another_mission_is_left_out() -> None:
    assert told(foreign(missionId=B))[1] == ()
    assert told(foreign(missionId=None))[1] == ()


def test_after_a_lost_journal_what_no_event_tells_of_is_learned_and_not_taken_for_news() -> None:
    plane, player = ControlPlane(), Player(ME)
    player.look(plane.dispatch())
    player.lose_the_journal()
    view = plane.later().put(lastCheckIn=iso(plane.now), nextAction="some words of the control plane")
    assert player.look(view) == ()
    assert types(player.look(plane.later().check_in(nextAction="words of the worker"))) == ["checkpoint"]


def test_a_snapshot_is_still_news_where_the_files_do_not_tell_of_it() -> None:
    player = Player(ME)
    player.look(ControlPlane().dispatch())
    player.lose_the_journal()
    plane = ControlPlane()
    plane.dispatch()
    assert types(player.look(plane.later().answer())) == ["checkpoint", "complete"]
