"""The daemon as a process: its locks, its signals, what bad input gets, and what it does without its means."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.chats import BUILD
from tests.support.daemon import PATIENCE, Daemon, Home, answered, dispatched, running, until

_MISSION = "mission-1"


def mission_in_ledger(*missions: str, worker: str = "worker-1") -> bytes:
    """A ledger with open missions of one worker."""
    assignment = {"id": "assign-1", "workerId": worker, "task": "Build", "state": "dispatched"}
    content = [
        {"id": mission, "title": f"About {mission}", "state": "executing", "assignments": [assignment]}
        for mission in missions
    ]
    return json.dumps({"version": 1, "missions": content}).encode()


# One daemon a tree


def test_a_second_daemon_on_the_state_directory_is_refused(home: Home) -> None:
    with running(home) as daemon:
        second = home.command("run")
        assert second.returncode == 75
        assert f"process {daemon.process.pid}" in second.stderr
        assert str(home.state) in second.stderr
        assert daemon.running()
    with running(home):
        pass


def test_a_second_daemon_on_the_profiles_root_is_refused(home: Home) -> None:
    with running(home) as daemon:
        second = home.command("run", "--state-dir", str(home.root / "other"))
        assert second.returncode == 75
        assert str(home.profiles) in second.stderr
        if sys.platform == "linux":
            assert f"process {daemon.process.pid}" in second.stderr
        word = json.loads((home.root / "other" / "last-exit.json").read_bytes())
        assert word["exit"] == 75


def test_a_killed_daemon_holds_nothing(home: Home) -> None:
    for _ in range(3):
        Daemon(home).ready().kill()
    with running(home):
        assert home.command("status").returncode == 0


def test_under_launchd_a_refusal_ends_with_0_and_leaves_word(home: Home) -> None:
    with running(home):
        second = home.command("run", "--supervisor", "launchd", "--state-dir", str(home.root / "other"))
    assert second.returncode == 0
    word = json.loads((home.root / "other" / "last-exit.json").read_bytes())
    assert word["exit"] == 75
    assert str(home.profiles) in word["reason"]
    assert str(home.profiles) in second.stderr


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_0_within_five_seconds(home: Home, number: signal.Signals) -> None:
    home.write("worker-1", dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        daemon.signal(number)
        assert daemon.ended(5.0) == 0
        assert "Traceback" not in daemon.log.read_text()
    found = home.command("status", "--json")
    assert found.returncode == 3
    assert json.loads(found.stdout)["backlog"] == 0


def test_it_ends_soon_while_there_is_much_to_do(home: Home) -> None:
    for number in range(150):
        home.write(f"worker-{number}", dispatched(_MISSION))
    with running(home) as daemon:
        assert daemon.stop(5.0) == 0
    with running(home):
        home.looked_at()
        assert len(home.events()) == 300


@contextmanager
def configured(home: Home, text: str) -> Iterator[tuple[Path, Daemon]]:
    """A daemon with a configuration file, and the file."""
    file = home.root / "config.yaml"
    file.write_text(text)
    with running(home, "--config", str(file)) as daemon:
        yield file, daemon


def tear(home: Home, worker: str) -> Path:
    """Leaves an unfinished line of another writer in the worker's events file."""
    path = home.mission(worker, _MISSION) / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"note","summary":"half of')
    return path


def troubles(home: Home) -> dict[str, str]:
    """What `status` says is wrong, and why."""
    found = json.loads((home.state / "status.json").read_bytes())["troubles"]
    return {one["what"]: one["reason"] for one in found}


def test_a_hang_up_takes_another_settle_time(home: Home) -> None:
    with configured(home, "coexist: {settle_ms: 60000}\n") as (file, daemon):
        torn = tear(home, "worker-1")
        home.write("worker-1", dispatched(_MISSION))
        home.looked_at()
        assert torn.read_bytes().count(b"\n") == 0
        file.write_text("coexist: {settle_ms: 50}\n")
        daemon.signal(signal.SIGHUP)
        until(lambda: daemon.logged("configuration reloaded"), "the reload")
        other = tear(home, "worker-2")
        home.write("worker-2", dispatched(_MISSION))
        until(lambda: other.read_bytes().count(b"\n") == 3, "the line to be ended")


