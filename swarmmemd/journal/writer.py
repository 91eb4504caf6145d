"""The daemon's side of the journal: one process, one connection.

Events and state are one transaction: a source shows a newer state at the next look, so a cursor kept apart
from the events would lose or invent some after a crash. docs/architecture.md, "Journal".
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple, replace

from swarmmemd.audit import Head, Written
from swarmmemd.durable import Mark, Version
from swarmmemd.errors import StorageError
from swarmmemd.journal import retention
from swarmmemd.journal.audits import AuditRows, AuditState, audit_state
from swarmmemd.journal.schema import PRAGMAS, check_file, check_schema, explained
from swarmmemd.journal.values import (
    HANDOFF_COLUMNS,
    Change,
    FileMark,
    KeptHandoff,
    Placing,
    Recorded,
    is_completed,
    kept_handoff,
    kept_mission,
    kept_worker,
    line_digest,
    recorded,
)
from swarmmemd.model import EventId, MissionId, WorkerId
from swarmmemd.record import encode
from swarmmemd.rest import awake, rests
from swarmmemd.seam import seam
from swarmmemd.state import Heard, MissionState, WorkerState

WAITING, APPLIED, UNPLACED = 0, 1, 2

_COUNT_RENDERED = (
    "INSERT INTO rendered_count VALUES (?, ?, ?, ?) "
    "ON CONFLICT (worker, mission, section) DO UPDATE SET lines = lines + excluded.lines"
)
_HEARD = ", ".join(Heard.__struct_fields__)
_ASKED_AT_ONCE = 500
"""Keys in one statement: fewer than any SQLite allows."""

_FEW = 50
"""Missions up to which each is looked for by itself. Of many, most are other workers'."""
_PAGE = 500
"""Missions that are read together where all are gone through."""


class _Awake(msgspec.Struct):
    """What stands in a worker's row beside its state: the missions that do not rest. None in an older row."""

    awake: tuple[MissionId, ...] | None = None


_awake_decoder = msgspec.json.Decoder(_Awake)


