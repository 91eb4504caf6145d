"""Reads events in recording order while a daemon may be writing."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.errors import NoJournalError
from swarmmemd.journal.schema import explained, newer_than_program
from swarmmemd.journal.values import HANDOFF_COLUMNS, KeptHandoff, Recorded, kept_handoff, recorded
from swarmmemd.model import WorkerId


class Follower:
    """Reads events in recording order while a daemon may be writing. Used by `tail`, `status` and `show`."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise NoJournalError(f"{path}: there is no journal", "Start the daemon: swarmmemd run")
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            self._db.execute("PRAGMA query_only = 1")
            self._db.execute("PRAGMA busy_timeout = 5000")
            if newer_than_program(self._db, path) == 0:
                raise NoJournalError(
                    f"{path}: there is nothing in it yet",
                    "The daemon makes it from the memory files: swarmmemd run",
                )
        except sqlite3.Error as error:
            raise explained(error, path) from error
        self._path = path

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def last(self) -> int:
        """The newest sequence number; 0 for an empty journal."""
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM event")[0][0])

    def handoffs(self, worker: WorkerId) -> list[KeptHandoff]:
        """Every version of the worker's handoffs, in the order of first sight."""
        sql = f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE worker = ? ORDER BY seq"
        return [kept_handoff(row) for row in self._rows(sql, worker)]

    def posted(self, worker: WorkerId, id: str) -> str | None:
        """The id of the event that the post has become; None where it is not recorded."""
        rows = self._rows("SELECT session FROM heard WHERE worker = ? AND key = ?", worker, f"p:{id}")
        return str(rows[0][0]) if rows else None

    def event(self, id: str) -> Recorded | None:
        """The event of that id."""
        rows = self._rows("SELECT seq, worker, line FROM event WHERE id = ?", id)
        return recorded(rows[0][0], rows[0][2], WorkerId(rows[0][1])) if rows else None

    def read_back(self) -> int:
        """The newest sequence number of what was read back from the memory files when the journal was made."""
        return int(self._rows("SELECT coalesce(max(read_back), 0) FROM made")[0][0])

    def events(self, where: "Filter", after: int = 0, limit: int = 500) -> list[Recorded]:
        """The next events after sequence number `after`, oldest first, at most `limit`."""
        return self._select(where, "seq > ?", after, "seq", limit)

    def newest(self, where: "Filter", limit: int, after: int = 0) -> list[Recorded]:
        """The newest `limit` events after sequence number `after`, oldest first."""
        return self._select(where, "seq > ?", after, "seq DESC", limit)[::-1]

    def latest(self) -> dict[WorkerId, Recorded]:
        """Each worker's newest event."""
        sql = "SELECT seq, worker, line FROM event WHERE seq IN (SELECT max(seq) FROM event GROUP BY worker)"
        return {worker: recorded(seq, line, WorkerId(worker)) for seq, worker, line in self._rows(sql)}

    def counts(self, after: int) -> tuple[int, dict[str, int]]:
        """The newest sequence number, and how many events of each type came after `after`."""
        sql = "SELECT type, count(*), max(seq) FROM event WHERE seq > ? GROUP BY type"
        rows = self._rows(sql, after)
        return max((seq for _, _, seq in rows), default=after), {type: count for type, count, _ in rows}

    def backlog(self) -> tuple[int, int]:
        """How many events are not applied, and how many of those have no place any more."""
        sql = "SELECT coalesce(sum(applied = 0), 0), coalesce(sum(applied = 2), 0) FROM event WHERE applied <> 1"
        waiting, unplaced = self._rows(sql)[0]
        return int(waiting), int(unplaced)

    def _select(self, where: "Filter", condition: str, value: int, order: str, limit: int) -> list[Recorded]:
        clauses, values = where.sql()
        conditions = " AND ".join([condition, *clauses])
        sql = f"SELECT seq, worker, line FROM event WHERE {conditions} ORDER BY {order} LIMIT ?"
        rows = self._rows(sql, value, *values, limit)
        return [recorded(seq, line, WorkerId(worker)) for seq, worker, line in rows]

    def _rows(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self._path) from error


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events a follower wants. `since` is ms and compares `at`."""

    worker: str | None = None
    mission: str | None = None
    type: str | None = None
    since: int | None = None

    def sql(self) -> tuple[list[str], list[object]]:
        """The conditions and their values."""
        given = [
            ("worker = ?", self.worker),
            ("mission = ?", self.mission),
            ("type = ?", self.type),
            ("at >= ?", self.since),
        ]
        return [c for c, v in given if v is not None], [v for _, v in given if v is not None]
