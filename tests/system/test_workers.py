"""Which folders are workers, and how soon one that appears is seen."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.daemon import PATIENCE, Daemon, Home, answered, dispatched, running, until

_SOON = 2.0
"""Seconds until a new worker must be seen."""


def roster(home: Home, *workers: str) -> None:
    """Writes a roster that names the workers."""
    lines = ["version: 1", "workers:"]
    for worker in workers:
        lines += [f"  - id: {worker}", "    role: Builder"]
    (home.workspace / "swarm.yaml").write_text("\n".join(lines) + "\n")


def seen(home: Home) -> set[str]:
    """The workers that have an event."""
    return {event["workerId"] for event in home.events()}


def known(home: Home) -> list[str]:
    """The workers that the daemon tells of in its status."""
    return [worker["worker"] for worker in home.figures()["workers"]]


def retired(daemon: Daemon, worker: str) -> bool:
    """Whether the daemon has said that it watches the worker no more."""
    return any("retired" in line["event"] for line in daemon.logged(worker=worker))


def test_a_folder_renamed_in_with_its_file_is_seen(home: Home) -> None:
    aside = home.root / "aside"
    with running(home):
        for number in range(5):
            worker = f"moved-{number}"
            aside.mkdir()
            (aside / "runtime.json").write_text(json.dumps(dispatched("mission-moved")))
            aside.rename(home.profiles / worker)
            until(lambda worker=worker: worker in seen(home), f"{worker} to be seen", _SOON)  # type: ignore[misc]


def test_a_folder_that_is_made_and_filled_is_seen(home: Home) -> None:
    with running(home):
        for number in range(5):
            worker = f"made-{number}"
            (home.profiles / worker).mkdir()
            home.runtime(worker).write_text(json.dumps(dispatched("mission-made")))
            until(lambda worker=worker: worker in seen(home), f"{worker} to be seen", _SOON)  # type: ignore[misc]


def test_a_folder_that_is_filled_later_is_seen(home: Home) -> None:
    with running(home):
        (home.profiles / "late").mkdir()
        home.looked_at()
        home.runtime("late").write_text(json.dumps(dispatched("mission-late")))
        until(lambda: "late" in seen(home), "the worker to be seen", _SOON)


def test_two_hundred_at_once_are_all_seen(home: Home) -> None:
    workers = {f"many-{number:03}" for number in range(200)}
    with running(home):
        for worker in sorted(workers):
            (home.profiles / worker).mkdir()
            home.runtime(worker).write_text(json.dumps(dispatched("mission-many")))
        until(lambda: seen(home) == workers, "all to be seen", 3 * PATIENCE)
        for worker in sorted(workers):
            home.write(worker, answered("mission-many", "Painted"))
        until(lambda: home.types().count("complete") == 200, "all to be done", 3 * PATIENCE)
    assert len(home.events()) == 200 * 4


def test_a_worker_of_the_roster_needs_no_runtime_json(home: Home) -> None:
    (home.profiles / "named").mkdir()
    (home.profiles / "private").mkdir()
    roster(home, "named", "nowhere")
    mission = {"id": "mission-1", "title": "The shed", "state": "executing", "createdAt": 1_777_000_000_000}
    tasks = [
        {"id": f"assign-{worker}", "workerId": worker, "task": "Build", "state": "dispatched"}
        for worker in ("named", "private", "nowhere")
    ]
    home.ledger.write_text(json.dumps({"version": 1, "missions": [{**mission, "assignments": tasks}]}))
    with running(home):
        home.looked_at()
        assert [(e["workerId"], e["type"]) for e in home.events()] == [("named", "mission-start")]
        until(lambda: known(home) == ["named"], "the status to name it")
        home.write("named", dispatched("mission-1", "Build"))
        home.looked_at()
        assert home.types("named") == ["mission-start", "dispatch"]
    assert not (home.profiles / "nowhere").exists()
    assert not (home.profiles / "private" / "memory").exists()


def test_a_roster_that_comes_later_makes_a_worker(home: Home) -> None:
    (home.profiles / "named").mkdir()
    with running(home):
        roster(home, "named")
        home.looked_at()
        until(lambda: known(home) == ["named"], "the status to name it")


def test_include_and_exclude_narrow(home: Home) -> None:
    for worker in ("builder-1", "builder-2", "scout-1"):
        home.write(worker, dispatched("mission-1"))
    with running(home, "--workers-include", "builder-*", "--workers-exclude", "*-2"):
        home.looked_at()
        assert seen(home) == {"builder-1"}
        home.write("builder-2", answered("mission-1", "Painted"))
        home.write("scout-2", dispatched("mission-1"))
        home.looked_at()
        assert seen(home) == {"builder-1"}
    for worker in ("builder-2", "scout-1", "scout-2"):
        assert not (home.profiles / worker / "memory").exists()


@pytest.mark.parametrize("name", [".hidden", "two words", "-dash", "x" * 65, "back\\slash", "über"])
def test_a_folder_whose_name_is_no_id_is_left_alone(home: Home, name: str) -> None:
    home.write(name, dispatched("mission-1"))
    home.write("good", dispatched("mission-1"))
    with running(home):
        home.looked_at()
        assert seen(home) == {"good"}
    assert [path.name for path in (home.profiles / name).iterdir()] == ["runtime.json"]


def test_a_deleted_profile_is_retired_and_never_made_again(home: Home) -> None:
    home.write("short", dispatched("mission-1"))
    home.write("stays", dispatched("mission-1"))
    with running(home) as daemon:
        home.looked_at()
        shutil.rmtree(home.profiles / "short")
        until(lambda: retired(daemon, "short"), "the worker to be retired")
        home.write("stays", answered("mission-1", "Painted"))
        home.looked_at()
        assert home.types("stays") == ["mission-start", "dispatch", "checkpoint", "complete"]
        assert not daemon.logged(level="error")
    assert not (home.profiles / "short").exists()
    assert [path.name for path in home.profiles.iterdir()] == ["stays"]


def test_a_profile_deleted_with_events_that_wait_is_not_made_again(home: Home) -> None:
    home.write("short", dispatched("mission-1"))
    (home.profiles / "short" / "memory").mkdir()
    (home.profiles / "short" / "memory" / "episodes").symlink_to(home.root)  # nothing can be applied
    with running(home) as daemon:
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]
        shutil.rmtree(home.profiles / "short")
        until(lambda: retired(daemon, "short"), "the worker to be retired")
    with running(home):
        home.looked_at()
    assert list(home.profiles.iterdir()) == []
    assert len(home.events()) == 2
    found = json.loads(home.command("status", "--json").stdout)
    assert (found["backlog"], found["unplaced"]) == (0, 2)


def test_a_renamed_profile_is_another_worker(home: Home) -> None:
    home.write("before", dispatched("mission-1"))
    with running(home) as daemon:
        home.looked_at()
        (home.profiles / "before").rename(home.profiles / "after")
        until(lambda: retired(daemon, "before"), "the old one to be retired")
        home.write("after", answered("mission-1", "Painted"))
        home.looked_at()
        assert "checkpoint" in home.types("after")
    assert [path.name for path in home.profiles.iterdir()] == ["after"]


def test_a_profile_that_comes_back_is_a_worker_again(home: Home) -> None:
    home.write("there", dispatched("mission-1"))
    aside = home.root / "aside"
    with running(home) as daemon:
        home.looked_at()
        (home.profiles / "there").rename(aside)
        until(lambda: retired(daemon, "there"), "the worker to be retired")
        (aside / "runtime.json").write_text(json.dumps(answered("mission-1", "Painted")))
        aside.rename(home.profiles / "there")
        until(lambda: "complete" in home.types(), "the answer", _SOON)
    assert home.types() == ["mission-start", "dispatch", "checkpoint", "complete"]


@pytest.mark.parametrize("below", [".hermes", ".hermes/profiles"])
def test_a_profiles_root_that_appears_later_is_seen(home: Home, below: str) -> None:
    shutil.rmtree(home.root / below)
    with running(home):
        home.looked_at()
        home.write("first", dispatched("mission-1"))
        until(lambda: "first" in seen(home), "the worker to be seen", _SOON)
        home.write("first", answered("mission-1", "Painted"))
        until(lambda: "complete" in home.types(), "the answer", _SOON)


def test_links_to_the_root_and_to_a_profile_are_followed(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "disk"
    real.mkdir()
    home.profiles.rmdir()
    home.profiles.symlink_to(real)
    (tmp_path / "elsewhere").mkdir()
    (real / "linked").symlink_to(tmp_path / "elsewhere")
    home.write("plain", dispatched("mission-1"))
    with running(home):
        home.write("linked", dispatched("mission-1"))
        until(lambda: seen(home) == {"plain", "linked"}, "both to be seen", _SOON)
        for worker in ("plain", "linked"):
            home.write(worker, answered("mission-1", "Painted"))
        until(lambda: home.types().count("complete") == 2, "the answers", _SOON)
        home.looked_at()
    assert home.status_of("linked", "mission-1") == "complete"
    assert (tmp_path / "elsewhere" / "memory" / "missions" / "mission-1" / "events.jsonl").is_file()
