"""`events.jsonl` and an episode file byte for byte. docs/contracts.md, "events.jsonl", "Episodes".

To make them anew after a wanted change: `SWARMMEMD_GOLDEN=write pytest tests/golden`; then read the diff.
"""

import os
from pathlib import Path

import pytest

from swarmmemd.memory.appends import missing_entries, missing_lines
from swarmmemd.model import Event, WorkerId, utc_day
from swarmmemd.observation import Runtime
from swarmmemd.record import decode, encode
from swarmmemd.render.episode import episode_entry, episode_header
from tests.support.cases import Player, Scene, sequence

HERE = Path(__file__).parent
WORKER, DAY = WorkerId("builder-1"), "2026-05-04"
STORIES = (
    *("poll-timeout-late-done", "timeout-after-done", "needs-input-then-answer", "cancelled-in-the-ledger"),
    *("non-english", "two-blocks-in-raw", "reset-by-operator", "ledger-reviewing-then-complete"),
)


def told() -> tuple[Event, ...]:
    """What several stories of one worker give, each played on its own."""
    return tuple(event for name in STORIES for event in played(name))


def played(name: str) -> tuple[Event, ...]:
    player, scene = Player(WORKER), Scene()
    for step in sequence(name).steps:
        scene.put(step)
        if isinstance(scene.runtime, Runtime):
            player.look(scene.runtime, scene.ledger)
    return player.events


def lines() -> bytes:
    return missing_lines(b"", [encode(event) for event in told()], lambda *_: None).data


def episode() -> bytes:
    entries = [episode_entry(event).encode() for event in told()]
    return missing_entries(b"", entries, episode_header(WORKER, DAY).encode(), True).data


@pytest.mark.parametrize(("name", "data"), [("events.jsonl", lines()), ("episode.md", episode())])
def test_golden(name: str, data: bytes) -> None:
    path = HERE / name
    if os.environ.get("SWARMMEMD_GOLDEN") == "write":
        path.write_bytes(data)
    assert path.read_bytes() == data


def test_the_golden_lines_are_read_as_the_events_that_they_were_made_of() -> None:
    data = (HERE / "events.jsonl").read_bytes()
    assert tuple(decode(line, WORKER) for line in data.splitlines()) == told()


def test_the_stories_hold_all_that_a_control_plane_and_a_ledger_can_tell() -> None:
    found = {event.type.value for event in told()}
    assert found == {"mission-start", "dispatch", "checkpoint", "blocked", "complete", "note"}
    assert {utc_day(event.at) for event in told()} == {DAY}
