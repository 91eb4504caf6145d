"""What makes two sights of one thing one event, and what parts two things. docs/contracts.md, "Event ids"."""

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swarmmemd.identity import digest, event_id, fold
from swarmmemd.model import EventId, EventType, MissionId, WorkerId

ME = WorkerId("builder-1")
WORDS = ("DONE", "it works", None, "rest")


def an_id(
    worker: str = ME,
    mission: str | None = "mission-a",
    dispatch: int = 1,
    type: EventType = EventType.CHECKPOINT,
    words: tuple[str | None, ...] = WORDS,
    occurrence: int = 1,
) -> EventId:
    return event_id(
        WorkerId(worker), MissionId(mission) if mission else None, dispatch, type, words, occurrence
    )


def test_the_recipe_is_fixed() -> None:
    """Another id for the same event would record everything that is known once more."""
    assert an_id() == "ev_ded3dc88e32991d15ab3d813fb47ed"
    assert (
        an_id(mission=None, words=(), dispatch=0, type=EventType.MISSION_START)
        == "ev_4f3286f9e8f09affa20be2a1b86c50"
    )
    assert digest("it works") == "37a34627ca6c8d841151"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it  works", "it works"),
        (" it works\n", "it works"),
        ("it\r\nworks", "it\nworks"),
        ("it\u00a0works", "it works"),
        ("it\u3000works", "it works"),
        ("caf\u00e9", "cafe\u0301"),
        ("", None),
        (" \n\t", None),
    ],
)
def test_white_space_and_unicode_forms_do_not_count(one: str | None, other: str | None) -> None:
    assert an_id(words=("DONE", one)) == an_id(words=("DONE", other))
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    "other",
    [
        an_id(worker="builder-2"),
        an_id(mission="mission-b"),
        an_id(mission=None),
        an_id(dispatch=2),
        an_id(type=EventType.BLOCKED),
        an_id(words=("DONE", "it works", "rest", None)),
        an_id(words=("DONE", "it Works", None, "rest")),
        an_id(words=()),
        an_id(occurrence=2),
    ],
)
def test_each_part_counts(other: EventId) -> None:
    assert other != an_id()


@given(st.text())
def test_folding_is_idempotent_and_leaves_no_run_of_white_space(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded == " ".join(folded.split())
    assert unicodedata.is_normalized("NFC", folded)


@given(st.text(), st.sampled_from(["NFC", "NFD"]), st.sampled_from(["\n", "  ", "\t", "\r\n", "\u2028"]))
def test_another_form_and_other_breaks_are_the_same_text(text: str, form: str, space: str) -> None:
    other = unicodedata.normalize("NFD" if form == "NFD" else "NFC", text).replace(" ", space)
    assert fold(other) == fold(text)
    assert digest(other) == digest(text)


@given(st.text(), st.text())
def test_texts_that_differ_after_folding_have_other_digests(one: str, other: str) -> None:
    assert (digest(one) == digest(other)) is (fold(one) == fold(other))


WORD = st.text(alphabet="ab|:\0 1", max_size=4)


@given(st.lists(WORD, max_size=4), st.lists(WORD, max_size=4))
def test_fields_never_collide_by_standing_together(one: list[str], other: list[str]) -> None:
    assume([*map(fold, one)] != [*map(fold, other)])
    assert an_id(words=tuple(one)) != an_id(words=tuple(other))


@given(st.text(min_size=1, max_size=3, alphabet="ab1"), st.integers(0, 30), st.integers(0, 30))
def test_ids_and_numbers_never_collide_by_standing_together(word: str, number: int, other: int) -> None:
    assume(number != other)
    assert an_id(words=(word,), dispatch=number, occurrence=other) != an_id(
        words=(word,), dispatch=other, occurrence=number
    )
    assert an_id(worker="a", mission=f"b{word}") != an_id(worker="ab", mission=word)


@given(st.text(st.characters(), max_size=5))
def test_half_an_emoji_has_an_id(text: str) -> None:
    assert an_id(words=("DONE", text + "\ud83e")) != an_id(words=("DONE", text))
    assert digest(text + "\ud83e")
