"""Handoff files: whose, for which mission, usable or not; and ours, rendered. docs/contracts.md, "Handoffs"."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.fold import kept
from swarmmemd.handoff import OWN, Author, Template, rank, read_handoff, render_handoff, sha256
from swarmmemd.model import MissionId, WorkerId, iso
from swarmmemd.render.markdown import one_line
from swarmmemd.render.summary import bodies
from swarmmemd.state import Kept, MissionState

CASES = Path(__file__).parent.parent / "cases" / "handoffs"
EXPECTED: dict[str, Any] = yaml.safe_load((CASES / "expected.yaml").read_text("utf-8"))
WORKER = WorkerId(EXPECTED["worker"])
FULL = (CASES / "full.md").read_text("utf-8")
GENERATED = (CASES / "generated.md").read_text("utf-8")
AT = 1777885200000
MISSION = MissionState(
    mission=MissionId("mission-1"),
    objective="A plan of all halls",
    checkpoints=(
        "2026-05-04T09:00:00.000Z: DONE — Hall 1 is measured",
        "2026-05-04T09:07:00.000Z: HANDOFF — Hall 2 is next",
    ),
    files=("plans/b.svg", "plans/a.svg"),
    commands=("./measure hall-1",),
    next_action="Measure hall 2",
)

structure = st.sampled_from(
    [
        *("# Handoff — builder-1 — mission-1", "# Handoff — builder-1", "# Session snapshot", "# Handoff —"),
        *(
            "Mission: mission-1",
            "Mission: ../x",
            "Generated: yesterday",
            "## Next exact action",
            "## Next action",
        ),
        *(
            "...",
            "<text>",
            "```",
            "<!--",
            "-->",
            "<!-- rendered by swarmmemd from recorded events, 0123456789abcdef -->",
            "\ufeff",
            "",
            "  ",
            "\r",
            "Go on",
        ),
    ]
)
texts = st.text() | st.lists(structure | st.text(max_size=20), max_size=12).map("\n".join)


def data(name: str) -> str:
    return (CASES / name).read_bytes().decode("utf-8")


@pytest.mark.parametrize("name", EXPECTED["files"])
def test_what_a_file_is(name: str) -> None:
    wanted = EXPECTED["files"][name]
    found = read_handoff(data(name), WORKER)
    assert found.template == wanted["template"]
    assert found.worker == wanted["worker"]
    assert found.mission == wanted["mission"]
    # A file that breaks off before its next action is left alone until it is whole.
    assert (found.refused is None) is wanted.get("usable", False)


@pytest.mark.parametrize("name", [name for name, one in EXPECTED["files"].items() if "generated" in one])
def test_what_a_file_says(name: str) -> None:
    wanted = EXPECTED["files"][name]
    found = read_handoff(data(name), WORKER)
    assert found.generated is not None
    assert iso(found.generated) == wanted["generated"]
    assert (found.next_action is None) is (wanted["next"] is None)
    assert (wanted["next"] or "") in (found.next_action or "")


@pytest.mark.parametrize("name", [name for name, one in EXPECTED["files"].items() if one.get("usable")])
def test_who_wrote_it(name: str) -> None:
    by = Author.CONTROL_PLANE if EXPECTED["files"][name]["template"] == "generated" else Author.WORKER
    assert read_handoff(data(name), WORKER).author is by


def test_every_file_has_its_expectation() -> None:
    assert set(EXPECTED["files"]) == {path.name for path in CASES.glob("*.md")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("\ufeff", "empty"),
        (FULL.replace("builder-1", "scout-2"), "it is a handoff of scout-2"),
        (FULL.replace("mission-mo4d0020-aaaaaa", "../../x"), "'../../x' is no mission id"),
        (FULL.partition("## Next exact action")[0], "it is cut off: it has no next action"),
        (GENERATED.partition("## Next action")[0], "it is cut off: it has no next action"),
        ("# Handoff — builder-1 — mission-1\n\n## Next exact action\n\n...\n", "the form is not filled in"),
    ],
)
def test_why_a_file_is_refused(text: str, why: str) -> None:
    assert read_handoff(text, WORKER).refused == why


@pytest.mark.parametrize("dash", ["—", "–", "-", "--"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_dashes_and_line_ends_do_not_matter(dash: str, ends: str) -> None:
    text = FULL.replace("—", dash).replace("\n", ends)
    assert read_handoff(text, WORKER) == read_handoff(FULL, WORKER)


def test_a_byte_order_mark_does_not_matter() -> None:
    assert read_handoff("\ufeff" + FULL, WORKER) == read_handoff(FULL, WORKER)


def test_a_next_action_inside_of_a_fence_is_none() -> None:
    assert read_handoff(GENERATED, WORKER).next_action == "Hall 3"


@settings(deadline=None)
@given(texts)
def test_no_text_is_too_strange(text: str) -> None:
    found = read_handoff(text, WORKER)
    if found.refused is None:
        assert text.strip()
        assert found.worker in (None, WORKER)


@settings(deadline=None)
@given(st.binary())
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    read_handoff(raw.decode("utf-8", "replace"), WORKER)


# Ours


def test_ours_follows_the_template() -> None:
    text = render_handoff(WORKER, MISSION, AT)
    assert text.startswith(
        "# Handoff — builder-1 — mission-1\n\nGenerated: 2026-05-04T09:00:00.000Z\n\n## Current state\n"
    )
    assert text.splitlines()[-1].startswith("<!-- rendered by swarmmemd from recorded events, ")
    assert list(bodies(text)) == list(bodies(FULL))
    assert bodies(text) | {"Resume prompt": ""} == {
        "Current state": MISSION.checkpoints[1],
        "Objective": "A plan of all halls",
        "Completed": f"- {MISSION.checkpoints[0]}",
        "In progress": f"- {MISSION.checkpoints[1]}",
        "Files touched": "- plans/a.svg\n- plans/b.svg",
        "Commands run": "- ./measure hall-1",
        "Blockers": "- none",
        "Next exact action": "Measure hall 2",
        "Resume prompt": "",
    }


def test_ours_of_nothing_is_whole() -> None:
    found = read_handoff(render_handoff(WORKER, MissionState(mission=MissionId("m")), AT), WORKER)
    assert (found.refused, found.author, found.mission) == (None, Author.DAEMON, "m")


words = st.text(max_size=60) | st.lists(structure, max_size=4).map("\n".join)
missions = st.builds(
    MissionState,
    mission=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,20}", fullmatch=True).map(MissionId),
    objective=words,
    checkpoints=st.lists(words.map("2026-05-04T09:00:00.000Z: HANDOFF — {}".format), max_size=3).map(tuple),
    files=st.lists(words, max_size=3).map(tuple),
    commands=st.lists(words, max_size=3).map(tuple),
    blockers=st.lists(words, max_size=3).map(tuple),
    next_action=st.none() | words,
)


@settings(deadline=None)
@given(missions)
def test_ours_is_read_back_as_ours(mission: MissionState) -> None:
    text = render_handoff(WORKER, mission, AT)
    found = read_handoff(text, WORKER)
    assert found.refused is None
    assert found.template is Template.FULL
    assert found.author is Author.DAEMON
    assert (found.worker, found.mission, found.generated) == (WORKER, mission.mission, AT)
    known = one_line(mission.next_action or "")
    assert found.next_action == (known or "Not known: see the last checkpoint.")
    assert list(bodies(text)) == list(bodies(FULL))


# Which one counts


def test_the_ranks() -> None:
    ranks = [
        rank(Author.WORKER, local=True),
        rank(Author.WORKER, local=False),
        rank(Author.CONTROL_PLANE, local=True),
        rank(Author.DAEMON, local=True),
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == len(ranks)
    assert [one >= OWN for one in ranks] == [True, True, False, False]
    for author in (Author.CONTROL_PLANE, Author.DAEMON):
        assert rank(author, local=True) == rank(author, local=False)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Author), st.booleans()), min_size=1, max_size=8))
def test_the_newest_of_the_highest_rank_counts(seen: list[tuple[Author, bool]]) -> None:
    mission = MISSION
    for number, (author, local) in enumerate(seen):
        mission = kept(mission, Kept(sha256(str(number).encode()), rank(author, local)))
    best = max(rank(author, local) for author, local in seen)
    last = max(n for n, (author, local) in enumerate(seen) if rank(author, local) == best)
    assert mission.handoff is not None
    assert mission.handoff.sha256 == sha256(str(last).encode())
    assert msgspec.structs.replace(mission, handoff=None) == MISSION


def test_a_rendered_handoff_that_somebody_has_changed_is_his() -> None:
    text = render_handoff(WORKER, MISSION, 1).replace("## Blockers", "## Blockers\n\n- the ladder is gone")
    assert read_handoff(text, WORKER).author is Author.WORKER


@pytest.mark.parametrize(
    "heading",
    [
        "# Handoff: builder-1 — mission-1",
        "# Handoff — `builder-1` — `mission-1`",
        "# HANDOFF - Builder-1 - mission-1",
        "# Handoff — **builder-1** — mission-1",
        "# Handoff — mission-1",
    ],
)
def test_headings_that_mean_the_same(heading: str) -> None:
    text = FULL.replace(FULL.splitlines()[0], heading)
    found = read_handoff(text, WORKER, [MissionId("mission-1")])
    assert (found.refused, found.template, found.author) == (None, Template.FULL, Author.WORKER)
    assert found.mission == "mission-1"


@pytest.mark.parametrize(
    "heading", ["# Handoff notes", "# Handoff — what is left", "# Handoffs", "# Handoff (2)"]
)
def test_a_title_of_ones_own_choice_names_nobody(heading: str) -> None:
    found = read_handoff(f"{heading}\n\nThe gate is open.\n", WORKER)
    assert (found.refused, found.template, found.author) == (None, Template.NONE, Author.WORKER)
    assert (found.worker, found.mission) == (None, None)
    assert (
        read_handoff(f"{heading}\n\n## Current state\n\n...\n", WORKER).refused == "the form is not filled in"
    )


@pytest.mark.parametrize(
    "heading", ["# Handoff — scout-2", "# Handoff: scout-2 — mission-1", "# handoff - `scout-2`"]
)
def test_another_worker_is_another_worker(heading: str) -> None:
    text = FULL.replace(FULL.splitlines()[0], heading)
    assert read_handoff(text, WORKER).refused == "it is a handoff of scout-2"
