"""What is missing at the end of a file that only grows, wherever a crash or another writer left it.

docs/architecture.md, "Idempotent append".
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from swarmmemd.memory.appends import Missing, missing_entries, missing_lines

LINES = [b'{"n":1}\n', b'{"n":12}\n', b'{"n":123,"text":"one two"}\n']
FOREIGN = b'{"who":"another writer"}\n'
HEADER = "# Episodes — builder-1 — 2026-05-04\n\n".encode()


def entry(time: str = "09:00", summary: str = "it works", *more: str) -> bytes:
    lines = [f"## {time} UTC — checkpoint", "", "- Mission: mission-a", f"- Summary: {summary}", *more]
    return ("\n".join(lines) + "\n").encode()


ENTRIES = [entry(), entry("09:00", "it still works", "- Result: é"), entry("09:01")]
BY_HAND = b"## 09:00 UTC \xe2\x80\x94 note\n\n- Summary: by hand\n"


def nobody(record: bytes, lines: Sequence[bytes]) -> bytes | None:
    return None


def lines_missing(tail: bytes, records: Sequence[bytes] = LINES) -> Missing:
    return replace(missing_lines(tail, records, nobody), stands=False)


def entries_missing(tail: bytes, start_of_file: bool = True, records: Sequence[bytes] = ENTRIES) -> Missing:
    return replace(missing_entries(tail, records, HEADER, start_of_file), stands=False)


def cuts(data: bytes) -> range:
    return range(len(data) + 1)


# Lines


def test_lines_that_are_cut_off_anywhere_are_finished_to_the_byte() -> None:
    whole = b"".join(LINES)
    for cut in cuts(whole):
        assert lines_missing(whole[:cut]) == Missing(whole[cut:]), f"cut at {cut}"


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_another_writers_line_between_ours_stays_where_it_is(place: int) -> None:
    whole = b"".join([*LINES[:place], FOREIGN, *LINES[place:]])
    before = len(b"".join(LINES[:place]))
    for cut in range(before + len(FOREIGN), len(whole) + 1):
        assert lines_missing(whole[:cut]) == Missing(whole[cut:]), f"cut at {cut}"


@pytest.mark.parametrize("record", [0, 1, 2])
def test_another_writers_line_glued_to_our_torn_one_leaves_ours_to_be_written_whole(record: int) -> None:
    for cut in range(1, len(LINES[record])):
        tail = b"".join(LINES[:record]) + LINES[record][:cut] + FOREIGN
        assert lines_missing(tail) == Missing(b"".join(LINES[record:])), f"cut at {cut}"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_another_writers_torn_line_is_ended_before_ours(place: int) -> None:
    before, rest = b"".join(LINES[:place]), b"".join(LINES[place:])
    for cut in range(3, len(FOREIGN)):
        torn = FOREIGN[:cut]
        assert lines_missing(before + torn) == Missing(b"\n" + rest, len(torn)), f"cut at {cut}"


def test_another_writers_torn_line_after_all_of_ours_is_left_alone() -> None:
    for cut in range(1, len(FOREIGN)):
        assert lines_missing(b"".join(LINES) + FOREIGN[:cut]) == Missing(b"")


def test_a_line_that_begins_like_a_later_one_of_ours_is_another_writers() -> None:
    assert lines_missing(LINES[2][:12]) == Missing(b"\n" + b"".join(LINES), 12)


def test_a_line_that_says_the_same_stands_for_one_record() -> None:
    def twin(record: bytes, lines: Sequence[bytes]) -> bytes | None:
        return next((line for line in lines if record in LINES[:2] and b"another" in line), None)

    assert missing_lines(FOREIGN, LINES, twin) == Missing(LINES[1] + LINES[2])
    assert missing_lines(FOREIGN * 2, LINES, twin) == Missing(LINES[2])
    assert missing_lines(FOREIGN + LINES[0], LINES, twin) == Missing(LINES[2], stands=True)


def test_nothing_to_append_is_nothing() -> None:
    assert missing_lines(FOREIGN[:5], [], nobody) == Missing(b"")


PLAIN = st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"") + b"\n")


@given(
    st.lists(PLAIN, max_size=5), st.lists(PLAIN, min_size=1, max_size=5, unique=True), st.binary(max_size=6)
)
def test_after_the_append_each_record_is_a_line_and_twice_is_once(
    before: list[bytes], records: list[bytes], torn: bytes
) -> None:
    tail = b"".join(before) + torn
    after = tail + lines_missing(tail, records).data
    assert {record[:-1] for record in records} <= set(after.split(b"\n")[:-1])
    assert lines_missing(after, records) == Missing(b"")


@given(st.lists(st.sampled_from([*LINES, FOREIGN]), max_size=6), st.data())
def test_a_torn_append_after_any_lines_ends_with_each_record_once(
    before: list[bytes], data: st.DataObject
) -> None:
    tail = b"".join(dict.fromkeys(before))
    whole = tail + lines_missing(tail).data
    cut = data.draw(st.integers(len(tail), len(whole)))
    assert whole[:cut] + lines_missing(whole[:cut]).data == whole
    assert [whole.split(b"\n").count(line[:-1]) for line in LINES] == [1, 1, 1]


# Entries


def test_a_new_episode_file_that_is_cut_off_anywhere_is_finished_to_the_byte() -> None:
    whole = HEADER + b"\n".join(ENTRIES)
    for cut in cuts(whole):
        assert entries_missing(whole[:cut]) == Missing(whole[cut:]), f"cut at {cut}"


def test_entries_after_what_is_known_are_finished_to_the_byte() -> None:
    whole = b"\n" + b"\n".join(ENTRIES)
    for cut in cuts(whole):
        assert entries_missing(whole[:cut], start_of_file=False) == Missing(whole[cut:]), f"cut at {cut}"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_another_writers_entry_between_ours_stays_where_it_is(place: int) -> None:
    before = HEADER + b"\n".join([*ENTRIES[:place], BY_HAND])
    whole = HEADER + b"\n".join([*ENTRIES[:place], BY_HAND, *ENTRIES[place:]])
    for cut in range(len(before), len(whole) + 1):
        assert entries_missing(whole[:cut]) == Missing(whole[cut:]), f"cut at {cut}"


def test_entries_of_the_same_words_stand_there_as_often_as_they_happened() -> None:
    twice = [ENTRIES[0], ENTRIES[0]]
    whole = HEADER + b"\n".join(twice)
    for cut in cuts(whole):
        assert entries_missing(whole[:cut], records=twice) == Missing(whole[cut:]), f"cut at {cut}"


def test_one_blank_line_parts_ours_from_what_stands_before() -> None:
    for before in (BY_HAND, BY_HAND + b"\n"):
        found = entries_missing(HEADER + before)
        assert HEADER + before + found.data == HEADER + BY_HAND + b"\n" + b"\n".join(ENTRIES)


def test_another_writers_torn_entry_is_ended_before_ours() -> None:
    torn = b"- Summary: by ha"
    found = entries_missing(HEADER + torn)
    assert found == Missing(b"\n\n" + b"\n".join(ENTRIES), len(torn))


def test_an_entry_in_the_middle_of_a_line_is_none_of_ours() -> None:
    tail = HEADER + b"> " + ENTRIES[0]
    assert entries_missing(tail, records=ENTRIES[:1]) == Missing(b"\n" + ENTRIES[0])


def test_entries_that_stand_there_are_not_written_again() -> None:
    assert entries_missing(HEADER + b"\n".join(ENTRIES) + b"\n" + BY_HAND) == Missing(b"")
    assert entries_missing(HEADER + ENTRIES[0], records=[]) == Missing(b"")


@given(st.lists(st.sampled_from([BY_HAND, b"text\n", b"\n", b"# Title\n"]), max_size=4), st.data())
def test_a_torn_append_after_any_text_ends_with_each_entry_once(
    before: list[bytes], data: st.DataObject
) -> None:
    tail = b"".join(before)
    whole = tail + entries_missing(tail).data
    cut = data.draw(st.integers(len(tail), len(whole)))
    after = whole[:cut] + entries_missing(whole[:cut]).data
    assert [after.count(record) for record in ENTRIES] == [1, 1, 1]
    assert after.startswith(tail)
    assert entries_missing(after) == Missing(b"")


def test_a_twin_that_stands_before_the_tail_is_enough() -> None:
    record = b'{"id":"ev_1"}\n'
    found = missing_lines(b"", [record], lambda _record, _lines: b"said long before")
    assert found == Missing(b"")
