"""IDENTITY.md, SOUL.md and MEMORY.md from the roster. docs/contracts.md, "Identity files"."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.model import Unreadable, WorkerId
from swarmmemd.observation import Roster, RosterWorker
from swarmmemd.render.identity import filled_in, identity, memory, soul
from swarmmemd.render.summary import bodies
from swarmmemd.sources.roster import parse_roster

CASES = Path(__file__).parent.parent / "cases"
EXPECTED: dict[str, Any] = yaml.safe_load((CASES / "roster" / "expected.yaml").read_text("utf-8"))["files"]
LEFT_UNSET = (CASES / "memory" / "IDENTITY.md").read_text("utf-8")


def roster(name: str) -> Roster:
    found = parse_roster((CASES / "roster" / name).read_bytes(), 0)
    assert not isinstance(found, Unreadable)
    return found


KNOWN = roster("swarm.yaml")
BUILDER = KNOWN[WorkerId("builder-1")]
WRITER = KNOWN[WorkerId("writer_3")]

SOUL = """\
# SOUL.md — builder-1

## Role

You are Bricklayer, the Builder of this swarm.
Your specialty: walls, arches, chimneys.
Your standing mission: Build what has been drawn.

## How to decide

Within walls, arches, chimneys decide yourself, take the simplest thing that serves the objective, and write the
decision down under DECISIONS in your checkpoint with its reason. Before you begin, read the mission's
SUMMARY.md and the newest handoff: what was decided there stands until somebody changes it.

## When to ask first

Stop and wait for a clear yes before any of these:

- publish

## When you cannot go on

Say BLOCKED in a checkpoint as soon as you know it, with what exactly is missing and who could give it. Say
NEEDS_INPUT when a decision is not yours, with the choices and the one that you would take. Do not wait in
silence, and do not guess what only a person can know.

## Quality bar

A result counts when somebody else can repeat it: name the files that you changed and the commands that
show that it works, and say what was not checked. Report what is, also when it is less than was asked.
End every step with a checkpoint whose next action another worker could carry out.
"""

MEMORY = """\
# Memory — builder-1

## Role

You are Bricklayer, the Builder of this swarm.
Your specialty: walls, arches, chimneys.
Your standing mission: Build what has been drawn.

## Durable operating notes

- ...

## Project conventions

- ...

## Lessons learned

- ...
"""


@pytest.mark.parametrize("name", [name for name, one in EXPECTED.items() if one["readable"]])
def test_identity_says_what_the_roster_says(name: str) -> None:
    wanted = EXPECTED[name]["workers"]
    found = roster(name)
    assert set(found) == set(wanted)
    for id, one in wanted.items():
        assert identity(found[WorkerId(id)]) == (
            f"# IDENTITY.md — {id}\n\n- Name: {one['name']}\n- Worker ID: {id}\n"
            f"- Role: {one['role'] or 'Unassigned'}\n- Specialty: {one['specialty'] or 'Unassigned'}\n"
            f"- Model: {one['model'] or 'Unassigned'}\n"
        )


def test_soul_byte_for_byte() -> None:
    assert soul(BUILDER) == SOUL


def test_memory_byte_for_byte() -> None:
    assert memory(BUILDER) == MEMORY


def test_a_worker_of_whom_only_the_role_is_known() -> None:
    assert bodies(soul(WRITER))["Role"] == "You are writer_3, the Writer of this swarm."
    assert bodies(memory(WRITER))["Role"] == "You are writer_3, the Writer of this swarm."
    assert bodies(soul(WRITER))["When to ask first"].startswith("Nothing is reserved")


def test_a_worker_of_whom_nothing_is_known() -> None:
    bare = RosterWorker(id=WorkerId("w"), name="w")
    assert bodies(soul(bare))["Role"] == "You are w, a worker of this swarm."


# Filling in


def test_what_a_program_left_unset_is_filled_in() -> None:
    assert filled_in(LEFT_UNSET, BUILDER) == (
        "# IDENTITY.md — builder-1\n\n- Name: builder-1\n- Worker ID: builder-1\n"
        "- Role: Builder\n- Specialty: walls, arches, chimneys\n- Model: model-large\n"
    )


def test_what_the_roster_does_not_know_stays_unset() -> None:
    assert filled_in(LEFT_UNSET, WRITER) == LEFT_UNSET.replace("Role: Unassigned", "Role: Writer")


@pytest.mark.parametrize(
    "line",
    [
        "- Role: unassigned",
        "- Role: Unassigned yet",
        "- Role: Painter",
        "- Role:",
        "  - Role: Unassigned",
        "* Role: Unassigned",
        "Role: Unassigned",
        "- Worker ID: Unassigned",
        "- Mood: Unassigned",
    ],
)
def test_anything_else_stays(line: str) -> None:
    assert filled_in(f"{line}\n", BUILDER) == f"{line}\n"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_line_ends_stay(end: str) -> None:
    assert filled_in(f"- Role: Unspecified {end}", BUILDER) == f"- Role: Builder{end}"


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from([*LEFT_UNSET.splitlines(), "\r", "\x0c"])).map("\n".join))
def test_filling_in_twice_is_filling_in_once(text: str) -> None:
    once = filled_in(text, BUILDER)
    assert filled_in(once, BUILDER) == once


# Texts that would break the Markdown

hostile = st.sampled_from(
    [
        *(
            "x\n## Role",
            "# H1",
            "- Role: x",
            "x\r\n- Model: x",
            "```\nx",
            "~~~",
            "<!-- x",
            "-->",
            "---",
            "===",
        ),
        *("x\u2028## Role", "x\x0b# H1", "\x1b[31mred\x1b[0m", "> x", "| a |", "1. x", "[a]: b", "\u202e"),
    ]
)
values = hostile | st.text(min_size=1, max_size=40)
workers = st.builds(
    RosterWorker,
    id=st.just(WorkerId("builder-1")),
    name=values,
    role=st.none() | values,
    specialty=st.none() | values,
    model=st.none() | values,
    mission=st.none() | values,
    greenlight=st.lists(values, max_size=3).map(tuple),
)


@settings(deadline=None)
@given(workers)
def test_no_value_breaks_identity(worker: RosterWorker) -> None:
    lines = identity(worker).splitlines()
    assert lines[:2] == ["# IDENTITY.md — builder-1", ""]
    keys = [line.partition(":")[0] for line in lines[2:]]
    assert keys == ["- Name", "- Worker ID", "- Role", "- Specialty", "- Model"]
    assert lines[3] == "- Worker ID: builder-1"


@settings(deadline=None)
@given(workers)
def test_no_value_breaks_soul_and_memory(worker: RosterWorker) -> None:
    for text, golden in ((soul(worker), SOUL), (memory(worker), MEMORY)):
        assert list(bodies(text)) == list(bodies(golden))
        assert text.splitlines()[0] == golden.splitlines()[0]
        assert [line for line in text.splitlines() if line.startswith("#")] == [
            line for line in golden.splitlines() if line.startswith("#")
        ]
        assert not any(ord(sign) < 32 and sign != "\n" for sign in text)


@settings(deadline=None)
@given(workers)
def test_no_value_breaks_what_is_filled_in(worker: RosterWorker) -> None:
    lines = filled_in(LEFT_UNSET, worker).splitlines()
    assert len(lines) == len(LEFT_UNSET.splitlines())
    keys = [line.partition(":")[0] for line in lines]
    assert keys == [line.partition(":")[0] for line in LEFT_UNSET.splitlines()]
