"""Every case of `runtime`, `runtime-sequences`, `ledger` and `roster` by pure functions alone.

tests/cases/README.md says how they are compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from swarmmemd.derive.classify import blocks, classify
from swarmmemd.identity import fold
from swarmmemd.model import Event, MissionId, Unreadable, WorkerId
from swarmmemd.observation import Ledger, Runtime
from swarmmemd.record import encode
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.roster import parse_roster
from swarmmemd.sources.runtime import parse_runtime
from tests.support.cases import (
    START,
    Player,
    Scene,
    Sequence,
    case_bytes,
    expected,
    sequence,
    sequence_names,
)

RUNTIME: dict[str, dict[str, Any]] = expected("runtime")["files"]
WORKER = WorkerId(expected("runtime")["worker"])
LEDGER: dict[str, dict[str, Any]] = expected("ledger")["files"]
ROSTER: dict[str, dict[str, Any]] = expected("roster")["files"]
READABLE = [name for name, answer in RUNTIME.items() if answer["readable"]]


def read(name: str) -> Runtime:
    found = parse_runtime(case_bytes("runtime", name), START)
    assert isinstance(found, Runtime)
    return found


# runtime


@pytest.mark.parametrize("name", RUNTIME)
def test_a_snapshot_is_believed_or_not(name: str) -> None:
    believed = isinstance(parse_runtime(case_bytes("runtime", name), START), Runtime)
    assert believed is RUNTIME[name]["readable"]


@pytest.mark.parametrize("name", READABLE)
def test_a_snapshot_shows_what_the_case_says(name: str) -> None:
    view, answer = read(name), RUNTIME[name]
    assert classify(view, WORKER).value == answer["kind"]
    assert (view.mission, view.assignment) == (answer["missionId"], answer["assignmentId"])


@pytest.mark.parametrize(
    "name", [n for n in READABLE if "state" in RUNTIME[n] and RUNTIME[n]["kind"] == "checkpoint"]
)
def test_the_last_block_of_a_kept_message_has_the_state(name: str) -> None:
    assert blocks(read(name), WORKER)[-1].state.value == RUNTIME[name]["state"]


@pytest.mark.parametrize("name", [name for name, answer in RUNTIME.items() if "firstSight" in answer])
def test_events_at_first_sight(name: str) -> None:
    player = Player(WORKER)
    player.look(parse_runtime(case_bytes("runtime", name), START))
    assert [event.type.value for event in player.events] == RUNTIME[name]["firstSight"]
    assert states(player) == ([RUNTIME[name]["state"]] if "state" in RUNTIME[name] else [])


def states(player: Player) -> list[str]:
    own = (event for event in player.events if event.detail.get("origin") == "runtime.json")
    return [event.detail["state"] for event in own]


@pytest.mark.parametrize("name", READABLE)
def test_a_second_look_at_a_snapshot_is_no_news(name: str) -> None:
    player = Player(WORKER)
    player.look(read(name))
    assert player.look(read(name)) == ()


@pytest.mark.parametrize("name", [name for name in READABLE if name != "no-mission.json"])
def test_a_snapshot_met_again_without_a_journal_is_no_news(name: str) -> None:
    player = Player(WORKER)
    player.look(read(name))
    assert player.lose_the_journal() == player.events
    assert player.look(read(name)) == ()


def test_an_event_without_a_mission_comes_again_as_the_same_one_when_the_journal_is_lost() -> None:
    player = Player(WORKER)
    first = player.look(read("no-mission.json"))
    player.lose_the_journal()
    assert player.look(read("no-mission.json")) == first != ()


# runtime-sequences

Way = Callable[[Player, Scene], None]


def once(player: Player, scene: Scene) -> None:
    """The daemon looks; before the first `runtime.json` there is no worker to look at."""
    if isinstance(scene.runtime, Runtime) or player.state.look.met:
        player.look(scene.runtime, scene.ledger)


def twice(player: Player, scene: Scene) -> None:
    once(player, scene)
    before = player.events
    once(player, scene)
    assert player.events == before


def without_a_journal(player: Player, scene: Scene) -> None:
    once(player, scene)
    before = player.events
    told = player.lose_the_journal()
    assert sorted(told, key=lambda event: event.id) == sorted(before, key=lambda event: event.id)
    once(player, scene)
    assert player.events == before


WAYS: list[Way] = [once, twice, without_a_journal]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", sequence_names())
def test_a_sequence_gives_its_events(name: str, way: Way) -> None:
    story = sequence(name)
    played = play(story, way)
    answers: list[dict[str, Any]] = story.expected["events"]
    assert [event.type.value for event in played.events] == [answer["type"] for answer in answers]
    for (step, event), answer in zip(played.recorded, answers, strict=True):
        assert shown(step, event, answer) == answer
    for event in played.events:
        for id in story.expected.get("absent", ()):
            assert id.encode() not in encode(event)
    for mission, word in story.expected["status"].items():
        assert played.status(mission) == word


def play(story: Sequence, way: Way) -> Player:
    player, scene = Player(story.worker), Scene()
    after: dict[str, dict[str, str]] = story.expected.get("status_after", {})
    for step in story.steps:
        player.step = step.number
        scene.put(step)
        if not step.is_ledger:
            unreadable = step.name in story.expected.get("unreadable", ())
            assert isinstance(scene.runtime, Unreadable) is unreadable
        way(player, scene)
        for mission, word in after.get(step.number, {}).items():
            assert player.status(mission) == word, f"after {step.name}"
    return player


PLACES: dict[str, Callable[[Event], object]] = {
    "type": lambda event: event.type.value,
    "missionId": lambda event: event.mission,
    "assignmentId": lambda event: event.assignment,
    "state": lambda event: event.detail.get("state"),
    "origin": lambda event: event.detail.get("origin"),
    "by": lambda event: event.detail.get("by"),
    "result": lambda event: folded(event.detail.get("result")),
}


def folded(text: str | None) -> str | None:
    return text if text is None else fold(text)


def shown(step: str, event: Event, answer: Mapping[str, Any]) -> dict[str, object]:
    """The event as far as the answer speaks of it. A summary is given by a part of it, in any case."""
    found = {key: PLACES[key](event) for key in answer if key in PLACES}
    if "summary" in answer:
        part = str(answer["summary"])
        found["summary"] = part if part.lower() in event.summary.lower() else event.summary
    return {"step": step, **found}


@pytest.mark.parametrize("name", sequence_names())
def test_a_ledger_alone_gives_nothing(name: str) -> None:
    player, scene = Player(sequence(name).worker), Scene()
    for step in sequence(name).steps:
        if not step.is_ledger:
            break
        scene.put(step)
        once(player, scene)
    assert player.events == ()


# ledger and roster


@pytest.mark.parametrize("name", LEDGER)
def test_a_ledger_holds_the_missions_of_its_case(name: str) -> None:
    found = parse_ledger(case_bytes("ledger", name), START)
    if not LEDGER[name]["readable"]:
        assert isinstance(found, Unreadable)
        return
    assert isinstance(found, Ledger)
    missions = {
        id: {
            "state": mission.state.value,
            "title": mission.title,
            "workers": list(dict.fromkeys(assignment.worker for assignment in mission.assignments)),
        }
        for id, mission in found.missions.items()
    }
    assert missions == LEDGER[name]["missions"]
    assert list(missions) == list(LEDGER[name]["missions"])


@pytest.mark.parametrize("name", [name for name in LEDGER if LEDGER[name]["readable"]])
def test_a_ledger_finds_the_missions_of_each_worker(name: str) -> None:
    found = parse_ledger(case_bytes("ledger", name), START)
    assert isinstance(found, Ledger)
    named: dict[str, list[str]] = {}
    for mission, answer in LEDGER[name]["missions"].items():
        for worker in dict.fromkeys(answer["workers"]):
            named.setdefault(worker, []).append(mission)
    assert {worker: [m.id for m in found.of(worker)] for worker in found.by_worker} == named
    assert found.of(WorkerId("nobody-9")) == ()
    assert all(found.missions[MissionId(id)].updated for id in LEDGER[name]["missions"])


@pytest.mark.parametrize("name", ROSTER)
def test_a_roster_holds_the_workers_of_its_case(name: str) -> None:
    found = parse_roster(case_bytes("roster", name), START)
    if not ROSTER[name]["readable"]:
        assert isinstance(found, Unreadable)
        return
    assert not isinstance(found, Unreadable)
    workers = {
        id: {"name": one.name, "role": one.role, "specialty": one.specialty, "model": one.model}
        for id, one in found.items()
    }
    assert workers == ROSTER[name]["workers"]
