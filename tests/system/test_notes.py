"""Notes, handoffs and lessons from outside: through the inbox, each once, and nothing lost when somebody is killed."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from swarmmemd.inbox import leave, new_id
from swarmmemd.model import EventType, WorkerId
from swarmmemd.observation import Post
from tests.support.daemon import Home, answered, dispatched, running, until

_WORKER, _MISSION = "builder-1", "mission-1"
_HANDOFF = """# Handoff — builder-1 — mission-1

Generated: 2026-05-04T09:00:00.000Z

## Current state

Half of the fence is painted.

## Next exact action

Paint the other half.
"""


@pytest.fixture
def swarm(home: Home) -> Home:
    """One worker that was dispatched."""
    home.write(_WORKER, dispatched(_MISSION))
    return home


def _notes(home: Home) -> list[str]:
    return [event["summary"] for event in home.events() if event["type"] == "note"]


def _inbox(home: Home) -> list[str]:
    return [path.name for path in (home.state / "inbox").glob("*.post")]


def test_a_note_is_recorded_on_the_current_mission(swarm: Home) -> None:
    with running(swarm):
        swarm.looked_at()
        done = swarm.command("note", "--worker", _WORKER, "--wait", "The key expires in May")
        assert done.returncode == 0, done.stderr
        event = swarm.events()[-1]
        assert done.stdout == f"recorded as {event['id']}\n"
        assert (event["type"], event["missionId"], event["summary"]) == (
            "note",
            _MISSION,
            "The key expires in May",
        )
        assert swarm.status_of(_WORKER, _MISSION) == "executing"
        assert _inbox(swarm) == []


def test_it_waits_for_the_next_daemon_and_counts_once(swarm: Home) -> None:
    left = swarm.command("note", "--worker", _WORKER, "First")
    assert left.stdout.endswith("no daemon runs, the next one records it\n")
    (name,) = _inbox(swarm)
    data = (swarm.state / "inbox" / name).read_bytes()
    assert swarm.command("once").returncode == 0
    assert _notes(swarm) == ["First"]
    assert _inbox(swarm) == []
    # As after a crash between the commit and the removal.
    (swarm.state / "inbox" / name).write_bytes(data)
    assert swarm.command("once").returncode == 0
    assert _notes(swarm) == ["First"]
    assert _inbox(swarm) == []


def test_killed_right_after_recorded_nothing_is_lost(swarm: Home) -> None:
    for number in range(5):
        with running(swarm) as daemon:
            done = swarm.command("note", "--worker", _WORKER, "--wait", f"Note {number}")
            daemon.kill()
        assert done.stdout.startswith("recorded as ev_")
    with running(swarm):
        swarm.looked_at()
        assert _notes(swarm) == [f"Note {number}" for number in range(5)]
        lines = (swarm.mission(_WORKER, _MISSION) / "events.jsonl").read_text().splitlines()
        assert [json.loads(line)["summary"] for line in lines if '"note"' in line] == _notes(swarm)


def test_a_posted_checkpoint_is_the_one_that_the_worker_gave(swarm: Home) -> None:
    with running(swarm):
        swarm.looked_at()
        raw = answered(_MISSION, "The fence is painted")
        done = swarm.command(
            "note", "--worker", _WORKER, "--type", "checkpoint", "--wait", str(raw["checkpointRaw"])
        )
        assert done.returncode == 0, done.stderr
        swarm.write(_WORKER, raw)
        swarm.looked_at()
        states = [event["event"]["state"] for event in swarm.events() if event["type"] == "checkpoint"]
        assert states == ["DONE"]
        assert swarm.status_of(_WORKER, _MISSION) == "complete"


def test_a_handoff_is_mirrored_as_the_workers_own(swarm: Home, tmp_path: Path) -> None:
    file = tmp_path / "handoff.md"
    file.write_text(_HANDOFF)
    with running(swarm):
        swarm.looked_at()
        done = swarm.command("handoff", "write", _WORKER, "--wait", str(file))
        assert done.stdout.startswith("recorded as ev_"), done.stderr
        places = (
            swarm.profiles / _WORKER / "memory" / "handoffs" / f"{_MISSION}.md",
            swarm.mission(_WORKER, _MISSION) / "handoff.md",
            swarm.shared / "handoffs" / "swarm" / f"{_WORKER}-latest.md",
        )
        until(lambda: all(place.exists() for place in places), "the mirrors")
        assert {place.read_text() for place in places} == {_HANDOFF}
        assert swarm.types(_WORKER).count("handoff-written") == 1
        half = swarm.command("handoff", "write", _WORKER, "--wait", "-")
        assert half.returncode == 2  # nothing on stdin


def test_what_cannot_be_taken_is_kept_with_its_reason(swarm: Home, tmp_path: Path) -> None:
    file = tmp_path / "handoff.md"
    file.write_text(_HANDOFF.replace("builder-1", "scout-9"))
    with running(swarm):
        swarm.looked_at()
        done = swarm.command("handoff", "write", _WORKER, "--wait", str(file))
        assert done.returncode == 74
        assert "scout-9" in done.stderr
        inbox = swarm.state / "inbox"
        (inbox / "torn.post").write_bytes(b'{"id": "tor')
        leave(swarm.state, Post(id=new_id(), at=1, worker=WorkerId("nobody"), type=EventType.NOTE, text="x"))
        until(lambda: len(list((inbox / "rejected").glob("*.reason"))) == 3, "the rejected ones")
        until(lambda: _inbox(swarm) == [], "the inbox to be empty")
        assert _notes(swarm) == []
    assert swarm.command("note", "--worker", "nobody", "x").returncode == 2
    assert swarm.command("note", "--worker", _WORKER, " ").returncode == 2
    assert swarm.command("note", "--worker", _WORKER, "--type", "gossip", "x").returncode == 2


def test_a_long_note_is_cut_and_that_is_said_and_a_longer_one_is_refused(swarm: Home) -> None:
    def note(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        line = swarm.arguments("note", "--worker", _WORKER, *arguments, "-")
        return subprocess.run(
            line, env=swarm.environment(), input=text, capture_output=True, text=True, check=False, timeout=60
        )

    assert note("short").stderr == ""
    long = note("Long\n" + "word " * 20_000)
    assert (long.returncode, long.stdout[:8]) == (0, "left as ")
    assert "its end is cut" in long.stderr
    refused = note("x" * (5 << 20))
    assert refused.returncode == 2
    assert "longer than 1048576 characters" in refused.stderr
    assert len(_inbox(swarm)) == 2
    assert swarm.command("once").returncode == 0
    assert _notes(swarm) == ["short", "Long"]
    assert "[cut, 100005 characters]" in swarm.events()[-1]["event"]["text"]


@pytest.mark.parametrize("line", [["promote", "ev_none", "--wait"], ["once"], ["archive", "mission-1"]])
def test_who_asked_a_daemon_that_was_killed_is_told_so(swarm: Home, line: list[str]) -> None:
    with running(swarm) as daemon:
        daemon.signal(signal.SIGSTOP)  # it holds the locks, and answers nobody
        asking = subprocess.Popen(
            swarm.arguments(*line), env=swarm.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(lambda: list((swarm.state / "inbox").glob("*.request")), "the request")
        daemon.kill()
        out, err = asking.communicate(timeout=20)
    assert (asking.returncode, out) == (69, b"")
    assert b"ended before it answered" in err
    assert not list((swarm.state / "inbox").glob("*.request"))


@pytest.mark.parametrize("beside", [False, True])
def test_a_lesson_is_promoted_once_and_touches_nothing_else(swarm: Home, beside: bool) -> None:
    memory = swarm.profiles / _WORKER / "memory" / "MEMORY.md"
    memory.parent.mkdir(exist_ok=True)
    memory.write_text("# Memory\n\nMine.\n\n## Lessons learned\n\n- Mine too\n\n## Last\n\nmine\n")
    assert swarm.command("once").returncode == 0
    event = swarm.events()[-1]["id"]
    lesson = ("promote", event, "--text", "Paint  when\nit is dry")

    def promoted() -> None:
        assert swarm.command(*lesson).stdout == "promoted\n"
        assert swarm.command(*lesson).stdout == "it stands there already\n"
        assert swarm.command("promote", "ev_none").returncode == 1

    if beside:
        with running(swarm):
            promoted()
    else:
        promoted()
    assert memory.read_text() == (
        "# Memory\n\nMine.\n\n## Lessons learned\n\n- Mine too\n"
        f"- Paint when it is dry ({event})\n\n## Last\n\nmine\n"
    )