def test_a_hang_up_with_another_root_says_restart(home: Home) -> None:
    with configured(home, "log: {level: info}\n") as (file, daemon):
        file.write_text(f"shared_root: {home.root}/elsewhere\n")
        daemon.signal(signal.SIGHUP)
        until(lambda: daemon.logged(level="warning"), "the refusal")
        (line,) = daemon.logged(level="warning")
        assert "restart" in line["event"]
        until(lambda: troubles(home) == {"configuration": "changed roots need a restart"}, "status to say so")
        home.write("worker-1", dispatched(_MISSION))
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]


def test_a_hang_up_with_a_bad_file_goes_on_with_the_old_one(home: Home) -> None:
    with configured(home, "log: {level: info}\n") as (file, daemon):
        file.write_text("log: {level: loud}\n")
        daemon.signal(signal.SIGHUP)
        until(lambda: daemon.logged(level="error"), "the refusal")
        assert "log.level" in daemon.logged(level="error")[0]["reason"]
        until(lambda: "log.level" in troubles(home).get("configuration", ""), "status to say so")
        file.write_text("log: {level: info}\n")
        daemon.signal(signal.SIGHUP)
        until(lambda: troubles(home) == {}, "it to be well again")
        home.write("worker-1", dispatched(_MISSION))
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]


def test_a_hang_up_reads_the_roster_again(home: Home) -> None:
    (home.profiles / "named").mkdir()
    with running(home) as daemon:
        (home.workspace / "swarm.yaml").write_text("version: 1\nworkers:\n  - id: named\n")
        home.ledger.write_bytes(mission_in_ledger(_MISSION, worker="named"))
        daemon.signal(signal.SIGHUP)
        until(lambda: home.types() == ["mission-start"], "the worker of the roster")


# Bad input


_DEEP = 100_000
BAD = {
    "empty": b"",
    "half": json.dumps(dispatched(_MISSION)).encode()[:150],
    "long": json.dumps(answered(_MISSION, "x" * (5 << 20))).encode(),
    "latin": json.dumps(answered(_MISSION, "über"), ensure_ascii=False).encode("latin-1"),
    "list": json.dumps([answered(_MISSION, "Painted")]).encode(),
    "nul": b"\0" * 4096,
    "deep": b'{"currentTask":' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    "number": b"42",
    "nan": b'{"lastDispatchAt": NaN}',
}


def test_status_tells_that_a_row_of_the_chat_waits(home: Home) -> None:
    """What is said to a worker who is done waits for a dispatch, and what comes behind it."""
    with BUILD.Profile(home.profiles / "worker-1") as profile, running(home):
        profile.dispatch("Count the lamps", _MISSION, "assign-1", 0)
        profile.session("main")
        profile.say("user", BUILD.prompt("Count the lamps"), 1)
        profile.say("assistant", BUILD.block("DONE", "There are 48"), 2)
        until(lambda: "complete" in home.types(), "the answer")
        profile.say("user", "And in the attic?", 3)
        profile.say("assistant", BUILD.block("DONE", "There are 49"), 3.5)
        home.looked_at()

        def waiting() -> list[int]:
            return [
                source["position"]
                for worker in home.figures()["workers"]
                for source in worker["sources"]
                if source["name"] == "state.db" and source["lag_s"]
            ]

        until(lambda: waiting() == [2], "the status to tell that it waits")


