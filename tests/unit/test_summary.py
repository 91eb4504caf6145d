"""SUMMARY.md made, kept true and brought together. docs/contracts.md, SUMMARY.md."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.model import MissionId, Status, iso
from swarmmemd.render.summary import (
    SECTIONS,
    Ours,
    Summary,
    bullets_of,
    fresh,
    is_whole,
    merge,
    rescue,
    sections,
)

CASES = Path(__file__).parent.parent / "cases" / "memory"
EXPECTED: dict[str, Any] = yaml.safe_load((CASES / "expected.yaml").read_text("utf-8"))["files"]
FILES = ("SUMMARY.md", "SUMMARY-by-hand.md")
BASE = Summary(
    mission=MissionId("mission-1"),
    title="Stairs",
    status=Status.EXECUTING,
    assignment="assign-1",
    updated=1777885200000,
    objective="New stairs",
    decisions=("Oak",),
    files=("b.py", "a.py"),
    checkpoints=("2026-05-04T09:00:00.000Z: IN_PROGRESS — x", "2026-05-04T09:07:00.000Z: DONE — y"),
    blockers=("locked",),
    next_action="Go on",
)
EMPTY = Summary(mission=BASE.mission, title="", status=Status.PLANNING, assignment=None, updated=0)


def never(section: str, line: str) -> bool:
    return False


def remembering(*summaries: Summary) -> Ours:
    known = {line for summary in summaries for line in bullets_of(summary)}
    return lambda section, line: (section, line) in known


def changed(**values: Any) -> Summary:
    return msgspec.structs.replace(BASE, **values)


def body(text: str, title: str) -> str:
    """What stands below the heading `title`, up to the next H2."""
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0].strip("\n")


def with_body(title: str, content: str) -> str:
    return fresh(EMPTY).replace(f"## {title}\n\n- None yet.\n", f"## {title}\n\n{content}\n")


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


# --- cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_cases_have_the_expected_sections(name: str) -> None:
    assert list(sections((CASES / name).read_text("utf-8"))) == EXPECTED[name]["sections"]


@pytest.mark.parametrize("name", FILES)
def test_cases_survive_an_update(name: str) -> None:
    text = (CASES / name).read_text("utf-8")
    merged = merge(text, BASE, never)
    assert list(sections(merged)) == EXPECTED[name]["sections"]
    assert set(EXPECTED[name]["keep"]) <= set(merged.splitlines())
    tail = text.partition("\n## Next action\n")[2].partition("\n## ")[2]
    assert merged.endswith("\n## " + tail)
    gone = set(lines_of(text)) - set(lines_of(merged))
    assert {line.split(":")[0] for line in gone} <= {"- Status", "- Current assignment", "- Last updated"}
    assert merge(merged, BASE, never) == merged


@pytest.mark.parametrize("name", FILES)
def test_cases_are_true_after_an_update(name: str) -> None:
    merged = merge((CASES / name).read_text("utf-8"), BASE, never)
    assert (
        f"- Status: executing\n- Current assignment: assign-1\n- Last updated: {iso(BASE.updated)}" in merged
    )
    assert body(merged, "Decisions").endswith("\n- Oak")
    assert body(merged, "Files touched").endswith("\n- a.py\n- b.py")
    assert body(merged, "Checkpoints").endswith(
        "\n- 2026-05-04T09:00:00.000Z: IN_PROGRESS — x\n- 2026-05-04T09:07:00.000Z: DONE — y"
    )
    assert body(merged, "Blockers").endswith("- locked")
    assert body(merged, "Next action").startswith("Go on\n\n")


# --- whole, fresh, sections ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["# M", "\ufeff# M\n", "\n \r\n# M\n"])
def test_a_file_with_its_h1_is_whole(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize("text", ["", "\n\n", "#", "## Current state\n", "text\n# M\n", " # M"])
def test_a_file_without_is_not(text: str) -> None:
    assert not is_whole(text)


def test_a_fresh_file_needs_no_update() -> None:
    for summary in (BASE, EMPTY, changed(next_action="", files_more=2, checkpoints_more=1)):
        assert merge(fresh(summary), summary, never) == fresh(summary)
        assert sections(fresh(summary)) == SECTIONS
        assert is_whole(fresh(summary))


def test_an_empty_file_is_made() -> None:
    assert merge(" \n", BASE, never) == fresh(BASE)


def test_sections_respect_fences_comments_and_setext() -> None:
    text = (
        "# M\n## A ##\n```x\n## no\n``\n~~~\n````\n<!--\n## no\n-->\nB\n---\n    ## no\n"
        "##no\n## C\r\n~~~\n## no\n```\n~~~~\n##\n"
    )
    assert sections(text) == ("A", "C", "")


def test_a_fence_that_never_ends_hides_nothing() -> None:
    text = with_body("Objective", "```\nx")
    merged = merge(text, BASE, never)
    assert sections(merged) == SECTIONS
    assert merge(merged, BASE, never) == merged


# --- Current state, Objective -------------------------------------------------------------------------------


def test_values_are_replaced_in_place() -> None:
    text = fresh(EMPTY).replace(
        "- Status: planning\n", "- Foreman: A\n- Status: idle <!-- hm -->  \n- Status: old\n"
    )
    state = body(merge(text, BASE, never), "Current state").split("\n")
    assert state[:4] == [
        "- Foreman: A",
        "- Status: executing <!-- hm -->  ",
        "- Status: old",
        "- Current assignment: assign-1",
    ]


@pytest.mark.parametrize(
    ("stands", "after"),
    [
        ("## Current state\n\n- x\n", "## Current state\n\n- Status: executing\n{rest}\n- x\n"),
        ("## Current state\n- x\n", "## Current state\n- Status: executing\n{rest}\n- x\n"),
        ("## Current state\n\ntext\n", "## Current state\n\n- Status: executing\n{rest}\n\ntext\n"),
        ("## Current state\ntext\n", "## Current state\n\n- Status: executing\n{rest}\n\ntext\n"),
        ("## Current state", "## Current state\n\n- Status: executing\n{rest}\n"),
        ("## current State\n\n", "## current State\n\n- Status: executing\n{rest}\n"),
    ],
)
def test_missing_values_are_added_below_the_heading(stands: str, after: str) -> None:
    rest = f"- Current assignment: assign-1\n- Last updated: {iso(BASE.updated)}"
    merged = merge("# M\n\n" + stands, BASE, never)
    assert merged.startswith("# M\n\n" + after.format(rest=rest))
    assert merge(merged, BASE, never) == merged


def test_a_status_in_a_fence_or_in_a_foreign_section_is_left_alone() -> None:
    foreign = "\n## Wishes\n\n- Status: mine\n\n```\n## Status: complete\n- Status: x\n```\n"
    text = fresh(EMPTY).replace("## Current state\n", "## Current state\n```\n- Status: y\n```\n") + foreign
    merged = merge(text, BASE, never)
    assert merged.endswith(foreign)
    assert "```\n- Status: y\n```\n" in merged
    assert "\n- Status: executing\n" in merged


@pytest.mark.parametrize("stands", ["", "<mission objective>", "...", "- ...", "- None yet."])
def test_the_objective_is_filled_in_once(stands: str) -> None:
    merged = merge(with_body("Objective", stands), BASE, never)
    assert body(merged, "Objective") == "New stairs"
    assert body(merge(merged, changed(objective="Other"), never), "Objective") == "New stairs"


def test_an_objective_of_somebody_stays() -> None:
    assert body(merge(with_body("Objective", "Mine\n..."), BASE, never), "Objective") == "Mine\n..."


# --- lists --------------------------------------------------------------------------------------------------


def test_ours_are_replaced_as_a_group_after_the_foreign_ones() -> None:
    text = with_body("Files touched", "- z.py\n- mine  \n* b\n- old.py")
    ours = remembering(changed(files=("z.py", "old.py")))
    assert body(merge(text, BASE, ours), "Files touched") == "- mine  \n* b\n- a.py\n- b.py"


def test_a_resolved_blocker_leaves_and_the_placeholder_comes_back() -> None:
    text, free = fresh(BASE), changed(blockers=())
    merged = merge(text, free, remembering(BASE))
    assert body(merged, "Blockers") == "- None yet."
    assert merged == fresh(free)
    assert body(merge(text, free, never), "Blockers") == "- locked"
    assert merge(merged, BASE, never) == text


def test_placeholders_of_others_stay_those_of_the_template_leave() -> None:
    assert body(merge(with_body("Blockers", "- None recorded yet."), BASE, never), "Blockers") == (
        "- None recorded yet.\n- locked"
    )
    assert body(merge(with_body("Blockers", "- ..."), BASE, never), "Blockers") == "- locked"
    assert body(merge(with_body("Blockers", "- None recorded yet."), EMPTY, never), "Blockers") == (
        "- None recorded yet."
    )


def test_a_bullet_with_something_hung_on_it_is_foreign_and_not_doubled() -> None:
    hung = "- locked\n  (the key is lost)\n\n  really"
    assert body(merge(with_body("Blockers", hung), BASE, remembering(BASE)), "Blockers") == hung


def test_a_foreign_bullet_with_trailing_blanks_is_not_doubled() -> None:
    assert body(merge(with_body("Blockers", "- locked  "), BASE, never), "Blockers") == "- locked  "


def test_a_bullet_in_a_fence_is_not_ours() -> None:
    fence = "```\n- locked\n```"
    assert body(merge(with_body("Blockers", fence), BASE, never), "Blockers") == f"{fence}\n\n- locked"


def test_text_after_which_we_write_gets_one_blank_line() -> None:
    merged = merge(with_body("Blockers", "Some text"), BASE, never)
    assert body(merged, "Blockers") == "Some text\n\n- locked"
    assert "- locked\n\n## Next action" in merged


def test_the_line_that_counts_the_others_is_replaced() -> None:
    first, then = changed(files_more=1, checkpoints_more=9), changed(files_more=2, checkpoints_more=10)
    merged = merge(fresh(first), then, never)
    assert merged == fresh(then)
    assert body(merged, "Files touched") == "- a.py\n- b.py\n- … and 2 more in events.jsonl"


def test_no_line_of_ours_stands_twice() -> None:
    summary = changed(files=("a", "a"), blockers=("x", " x", ""))
    assert body(fresh(summary), "Files touched") == "- a"
    assert body(fresh(summary), "Blockers") == "- x"
    text = with_body("Blockers", "- x\n- x")
    assert body(merge(text, summary, never), "Blockers") == "- x"


# --- Next action --------------------------------------------------------------------------------------------


def test_the_next_action_stands_first_and_a_foreign_one_below() -> None:
    first = merge(with_body("Next action", "Mine.\nYes."), BASE, never)
    assert body(first, "Next action") == "Go on\n\nMine.\nYes."
    then = merge(first, changed(next_action="# Stop"), remembering(BASE))
    assert body(then, "Next action") == "\\# Stop\n\nMine.\nYes."
    assert body(merge(then, changed(next_action=""), lambda _, line: line == "\\# Stop"), "Next action") == (
        "Mine.\nYes."
    )


def test_without_a_checkpoint_the_next_action_is_left() -> None:
    assert body(merge(fresh(BASE), changed(next_action=None), remembering(BASE)), "Next action") == "Go on"
    assert (
        body(merge(fresh(BASE), changed(next_action=""), remembering(BASE)), "Next action") == "- None yet."
    )


# --- form of the file ---------------------------------------------------------------------------------------


def test_missing_sections_come_at_their_place() -> None:
    text = "# M\nintro\n## Objective\nx\n## Wishes\n\n- y\n## Blockers\n\n- z"
    merged = merge(text, BASE, never)
    assert sections(merged) == (
        *SECTIONS[:5],
        "Wishes",
        "Blockers",
        "Next action",
    )
    assert "## Wishes\n\n- y\n## Blockers\n\n- z\n- locked\n\n## Next action\n\nGo on\n" in merged
    assert merged.startswith("# M\nintro\n\n## Current state\n\n- Status")
    assert merge(merged, BASE, never) == merged


def test_a_section_twice_the_first_is_used() -> None:
    text = fresh(EMPTY) + "\n## Blockers\n\n- None yet."
    merged = merge(text, BASE, never)
    assert merged.endswith("\n## Blockers\n\n- None yet.")
    assert body(merged, "Blockers") == "- locked"


def test_an_h1_further_down_ends_a_section() -> None:
    text = with_body("Blockers", "# Appendix\n\n- x")
    assert "## Blockers\n\n- locked\n\n# Appendix\n\n- x\n" in merge(text, BASE, never)


def test_crlf_stays_crlf() -> None:
    text = (fresh(EMPTY) + "\n## Tail\n\nx").replace("\n", "\r\n")
    merged = merge(text, BASE, never)
    assert merged == (
        fresh(BASE).partition("\n")[2].join(["# Mission mission-1\n", "\n## Tail\n\nx"])
    ).replace("\n", "\r\n")


def test_surrogates_boms_and_blanks_pass() -> None:
    text = "\ufeff" + fresh(BASE) + "\n## T  \n\n\udcff\u2028x \t\n\x00\f\n \n"
    assert merge(text, BASE, never) == text


def test_a_missing_line_end_is_left_where_nothing_is_appended() -> None:
    text = fresh(BASE).rstrip("\n")
    assert merge(text, BASE, never) == text


# --- rescue -------------------------------------------------------------------------------------------------


def test_foreign_bullets_go_to_their_section_before_ours() -> None:
    text = with_body("Files touched", "- mine\n- a.py").replace("- None yet.", "- None recorded yet.")
    other = with_body("Files touched", "- mine\n- theirs\n  hung\n- b.py\n- … and 7 more in events.jsonl")
    saved = rescue(text, other, remembering(BASE))
    assert body(saved, "Files touched") == "- mine\n- theirs\n  hung\n- a.py"
    assert rescue(saved, other, remembering(BASE)) == saved


def test_a_bullet_that_grew_is_continued() -> None:
    other = with_body("Blockers", "- locked\n  the key is lost")
    assert body(rescue(fresh(BASE), other, remembering(BASE)), "Blockers") == "- locked\n  the key is lost"


def test_values_and_lines_of_ours_are_not_rescued() -> None:
    assert rescue(fresh(BASE), fresh(EMPTY), never) == fresh(BASE)
    assert rescue(fresh(EMPTY), fresh(BASE), remembering(BASE)) == fresh(EMPTY)


def test_foreign_lines_of_state_and_paragraphs_are_rescued() -> None:
    other = with_body("Next action", "Mine.").replace("- Status: planning", "- Status: odd\n- Foreman: A")
    saved = rescue(fresh(BASE), other, remembering(BASE))
    assert body(saved, "Next action") == "Go on\n\nMine."
    assert body(saved, "Current state").endswith("\n- Foreman: A")
    assert "odd" not in saved


def test_what_hangs_on_a_value_is_rescued_without_the_value() -> None:
    other = fresh(EMPTY).replace("- Status: planning\n", "- Status: odd\n  since Monday\n")
    saved = rescue(fresh(BASE), other, remembering(BASE))
    assert "  since Monday\n" in saved
    assert "odd" not in saved
    assert rescue(saved, other, remembering(BASE)) == saved


def test_unknown_sections_are_continued_or_come_at_the_end() -> None:
    text = fresh(BASE) + "\n## Wishes\n\n- a\n\n## Update — 1\n\n- x\n"
    other = (
        fresh(EMPTY) + "\n## Wishes\n\n- a\n- b\n\n## Update — 1\n\n- y\n\n## Update — 1\n\n- x\n\n## Open\nz"
    )
    saved = rescue(text, other, remembering(BASE))
    assert saved == fresh(BASE) + (
        "\n## Wishes\n\n- a\n- b\n\n## Update — 1\n\n- x\n\n## Update — 1\n\n- y\n\n## Open\nz\n"
    )
    assert rescue(saved, other, never) == saved


def test_a_missing_section_is_rescued_at_its_place() -> None:
    other = with_body("Blockers", "- theirs")
    saved = rescue("# M\n\n## Next action\n\nx", other, never)
    assert "## Blockers\n\n- theirs" in saved
    assert rescue(saved, other, never) == saved


@pytest.mark.parametrize("name", FILES)
def test_cases_rescued_into_a_fresh_file(name: str) -> None:
    text = (CASES / name).read_text("utf-8")
    assert rescue(text, text, never) == text
    saved = rescue(fresh(BASE), text, remembering(BASE))
    keys = ("- Status", "- Current assignment", "- Last updated", "# ")
    assert {line for line in lines_of(text) if not line.startswith(keys)} <= set(lines_of(saved))
    assert merge(saved, BASE, never) == saved


# --- properties ---------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "a",
        "- a",
        "- a  ",
        "- b",
        "  hung",
        "* c",
        "1. d",
        "```",
        "~~~~",
        "  ```",
        "<!--",
        "-->",
        "x -->",
        "---",
        "> q",
        "| t |",
        "### sub",
        "# one",
        "## Blockers",
        "## Wishes",
        "## Status: complete",
        "- Status: complete",
        "- None yet.",
        "- ...",
        "...",
        "\tindented",
        " ",
        "",
        "\udcff",
        "- … and 3 more in events.jsonl",
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
CHUNK = st.lists(st.tuples(WORDS, ENDS), max_size=7).map(lambda pairs: "".join(a + b for a, b in pairs))
VALUES = st.lists(st.one_of(WORDS, st.text(max_size=8), CHUNK), max_size=4).map(tuple)
HEADINGS = [f"\n## {title}\n" for title in SECTIONS]


@st.composite
def texts(draw: st.DrawFn) -> str:
    keep = draw(st.lists(st.sampled_from(HEADINGS), max_size=8)) if draw(st.booleans()) else HEADINGS
    body = "".join(head + draw(CHUNK) for head in keep)
    return "# M" + draw(ENDS) + draw(CHUNK) + body + draw(st.sampled_from(["", "end", "- end"]))


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    one = st.one_of(WORDS, CHUNK)
    return Summary(
        mission=BASE.mission,
        title=draw(one),
        status=draw(st.sampled_from(list(Status))),
        assignment=draw(st.one_of(st.none(), one)),
        updated=draw(st.integers(0, 4 * 10**12)),
        objective=draw(one),
        decisions=draw(VALUES),
        files=draw(VALUES),
        files_more=draw(st.integers(0, 3)),
        checkpoints=draw(VALUES),
        checkpoints_more=draw(st.integers(0, 3)),
        blockers=draw(VALUES),
        next_action=draw(st.one_of(st.none(), one)),
    )


@given(texts(), summaries())
def test_merge_is_idempotent(text: str, summary: Summary) -> None:
    merged = merge(text, summary, never)
    assert merge(merged, summary, never) == merged
    assert merge(merged, summary, remembering(summary)) == merged


@given(texts(), summaries(), summaries())
def test_merge_after_another_is_idempotent(text: str, first: Summary, then: Summary) -> None:
    ours = remembering(first, then)
    merged = merge(merge(text, first, ours), then, ours)
    assert merge(merged, then, ours) == merged


@given(texts(), summaries())
def test_no_foreign_line_is_lost_and_none_comes_out_of_a_value(text: str, summary: Summary) -> None:
    merged = merge(text, summary, never)
    own = {line for _, line in bullets_of(summary)} | {
        "- None yet.",
        "- ...",
        "...",
        "- … and 3 more in events.jsonl",
    }
    before = [line for line in lines_of(text) if line.rstrip() not in own]
    after = iter(lines_of(merged))
    for line in before:
        assert any(line == other or line.startswith("- Status:") for other in after)
    added = set(sections(merged)) - set(sections(text))
    assert added <= set(SECTIONS)
    assert len(sections(merged)) - len(sections(text)) <= 7


@given(texts(), summaries())
def test_the_order_of_sections_stays(text: str, summary: Summary) -> None:
    merged = sections(merge(text, summary, never))
    if sections(text)[:7] == SECTIONS:
        assert merged == sections(text)
    known = list(merged)
    assert set(SECTIONS) <= set(known)


@given(summaries(), summaries())
def test_hostile_values_make_no_heading_and_no_second_status(first: Summary, then: Summary) -> None:
    text = fresh(first)
    for result in (text, merge(text, then, remembering(first))):
        assert sections(result) == SECTIONS
        assert result.count("\n# ") == 0
        assert sum(line.startswith("- Status:") for line in result.splitlines()) == 1
        assert sum(line.startswith("#") for line in result.splitlines()) == 8


@given(summaries(), summaries())
def test_merged_from_ours_is_fresh(first: Summary, then: Summary) -> None:
    assert merge(fresh(first), first, never) == fresh(first)


@given(texts(), texts())
def test_rescue_adds_and_removes_nothing(text: str, other: str) -> None:
    assert rescue(text, text, never) == text
    saved = rescue(text, other, never)
    rest = iter(saved.splitlines())
    assert all(line in rest for line in text.splitlines() if line.strip())
    template = {"- None yet.", "- ...", "...", "- … and 3 more in events.jsonl", "- Status: complete"}
    there = {line.rstrip() for line in lines_of(saved)} | template
    spared = ("# ", *(f"## {title}" for title in SECTIONS))
    assert {line.rstrip() for line in lines_of(other) if not line.startswith(spared)} <= there


@given(texts())
def test_a_file_without_ours_comes_back_from_rescue_unchanged(text: str) -> None:
    merged = merge(text, BASE, never)
    assert rescue(merged, text, never) == merged
    assert rescue(merged, fresh(BASE), remembering(BASE)) == merged


def test_cost_is_linear_in_the_file() -> None:
    """Not timed: what would be quadratic would run into the timeout of the suite."""
    hostile = (
        "```a\n" * 10_000 + "<!--\n" * 10_000 + "~~~~ x\n" * 10_000 + "- a\n\n\n" * 10_000 + "\n" * 10_000
    )
    merged = merge(with_body("Blockers", hostile), BASE, never)
    assert merged.count("```a\n") == 10_000
    assert rescue(merged, hostile, never).startswith("# Mission")
