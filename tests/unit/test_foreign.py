"""Another writer's lines: what they say, and when it is what we say. docs/contracts.md."""

import json
from typing import Any

import pytest

from swarmmemd.foreign import Foreign, gist, same, understand, values
from swarmmemd.model import AssignmentId, CheckpointState, Event, EventId, EventType, MissionId, WorkerId, iso
from tests.support.cases import case_bytes

AT = 1_777_885_200_000
SAID = {
    "stateLabel": "DONE",
    "filesChanged": "a.py",
    "commandsRun": "none",
    "blocker": "none.",
    "nextAction": "-",
}


def line(**values: Any) -> dict[str, Any]:
    given = {
        "at": iso(AT),
        "type": "checkpoint",
        "workerId": "builder-1",
        "missionId": "mission-a",
        "assignmentId": "as-1",
        "summary": "it works",
        "event": SAID,
    }
    return {**given, **values}


def read(**values: Any) -> Foreign:
    found = understand(line(**values))
    assert found is not None
    return found


def event(type: EventType = EventType.CHECKPOINT, summary: str = "it works", **detail: Any) -> Event:
    return Event(
        id=EventId("ev_1"),
        at=AT,
        type=type,
        worker=WorkerId("builder-1"),
        mission=MissionId("mission-a"),
        assignment=AssignmentId("as-1"),
        summary=summary,
        detail=detail or {"state": "DONE", "result": summary},
    )


def test_a_checkpoint_is_understood() -> None:
    found = read()
    assert (found.type, found.at, found.mission, found.assignment) == ("checkpoint", AT, "mission-a", "as-1")
    assert (found.state, found.text) == (CheckpointState.DONE, "it works")


def test_nothing_values_become_null_under_our_names() -> None:
    assert values(read()) == {
        "state": "DONE",
        "result": "it works",
        "filesChanged": "a.py",
        "commandsRun": None,
        "blocker": None,
        "nextAction": None,
    }


@pytest.mark.parametrize("key", ["state", "stateLabel"])
def test_both_names_of_the_state_are_known(key: str) -> None:
    assert read(event={key: "NEEDS_INPUT"}).state is CheckpointState.NEEDS_INPUT


@pytest.mark.parametrize(
    "other",
    [
        {"type": "x"},
        {"type": None},
        {"type": ["checkpoint"]},
        {"at": 1},
        {"at": None},
        {"summary": None},
        {"event": {"state": "writing"}},
        {"event": {"state": None}},
        {"event": [1]},
        {"event": None},
    ],
)
def test_what_no_event_of_ours_could_say_is_not_understood(other: dict[str, Any]) -> None:
    assert understand(line(**other)) is None


def test_ids_that_are_none_are_null() -> None:
    found = read(missionId="../x", assignmentId=7)
    assert (found.mission, found.assignment) == (None, None)


def test_the_lines_of_the_case_are_understood_but_for_partial_updates_and_torn_ones() -> None:
    found: list[str | None] = []
    for text in case_bytes("memory", "events.jsonl").splitlines():
        try:
            said = understand(json.loads(text))
        except ValueError:
            found.append("torn")
        else:
            found.append(f"{said.type} {said.text[:12]}" if said else None)
    assert found[:4] == ["mission-start New stairs", "dispatch Measure the ", None, "checkpoint Fourteen ste"]


# Same or not


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"summary": "It  WORKS\n"},
        {"type": "blocked"},
        {"at": iso(AT - 60_000)},
        {"at": iso(AT + 86_400_000)},
        {"assignmentId": None},
        {"event": {"state": "DONE"}},
    ],
)
def test_a_line_that_says_our_checkpoint_is_the_same(other: dict[str, Any]) -> None:
    assert same(event(), read(**other))


@pytest.mark.parametrize(
    "other",
    [
        {"summary": "it works not"},
        {"event": {"state": "HANDOFF"}},
        {"at": iso(AT - 60_001)},
        {"type": "dispatch"},
        {"type": "note"},
    ],
)
def test_a_line_that_says_something_else_is_another(other: dict[str, Any]) -> None:
    assert not same(event(), read(**other))


def test_only_the_beginning_of_a_long_text_is_compared() -> None:
    ours = event(summary="x" * 500)
    assert same(ours, read(summary="x" * 100))
    assert not same(ours, read(summary="x" * 99))


def test_a_start_is_the_same_in_any_words_and_at_any_time() -> None:
    ours = event(EventType.MISSION_START, "The wall", task="Lay")
    assert same(ours, read(type="mission-start", summary="Mission started: Wall", at=iso(0), event={}))
    assert not same(ours, read(type="dispatch", event={}))


def test_a_dispatch_is_the_same_by_its_assignment() -> None:
    ours = event(EventType.DISPATCH, "Lay", task="Lay", mode="tmux")
    assert same(ours, read(type="dispatch", summary="Dispatched task: Lay bricks", event={}))
    assert not same(
        ours, read(type="dispatch", summary="Dispatched task: Lay", assignmentId="as-2", event={})
    )


@pytest.mark.parametrize("type", [EventType.COMPLETE, EventType.HANDOFF_REQUESTED])
def test_what_has_no_words_is_the_same_by_its_type(type: EventType) -> None:
    assert same(event(type, "x", by="ledger"), read(type=type.value, summary="y", event={}))


@pytest.mark.parametrize("type", [EventType.NOTE, EventType.RESUME, EventType.HANDOFF_WRITTEN])
def test_other_types_are_never_the_same(type: EventType) -> None:
    assert not same(event(type, "x", kind="x"), read(type=type.value, summary="x", event={}))


def test_prefixes_of_the_other_writer_do_not_count() -> None:
    assert read(type="dispatch", summary="Dispatched task: Lay", event={}).text == "Lay"
    assert read(type="mission-start", summary="Mission started: Wall", event={}).text == "Wall"


def test_the_gist_has_state_and_text() -> None:
    assert gist(event()) == gist(event(summary="IT works"))
    assert gist(event()) != gist(event(state="BLOCKED", result="it works"))
