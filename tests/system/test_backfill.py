"""What happened before the swarm was watched: recorded once, on its missions, and what is current stays current."""

import json
from typing import Any

import pytest

from tests.support.chats import BUILD
from tests.support.daemon import Home, put_file, running

_WORKER = "builder-1"
_TASKS = {"mission-old-1": "Oil the hinges of the gate", "mission-old-2": "Count the fence posts"}


def _assignment(number: int, task: str, **fields: object) -> dict[str, object]:
    return {
        "id": f"assign-{number}",
        "workerId": _WORKER,
        "task": task,
        "state": "done",
        "dispatchedAt": BUILD.ms(number * 60),
        "completedAt": BUILD.ms(number * 60 + 10),
        **fields,
    }


def _mission(number: int, id: str, task: str, state: str, **fields: object) -> dict[str, object]:
    return {
        "id": id,
        "title": f"Title of {id}",
        "state": state,
        "createdAt": BUILD.ms(number * 60 - 1),
        "updatedAt": BUILD.ms(number * 60 + 11),
        "assignments": [_assignment(number, task, **fields)],
    }


@pytest.fixture
def past(home: Home) -> Home:
    """Two missions that are over (the answer to the second stands in the ledger only), and one that runs."""
    said = {"stateLabel": "DONE", "result": "There are 81 posts", "raw": None}
    missions = [
        _mission(1, "mission-old-1", _TASKS["mission-old-1"], "complete"),
        _mission(2, "mission-old-2", _TASKS["mission-old-2"], "complete", checkpoint=said),
        _mission(9, "mission-now", "Paint the fence", "executing"),
    ]
    put_file(home.ledger, json.dumps({"version": 1, "missions": missions}).encode())
    with BUILD.Profile(home.profiles / _WORKER) as profile:
        profile.session("main")
        profile.say("user", BUILD.prompt(_TASKS["mission-old-1"]), 60.1)
        profile.say("assistant", BUILD.block("IN_PROGRESS", "Two of four hinges are oiled"), 63)
        profile.say("assistant", BUILD.block("DONE", "The hinges are oiled"), 70)
        profile.dispatch("Paint the fence", "mission-now", "assign-9", at=540)
        profile.say("user", BUILD.prompt("Paint the fence"), 540.1)
        profile.say("assistant", BUILD.block("IN_PROGRESS", "The first coat is on"), 545)
    return home


def _of(home: Home, mission: str) -> list[str]:
    def shown(event: dict[str, Any]) -> str:
        state = (event.get("event") or {}).get("state")
        return f"{event['type']} {state}" if state else event["type"]

    return [shown(event) for event in home.events() if event["missionId"] == mission]


def _is_whole(home: Home) -> None:
    ended = ["checkpoint DONE", "complete"]
    assert _of(home, "mission-old-1") == ["mission-start", "dispatch", "checkpoint IN_PROGRESS", *ended]
    assert _of(home, "mission-old-2") == ["mission-start", "dispatch", *ended]
    assert _of(home, "mission-now") == ["mission-start", "dispatch", "checkpoint IN_PROGRESS"]
    assert home.status_of(_WORKER, "mission-old-1") == "complete"
    assert home.status_of(_WORKER, "mission-now") == "executing"


def test_the_past_is_recorded_once(past: Home) -> None:
    assert past.command("once").returncode == 0
    assert {event["missionId"] for event in past.events()} == {"mission-now"}
    seen = past.command("backfill", "--dry-run")
    assert seen.stdout == f"{_WORKER}: 9 events of the past found\n"
    assert len(past.events()) == 3
    for count in (9, 0):
        done = past.command("backfill")
        assert (done.returncode, done.stdout) == (0, f"{_WORKER}: {count} events of the past recorded\n")
        _is_whole(past)


def test_a_running_daemon_does_it(past: Home) -> None:
    with running(past):
        past.looked_at()
        done = past.command("backfill", "--worker", _WORKER)
        assert done.stdout == f"{_WORKER}: 9 events of the past recorded\n", done.stderr
        # What is current stays current.
        with BUILD.Profile(past.profiles / _WORKER) as profile:
            profile.say("assistant", BUILD.block("DONE", "The fence is painted"), 560)
        past.looked_at()
        assert _of(past, "mission-now")[-1] == "checkpoint DONE"


def test_since_leaves_out_what_was_before(past: Home) -> None:
    assert past.command("once").returncode == 0
    done = past.command("backfill", "--since", BUILD.iso(100))
    assert done.stdout == f"{_WORKER}: 4 events of the past recorded\n", done.stderr
    assert _of(past, "mission-old-1") == []


def test_wrong_use_is_refused(past: Home) -> None:
    assert past.command("backfill", "--since", "yesterday").returncode == 2
    assert past.command("backfill", "--worker", "../x").returncode == 2
    assert past.command("backfill", "--worker", "nobody").returncode == 2
