"""The tables, their version, and what an SQLite error means for a person."""

import os
import sqlite3
from pathlib import Path

from swarmmemd.errors import DeniedError, JournalError, StorageError, system_error
from swarmmemd.journal.migrations import migrate

SCHEMA = 2

_TABLES = """
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, worker TEXT NOT NULL, mission TEXT,
    type TEXT NOT NULL, at INTEGER NOT NULL, line BLOB NOT NULL, applied INTEGER NOT NULL);
CREATE INDEX event_waiting ON event (worker, seq) WHERE applied <> 1;
CREATE TABLE worker (worker TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE mission (
    worker TEXT NOT NULL, mission TEXT NOT NULL, state BLOB NOT NULL, shown INTEGER NOT NULL,
    archived INTEGER NOT NULL, PRIMARY KEY (worker, mission));
CREATE INDEX mission_by_id ON mission (mission);
CREATE INDEX mission_not_archived ON mission (worker) WHERE archived = 0;
CREATE INDEX mission_not_shown ON mission (worker) WHERE shown = 0;
CREATE TABLE rendered (
    worker TEXT NOT NULL, mission TEXT NOT NULL, section TEXT NOT NULL, line BLOB NOT NULL,
    PRIMARY KEY (worker, mission, section, line)) WITHOUT ROWID;
CREATE TABLE rendered_count (
    worker TEXT NOT NULL, mission TEXT NOT NULL, section TEXT NOT NULL, lines INTEGER NOT NULL,
    PRIMARY KEY (worker, mission, section)) WITHOUT ROWID;
CREATE TABLE handoff (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, worker TEXT NOT NULL, mission TEXT, sha256 TEXT NOT NULL,
    redacted TEXT NOT NULL, author TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL, text BLOB NOT NULL,
    placed INTEGER NOT NULL DEFAULT 0, UNIQUE (worker, sha256));
CREATE INDEX handoff_redacted ON handoff (worker, redacted);
CREATE TABLE placing (
    worker TEXT PRIMARY KEY, sha256 TEXT NOT NULL, device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER
    ) WITHOUT ROWID;
CREATE INDEX event_dispatch ON event (worker, seq) WHERE type = 'dispatch';
CREATE TABLE heard (
    worker TEXT NOT NULL, key TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, row INTEGER NOT NULL,
    session TEXT NOT NULL, at INTEGER NOT NULL, generation INTEGER NOT NULL, mission TEXT, number INTEGER NOT NULL,
    count INTEGER NOT NULL, seen INTEGER NOT NULL, rows INTEGER NOT NULL,
    copies INTEGER NOT NULL, copied INTEGER NOT NULL, PRIMARY KEY (worker, key)) WITHOUT ROWID;
CREATE TABLE made (worker TEXT PRIMARY KEY, read_back INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE file (
    worker TEXT NOT NULL, path TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
    size INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (worker, path)) WITHOUT ROWID;
CREATE TABLE audit (number INTEGER PRIMARY KEY, line BLOB NOT NULL);
CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE copy (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
"""

PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = 1",
    "checkpoint_fullfsync = 1",
    "journal_size_limit = 4194304",
    "busy_timeout = 5000",
)


def newer_than_program(connection: sqlite3.Connection, path: Path) -> int:
    """The schema of the journal. Raises `JournalError` where this program is too old for it."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA:
        raise JournalError(
            f"{path} is of schema {version}, newer than this program (schema {SCHEMA})",
            "Install the newer swarmmemd again. Or set the journal aside (rename it) and read the memory files "
            "back: swarmmemd rebuild --journal",
        )
    return version


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the tables of a new journal, and brings an older one up to date, with a copy of it beside."""
    version = newer_than_program(connection, path)
    if version not in (0, SCHEMA):
        migrate(connection, path, version, SCHEMA)
    if version == 0:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it holds tables of another program")
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")


def check_file(path: Path) -> None:
    """Makes a new journal 0600, and refuses anything that is no file of its own."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise StorageError(f"{path} is not a regular file", "Move it away; swarmmemd follows no link there.")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise system_error(
            path, error, "Check its owner and permissions, and those of its folder."
        ) from error


def explained(error: sqlite3.Error, path: Path) -> StorageError | JournalError:
    text = str(error)
    cannot_open = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CANTOPEN
    if cannot_open and path.exists() and not os.access(path, os.R_OK):
        return DeniedError(f"{path}: it may not be read", "Check its owner and permissions.")
    if isinstance(error, sqlite3.OperationalError) and "malformed" not in text and "disk image" not in text:
        return StorageError(f"{path}: {text}", "Free some space, or check the disk and the permissions.")
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        raise error
    return JournalError(
        f"{path} is damaged: {text}",
        "Set it aside (rename it) and read the memory files back, which loses nothing that is in them: "
        "swarmmemd rebuild --journal",
    )
