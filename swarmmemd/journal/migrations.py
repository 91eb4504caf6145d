"""From each schema of the journal to the next one. docs/operations.md, "Upgrade".

A step is SQL that can be read beside `schema`; it is never changed once it was released.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

_STEPS = {
    1: """
CREATE TABLE rendered_count (
    worker TEXT NOT NULL, mission TEXT NOT NULL, section TEXT NOT NULL, lines INTEGER NOT NULL,
    PRIMARY KEY (worker, mission, section)) WITHOUT ROWID;
INSERT INTO rendered_count SELECT worker, mission, section, count(*) FROM rendered GROUP BY worker, mission, section;
CREATE TABLE placing (
    worker TEXT PRIMARY KEY, sha256 TEXT NOT NULL, device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER
    ) WITHOUT ROWID;
CREATE INDEX event_dispatch ON event (worker, seq) WHERE type = 'dispatch';
CREATE TABLE heard (
    worker TEXT NOT NULL, key TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, row INTEGER NOT NULL,
    session TEXT NOT NULL, at INTEGER NOT NULL, generation INTEGER NOT NULL, mission TEXT, number INTEGER NOT NULL,
    count INTEGER NOT NULL, seen INTEGER NOT NULL, rows INTEGER NOT NULL,
    copies INTEGER NOT NULL, copied INTEGER NOT NULL, PRIMARY KEY (worker, key)) WITHOUT ROWID;
CREATE TABLE audit (number INTEGER PRIMARY KEY, line BLOB NOT NULL);
CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE copy (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
"""
}
"""The version that a step begins with, and its SQL."""


def migrate(connection: sqlite3.Connection, path: Path, version: int, to: int) -> None:
    """Brings the journal at `path` from schema `version` to `to` in one transaction, after a copy of it was made
    beside it, `journal-schema<version>.db`. Raises sqlite3.Error."""
    _copy(connection, path.with_name(f"{path.stem}-schema{version}{path.suffix}"))
    steps = "".join(_STEPS[step] for step in range(version, to))
    connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {to}; COMMIT;")


def _copy(connection: sqlite3.Connection, to: Path) -> None:
    """A whole copy, 0600 from its first byte. One that an earlier try has left is replaced."""
    to.unlink(missing_ok=True)
    os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    with closing(sqlite3.connect(to)) as copy:
        connection.backup(copy)
