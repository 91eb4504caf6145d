"""Events as lines of `events.jsonl` and back. docs/contracts.md, "events.jsonl"."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.foreign import Foreign
from swarmmemd.model import AssignmentId, Event, EventId, EventType, MissionId, WorkerId
from swarmmemd.record import LINE_LIMIT, bounded, decode, encode

ME = WorkerId("builder-1")
AT = 1_777_885_200_123
KEYS = ["at", "type", "workerId", "missionId", "assignmentId", "summary", "event", "id"]


def event(**values: Any) -> Event:
    given: dict[str, Any] = {
        "id": EventId("ev_1"),
        "at": AT,
        "type": EventType.CHECKPOINT,
        "worker": ME,
        "mission": MissionId("mission-a"),
        "assignment": AssignmentId("as-1"),
        "summary": "it works",
        "detail": {"state": "DONE", "result": "it works", "blocker": None},
    }
    return Event(**{**given, **values})


def line(**values: Any) -> bytes:
    fields = json.loads(encode(event()))
    return json.dumps({**fields, **values}).encode()


def test_keys_are_written_in_their_order() -> None:
    found = json.loads(encode(event()))
    assert list(found) == KEYS
    assert list(found["event"]) == ["state", "result", "blocker"]
    assert (found["at"], found["event"]["blocker"]) == ("2026-05-04T09:00:00.123Z", None)


def test_an_event_without_details_has_no_event_key() -> None:
    assert list(json.loads(encode(event(detail={})))) == [key for key in KEYS if key != "event"]


def test_an_event_without_a_mission_has_nulls() -> None:
    found = json.loads(encode(event(mission=None, assignment=None)))
    assert (found["missionId"], found["assignmentId"]) == (None, None)


def test_text_is_utf_8_and_not_escaped() -> None:
    assert "侦察员 — é".encode() in encode(event(summary="侦察员 — é"))


TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
VALUES = st.one_of(st.none(), TEXT, st.booleans(), st.integers(-(2**53), 2**53))
EVENTS = st.builds(
    event,
    id=st.integers(0).map(lambda n: EventId(f"ev_{n}")),
    at=st.integers(0, 253_402_300_799_999),
    type=st.sampled_from(EventType),
    mission=st.sampled_from((None, MissionId("mission-a"), MissionId("release:5"))),
    assignment=st.sampled_from((None, AssignmentId("as-1"))),
    summary=TEXT,
    detail=st.dictionaries(TEXT, VALUES, max_size=5),
)


@given(EVENTS)
def test_an_event_comes_back_from_its_line(event: Event) -> None:
    data = encode(event)
    assert data.endswith(b"\n")
    assert decode(data[:-1], ME) == event == bounded(event)


ANY = st.text(max_size=50)
LONG = st.builds(lambda text, count: text * count, st.text(min_size=1, max_size=4), st.integers(1, 50_000))


@given(
    ANY | LONG, st.dictionaries(st.sampled_from(("task", "result", "blocker", "x")), st.none() | ANY | LONG)
)
@settings(deadline=None, max_examples=60)
def test_a_line_is_one_line_of_json_and_at_most_64_kib_for_any_values(
    summary: str, detail: dict[str, str | None]
) -> None:
    data = encode(event(summary=summary, detail=detail))
    assert len(data) <= LINE_LIMIT
    assert data.count(b"\n") == 1
    found = json.loads(data)
    assert isinstance(decode(data[:-1], ME), Event)
    assert found.get("event", {}).keys() == detail.keys()


@given(
    ANY | LONG, st.dictionaries(st.sampled_from(("task", "result", "blocker", "x")), st.none() | ANY | LONG)
)
@settings(deadline=None, max_examples=60)
def test_a_bounded_event_is_what_its_line_gives_back(summary: str, detail: dict[str, str | None]) -> None:
    first = bounded(event(summary=summary, detail=detail))
    assert decode(encode(first)[:-1], ME) == first
    assert bounded(first) == first


def test_a_line_of_exactly_the_limit_is_not_cut() -> None:
    room = LINE_LIMIT - len(encode(event(summary="")))
    assert len(encode(event(summary="x" * room))) == LINE_LIMIT
    assert json.loads(encode(event(summary="x" * room)))["summary"] == "x" * room
    assert "[cut, " in json.loads(encode(event(summary="x" * (room + 1))))["summary"]


def test_the_longest_value_is_cut_and_says_how_long_it_was() -> None:
    found = json.loads(encode(event(detail={"task": "é" * 90_000, "result": "r" * 10_000})))["event"]
    assert found["task"].endswith("… [cut, 90000 characters]")
    assert found["result"] == "r" * 10_000


def test_values_are_cut_by_no_more_than_about_what_is_too_much() -> None:
    assert len(encode(event(detail={"task": "x" * 100_000}))) > LINE_LIMIT * 0.7


def test_half_an_emoji_becomes_one_character_that_utf_8_can_hold() -> None:
    found = json.loads(encode(event(summary="a\ud83e", detail={"k\ud83e": "\ud83e"})))
    assert (found["summary"][0], len(found["summary"])) == ("a", 2)
    assert found["summary"].encode().isascii() or found["summary"][1] == "\ufffd"


# Lines that are none of ours


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"\0\0",
        b"\xff",
        b"[" * 200_000,
        b'{"at":',
        encode(event())[:-3],
    ],
)
def test_what_is_no_object_says_nothing(data: bytes) -> None:
    assert decode(data, ME) is None


@pytest.mark.parametrize(
    "other",
    [
        {"id": "x_1"},
        {"id": None},
        {"id": 1},
        {"workerId": "scout-2"},
        {"at": "x"},
        {"type": "x"},
        {"summary": 1},
    ],
)
def test_a_line_that_is_not_wholly_ours_is_no_event(other: dict[str, Any]) -> None:
    assert not isinstance(decode(line(**other), ME), Event)


def test_a_line_without_an_id_is_foreign() -> None:
    found = decode(line(id=None), ME)
    assert isinstance(found, Foreign)
    assert (found.type, found.at, found.text) == (EventType.CHECKPOINT, AT, "it works")


def test_an_id_that_is_none_is_dropped_from_a_line_of_ours() -> None:
    found = decode(line(missionId="../x"), ME)
    assert isinstance(found, Event)
    assert found.mission is None


@given(st.binary(max_size=60) | st.recursive(VALUES, lambda v: st.dictionaries(st.sampled_from(KEYS), v)))
def test_any_line_is_decoded_without_an_error(value: Any) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    decode(data, ME)


def test_half_an_emoji_becomes_u_fffd() -> None:
    assert json.loads(encode(event(summary="a\ud83e")))["summary"] == "a\ufffd"


def test_a_line_with_a_long_value_that_is_no_text_ends() -> None:
    assert len(encode(event(detail={"x": {"y": "z" * 70_000}}))) <= LINE_LIMIT


def test_a_line_with_very_many_short_values_ends() -> None:
    assert len(encode(event(detail={f"key-{n}": "short" for n in range(6000)}))) <= LINE_LIMIT


def test_a_text_that_quotes_the_mark_of_a_cut_is_not_lost() -> None:
    text = "… [cut, 5 characters] " + "x" * 70_000
    found = json.loads(encode(event(detail={"task": text})))["event"]["task"]
    assert len(found) > LINE_LIMIT // 2
