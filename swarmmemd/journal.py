"""The journal: every event with a sequence number, each worker's state, and what is not applied yet.

It is the record; the memory files are its readable form. Events and state are one transaction: a source shows
a newer state at the next look, so a cursor kept apart from the events would lose or invent some after a crash.
The only caller of SQLite. docs/architecture.md, "Journal".
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarmmemd.durable import Mark
from swarmmemd.errors import JournalError, StorageError
from swarmmemd.model import Event, EventId, MissionId, WorkerId
from swarmmemd.record import decode, encode
from swarmmemd.seam import seam
from swarmmemd.state import MissionState, WorkerState

SCHEMA = 1
WAITING, APPLIED, UNPLACED = 0, 1, 2

_TABLES = """
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, worker TEXT NOT NULL, mission TEXT,
    type TEXT NOT NULL, at INTEGER NOT NULL, line BLOB NOT NULL, applied INTEGER NOT NULL);
CREATE INDEX event_waiting ON event (worker, seq) WHERE applied <> 1;
CREATE TABLE worker (worker TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE mission (
    worker TEXT NOT NULL, mission TEXT NOT NULL, state BLOB NOT NULL, shown INTEGER NOT NULL,
    PRIMARY KEY (worker, mission));
CREATE INDEX mission_not_shown ON mission (worker) WHERE shown = 0;
CREATE TABLE rendered (
    worker TEXT NOT NULL, mission TEXT NOT NULL, section TEXT NOT NULL, line BLOB NOT NULL,
    PRIMARY KEY (worker, mission, section, line)) WITHOUT ROWID;
CREATE TABLE file (
    worker TEXT NOT NULL, path TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
    size INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (worker, path)) WITHOUT ROWID;
"""

_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = 1",
    "checkpoint_fullfsync = 1",
    "journal_size_limit = 4194304",
    "busy_timeout = 5000",
)

_worker_decoder = msgspec.json.Decoder(WorkerState)
_mission_decoder = msgspec.json.Decoder(MissionState)


class Recorded(msgspec.Struct, frozen=True):
    """An event with its sequence number: it orders all events of all workers."""

    seq: int
    event: Event


class Rendered(msgspec.Struct, frozen=True):
    """A line that the daemon renders into a section of the mission's `SUMMARY.md`: it is ours."""

    mission: MissionId
    section: str
    line: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn found out about one worker: events, and the state with them.

    `applied`: the events stand in the memory files already, they were read from there.
    """

    before: WorkerState | None
    after: WorkerState
    events: tuple[Event, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    applied: bool = False


class FileMark(msgspec.Struct, frozen=True):
    """How far an appended file is: identity and size after the event `seq`, the newest that is in it."""

    worker: WorkerId
    path: str
    mark: Mark
    seq: int


class Journal:
    """One open journal. One process writes to it; readers use `JournalReader`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self.path = path
        self._applied: dict[int, int] = {}
        self._marks: dict[tuple[WorkerId, str], FileMark] = {}
        self._shown: set[tuple[WorkerId, MissionId]] = set()

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Opens the journal, or makes a new one where there is no file.

        Raises `JournalError` for a damaged one and for one of a newer program, `StorageError` where the
        system refuses.
        """
        _check_file(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            _check_schema(connection, path)
        except sqlite3.Error as error:
            connection.close()
            raise _explained(error, path) from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        """Commits what was settled and closes."""
        try:
            self.flush()
        finally:
            self._db.close()

    # Reading

    def load(self, worker: WorkerId) -> WorkerState | None:
        """The worker's state; None for one that was never met."""
        row = self._db.execute("SELECT state FROM worker WHERE worker = ?", (worker,)).fetchone()
        if row is None:
            return None
        rows = self._db.execute("SELECT state FROM mission WHERE worker = ?", (worker,))
        missions = {
            mission.mission: mission for mission in (_mission_decoder.decode(state) for (state,) in rows)
        }
        return replace(_worker_decoder.decode(row[0]), missions=missions)

    def knows(self, id: EventId) -> bool:
        """Whether an event of this id is recorded."""
        return self._db.execute("SELECT 1 FROM event WHERE id = ?", (id,)).fetchone() is not None

    def workers_waiting(self) -> list[WorkerId]:
        """Workers with events or summaries that are not in their files."""
        sql = "SELECT worker FROM event WHERE applied <> 1 UNION SELECT worker FROM mission WHERE shown = 0"
        return [WorkerId(worker) for (worker,) in self._db.execute(sql)]

    def waiting(self, worker: WorkerId) -> list[Recorded]:
        """The worker's events that are not applied, in order."""
        sql = "SELECT seq, line FROM event WHERE worker = ? AND applied <> 1 ORDER BY seq"
        rows = self._db.execute(sql, (worker,)).fetchall()
        return [_recorded(seq, line, worker) for seq, line in rows if seq not in self._applied]

    def not_shown(self, worker: WorkerId) -> list[MissionId]:
        """The worker's missions whose `SUMMARY.md` does not show their state yet."""
        sql = "SELECT mission FROM mission WHERE worker = ? AND shown = 0"
        found = [MissionId(mission) for (mission,) in self._db.execute(sql, (worker,))]
        return [mission for mission in found if (worker, mission) not in self._shown]

    def mark(self, worker: WorkerId, path: str) -> FileMark | None:
        """How far the file at `path` below the worker's profile is."""
        if (worker, path) in self._marks:
            return self._marks[worker, path]
        sql = "SELECT device, inode, size, seq FROM file WHERE worker = ? AND path = ?"
        row = self._db.execute(sql, (worker, path)).fetchone()
        return FileMark(worker, path, Mark(*row[:3]), row[3]) if row else None

    def is_ours(self, worker: WorkerId, mission: MissionId, section: str, line: str) -> bool:
        """Whether we rendered exactly this line into that section for an event of the mission."""
        sql = "SELECT 1 FROM rendered WHERE worker = ? AND mission = ? AND section = ? AND line = ?"
        return self._db.execute(sql, (worker, mission, section, _digest(line))).fetchone() is not None

    def count_rendered(self, worker: WorkerId, mission: MissionId, section: str) -> int:
        """How many different lines we rendered into that section of the mission."""
        sql = "SELECT count(*) FROM rendered WHERE worker = ? AND mission = ? AND section = ?"
        return int(self._db.execute(sql, (worker, mission, section)).fetchone()[0])

    # Writing

    def record(self, changes: Iterable[Change]) -> list[Recorded]:
        """Commits events and states, and what was settled before: all of it or nothing.

        Raises `StorageError` where the disk refuses; then nothing of it is recorded.
        """
        recorded: list[Recorded] = []
        with self._transaction():
            for change in changes:
                recorded += self._events(change)
                self._state(change)
                rows = ((change.after.worker, r.mission, r.section, _digest(r.line)) for r in change.rendered)
                self._db.executemany("INSERT OR IGNORE INTO rendered VALUES (?, ?, ?, ?)", rows)
        return recorded

    def settle(
        self,
        applied: Iterable[int] = (),
        marks: Iterable[FileMark] = (),
        shown: Iterable[tuple[WorkerId, MissionId]] = (),
        unplaced: Iterable[int] = (),
    ) -> None:
        """Notes what was applied. It is committed with the next record, or by `flush`: until then a crash
        makes it be applied once more, which changes nothing."""
        self._applied.update(dict.fromkeys(applied, APPLIED))
        self._applied.update(dict.fromkeys(unplaced, UNPLACED))
        self._marks.update({(mark.worker, mark.path): mark for mark in marks})
        self._shown.update(shown)

    def flush(self) -> None:
        """Commits what was settled, if anything was."""
        if self._applied or self._marks or self._shown:
            with self._transaction():
                pass

    def checkpoint(self) -> None:
        """Folds the write-ahead log back, so that it does not grow for ever."""
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._settled()
                seam.call("commit", self.path.name)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _explained(error, self.path) from error
        except OSError as error:
            raise StorageError(
                f"{self.path}: {error.strerror}", "Free some space or mend the disk."
            ) from error
        self._applied, self._marks, self._shown = {}, {}, set()

    def _settled(self) -> None:
        self._db.executemany(
            "UPDATE event SET applied = ? WHERE seq = ?", [(s, n) for n, s in self._applied.items()]
        )
        files = [
            (m.worker, m.path, m.mark.device, m.mark.inode, m.mark.size, m.seq) for m in self._marks.values()
        ]
        self._db.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", files)
        self._db.executemany(
            "UPDATE mission SET shown = 1 WHERE worker = ? AND mission = ?", list(self._shown)
        )

    def _events(self, change: Change) -> list[Recorded]:
        state = APPLIED if change.applied else WAITING
        sql = "INSERT OR IGNORE INTO event (id, worker, mission, type, at, line, applied) VALUES (?, ?, ?, ?, ?, ?, ?)"
        recorded = []
        for event in change.events:
            row = (event.id, event.worker, event.mission, event.type.value, event.at, encode(event), state)
            cursor = self._db.execute(sql, row)
            if cursor.rowcount == 1 and cursor.lastrowid is not None:
                recorded.append(Recorded(cursor.lastrowid, event))
        return recorded

    def _state(self, change: Change) -> None:
        before, after = change.before, change.after
        bare = msgspec.json.encode(replace(after, missions={}))
        if before is None or bare != msgspec.json.encode(replace(before, missions={})):
            self._db.execute("INSERT OR REPLACE INTO worker VALUES (?, ?)", (after.worker, bare))
        known = before.missions if before else {}
        for mission in after.missions.values():
            if known.get(mission.mission) is not mission:
                self._shown.discard((after.worker, mission.mission))
                row = (after.worker, mission.mission, msgspec.json.encode(mission))
                self._db.execute("INSERT OR REPLACE INTO mission VALUES (?, ?, ?, 0)", row)


class Follower:
    """Reads events in recording order while a daemon may be writing. Used by `tail`, `status` and `show`."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StorageError(f"{path}: there is no journal", "Start the daemon: swarmmemd run")
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            self._db.execute("PRAGMA query_only = 1")
            self._db.execute("PRAGMA busy_timeout = 5000")
            if newer_than_program(self._db, path) == 0:
                raise StorageError(f"{path}: the daemon is just making it", "Try again in a moment.")
        except sqlite3.Error as error:
            raise _explained(error, path) from error
        self._path = path

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def last(self) -> int:
        """The newest sequence number; 0 for an empty journal."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])

    def events(self, where: "Filter", after: int = 0, limit: int = 500) -> list[Recorded]:
        """The next events after sequence number `after`, oldest first, at most `limit`."""
        return self._select(where, "seq > ?", after, "seq", limit)

    def newest(self, where: "Filter", limit: int) -> list[Recorded]:
        """The newest `limit` events, oldest first."""
        return self._select(where, "seq > ?", 0, "seq DESC", limit)[::-1]

    def backlog(self) -> tuple[int, int]:
        """How many events are not applied, and how many of those have no place any more."""
        sql = "SELECT coalesce(sum(applied = 0), 0), coalesce(sum(applied = 2), 0) FROM event WHERE applied <> 1"
        waiting, unplaced = self._db.execute(sql).fetchone()
        return int(waiting), int(unplaced)

    def _select(self, where: "Filter", condition: str, value: int, order: str, limit: int) -> list[Recorded]:
        clauses, values = where.sql()
        sql = f"SELECT seq, worker, line FROM event WHERE {' AND '.join([condition, *clauses])} ORDER BY {order} LIMIT ?"
        rows = self._db.execute(sql, (value, *values, limit)).fetchall()
        return [_recorded(seq, line, WorkerId(worker)) for seq, worker, line in rows]


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


def newer_than_program(connection: sqlite3.Connection, path: Path) -> int:
    """The schema of the journal. Raises `JournalError` where this program is too old for it."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA:
        raise JournalError(
            f"{path} is of schema {version}, newer than this program (schema {SCHEMA})",
            "Install the newer swarmmemd again. Or set the journal aside (rename it): the next start reads "
            "the memory files back.",
        )
    return version


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    if newer_than_program(connection, path) == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it holds tables of another program")
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")


def _check_file(path: Path) -> None:
    """Makes a new journal 0600, and refuses anything that is no file of its own."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise StorageError(f"{path} is not a regular file", "Move it away; swarmmemd follows no link there.")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror}", "Check the owner and the permissions of its folder."
        ) from error


def _explained(error: sqlite3.Error, path: Path) -> StorageError | JournalError:
    text = str(error)
    if isinstance(error, sqlite3.OperationalError) and "malformed" not in text and "disk image" not in text:
        return StorageError(f"{path}: {text}", "Free some space, or check the disk and the permissions.")
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        raise error
    return JournalError(
        f"{path} is damaged: {text}",
        "Set it aside (rename journal.db, journal.db-wal and journal.db-shm): the next start reads the memory "
        "files back and loses nothing that is in them.",
    )


def _recorded(seq: int, line: bytes, worker: WorkerId) -> Recorded:
    event = decode(line.rstrip(b"\n"), worker)
    assert isinstance(event, Event), "the journal holds lines of our own only"
    return Recorded(seq, event)


def _digest(line: str) -> bytes:
    return hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=12).digest()