def test_what_cannot_be_believed_changes_nothing(home: Home) -> None:
    for worker in BAD:
        home.write(worker, dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        before = home.events()
        assert len(before) == 2 * len(BAD)
        for worker, data in BAD.items():
            home.write(worker, data)
        home.looked_at()

        def named() -> set[str]:
            return {
                worker["worker"]
                for worker in home.figures()["workers"]
                if any(source["name"] == "runtime.json" and source["trouble"] for source in worker["sources"])
            }

        until(lambda: named() == set(BAD), "the status to name all of them")
        assert home.events() == before
        assert all(home.status_of(worker, _MISSION) == "executing" for worker in BAD)
        until(lambda: len(daemon.logged(level="warning")) >= len(BAD), "the warnings")
        told = home.command("status").stdout
        assert all(f"{worker}/runtime.json" in told for worker in BAD), told
        for worker in BAD:
            home.write(worker, answered(_MISSION, "Painted"))
        home.looked_at()
        assert all(home.status_of(worker, _MISSION) == "complete" for worker in BAD)
        assert home.command("status").returncode == 0
        assert not daemon.logged(level="error")


def test_an_unreadable_file_gets_one_line_and_one_when_it_is_well(home: Home) -> None:
    home.write("worker-1", dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        home.write("worker-1", b"")

        until(lambda: daemon.logged(level="warning"), "the warning")
        home.write("worker-1", b"{")
        home.looked_at()
        home.write("worker-1", b"[]")
        home.looked_at()
        home.write("worker-1", answered(_MISSION, "Painted"))
        until(lambda: daemon.logged("recovered"), "the word that it is well")
        (failing,) = daemon.logged(level="warning")
        (well,) = daemon.logged("recovered")
        assert failing["what"] == well["what"] == "worker-1/runtime.json"
        assert "empty" in failing["reason"]


def test_an_id_that_is_none_is_said_once_and_counted(home: Home) -> None:
    bad = "../../escape"
    home.write("worker-1", dispatched(bad))
    with running(home) as daemon:
        home.looked_at()
        home.write("worker-1", dispatched(bad, lastDispatchAt=1_777_000_000_500))
        home.looked_at()
        home.write("worker-1", answered(bad, "Painted"))
        home.looked_at()
        assert home.events() == []
        (line,) = daemon.logged(level="warning")
        assert bad in json.dumps(line)
        until(lambda: home.figures()["turns"]["skipped_ids"] == 1, "the count")
        home.write("worker-1", dispatched(_MISSION, lastDispatchAt=1_777_000_001_000))
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]
    assert not list(home.root.rglob("escape"))


def test_a_folder_that_is_no_worker_id_is_said_once(home: Home) -> None:
    home.write("two words", dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        home.write("two words", answered(_MISSION, "Painted"))
        home.looked_at()
        assert len([line for line in daemon.logged(level="warning") if "two words" in json.dumps(line)]) == 1
    assert not (home.profiles / "two words" / "memory").exists()


@pytest.mark.parametrize("kind", ["folder", "fifo", "link to nothing", "device"])
def test_what_is_no_file_does_not_hold_it_up(home: Home, kind: str) -> None:
    home.write("good", dispatched(_MISSION))
    path = home.runtime("odd")
    path.parent.mkdir()
    match kind:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to(home.root / "nothing")
    with running(home) as daemon:
        home.write("good", answered(_MISSION, "Painted"))
        home.looked_at()
        assert "complete" in home.types("good")
        assert home.types("odd") == []
        assert daemon.running()


def test_a_link_where_a_memory_file_should_be_is_never_written_through(home: Home) -> None:
    outside = home.root / "outside"
    outside.mkdir()
    victim = outside / "victim.txt"
    victim.write_text("mine\n")
    memory = home.profiles / "odd" / "memory"
    (memory / "missions" / _MISSION).mkdir(parents=True)
    (memory / "episodes").symlink_to(outside)
    (memory / "missions" / _MISSION / "SUMMARY.md").symlink_to(victim)
    home.write("odd", dispatched(_MISSION))
    home.write("good", dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        assert home.types("odd") == ["mission-start", "dispatch"]
        assert home.status_of("good", _MISSION) == "executing"
        until(lambda: daemon.logged(what="odd/memory"), "the warning")
        (line,) = daemon.logged(what="odd/memory")
        assert "episodes" in line["reason"]
        assert "SUMMARY.md" in line["reason"]
        until(lambda: home.backlog() == (2, 0), "what can be applied to be settled")
    assert [path.name for path in outside.iterdir()] == ["victim.txt"]
    assert victim.read_text() == "mine\n"
    (memory / "episodes").unlink()
    (memory / "missions" / _MISSION / "SUMMARY.md").unlink()
    with running(home):
        home.looked_at()
        assert home.status_of("odd", _MISSION) == "executing"


# Without its means


def test_without_inotify_it_polls_and_says_so_once(home: Home) -> None:
    home.write("worker-1", dispatched(_MISSION))
    with running(home, plant=["--no-inotify"]) as daemon:
        until(lambda: home.types("worker-1") == ["mission-start", "dispatch"], "the first look")
        home.write("worker-1", answered(_MISSION, "Painted"))
        until(lambda: "complete" in home.types("worker-1"), "the answer", 10.0)
        home.ledger.write_bytes(mission_in_ledger("mission-2"))
        until(lambda: len(home.types("worker-1")) == 5, "the ledger", 15.0)
        assert home.figures()["watching"]["mode"] == "poll"
        assert len(daemon.logged(level="warning")) == 1
        assert "instance limit" in daemon.logged(level="warning")[0]["reason"]


def test_a_newer_journal_is_left_alone(home: Home) -> None:
    home.write("worker-1", dispatched(_MISSION))
    assert home.command("once").returncode == 0
    with sqlite3.connect(home.state / "journal.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (home.state / "journal.db").read_bytes()
    for command in ("run", "once"):
        refused = home.command(command)
        assert refused.returncode == 74
        assert "newer than this program" in refused.stderr
        assert "journal" in refused.stderr.splitlines()[-1]
        assert "Traceback" not in refused.stderr
    assert (home.state / "journal.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["head", "all", "shorter"])
def test_a_damaged_journal_is_left_alone_and_the_way_out_leads_out(home: Home, damage: str) -> None:
    for number in range(20):
        home.write(f"worker-{number}", dispatched(_MISSION))
    assert home.command("once").returncode == 0
    journal = home.state / "journal.db"
    whole = journal.read_bytes()
    broken = {
        "head": b"nonsense" * 100 + whole[800:],
        "all": b"\xff" * len(whole),
        "shorter": whole[: len(whole) // 2],
    }[damage]
    journal.write_bytes(broken)
    refused = home.command("run", seconds=20.0)
    assert refused.returncode == 74
    assert "damaged" in refused.stderr
    assert "Set it aside" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert journal.read_bytes() == broken
    for path in home.state.glob("journal.db*"):
        path.rename(home.root / f"aside-{path.name}")
    before = {path: path.read_bytes() for path in home.profiles.rglob("memory/*/*") if path.is_file()}
    with running(home):
        home.looked_at()
        assert len(home.events()) == 40
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_bad_configuration_is_told_with_all_its_problems(home: Home) -> None:
    file = home.root / "config.yaml"
    file.write_text("colour: red\nretention: {days: soon}\nlog: {level: loud}\n")
    refused = home.command("run", "--config", str(file), "--state-dir", str(home.profiles / "inside"))
    assert refused.returncode == 78
    for word in ("colour", "retention.days", "soon", "log.level", "loud", "state_dir"):
        assert word in refused.stderr, word
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("which", ["profiles", "state"])
def test_a_root_that_belongs_to_somebody_else_is_refused(home: Home, which: str) -> None:
    folder = {"profiles": home.profiles, "state": home.root / "vault"}[which]
    folder.mkdir(exist_ok=True)
    state = ["--state-dir", str(folder / "state")] if which == "state" else []
    daemon = Daemon(home, *state, plant=["--deny", str(folder)])
    assert daemon.ended() == 77
    assert str(folder) in daemon.log.read_text()
    assert "Traceback" not in daemon.log.read_text()


def test_a_shared_root_that_belongs_to_somebody_else_is_said_once_and_the_rest_goes_on(home: Home) -> None:
    home.write("worker-1", dispatched(_MISSION))
    daemon = Daemon(home, plant=["--deny", str(home.shared)]).ready()
    home.write("worker-1", answered(_MISSION, "Halfway", "HANDOFF"))
    until(lambda: home.status_of("worker-1", _MISSION) == "executing", "the summary")
    until(lambda: "checkpoint" in home.types(), "the checkpoint")
    until(lambda: daemon.logged(what="shared root", level="warning"), "the warning")
    assert str(home.shared) in daemon.logged(what="shared root")[0]["reason"]
    told = json.loads(home.command("status", "--json").stdout)["troubles"]
    assert "shared root" in [one["what"] for one in told]
    home.looked_at()
    assert len(daemon.logged(what="shared root")) == 1
    assert daemon.stop() == 0
    assert not list(home.shared.rglob("*"))
    with running(home):
        latest = home.shared / "handoffs" / "swarm" / "worker-1-latest.md"
        until(latest.exists, "the handoff in the shared folder")


def test_once_names_a_shared_root_that_cannot_be_used(home: Home) -> None:
    home.shared.rmdir()
    home.shared.write_text("no folder")
    home.write("worker-1", dispatched(_MISSION))
    done = home.command("once")
    assert done.returncode == 1
    assert str(home.shared) in done.stderr
    assert home.status_of("worker-1", _MISSION) == "executing"


def mounted(folder: Path, options: str) -> None:
    """Mounts an empty file system in memory, or skips."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Takes it away again."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_read_only_shared_root_is_no_problem(home: Home) -> None:
    mounted(home.shared, "size=1m,ro")
    try:
        home.write("worker-1", dispatched(_MISSION))
        with running(home) as daemon:
            home.looked_at()
            assert home.status_of("worker-1", _MISSION) == "executing"
            assert not daemon.logged(level="warning")
    finally:
        unmount(home.shared)


def test_a_full_disk_loses_nothing(home: Home) -> None:
    mounted(home.profiles, "size=1m")
    try:
        home.write("worker-1", dispatched(_MISSION))
        with running(home) as daemon:
            home.looked_at()
            _fill(home.profiles / "filler")
            missions = [f"mission-{number}" for number in range(2, 8)]
            home.ledger.write_bytes(mission_in_ledger(*missions[:3]))
            home.looked_at()
            until(lambda: daemon.logged(what="worker-1/memory", level="warning"), "the warning")
            home.ledger.write_bytes(mission_in_ledger(*missions))
            home.looked_at()
            assert home.types() == ["mission-start", "dispatch"] + ["mission-start"] * 6
            assert json.loads(home.command("status", "--json").stdout)["backlog"] == 6
            (home.profiles / "filler").unlink()
            until(lambda: daemon.logged("recovered"), "the word that it is well", 3 * PATIENCE)
            lines = daemon.logged(what="worker-1/memory")
            assert [line["event"] for line in lines] == ["failing", "recovered"]
            assert "space" in lines[0]["reason"]
        assert json.loads(home.command("status", "--json").stdout)["backlog"] == 0
        for mission in missions:
            events = (home.mission("worker-1", mission) / "events.jsonl").read_text().splitlines()
            assert [json.loads(line)["type"] for line in events] == ["mission-start"]
            assert home.status_of("worker-1", mission) == "planning"
        episodes = "".join(path.read_text() for path in home.profiles.rglob("episodes/*.md"))
        assert episodes.count("— mission-start\n") == 7
        assert episodes.count("— dispatch\n") == 1
        assert not list(home.profiles.rglob(".swarmmemd-tmp-*"))
    finally:
        unmount(home.profiles)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                file.write(b"\xff" * size)
            except OSError:
                size //= 2


def test_the_disk_of_the_journal_is_full(home: Home) -> None:
    home.state.mkdir()
    mounted(home.state, "size=8m")
    try:
        home.write("worker-1", dispatched(_MISSION))
        with running(home) as daemon:
            home.looked_at()
            _fill(home.state / "filler")
            workers = [f"more-{number}" for number in range(10)]
            for worker in workers:
                home.write(worker, dispatched("mission-2", "x" * 20_000))
            until(lambda: daemon.logged(what="journal", level="warning"), "the warning")
            (home.state / "filler").unlink()
            until(lambda: len(home.events()) == 22, "the events", 3 * PATIENCE)
            until(lambda: daemon.logged("recovered", what="journal"), "the word that it is well")
            assert len(daemon.logged(what="journal")) == 2
        for worker in workers:
            assert home.types(worker) == ["mission-start", "dispatch"]
            assert home.status_of(worker, "mission-2") == "executing"
    finally:
        unmount(home.state)