class Journal:
    """One open journal. One process writes to it; readers use `Follower`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._cursor = connection.cursor()
        """For the statements that are made thousands of times: a new cursor costs more than to find a row."""
        self.path = path
        self._newest: dict[int, Recorded] = {}
        """What was recorded last and is not applied: it need not be read back only to be applied."""
        self._applied: dict[int, int] = {}
        self._marks: dict[tuple[WorkerId, str], FileMark] = {}
        self._shown: set[tuple[WorkerId, MissionId]] = set()
        self._archived: set[tuple[WorkerId, MissionId]] = set()
        self._copies: dict[str, str] = {}
        self._audit = AuditRows(connection)

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Opens the journal, or makes a new one where there is no file.

        Raises `JournalError` for a damaged one and for one of a newer program, `StorageError` where the
        system refuses.
        """
        check_file(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            check_schema(connection, path)
        except sqlite3.Error as error:
            connection.close()
            raise explained(error, path) from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        """Commits what was settled and closes. What cannot be committed is applied once more at the next start,
        which changes nothing."""
        try:
            with suppress(StorageError):
                self.flush()
                if self._audit.unmarked:
                    with self._transaction():
                        pass
        finally:
            self._db.close()

    # Reading

    def load(self, worker: WorkerId) -> WorkerState | None:
        """The worker's state, without the missions that rest; None for one that was never met."""
        row = self._row("SELECT state FROM worker WHERE worker = ?", worker)
        if row is None:
            return None
        state, known = kept_worker(row[0]), _awake_decoder.decode(row[0]).awake
        if known is not None:
            return replace(state, missions=self.missions(worker, known))
        pages = self._pages(worker)
        return replace(state, missions={m.mission: m for m in pages if not rests(state, m)})

    def _pages(self, worker: WorkerId) -> Iterator[MissionState]:
        """All missions of the worker, one after the other."""
        sql = "SELECT state FROM mission WHERE worker = ? AND mission > ? ORDER BY mission LIMIT ?"
        last = ""
        while page := [kept_mission(row) for (row,) in self._rows(sql, worker, last, _PAGE)]:
            yield from page
            last = page[-1].mission

    def mission(self, worker: WorkerId, mission: MissionId) -> MissionState | None:
        """The worker's mission; None where it has none of that id."""
        return self.missions(worker, (mission,)).get(mission)

    def missions(self, worker: WorkerId, ids: Sequence[MissionId]) -> dict[MissionId, MissionState]:
        """Which of these missions are the worker's, with their states."""
        found: dict[MissionId, MissionState] = {}
        if len(ids) > _FEW:
            rows = self._rows("SELECT mission FROM mission WHERE worker = ?", worker)
            ids = sorted({MissionId(mission) for (mission,) in rows}.intersection(ids))
        for start in range(0, len(ids), _ASKED_AT_ONCE):
            some = ids[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT state FROM mission WHERE worker = ? AND mission IN ({marks})"
            states = (kept_mission(row) for (row,) in self._rows(sql, worker, *some))
            found.update((state.mission, state) for state in states)
        return found

    def missions_after(self, worker: str, mission: str, count: int) -> list[tuple[WorkerId, MissionId, bool]]:
        """The next missions of all workers behind this one, in the order of their ids, and which are completed."""
        behind = "(worker, mission) > (?, ?) ORDER BY worker, mission LIMIT ?"
        sql = f"SELECT worker, mission, state FROM mission WHERE {behind}"
        return [
            (WorkerId(whose), MissionId(id), is_completed(state))
            for whose, id, state in self._rows(sql, worker, mission, count)
        ]

    def knows(self, id: EventId) -> bool:
        """Whether an event of this id is recorded."""
        return bool(self._rows("SELECT 1 FROM event WHERE id = ?", id))

    def heard(self, worker: WorkerId, keys: Sequence[str]) -> dict[str, Heard]:
        """What is known of texts that the worker's chat has shown, by their keys."""
        found: dict[str, Heard] = {}
        for start in range(0, len(keys), _ASKED_AT_ONCE):
            some = keys[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT key, {_HEARD} FROM heard WHERE worker = ? AND key IN ({marks})"
            for key, *values in self._rows(sql, worker, *some):
                found[key] = Heard(**dict(zip(Heard.__struct_fields__, values, strict=True)))
        return found

    def event(self, id: EventId) -> Recorded | None:
        """The event of that id."""
        row = self._row("SELECT seq, worker, line FROM event WHERE id = ?", id)
        return recorded(row[0], row[2], WorkerId(row[1])) if row else None

    def tasks(self, worker: WorkerId, count: int) -> tuple[str, ...]:
        """The task texts of the worker's newest `count` dispatches, oldest first; empty where none was given."""
        sql = "SELECT seq, line FROM event WHERE worker = ? AND type = 'dispatch' ORDER BY seq DESC LIMIT ?"
        found = (recorded(seq, line, worker).event for seq, line in self._rows(sql, worker, count))
        return tuple(str(event.detail.get("task") or "") for event in found)[::-1]

    def workers_waiting(self) -> list[WorkerId]:
        """Workers with events or summaries that are not in their files."""
        sql = "SELECT worker FROM event WHERE applied <> 1 UNION SELECT worker FROM mission WHERE shown = 0"
        return [WorkerId(worker) for (worker,) in self._rows(sql)]

    def waiting(self, worker: WorkerId) -> list[Recorded]:
        """The worker's events that are not applied, in order."""
        behind = "FROM event WHERE worker = ? AND applied <> 1 ORDER BY seq"
        rows = self._rows(f"SELECT seq {behind}", worker)
        waits = dict.fromkeys([seq for (seq,) in rows if self._applied.get(seq) != APPLIED])
        if waits.keys() <= self._newest.keys():
            return [self._newest[seq] for seq in waits]
        rows = self._rows(f"SELECT seq, line {behind}", worker)
        return [recorded(seq, line, worker) for seq, line in rows if seq in waits]

    def not_shown(self, worker: WorkerId) -> list[MissionId]:
        """The worker's missions whose `SUMMARY.md` does not show their state yet."""
        sql = "SELECT mission FROM mission WHERE worker = ? AND shown = 0"
        found = [MissionId(mission) for (mission,) in self._rows(sql, worker)]
        return [mission for mission in found if (worker, mission) not in self._shown]

    def mark(self, worker: WorkerId, path: str) -> FileMark | None:
        """How far the file at `path` below the worker's profile is."""
        if (worker, path) in self._marks:
            return self._marks[worker, path]
        sql = "SELECT device, inode, size, seq FROM file WHERE worker = ? AND path = ?"
        row = self._row(sql, worker, path)
        return FileMark(worker, path, Mark(*row[:3]), row[3]) if row else None

    def is_ours(self, worker: WorkerId, mission: MissionId, section: str, line: str) -> bool:
        """Whether we rendered exactly this line into that section for an event of the mission."""
        sql = "SELECT 1 FROM rendered WHERE worker = ? AND mission = ? AND section = ? AND line = ?"
        return self._row(sql, worker, mission, section, line_digest(line)) is not None

    def count_rendered(self, worker: WorkerId, mission: MissionId, section: str) -> int:
        """How many different lines we rendered into that section of the mission."""
        sql = "SELECT lines FROM rendered_count WHERE worker = ? AND mission = ? AND section = ?"
        row = self._row(sql, worker, mission, section)
        return int(row[0]) if row else 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is asked within takes one lock together, not one each. Nothing is written within."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._rows("COMMIT")

    def _rows(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._cursor.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _row(self, sql: str, *values: object) -> Any:
        rows = self._rows(sql, *values)
        return rows[0] if rows else None

    def handoff(self, worker: WorkerId, sha256: str) -> KeptHandoff | None:
        """The version of this digest, else the newest one whose redacted form has it."""
        sql = f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE worker = ?"
        row = self._row(f"{sql} AND sha256 = ?", worker, sha256) or self._row(
            f"{sql} AND redacted = ? ORDER BY seq DESC LIMIT 1", worker, sha256
        )
        return kept_handoff(row) if row else None

    def not_archived(self, worker: WorkerId) -> list[MissionId]:
        """The worker's completed missions whose archive does not show their state yet."""
        sql = "SELECT mission FROM mission WHERE worker = ? AND archived = 0"
        found = [MissionId(mission) for (mission,) in self._rows(sql, worker)]
        return [mission for mission in found if (worker, mission) not in self._archived]

    def archive_again(
        self, missions: Sequence[tuple[WorkerId, MissionId]]
    ) -> list[tuple[WorkerId, MissionId]]:
        """Notes, durably, that the archive of these does not show how they are any more; gives those that were
        archived. A crash in the midst of making it again leaves no copy of which the journal does not know."""
        sql = "SELECT 1 FROM mission WHERE worker = ? AND mission = ? AND archived = 1"
        kept = [one for one in missions if self._row(sql, *one)]
        settled = [one for one in missions if one in self._archived]
        self._archived.difference_update(settled)
        if kept:
            with self._transaction():
                sql = "UPDATE mission SET archived = 0 WHERE worker = ? AND mission = ?"
                self._db.executemany(sql, kept)
        return list(dict.fromkeys(kept + settled))

    def sharing(self, mission: MissionId) -> list[tuple[WorkerId, MissionState]]:
        """Every worker that has the mission, with its state of it."""
        sql = "SELECT worker, state FROM mission WHERE mission = ? ORDER BY worker"
        rows = self._rows(sql, mission)
        return [(WorkerId(worker), kept_mission(state)) for worker, state in rows]

    def read_back(self) -> tuple[int, int]:
        """How many workers and events were read back from the memory files when the journal was made."""
        sql = (
            "SELECT count(DISTINCT event.worker), count(*) FROM event JOIN made ON made.worker = event.worker "
            "WHERE seq <= read_back"
        )
        workers, events = self._rows(sql)[0]
        return int(workers), int(events)

    # Writing

    def record(self, changes: Iterable[Change]) -> list[Recorded]:
        """Commits events and states, and what was settled before: all of it or nothing.

        Raises `StorageError` where the disk refuses; then nothing of it is recorded.
        """
        new: list[Recorded] = []
        waiting: list[Recorded] = []
        with self._transaction():
            for change in changes:
                found = self._events(change)
                new += found
                waiting += () if change.applied else found
                if change.applied and found:
                    row = (change.after.worker, found[-1].seq)
                    self._db.execute("INSERT OR REPLACE INTO made VALUES (?, ?)", row)
                self._state(change)
                self._rendered(change)
                self._handoffs(change)
                self._heard(change)
        self._newest = {one.seq: one for one in waiting}
        return new

    def settle(
        self,
        applied: Iterable[int] = (),
        marks: Iterable[FileMark] = (),
        shown: Iterable[tuple[WorkerId, MissionId]] = (),
        archived: Iterable[tuple[WorkerId, MissionId]] = (),
        unplaced: Iterable[int] = (),
        written: Iterable[Written] = (),
        copies: Mapping[str, str] | None = None,
    ) -> None:
        """Notes what was applied. It is committed with the next record, or by `flush`: until then a crash
        makes it be applied once more, which changes nothing."""
        done = {**dict.fromkeys(applied, APPLIED), **dict.fromkeys(unplaced, UNPLACED)}
        self._applied.update(done)
        for seq in done:
            self._newest.pop(seq, None)
        self._marks.update({(mark.worker, mark.path): mark for mark in marks})
        self._shown.update(shown)
        self._archived.update(archived)
        self._audit.note(list(written))
        self._copies.update(copies or {})

    def audit(self) -> AuditState:
        """The audit log as it is committed."""
        try:
            return audit_state(self._db)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def adopt_audit(self, head: Head) -> None:
        """The audit log goes on from `head`: this journal is new, and the log is not."""
        self._audit.adopt(head)

    def audited(self, last: int, mark: Mark) -> None:
        """The lines of the audit log up to number `last` stand in its file. Committed with what comes next."""
        self._audit.appended(last, mark)

    def note_redacted(self, worker: WorkerId, sha256: str, redacted: str) -> None:
        """Notes, durably, the digest of the version's redacted form as it is now."""
        with self._transaction():
            sql = "UPDATE handoff SET redacted = ? WHERE worker = ? AND sha256 = ?"
            self._db.execute(sql, (redacted, worker, sha256))

    def placing(self, worker: WorkerId) -> Placing | None:
        """The attempt to put a handoff into the shared folder of which it is not known how it ended."""
        sql = "SELECT sha256, device, inode, size, mtime_ns FROM placing WHERE worker = ?"
        row = self._row(sql, worker)
        return Placing(row[0], Version(*row[1:]) if row[1] is not None else None) if row else None

    def place(self, worker: WorkerId, placing: Placing) -> None:
        """Counts, durably, that this version is put into the shared folder: before it is, so that a crash can
        never make it be restored once more than it may."""
        before = astuple(placing.before) if placing.before else (None,) * 4
        with self._transaction():
            self._count(worker, placing.sha256, 1)
            row = (worker, placing.sha256, *before)
            self._db.execute("INSERT OR REPLACE INTO placing VALUES (?, ?, ?, ?, ?, ?)", row)

    def placed(self, worker: WorkerId, succeeded: bool = True) -> None:
        """It is known how the attempt ended: one that did not succeed does not count."""
        placing = self.placing(worker)
        if placing is None:
            return
        with self._transaction():
            if not succeeded:
                self._count(worker, placing.sha256, -1)
            self._db.execute("DELETE FROM placing WHERE worker = ?", (worker,))

    def _count(self, worker: WorkerId, sha256: str, more: int) -> None:
        sql = "UPDATE handoff SET placed = placed + ? WHERE worker = ? AND sha256 = ?"
        self._db.execute(sql, (more, worker, sha256))

    def flush(self) -> None:
        """Commits what was settled, if anything was."""
        if (
            self._applied
            or self._marks
            or self._shown
            or self._archived
            or self._copies
            or self._audit.waiting
        ):
            with self._transaction():
                pass

    def forget(self, after: int, before: int) -> tuple[int | None, int]:
        """Drops the bodies of one slice of events behind sequence number `after` that are older than `before` (ms), and
        old versions of handoffs with the last slice. Gives where the next slice begins, None for the end, and how
        many were dropped. Raises `StorageError`. docs/contracts.md, "Retention"."""
        try:
            found = retention.old(self._db, after, before)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        count = len(found.events) + len(found.handoffs)
        if count:
            with self._transaction():
                retention.drop(self._db, found)
        return found.last, count

    def checkpoint(self) -> None:
        """Folds the write-ahead log back, so that it does not grow for ever."""
        self._rows("PRAGMA wal_checkpoint(PASSIVE)")

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
            raise explained(error, self.path) from error
        except OSError as error:
            raise StorageError(
                f"{self.path}: {error.strerror}", "Free some space or mend the disk."
            ) from error
        self._applied, self._marks, self._shown, self._archived = {}, {}, set(), set()
        self._copies = {}
        self._audit.committed()

    def _settled(self) -> None:
        files = [
            (m.worker, m.path, m.mark.device, m.mark.inode, m.mark.size, m.seq) for m in self._marks.values()
        ]
        for sql, rows in (
            ("UPDATE event SET applied = ? WHERE seq BETWEEN ? AND ?", list(_runs(self._applied))),
            ("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", files),
            ("UPDATE mission SET shown = 1 WHERE worker = ? AND mission = ?", list(self._shown)),
            ("UPDATE mission SET archived = 1 WHERE worker = ? AND mission = ?", list(self._archived)),
            ("INSERT OR REPLACE INTO copy VALUES (?, ?)", list(self._copies.items())),
        ):
            if rows:
                self._db.executemany(sql, rows)
        self._audit.write()

    def _events(self, change: Change) -> list[Recorded]:
        state = APPLIED if change.applied else WAITING
        sql = "INSERT OR IGNORE INTO event (id, worker, mission, type, at, line, applied) VALUES (?, ?, ?, ?, ?, ?, ?)"
        new = []
        for event in change.events:
            line = encode(event)
            row = (event.id, event.worker, event.mission, event.type.value, event.at, line, state)
            cursor = self._cursor.execute(sql, row)
            if cursor.rowcount == 1 and cursor.lastrowid is not None:
                new.append(Recorded(cursor.lastrowid, event, line))
        return new

    def _rendered(self, change: Change) -> None:
        """Counted as they come: a count over all would cost more with each."""
        worker = change.after.worker
        lines: dict[tuple[MissionId, str], set[str]] = {}
        for one in change.rendered:
            lines.setdefault((one.mission, one.section), set()).add(one.line)
        for key, some in lines.items():
            rows = [(worker, *key, digest) for digest in sorted(map(line_digest, some))]
            cursor = self._db.executemany("INSERT OR IGNORE INTO rendered VALUES (?, ?, ?, ?)", rows)
            if cursor.rowcount:
                self._db.execute(_COUNT_RENDERED, (worker, *key, cursor.rowcount))

    def _handoffs(self, change: Change) -> None:
        """A version that is known already comes again only where it counts for more than it did."""
        sql = (
            f"INSERT INTO handoff (worker, {HANDOFF_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0) "
            "ON CONFLICT (worker, sha256) DO UPDATE SET mission = excluded.mission, author = excluded.author, "
            "path = excluded.path, at = excluded.at"
        )
        for kept in change.handoffs:
            row = (kept.mission, kept.sha256, kept.redacted, kept.author.value, kept.path, kept.at, kept.text)
            self._db.execute(sql, (change.after.worker, *row))

    def _heard(self, change: Change) -> None:
        marks = ", ".join("?" * (2 + len(Heard.__struct_fields__)))
        sql = f"INSERT OR REPLACE INTO heard (worker, key, {_HEARD}) VALUES ({marks})"
        worker, known = change.after.worker, change.heard
        self._db.executemany(sql, [(worker, key, *_columns(known[key])) for key in sorted(known)])

    def _state(self, change: Change) -> None:
        before, after = change.before, change.after
        bare = _bare(after)
        if before is None or bare != _bare(before):
            self._db.execute("INSERT OR REPLACE INTO worker VALUES (?, ?)", (after.worker, bare))
        known = before.missions if before else {}
        for mission in after.missions.values():
            if known.get(mission.mission) is not mission:
                key = (after.worker, mission.mission)
                self._shown.discard(key)
                self._archived.discard(key)
                row = (*key, msgspec.json.encode(mission), 0 if mission.completed else 1)
                self._db.execute("INSERT OR REPLACE INTO mission VALUES (?, ?, ?, 0, ?)", row)


def _columns(heard: Heard) -> tuple[object, ...]:
    """The values of `_HEARD`. For a bool sqlite3 looks for an adapter, which costs more than the row."""
    return (*astuple(heard)[:-1], int(heard.copied))


def _runs(applied: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """What is noted of events, for each run of numbers together: (what, the first, the last)."""
    numbered = enumerate(sorted(applied))
    for (_, what), run in groupby(numbered, lambda one: (one[1] - one[0], applied[one[1]])):
        numbers = [number for _, number in run]
        yield what, numbers[0], numbers[-1]


def _bare(state: WorkerState) -> bytes:
    """The worker's row: its state without the missions, and which of them a start needs."""
    return msgspec.json.encode({**asdict(state), "missions": {}, "awake": sorted(awake(state))})
