"""Handoffs beside a real daemon: who replaces whom, what is refused, what is rendered, and who may overwrite what.

docs/contracts.md, "Handoffs".
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.daemon import Daemon, Home, answered, dispatched, put_file, running, until

_CASES = Path(__file__).parent.parent / "cases" / "handoffs"
_WORKER = "builder-1"
_MISSION = "mission-mo4d0020-aaaaaa"
_FILES: dict[str, Any] = yaml.safe_load((_CASES / "expected.yaml").read_text())["files"]
_MARK = b"<!-- rendered by swarmmemd"

Between = Callable[[Daemon], Daemon]


class Places:
    """Where the handoffs of one worker's mission stand."""

    def __init__(self, home: Home, mission: str) -> None:
        folder = home.profiles / _WORKER / "memory" / "handoffs"
        self.latest = folder / "latest.md"
        self.local = folder / f"{mission}.md"
        self.mission = home.mission(_WORKER, mission) / "handoff.md"
        self.shared = home.shared / "handoffs" / "swarm" / f"{_WORKER}-latest.md"


def _stands(path: Path, data: bytes) -> None:
    until(lambda: path.exists() and path.read_bytes() == data, f"the expected bytes in {path.name}")


def _own(text: str, mission: str = _MISSION) -> bytes:
    return f"# Handoff — {_WORKER} — {mission}\n\n## Next exact action\n\n{text}\n".encode()


def _generated(text: str, mission: str = _MISSION) -> bytes:
    return f"# Handoff — {_WORKER}\n\nMission: {mission}\n\n## Next action\n\n{text}\n".encode()


def _written(home: Home) -> list[dict[str, Any]]:
    return [event for event in home.events() if event["type"] == "handoff-written"]


def _troubles(home: Home) -> str:
    found = json.loads(home.command("status", "--json").stdout)
    return "\n".join(f"{one['what']}: {one['reason']}" for one in found["troubles"])


