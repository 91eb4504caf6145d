"""What broke the daemon once, from the outside: each as it was found."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swarmmemd.instance import is_running
from tests.support.daemon import Daemon, Home, dispatched, until

_MISSION = "mission-1"
_SHOWN = ["mission-start", "dispatch"]


@contextmanager
def _running(home: Home) -> Iterator[Daemon]:
    daemon = Daemon(home).ready()
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0


def _healthy(home: Home) -> None:
    home.write("good", dispatched(_MISSION))
    home.looked_at()
    assert home.types("good") == _SHOWN


def _link(memory: Path) -> None:
    memory.symlink_to("/")


def _file(memory: Path) -> None:
    memory.write_text("no folder")


def _events_folder(memory: Path) -> None:
    (memory / "missions" / _MISSION / "events.jsonl").mkdir(parents=True)


@pytest.mark.parametrize("plant", [_link, _file, _events_folder])
def test_one_odd_memory_folder_stops_nobody_else(home: Home, plant: Any) -> None:
    home.write("odd", dispatched(_MISSION))
    plant(home.profiles / "odd" / "memory")
    with _running(home) as daemon:
        _healthy(home)
        assert not [line for line in daemon.logged() if line.get("what") == "journal"]


def test_a_profile_that_becomes_a_file_while_events_wait_ends_nothing(home: Home) -> None:
    home.write("odd", dispatched(_MISSION))
    _file(home.profiles / "odd" / "memory")
    with _running(home):
        _healthy(home)
        (home.profiles / "odd").rename(home.root / "away")
        _file(home.profiles / "odd")
        home.looked_at()
    with _running(home):
        home.looked_at()


def test_a_bad_tag_in_the_roster_ends_nothing(home: Home) -> None:
    (home.workspace / "swarm.yaml").write_text("workers: !!bool maybe\n")
    with _running(home):
        _healthy(home)


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-14:00", "0999-01-01T00:00:00Z"])
def test_a_foreign_line_of_an_impossible_time_ends_nothing(home: Home, at: str) -> None:
    home.write("good", dispatched(_MISSION))
    folder = home.profiles / "good" / "memory" / "missions" / _MISSION
    folder.mkdir(parents=True)
    event = {"at": at, "type": "checkpoint", "workerId": "good", "missionId": _MISSION, "assignmentId": None}
    line = {**event, "summary": "All is done", "event": {"state": "DONE"}}
    (folder / "events.jsonl").write_text(json.dumps(line) + "\n")
    with _running(home):
        home.looked_at()
        assert home.types("good") == _SHOWN


def test_a_request_that_cannot_be_understood_is_set_aside(home: Home) -> None:
    inbox = home.state / "inbox"
    inbox.mkdir(parents=True, mode=0o700)
    (inbox / ("x" * 240 + ".request")).write_text("{")
    with _running(home):
        _healthy(home)
        until(lambda: not list(inbox.glob("*.request")), "the request to be set aside")
    assert len(list((inbox / "rejected").iterdir())) == 2


def test_once_beside_a_daemon_says_what_could_not_be_read(home: Home) -> None:
    home.write("bad", b"{")
    with _running(home):
        found = home.command("once")
    assert (found.returncode, "bad/runtime.json" in found.stderr) == (1, True)


def test_another_folder_in_the_place_of_the_profiles_root_is_locked_too(home: Home) -> None:
    with _running(home):
        home.profiles.rename(home.root / "old")
        home.profiles.mkdir(parents=True)
        _healthy(home)
        other = home.command("once", "--state-dir", str(home.root / "other"))
    assert other.returncode == 75


def test_a_profiles_root_that_is_a_file_is_waited_for(home: Home) -> None:
    home.profiles.rmdir()
    with _running(home):
        _file(home.profiles)
        home.looked_at()
        home.profiles.unlink()
        home.profiles.mkdir()
        _healthy(home)


def test_a_refused_state_directory_is_not_made(home: Home) -> None:
    inside = home.profiles / "inside"
    assert home.command("run", "--state-dir", str(inside)).returncode == 78
    assert not inside.exists()


def test_a_killed_replace_leaves_nothing_for_ever(home: Home) -> None:
    home.write("good", dispatched(_MISSION))
    assert Daemon(home, plant=["--at", "rename:SUMMARY.md"]).ended() == -9
    with _running(home):
        home.looked_at()
    assert not list(home.profiles.rglob(".swarmmemd-tmp-*"))


def test_asking_whether_a_daemon_runs_keeps_none_from_starting(home: Home) -> None:
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            is_running(home.state)

    home.state.mkdir(parents=True, exist_ok=True)
    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for _ in range(5):
            Daemon(home, forked=True).ready().kill()
    finally:
        ended.set()
        asker.join()


def test_memory_is_read_back_though_runtime_json_cannot_be_read(home: Home) -> None:
    home.write("good", dispatched(_MISSION))
    assert home.command("once").returncode == 0
    home.drop_journal()
    home.write("good", b"")
    with _running(home):
        home.looked_at()
        assert home.types("good") == _SHOWN


@pytest.mark.parametrize(("command", "code"), [("config", 74), ("status", 74)])
def test_a_full_output_is_no_bug(home: Home, command: str, code: int) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            home.arguments(command), env=home.environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (found.returncode, b"Traceback" in found.stderr) == (code, False)


def test_a_closed_output_is_no_bug(home: Home) -> None:
    words = " ".join(home.arguments("config"))
    found = subprocess.run(
        f"{words} >&-", shell=True, env=home.environment(), stderr=subprocess.PIPE, check=False
    )
    assert (found.returncode, found.stderr) == (0, b"")


def test_a_pipe_that_is_closed_early_is_no_error(home: Home) -> None:
    for number in range(40):
        home.write(f"w{number}", dispatched(_MISSION, task="long " * 1000))
    assert home.command("once").returncode == 0
    reading, writing = os.pipe()
    tail = subprocess.Popen(
        home.arguments("tail", "--json", "--after", "0"),
        env=home.environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    os.read(reading, 100)
    os.close(reading)
    _, said = tail.communicate()
    assert (tail.returncode, said) == (0, b"")
