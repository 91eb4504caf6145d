"""Whatever is done to one line of ours is named and made right; what others wrote stays. docs/contracts.md, "Verify
and rebuild"."""

from collections import Counter
from collections.abc import Callable

import pytest

from swarmmemd.mending import Mended, mend_summary
from swarmmemd.render.summary import Summary, bullets_of, fresh
from tests.golden.test_summary_golden import BUSY, FRESH
from tests.support.edits import Edit, edits, filled, rearrangements
from tests.unit.test_mending import LINES, entries, episode, lines

_PLACEHOLDER = b"- None yet."
_OBJECTIVE = b"New stairs: measure the old ones - Status: complete"
_THEIRS = {
    b"## Current state\n": b"Told by somebody.\n\n## Current state\n",
    b"- Oak, not beech\n": b"- A bullet of somebody's\n- Oak, not beech\n",
    b"1\\. Get the key\n": b"1\\. Get the key\n\nAnd feed the cat.\n\n## Update\n\n- State: fine\n",
    b"- Summary: DONE: Row 1 laid\n- Result: Row 1 laid\n": b"- Summary: DONE: Row 1 laid\n- Result: Row 1 laid\n\n"
    b"## My note\n\nIt rained.\n",
    b"- Summary: DONE: Row 4 laid\n": b"- Summary: DONE: Row 4 laid\nReally?\n",
}


def summary(shown: Summary) -> Callable[[bytes], Mended]:
    ours = set(bullets_of(shown))
    return lambda data: mend_summary(data, shown, lambda section, line: (section, line) in ours)


def is_for_everybody(edit: Edit, before: bytes) -> bool:
    """Whether people may do that to a `SUMMARY.md`: to blank lines, line ends, placeholders, title and objective."""
    there, now = filled(before), filled(edit.data)
    if [line for line in now if line != _PLACEHOLDER] == [line for line in there if line != _PLACEHOLDER]:
        return now.count(_PLACEHOLDER) <= there.count(_PLACEHOLDER)
    line, worded = before.splitlines()[edit.at], edit.data.splitlines()[edit.at :][:1]
    title = line.startswith(b"# ") and FRESH.mission.encode() in b"".join(worded)
    return edit.kind == "changed" and (title or line in (_PLACEHOLDER, _OBJECTIVE))


def named(mended: Mended, edit: Edit) -> None:
    last = edit.data.count(b"\n") + 2
    assert mended.faults, edit
    assert all(1 <= fault.line <= last and fault.what for fault in mended.faults), edit


@pytest.mark.parametrize("shown", [FRESH, BUSY], ids=["fresh", "busy"])
def test_every_edit_of_a_summary(shown: Summary) -> None:
    before, mend = fresh(shown).encode(), summary(shown)
    for edit in edits(before):
        mended = mend(edit.data)
        if is_for_everybody(edit, before):
            assert (mended.data, mended.faults) == (edit.data, ()), edit
            continue
        named(mended, edit)
        beside = Counter(filled(mended.data)) - Counter(filled(before))
        assert mended.data == before or (edit.kind == "changed" and beside.total() == 1), edit
        assert not Counter(filled(before)) - Counter(filled(mended.data)) - Counter([_PLACEHOLDER]), edit
        assert mend(mended.data).faults == (), edit
        assert mend(mended.data).data == mended.data, edit


@pytest.mark.parametrize("name", ["summary", "episode"])
def test_every_edit_of_ours_beside_what_others_wrote(name: str) -> None:
    alone, mend = {"summary": (fresh(BUSY).encode(), summary(BUSY)), "episode": (episode(), entries)}[name]
    before = alone
    for ours, both in _THEIRS.items():
        before = before.replace(ours, both, 1)
    before = mend(before).data
    theirs = [line for line in filled(before) if line not in filled(alone)]
    assert len(theirs) > 2
    for edit in edits(before):
        mended = mend(edit.data)
        there = [line for line in filled(edit.data) if line in theirs]
        assert [line for line in filled(mended.data) if line in theirs] == there, edit
        lost = Counter(filled(alone)) - Counter(filled(mended.data))
        lost -= Counter([*filled(before)[:1], _OBJECTIVE]) if is_for_everybody(edit, before) else Counter()
        assert not lost, edit
        assert mend(mended.data).faults == (), edit
        assert mend(mended.data).data == mended.data, edit


@pytest.mark.parametrize("name", ["episode", "events"])
def test_every_edit_of_what_grows(name: str) -> None:
    before, mend = {"episode": (episode(), entries), "events": (b"".join(LINES), lines)}[name]
    for edit in edits(before):
        mended = mend(edit.data)
        if filled(edit.data) == filled(before) and edit.kind != "line ends" and not mended.faults:
            assert mended.data == edit.data, edit  # a blank line more or less between entries
            continue
        named(mended, edit)
        assert mended.data == before, edit
        assert mend(mended.data) == Mended(before), edit


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize("name", ["fresh", "busy", "episode", "events"])
def test_whatever_is_made_right_is_right(name: str, beside: bool) -> None:
    """Also where remains of ours cannot be known for ours and stay: nothing of ours is missing, and twice is once."""
    alone, mend = {
        "fresh": (fresh(FRESH).encode(), summary(FRESH)),
        "busy": (fresh(BUSY).encode(), summary(BUSY)),
        "episode": (episode(), entries),
        "events": (b"".join(LINES), lines),
    }[name]
    before = alone
    for ours, both in _THEIRS.items() if beside else ():
        before = before.replace(ours, both, 1)
    before = mend(before).data
    for edit in rearrangements(before):
        mended = mend(edit.data)
        assert mended.faults or mended.data == edit.data, edit
        again = mend(mended.data)
        assert (again.data, again.faults) == (mended.data, ()), edit
        if mended.faults:
            lost = Counter(filled(alone)) - Counter(map(bytes.rstrip, filled(mended.data)))
            assert not lost - Counter([_PLACEHOLDER, filled(alone)[0], _OBJECTIVE]), edit


@pytest.mark.parametrize("theirs", [b"- The same again\n", b"1\\. Get the key\n"], ids=["somebody's", "ours"])
def test_a_text_of_very_many_equal_lines_is_made_right(theirs: bytes) -> None:
    """What would be quadratic does not come to an end."""
    before, mend = fresh(BUSY).encode(), summary(BUSY)
    damaged = before.replace(b"\n- Status: ", b"\n- Status: not ", 1) + theirs * 30_000
    mended = mend(damaged)
    assert mended.faults[0].line == 5
    assert b"\n- Status: not " not in mended.data
