"""A file of ours after any damage: made right it has no fault, and what others wrote stays, in its order."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.mending import Due, Fault, Mended, Owner, mend_entries, mend_lines
from swarmmemd.mending.values import Need
from swarmmemd.model import Event, EventId, EventType, MissionId, WorkerId
from swarmmemd.record import encode
from swarmmemd.render.episode import episode_entry, episode_header

_WORKER, _MISSION, _DAY = WorkerId("builder-1"), MissionId("mission-1"), "2026-05-04"
_AT = 1777885200000


def event(number: int, mission: str = _MISSION) -> Event:
    return Event(
        id=EventId(f"ev_{number:030x}"),
        at=_AT + number * 1000,
        type=EventType.CHECKPOINT if number % 3 else EventType.NOTE,
        worker=_WORKER,
        mission=MissionId(mission),
        assignment=None,
        summary=f"Row {number} laid",
        detail={"state": "DONE", "result": f"Row {number} laid"} if number % 3 else {"kind": "reset"},
    )


EVENTS = [event(number) for number in range(8)]
DUE = [Due(one) for one in EVENTS]
LINES = [encode(one) for one in EVENTS]


def whose(id: str) -> Owner | None:
    known = {one.id: one for one in (*EVENTS, event(99, "mission-2"))}.get(EventId(id))
    return Owner(known.worker, known.mission, encode(known)) if known else None


def lines(data: bytes, due: list[Due] = DUE) -> Mended:
    return mend_lines(data, _WORKER, _MISSION, due, whose)


def entries(data: bytes, due: list[Due] = DUE) -> Mended:
    return mend_entries(data, _WORKER, _DAY, due)


def episode(events: list[Event] = EVENTS) -> bytes:
    header = episode_header(_WORKER, _DAY)
    return (header + "\n".join(episode_entry(one) for one in events)).encode()


def whats(mended: Mended) -> list[str]:
    return [fault.what for fault in mended.faults]


# Lines


def test_what_is_right_is_left_alone() -> None:
    assert lines(b"".join(LINES)) == Mended(b"".join(LINES))
    assert entries(episode()) == Mended(episode())


def test_a_foreign_line_that_says_the_same_is_as_good() -> None:
    said = (
        b'{"at":"2026-05-04T09:00:02.500Z","type":"checkpoint","workerId":"builder-1","missionId":"mission-1",'
        b'"assignmentId":null,"summary":"Row 1 laid","event":{"stateLabel":"DONE"}}\n'
    )
    data = LINES[0] + said + b"".join(LINES[2:])
    mended = lines(data)
    assert mended.data == data
    assert mended.faults == ()
    assert mended.notes == (Fault(2, "1 line of other writers"),)
    two = [Due(event(1)), Due(msgspec_replace(event(1), "ev_" + "f" * 30))]
    assert len(lines(said, two).faults) == 1


def msgspec_replace(one: Event, id: str) -> Event:
    return Event(
        id=EventId(id),
        at=one.at,
        type=one.type,
        worker=one.worker,
        mission=one.mission,
        assignment=one.assignment,
        summary=one.summary,
        detail=one.detail,
    )


def test_what_is_not_applied_may_be_there_and_need_not() -> None:
    due = [*DUE[:-1], Due(EVENTS[-1], Need.MAY)]
    for there in (LINES, LINES[:-1]):
        assert lines(b"".join(there), due).faults == ()
        assert entries(episode(EVENTS[: len(there)]), due).faults == ()
    begun = b"".join(LINES[:-1]) + LINES[-1][:30]
    assert lines(begun, due).notes == (Fault(8, "a line is just being written"),)
    assert lines(begun, due).data == begun


def test_a_line_that_belongs_elsewhere_is_taken_out() -> None:
    stray = encode(event(99, "mission-2"))
    mended = lines(b"".join(LINES[:3]) + stray + b"".join(LINES[3:]))
    assert mended.data == b"".join(LINES)
    assert mended.faults[0].line == 4
    assert "does not belong here" in mended.faults[0].what


def test_a_line_that_the_journal_does_not_know_stays() -> None:
    data = b"".join(LINES) + encode(event(77))
    mended = lines(data)
    assert mended.data == data
    assert [(fault.line, fault.mendable) for fault in mended.faults] == [(9, False)]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b"laid", b"lost"),
        lambda line: line.replace(b"ev_0000", b"ev_0800"),
        lambda line: line.replace(b'"summary":', b'"summary": '),
        lambda line: line[:-9] + b"\n",
        lambda line: line.replace(b"{", b"", 1),
    ],
)
def test_a_changed_line_is_put_right_where_it_stands(change: Callable[[bytes], bytes]) -> None:
    data = [*LINES[:4], b"mine\n", change(LINES[4]), b"mine, too\n", *LINES[5:]]
    mended = lines(b"".join(data))
    assert mended.data == b"".join([*LINES[:4], b"mine\n", LINES[4], b"mine, too\n", *LINES[5:]])
    assert [fault.line for fault in mended.faults] == [6]


def test_somebody_who_only_speaks_of_an_event_keeps_his_line() -> None:
    spoken = f"see {EVENTS[4].id}, it was wrong\n".encode()
    data = b"".join([*LINES[:4], spoken, *LINES[5:]])
    assert spoken in lines(data).data
    assert LINES[4] in lines(data).data


def test_a_torn_end_of_somebody_stays_the_end() -> None:
    mended = lines(b"".join(LINES[:5]) + b'{"when":"20')
    assert mended.data == b"".join(LINES) + b'{"when":"20'
    assert "the end is torn, by another writer" in [note.what for note in mended.notes]


# Entries


def test_an_edited_entry_is_put_right_and_a_line_among_it_stays() -> None:
    text = episode().decode()
    changed = text.replace("- Summary: DONE: Row 4 laid\n", "- Summary: DONE: Row 4 lost\na word of mine\n")
    mended = entries(changed.encode())
    assert b"a word of mine\n" in mended.data
    assert entries(mended.data).faults == ()
    assert mended.data.replace(b"\na word of mine\n", b"") == episode()


def test_a_short_entry_is_not_found_in_a_longer_one() -> None:
    one = event(1)
    short = Event(
        id=EventId("ev_" + "a" * 30),
        at=one.at,
        type=one.type,
        worker=one.worker,
        mission=one.mission,
        assignment=None,
        summary="Row 1 laid",
        detail={"state": "DONE"},
    )
    due = [Due(short), Due(one)]
    assert entries(episode([short, one]), due).faults == ()
    assert len(entries(episode([one]), due).faults) == 1


def test_the_heading_is_ours_where_the_file_begins_with_our_entry() -> None:
    without = episode().partition(b"\n\n")[2]
    assert whats(entries(without)) == ["the heading is missing"]
    assert entries(without).data == episode()
    changed = episode().replace(b"# Episodes \xe2\x80\x94 builder-1", b"# Episodes: builder-1", 1)
    assert whats(entries(changed)) == ["the heading was changed"]
    assert entries(changed).data == episode()
    for theirs in (b"My diary\n\n", b"# Episodes of my own life, told by myself\n\n"):
        assert entries(theirs + without).faults == ()


def test_the_other_writer_s_entry_of_the_same_minute_is_not_taken_for_ours() -> None:
    parts = episode().decode().split("\n\n## ")
    theirs = "09:00 UTC — checkpoint\n- Mission: mission-1\n- Assignment: none\n- Summary: DONE: Row 4 laid"
    data = "\n\n## ".join([*parts[:5], theirs, *parts[6:]])
    mended = entries(data.encode())
    assert theirs.encode() in mended.data
    assert [fault.what for fault in mended.faults] == ["the entry '09:00 UTC — checkpoint' is missing here"]
    assert entries(mended.data).faults == ()


# Whatever happens

_FOREIGN = st.sampled_from(
    [
        b'{"at":"x"}\n',
        b"free text\n",
        b'{"type":"note","summary":"theirs"}\n',
        b"## 09:00 UTC \xe2\x80\x94 mine\n",
        b"\n",
    ]
)


@st.composite
def damaged(draw: st.DrawFn, pieces: list[bytes]) -> tuple[bytes, list[bytes]]:
    """The pieces in disorder, some lost, doubled or cut, among lines of others; and those lines."""
    order = draw(st.lists(st.sampled_from(range(len(pieces))), max_size=12))
    result, theirs = [], []
    for at in order:
        piece = pieces[at]
        kind = draw(st.integers(0, 5))
        if kind == 0:
            piece = piece[: draw(st.integers(0, len(piece)))] + b"\n"
        if kind == 1:
            theirs.append(draw(_FOREIGN))
            result.append(theirs[-1])
        result.append(piece)
    return b"".join(result), theirs


@settings(max_examples=150, deadline=None)
@given(damaged(LINES))
def test_any_lines_are_made_right_at_once(found: tuple[bytes, list[bytes]]) -> None:
    data, theirs = found
    mended = lines(data)
    again = lines(mended.data)
    assert again.faults == ()
    assert again.data == mended.data
    kept = [line for line in mended.data.splitlines(keepends=True) if line in theirs]
    assert kept == [line for line in data.splitlines(keepends=True) if line in theirs]


@settings(max_examples=150, deadline=None)
@given(damaged([episode_entry(one).encode() + b"\n" for one in EVENTS]))
def test_any_entries_are_made_right_at_once(found: tuple[bytes, list[bytes]]) -> None:
    data, theirs = found
    mended = entries(data)
    again = entries(mended.data)
    assert again.faults == ()
    assert again.data == mended.data
    wanted = [line for line in data.splitlines(keepends=True) if line in theirs and line.strip()]
    assert [
        line for line in mended.data.splitlines(keepends=True) if line in theirs and line.strip()
    ] == wanted
