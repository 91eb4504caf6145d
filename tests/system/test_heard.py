"""What the daemon hears of, with sweeps so seldom that they find nothing; docs/architecture.md, "Watching"."""

import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from swarmmemd.config import Config
from swarmmemd.layout import CANARY
from swarmmemd.model import WorkerId
from swarmmemd.schedule import Wake
from swarmmemd.watchplan import WatchPlan
from tests.support.daemon import Daemon, Home, dispatched, put_file, running, until

_NEVER = ("runtime", "chat", "directories", "full")
_SELDOM = [part for name in _NEVER for part in (f"--sweep-{name}-s", "86400")]
_OLD = 1_777_000_000
_BLOCK = (
    "STATE: IN_PROGRESS\nFILES_CHANGED: none\nCOMMANDS_RUN: none\nRESULT: Painted\nBLOCKER: none\n"
    "NEXT_ACTION: Second coat"
)

_HANDOFF = """# Handoff — one — m1

Generated: 2026-05-04T09:00:00.000Z

## Current state

Half of it is done.

## Next exact action

Go on.
""".encode()


def watched(daemon: Daemon) -> set[int]:
    """The inodes that the kernel watches for the daemon."""
    found: set[int] = set()
    for one in Path(f"/proc/{daemon.process.pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found |= {int(inode, 16) for inode in re.findall(r"^inotify .*?ino:(\w+)", one.read_text(), re.M)}
    return found


@contextmanager
def agent(home: Home, worker: str) -> Iterator[sqlite3.Connection]:
    """The worker's own connection to its chat, which stays open: its log is never closed."""
    with closing(sqlite3.connect(home.profiles / worker / "state.db", isolation_level=None)) as chat:
        chat.execute("PRAGMA journal_mode = WAL")
        chat.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT)")
        chat.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, "
            "timestamp REAL, finish_reason TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0)"
        )
        chat.execute("INSERT INTO sessions VALUES ('main', 'cli', NULL)")
        place = (home.profiles / worker / "state.db").resolve()
        for path in (
            place,
            place.with_name(f"{place.name}-wal"),
        ):  # a change that is young is looked at once more
            os.utime(path, (_OLD, _OLD))
        yield chat


def test_a_commit_of_a_worker_that_is_not_at_work_is_heard(home: Home) -> None:
    home.write("one", dispatched("m1", checkpointStatus="blocked"))
    with agent(home, "one") as chat, running(home, *_SELDOM):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        chat.execute(
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) "
            "VALUES ('main', 'assistant', ?, ?, 'stop')",
            (_BLOCK, time.time()),
        )
        until(lambda: "checkpoint" in home.types("one"), "the checkpoint")


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_a_handoff_in_a_folder_that_was_made_anew_is_heard(home: Home) -> None:
    home.write("one", dispatched("m1", checkpointStatus="blocked"))
    folder = home.profiles / "one" / "memory" / "handoffs"
    folder.mkdir(parents=True)
    with running(home, *_SELDOM) as daemon:
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        former = folder.stat().st_ino
        folder.rename(folder.with_name("former"))
        folder.mkdir()
        assert folder.stat().st_ino != former
        until(lambda: folder.stat().st_ino in watched(daemon), "the watch of the new folder")
        put_file(folder / "m1.md", _HANDOFF)
        until(lambda: "handoff-written" in home.types("one"), "the handoff")


def test_what_came_into_the_shared_folder_before_it_was_watched_is_found(home: Home) -> None:
    home.write("one", dispatched("m1", checkpointStatus="blocked"))
    folder = home.shared / "handoffs" / "swarm"
    folder.mkdir(parents=True)
    with running(home, *_SELDOM):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        aside = home.shared / "handoffs" / "aside"
        put_file(aside / "one-latest.md", _HANDOFF)
        folder.rename(folder.with_name("former"))
        aside.rename(folder)
        until(lambda: "handoff-written" in home.types("one"), "the handoff")


