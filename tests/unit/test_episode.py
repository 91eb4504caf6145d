"""Entries of an episode file, by the specification's template. docs/contracts.md, "Episodes"."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.model import AssignmentId, Event, EventId, EventType, MissionId, WorkerId, utc_day
from swarmmemd.render.episode import episode_entry, episode_header

AT = 1_777_885_200_000


def event(summary: str = "it works", type: EventType = EventType.CHECKPOINT, **values: Any) -> Event:
    given: dict[str, Any] = {
        "mission": MissionId("mission-a"),
        "assignment": AssignmentId("as-1"),
        "detail": {"state": "DONE", "result": "it works", "nextAction": "rest"},
        "at": AT,
    }
    return Event(
        id=EventId("ev_1"), type=type, worker=WorkerId("builder-1"), summary=summary, **{**given, **values}
    )


def test_a_file_begins_with_worker_and_day() -> None:
    assert episode_header(WorkerId("builder-1"), "2026-05-04") == "# Episodes — builder-1 — 2026-05-04\n\n"


def test_a_checkpoint_has_all_lines() -> None:
    assert episode_entry(event()).splitlines() == [
        "## 09:00 UTC — checkpoint",
        "",
        "- Mission: mission-a",
        "- Assignment: as-1",
        "- Summary: DONE: it works",
        "- Result: it works",
        "- Next action: rest",
    ]


@pytest.mark.parametrize("detail", [{}, {"result": None, "nextAction": ""}])
def test_what_is_not_known_is_left_out(detail: dict[str, Any]) -> None:
    assert episode_entry(event(type=EventType.NOTE, detail=detail)).splitlines() == [
        "## 09:00 UTC — note",
        "",
        "- Mission: mission-a",
        "- Assignment: as-1",
        "- Summary: it works",
    ]


def test_an_event_without_a_mission_says_none() -> None:
    found = episode_entry(event(mission=None, assignment=None))
    assert "- Mission: none\n- Assignment: none\n" in found


@pytest.mark.parametrize(
    ("at", "day", "time"),
    [
        (AT - 1, "2026-05-04", "08:59"),
        (1_777_852_799_999, "2026-05-03", "23:59"),
        (1_777_852_800_000, "2026-05-04", "00:00"),
        (0, "1970-01-01", "00:00"),
    ],
)
def test_day_and_time_are_utc(at: int, day: str, time: str) -> None:
    assert utc_day(at) == day
    assert episode_entry(event(at=at)).startswith(f"## {time} UTC — ")


@given(st.text(), st.text(), st.text())
def test_no_value_adds_a_line_or_a_heading(summary: str, result: str, next_action: str) -> None:
    detail = {"state": "DONE", "result": result, "nextAction": next_action}
    lines = episode_entry(event(summary, detail=detail)).split("\n")
    assert len(lines) == 6 + bool(result) + bool(next_action)
    assert [line for line in lines if line.startswith("#")] == ["## 09:00 UTC — checkpoint"]
