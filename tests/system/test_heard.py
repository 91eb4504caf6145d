"""What the daemon hears of, with sweeps so seldom that they find nothing; docs/architecture.md, "Watching"."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from swarmmemd.layout import CANARY
from tests.support.daemon import Home, dispatched, running, until

_NEVER = ("runtime", "chat", "directories", "full")
_SELDOM = [part for name in _NEVER for part in (f"--sweep-{name}-s", "86400")]
_OLD = 1_777_000_000
_BLOCK = (
    "STATE: IN_PROGRESS\nFILES_CHANGED: none\nCOMMANDS_RUN: none\nRESULT: Painted\nBLOCKER: none\n"
    "NEXT_ACTION: Second coat"
)


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
        for name in ("state.db", "state.db-wal"):  # a change that is young is looked at once more
            os.utime(home.profiles / worker / name, (_OLD, _OLD))
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