@pytest.mark.parametrize(
    ("before", "sweeps"),
    [
        pytest.param(
            "blocked",
            _SELDOM,
            id="not at work: heard",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="writes are heard there only"),
        ),
        pytest.param("in_progress", [*_SELDOM, "--sweep-runtime-s", "1"], id="at work: swept"),
    ],
)
def test_a_runtime_that_its_writer_keeps_open_is_read(home: Home, before: str, sweeps: list[str]) -> None:
    home.write("one", dispatched("m1", checkpointStatus=before))
    with home.runtime("one").open("r+b", buffering=0) as kept, running(home, *sweeps):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        kept.write(json.dumps(dispatched("m2", lastDispatchAt=1_777_000_100_000)).encode())
        kept.truncate()
        until(lambda: any(event["missionId"] == "m2" for event in home.events()), "the next mission")


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to], ids=["a second name", "a link"])
def test_a_runtime_that_is_written_by_another_name_is_swept(
    home: Home, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps(dispatched("m1", checkpointStatus="blocked")))
    home.runtime("one").parent.mkdir(parents=True)
    link(home.runtime("one"), elsewhere)
    with running(home, *_SELDOM, "--sweep-runtime-s", "1"):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        elsewhere.write_text(json.dumps(dispatched("m2", lastDispatchAt=1_777_000_100_000)))
        until(lambda: any(event["missionId"] == "m2" for event in home.events()), "the next mission")


def test_a_chat_that_is_a_link_which_leads_nowhere_yet_is_swept(home: Home, tmp_path: Path) -> None:
    home.write("one", dispatched("m1", checkpointStatus="blocked"))
    chat, made = tmp_path / "elsewhere.db", home.profiles / "one" / "made.db"
    (home.profiles / "one" / "state.db").symlink_to(chat)
    with running(home, *_SELDOM, "--sweep-chat-s", "1"):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        with closing(sqlite3.connect(made, isolation_level=None)) as db:
            db.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT)")
            db.execute(
                "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, "
                "content TEXT, timestamp REAL, finish_reason TEXT, active INTEGER DEFAULT 1, compacted INTEGER "
                "DEFAULT 0)"
            )
            db.execute("INSERT INTO sessions VALUES ('main', 'cli', NULL)")
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) "
                "VALUES ('main', 'assistant', ?, ?, 'stop')",
                (_BLOCK, time.time()),
            )
        made.rename(chat)
        until(lambda: "checkpoint" in home.types("one"), "the checkpoint")


def test_a_commit_to_a_chat_that_is_a_link_is_swept(home: Home, tmp_path: Path) -> None:
    """SQLite keeps the log beside what the link leads to."""
    home.write("one", dispatched("m1", checkpointStatus="blocked"))
    (home.profiles / "one" / "state.db").symlink_to(tmp_path / "elsewhere.db")
    with agent(home, "one") as chat, running(home, *_SELDOM, "--sweep-chat-s", "1"):
        until(
            lambda: any((home.state / CANARY).glob("one")), "the canary, which comes after the first sweeps"
        )
        home.looked_at()
        chat.execute(
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) "
            "VALUES ('main', 'assistant', ?, ?, 'stop')",
            (_BLOCK, time.time()),
        )
        until(lambda: "checkpoint" in home.types("one"), "the checkpoint")


@pytest.mark.skipif(sys.platform != "linux", reason="writes are heard there only")
def test_what_is_heard_is_known_anew_when_a_folder_goes(home: Home) -> None:
    config = Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )
    one, two = WorkerId("one"), WorkerId("two")
    for worker in (one, two):
        (home.profiles / worker).mkdir()
    plan = WatchPlan(config, Wake())
    plan.start()
    try:
        for worker in (one, two):
            plan.arm(worker)
        assert plan.hinted().folders == plan.hinted().writes == {one, two}
        plan.heed_writes(one, False)
        assert plan.hinted().folders == {one, two}
        assert plan.hinted().writes == {two}
        (home.profiles / two).rename(home.profiles / "aside")
        until(lambda: plan.hinted().folders == {one}, "the word that nothing is heard of the folder")
        assert plan.hinted().writes == set()
    finally:
        plan.close()


@pytest.mark.skipif(sys.platform != "linux", reason="writes are heard there only")
def test_of_a_worker_that_comes_back_commits_are_heard_whatever_it_did_before(home: Home) -> None:
    config = Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )
    worker = WorkerId("one")
    (home.profiles / worker).mkdir()
    plan = WatchPlan(config, Wake())
    plan.start()
    try:
        plan.arm(worker)
        plan.disarm(worker)
        plan.heed_writes(worker, False)  # a last turn found it at work
        plan.arm(worker)
        assert plan.hinted().writes == {worker}
    finally:
        plan.close()
