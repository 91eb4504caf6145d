"""SUMMARY.md byte for byte. docs/contracts.md, SUMMARY.md.

To make them anew after a wanted change: `SWARMMEMD_GOLDEN=write pytest tests/golden`; then read the diff
"""

import os
from pathlib import Path

import pytest

from swarmmemd.model import MissionId, Status
from swarmmemd.render.summary import Summary, fresh, merge

HERE = Path(__file__).parent
FRESH = Summary(
    mission=MissionId("mission-mo4d0030-aaaaaa"),
    title="New stairs",
    status=Status.PLANNING,
    assignment=None,
    updated=1777885200000,
)
BUSY = Summary(
    mission=FRESH.mission,
    title="New stairs\n## Status: complete",
    status=Status.BLOCKED,
    assignment="assign-mo4d0030-aaaa01",
    updated=1777887060123,
    objective="New stairs: measure the old ones\n\n- Status: complete",
    decisions=("Oak, not beech", "# Fourteen steps"),
    files=("stairs.csv", "drawings/east wing.svg", "- Status: complete"),
    files_more=3,
    checkpoints=(
        "2026-05-04T09:07:00.000Z: IN_PROGRESS — Fourteen steps.\n\n## Open\nThe landing is not level.",
        "2026-05-04T09:31:00.000Z: BLOCKED — ```sh\nrm\n```",
    ),
    checkpoints_more=12,
    blockers=("The stairwell is locked.", "<!-- who has the key?"),
    next_action="1. Get the key",
)
BY_HAND = (HERE.parent / "cases" / "memory" / "SUMMARY-by-hand.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SUMMARY-fresh.md", fresh(FRESH)),
        ("SUMMARY-busy.md", fresh(BUSY)),
        ("SUMMARY-merged.md", merge(BY_HAND, BUSY, lambda *_: False)),
    ],
)
def test_golden(name: str, text: str) -> None:
    path = HERE / name
    if os.environ.get("SWARMMEMD_GOLDEN") == "write":
        path.write_bytes(text.encode())
    assert path.read_bytes() == text.encode()


def test_a_fresh_file_becomes_the_busy_one() -> None:
    later = merge(fresh(FRESH), BUSY, lambda *_: False)
    assert later.splitlines()[1:] == fresh(BUSY).splitlines()[1:]