def _history(home: Home) -> list[dict[str, Any]]:
    done = home.command("handoff", "history", _WORKER, "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


# The order in which they come


def _on(daemon: Daemon) -> Daemon:
    return daemon


def _killed(daemon: Daemon) -> Daemon:
    daemon.kill()
    return Daemon(daemon.home).ready()


def _journal_lost(daemon: Daemon) -> Daemon:
    daemon.kill()
    daemon.home.drop_journal()
    return Daemon(daemon.home).ready()


@pytest.mark.parametrize("between", [_on, _killed, _journal_lost])
@pytest.mark.parametrize("case", sorted(path.parent.name for path in _CASES.glob("ranks/*/expected.yaml")))
def test_ranks(home: Home, case: str, between: Between) -> None:
    folder = _CASES / "ranks" / case
    expected = yaml.safe_load((folder / "expected.yaml").read_text())
    mission, secret = expected["mission"], "".join(expected.get("secret", []))
    places = Places(home, mission)

    def content(name: str) -> bytes:
        if name == "(shared)":
            return places.shared.read_bytes()
        redacted, name = name.startswith("(redacted) "), name.removeprefix("(redacted) ")
        value = "[REDACTED:github-token]" if redacted else secret
        return (folder / name).read_bytes().replace(b"{secret}", value.encode())

    targets = {"runtime": home.runtime(_WORKER), "latest": places.latest, "shared": places.shared}
    daemon = Daemon(home).ready()
    try:
        for step in expected["steps"]:
            put_file(targets[step["at"]], content(step["put"]))
            home.looked_at()
            due = [event for event in expected["events"] if event["step"] <= step["step"]]
            _has_come(home, mission, due, exact=between is not _journal_lost)
            for place, name in expected["after"].get(step["step"], {}).items():
                _stands(getattr(places, place), content(name))
            if step != expected["steps"][-1]:
                daemon = between(daemon)
        home.looked_at()
        _has_come(home, mission, expected["events"], exact=True)
        for place, name in expected["after"][expected["steps"][-1]["step"]].items():
            _stands(getattr(places, place), content(name))
    finally:
        assert daemon.stop() == 0


def _has_come(home: Home, mission: str, due: list[dict[str, Any]], exact: bool) -> None:
    wanted = [(event["type"], event.get("by")) for event in due]
    path = home.mission(_WORKER, mission) / "events.jsonl"

    def told() -> list[tuple[str, str | None]]:
        lines = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        ids = [line["id"] for line in lines]
        assert len(ids) == len(set(ids)), ids
        return [(line["type"], line["event"].get("by")) for line in lines]

    until(lambda: len(told()) >= len(wanted), f"{wanted}")
    assert told() == wanted


# What can be used


@pytest.mark.parametrize("name", sorted(_FILES))
def test_each_file_as_latest(home: Home, name: str) -> None:
    wanted, data = _FILES[name], (_CASES / name).read_bytes()
    mission = wanted["mission"] or _MISSION
    usable = wanted.get("usable", wanted.get("next") is not None)
    home.write(_WORKER, dispatched(_MISSION))
    places = Places(home, mission)
    with running(home):
        put_file(places.latest, data)
        if usable:
            for path in (places.local, places.mission, places.shared):
                _stands(path, data)
            by = "control-plane" if wanted["template"] == "generated" else "worker"
            told = [(event["missionId"], event["event"]["by"]) for event in _written(home)]
            assert told == [(mission, by)]
            assert "builder-1/handoffs" not in _troubles(home)
        else:
            until(lambda: "memory/handoffs/latest.md" in _troubles(home), "status to name the file")
            assert not _written(home)
            assert not places.local.exists()
            assert not places.mission.exists()
            assert not places.shared.exists()


def test_a_handoff_checkpoint_without_a_file_renders_one(home: Home) -> None:
    places = Places(home, _MISSION)
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        home.looked_at()
        home.write(_WORKER, answered(_MISSION, "Half is done", "HANDOFF"))
        for path in (places.local, places.mission, places.shared):
            until(lambda path=path: path.exists() and _MARK in path.read_bytes(), "a rendered handoff")  # type: ignore[misc]
        rendered = places.local.read_bytes()
        home.looked_at()
        assert not _written(home)
        shown = home.command("handoff", "show", _WORKER)
        assert "Half is done" in shown.stdout
        own = _own("Paint the other half")
        put_file(places.latest, own)
        for path in (places.local, places.mission, places.shared):
            _stands(path, own)
        assert [event["event"]["by"] for event in _written(home)] == ["worker"]
        assert home.command("handoff", "show", _WORKER).stdout.encode() == own
        assert [one["by"] for one in _history(home)] == ["daemon", "worker"]
        version = _history(home)[0]["sha256"][:12]
        assert home.command("handoff", "show", _WORKER, "--version", version).stdout.encode() == rendered


def test_the_control_plane_overwrites_the_shared_copy_again_and_again(home: Home) -> None:
    places, own = Places(home, _MISSION), _own("Paint the gate")
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        home.looked_at()
        put_file(places.latest, own)
        _stands(places.shared, own)
        theirs = [_generated(f"Theirs {number}") for number in range(6)]
        put_file(places.shared, theirs[0])
        until(lambda: len(_written(home)) == 2, "the first overwriting to be seen")
        _stands(places.shared, own)
        for number in range(1, 6):
            put_file(places.shared, theirs[number])
            home.write(_WORKER, answered(_MISSION, f"Board {number}", "IN_PROGRESS"))
            until(lambda number=number: len(_written(home)) == 2 + number, f"version {number}")  # type: ignore[misc]
        until(lambda: "overwritten by control-plane" in _troubles(home), "status to say who overwrites it")
        before = places.shared.stat()
        home.looked_at()
        home.looked_at()
        after = places.shared.stat()
        assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
        assert places.shared.read_bytes() == theirs[5]
        assert places.local.read_bytes() == own
        assert places.mission.read_bytes() == own
        assert [one["by"] for one in _history(home)] == ["worker", *["control-plane"] * 6]
        assert home.command("handoff", "show", _WORKER).stdout.encode() == own


def test_a_handoff_in_session_snapshots(home: Home) -> None:
    places, own = Places(home, _MISSION), _own("Go on")
    home.write(_WORKER, dispatched(_MISSION))
    with running(home):
        put_file(home.profiles / _WORKER / "memory" / "session-snapshots" / "latest.md", own)
        for path in (places.local, places.mission, places.shared):
            _stands(path, own)
        assert len(_written(home)) == 1


def test_a_folder_made_together_with_its_file_is_seen(home: Home) -> None:
    places, own = Places(home, _MISSION), _own("Go on")
    with running(home, "--sweep-full-s", "3600", "--sweep-directories-s", "3600"):
        home.write(_WORKER, dispatched(_MISSION))
        until(lambda: (home.mission(_WORKER, _MISSION) / "events.jsonl").exists(), "the mission's files")
        places.latest.parent.mkdir()
        places.latest.write_bytes(own)
        for path in (places.local, places.mission, places.shared):
            _stands(path, own)


def test_an_id_that_is_none_is_wrong_usage(home: Home) -> None:
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        home.looked_at()
    for command in (["handoff", "show", _WORKER], ["handoff", "history", _WORKER], ["tail"]):
        for mission in ("../../x", "", "m" * 300):
            done = home.command(*command, "--mission", mission)
            assert (done.returncode, done.stdout) == (2, ""), done
            assert "is no mission id" in done.stderr
    assert home.command("tail", "--worker", "../x").returncode == 2
