"""The scenarios of tests/cases/statedb: worker profiles with a chat database, step by step."""

import importlib.util
import sys
from functools import cached_property
from types import ModuleType
from typing import Any

import yaml

from tests.support.cases import CASES
from tests.support.daemon import Home, until

_FOLDER = CASES / "statedb"


def _module(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, _FOLDER / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _expected(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_FOLDER / file).read_text("utf-8"))["scenarios"]
    return found


BUILD = _module("chat_scenarios", "build.py")
MORE = _module("more_chat_scenarios", "more.py")
SCENARIOS: dict[str, list[Any]] = {**BUILD.SCENARIOS, **MORE.SCENARIOS}
EXPECTED: dict[str, Any] = {**_expected("expected.yaml"), **_expected("more.yaml")}


class Scenario:
    """One scenario beside others in one home: a worker of its own."""

    def __init__(self, home: Home, name: str, schema: int, journal: str) -> None:
        self.home, self.name = home, name
        # The worker's own handoff names it.
        self.worker = BUILD.WORKER if name == "handoff-file" else name
        self.steps = SCENARIOS[name]
        self.expected = EXPECTED[name]
        self._path, self._schema, self._journal = home.profiles / self.worker, schema, journal

    @cached_property
    def profile(self) -> Any:
        """The writer's side; it is there from the first use on."""
        return BUILD.Profile(self._path, self._schema, self._journal)

    def play(self, number: int) -> None:
        """Step `number`, from 1; nothing where there are not so many."""
        if number <= len(self.steps):
            self.steps[number - 1](self.profile)

    def close(self) -> None:
        """As the agent closes."""
        self.profile.close()

    def due(self, number: int) -> list[dict[str, Any]]:
        """The events that are there after step `number`."""
        return [event for event in self.expected["events"] if event["step"] <= number]

    def differs(self, number: int, found: list[dict[str, Any]]) -> list[str]:
        """What is not as it must be after step `number`."""
        due = self.due(number)
        if len(found) != len(due):
            return [f"{self.name}: {[event['type'] for event in found]} for {[want['type'] for want in due]}"]
        differing = (_same(event, want) for event, want in zip(found, due, strict=True))
        return [f"{self.name}: {what}" for what in differing if what is not None]

    def ends_well(self) -> None:
        """Compares the Status of each mission."""
        for mission, status in self.expected["status"].items():
            assert self.home.status_of(self.worker, mission) == status, (self.name, mission)


def _same(event: dict[str, Any], want: dict[str, Any]) -> str | None:
    """What differs; None for nothing. Keys that are absent are not compared."""
    detail = event.get("event") or {}
    for key in ("type", "missionId", "assignmentId"):
        if key in want and event[key] != want[key]:
            return f"{key}: {event[key]} for {want[key]}"
    for key in ("state", "origin"):
        if key in want and detail.get(key) != want[key]:
            return f"{key}: {detail.get(key)} for {want[key]}"
    if want.get("summary", "").casefold() not in event["summary"].casefold():
        return f"summary: {event['summary']} for {want['summary']}"
    return f"at: {event['at']}" if not event["at"].startswith(want.get("day", "")) else None


def scenarios(home: Home, schema: int, journal: str) -> list[Scenario]:
    """All scenarios in one home."""
    return [Scenario(home, name, schema, journal) for name in SCENARIOS]


def all_there(home: Home, played: list[Scenario], number: int) -> None:
    """Waits until each scenario has its events of the steps up to `number`, and looks that there are no others."""

    def differing() -> list[str]:
        found: dict[str, list[dict[str, Any]]] = {one.worker: [] for one in played}
        for event in home.events():
            found[event["workerId"]].append(event)
        return [text for one in played for text in one.differs(number, found[one.worker])]

    try:
        until(lambda: not differing(), f"step {number}")
    except AssertionError:
        raise AssertionError(f"after step {number}: {differing()}") from None
