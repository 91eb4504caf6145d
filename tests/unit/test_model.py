"""Ids and times where they enter. docs/contracts.md, "Identifiers"."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.layout import Place, episode, events, summary
from swarmmemd.model import (
    CheckpointState,
    assignment_id,
    checkpoint_state,
    iso,
    mission_id,
    parse_iso,
    utc_day,
    worker_id,
)

AT = 1_777_885_200_123


@pytest.mark.parametrize("text", ["a", "builder-1", "Dr_Kwon", "0", "x" * 64])
def test_worker_ids(text: str) -> None:
    assert worker_id(text) == text


BAD: list[object] = [
    "",
    ".",
    "..",
    ".a",
    "-a",
    "_a",
    "a/b",
    "a\\b",
    "a b",
    "a\n",
    "a\0",
    "é",
    "../x",
    None,
    7,
    b"a",
]


@pytest.mark.parametrize("text", [*BAD, "a.b", "a:b", "x" * 65])
def test_no_worker_ids(text: object) -> None:
    assert worker_id(text) is None


@pytest.mark.parametrize("check", [mission_id, assignment_id])
@pytest.mark.parametrize("text", ["a", "release:2026-05", "mission-mo.1_x", "x" * 128])
def test_mission_and_assignment_ids(check: Callable[[object], str | None], text: str) -> None:
    assert check(text) == text


@pytest.mark.parametrize("check", [mission_id, assignment_id])
@pytest.mark.parametrize("text", [*BAD, ":a", "x" * 129])
def test_no_mission_and_assignment_ids(check: Callable[[object], str | None], text: object) -> None:
    assert check(text) is None


@given(st.text(max_size=12))
def test_an_id_is_one_plain_name_of_a_path(text: str) -> None:
    mission = mission_id(text)
    if mission is not None:
        assert events(mission).folders[-1] == summary(mission).folders[-1] == text
    if worker_id(text) is not None:
        assert mission_id(text) == text


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0"])
def test_a_place_is_made_of_plain_names(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain name"):
        Place((), name)
    with pytest.raises(ValueError, match="not a plain name"):
        Place((name,), "a")


def test_an_episode_is_named_by_its_day() -> None:
    assert episode(utc_day(AT)).name == "2026-05-04.md"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-05-04T09:00:00.123Z", AT),
        ("2026-05-04T09:00:00Z", AT - 123),
        ("2026-05-04T09:00:00", AT - 123),
        ("2026-05-04T11:00:00.123+02:00", AT),
        ("2026-05-04T09:00:00.123456Z", AT),
        ("2026-05-04", 1_777_852_800_000),
    ],
)
def test_iso_times_are_read(text: str, at: int) -> None:
    assert parse_iso(text) == at


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "0000-01-01T00:00:00Z", "9" * 100, None, 7, AT]
)
def test_what_is_no_time_is_none(text: object) -> None:
    assert parse_iso(text) is None


@given(st.integers(0, 253_402_300_799_999))
def test_a_time_comes_back_from_its_text(at: int) -> None:
    assert parse_iso(iso(at)) == at
    assert len(iso(at)) == len("2026-05-04T09:00:00.123Z")


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = parse_iso(text)
    assert found is None or isinstance(found, int)


@pytest.mark.parametrize("word", CheckpointState)
def test_states_are_known_by_their_words(word: CheckpointState) -> None:
    assert checkpoint_state(word.value) is word


@pytest.mark.parametrize("word", ["done", "", "DONE ", None, 1, ["DONE"]])
def test_other_words_are_no_states(word: object) -> None:
    assert checkpoint_state(word) is None
