"""Makes and keeps the index: finds the files that have changed, and puts their lines in, a piece of a file at a time.

Of a file that only grows the lines that are in it stay, as long as what was indexed is what stands there: a digest
tells. docs/search.md, "Index".
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.config import Config
from swarmmemd.durable import Directory, open_file
from swarmmemd.journal.schema import check_file
from swarmmemd.recall import terms
from swarmmemd.recall.index import BITS, VERSION, Index
from swarmmemd.recall.lines import Before, Document, Kind, Line, moment, record_line
from swarmmemd.recall.pieces import Pieces, TooLongError
from swarmmemd.recall.tree import LIMIT, MemoryPath, walk_of
from swarmmemd.recall.words import fold
from swarmmemd.sources.file import Signature, signature

_TABLES = f"""
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL, inode INTEGER NOT NULL, device INTEGER NOT NULL, held INTEGER NOT NULL,
    indexed INTEGER NOT NULL, digest BLOB NOT NULL, after TEXT NOT NULL);
CREATE TABLE line (
    key INTEGER PRIMARY KEY, file INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, mission TEXT, type TEXT);
CREATE INDEX line_of_file ON line (file);
CREATE VIRTUAL TABLE word USING fts5 (terms, content = '', columnsize = 0, tokenize = 'ascii', prefix = '2 3');
PRAGMA user_version = {VERSION};
"""
"""Of a file: its signature; whether all its lines are in the index; how many of its bytes are, their digest, and what
the line behind them has to know. Without the digest nothing can go on from there."""
_GONE = 0
"""The file of lines that are no more: their keys stay taken, since the words cannot be taken out."""
_SETTLED = 1_000_000_000
"""ns since the last change of a file's content before it is indexed: within one tick of the file system's clock a
file could change again and show the same signature."""
_AT_ONCE = 1_000
"""Lines whose words are held together."""
_CACHE = 500
"""KiB of the index that are held in memory. Four times as much makes nothing quicker."""
_MANY = 10_000
"""Lines that are no more, beyond as many as there are: then it is made anew."""

_Place = tuple[int, int, int, Line]
"""The number of a line in its file, where it begins, how many bytes it has, and the line."""
_Entry = tuple[tuple[Any, ...], str]
"""A row of `line`, and its terms."""


class _Known(msgspec.Struct, frozen=True):
    """A file in the index: a row of `file`."""

    id: int
    path: str
    signature: Signature
    held: bool = False
    indexed: int = 0
    digest: bytes = b""
    after: Before = Before()

    def row(self) -> tuple[object, ...]:
        """The values of the row."""
        signed = msgspec.structs.astuple(self.signature)
        after = msgspec.json.encode(self.after).decode()
        return (self.id, self.path, *signed, self.held, self.indexed, self.digest, after)


class _TooMuchError(Exception):
    """A line or a time has more than the index can hold."""


class Indexer(Index):
    """The index of one state directory, opened for keeping it."""

    _mode = "rw"

    def __init__(self, path: Path) -> None:
        """Raises `sqlite3.Error`, or `StorageError` for what is no file."""
        check_file(path)
        super().__init__(path)

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA journal_size_limit = 4194304")
        self._db.execute(f"PRAGMA cache_size = -{_CACHE}")
        if not self._one("PRAGMA user_version") and not self._one("SELECT count(*) FROM sqlite_master"):
            self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        super()._prepare()

    def update(self, config: Config, pause: Callable[[], bool] = lambda: False) -> int:
        """Brings the index up to date with the files. `pause` is called after each piece of a file; True ends it.
        Gives how many files were indexed."""
        walk = walk_of(config, None, "all")
        there, done = bytearray(self._one("SELECT max(id) FROM file") + 1), set[str]()
        for file, folder in walk:
            id, known = self._entry(file.path)
            if id < len(there):
                there[id] = True
            if known == file.signature:
                continue
            for _ in self._index(file, folder):
                done.add(file.path)
                if pause():
                    return len(done)
        if not walk.troubles:
            self._forget_others(there)
        self._seen = -1
        if self._is_mostly_gone():
            self._empty()
        return len(done)

    def settle(self) -> bool:
        """Brings all of it from SQLite's log into the file itself. False where somebody still reads the log."""
        self._db.execute("PRAGMA busy_timeout = 2000")
        return not self._one("PRAGMA wal_checkpoint(TRUNCATE)")

    # The whole

    def _entry(self, path: str) -> tuple[int, Signature | None]:
        """The id under which the file is indexed, and its signature; 0 and None where it is not."""
        sql = "SELECT id, size, mtime, ctime, inode, device FROM file WHERE path = ?"
        row = self._db.execute(sql, (path,)).fetchone()
        return (row[0], Signature(*row[1:])) if row is not None else (0, None)

    def _known_as(self, path: str) -> _Known | None:
        row = self._db.execute("SELECT * FROM file WHERE path = ?", (path,)).fetchone()
        if row is None:
            return None
        id, path, *signed, held, indexed, digest, after = row
        before = msgspec.json.decode(after, type=Before)
        return _Known(id, path, Signature(*signed), bool(held), indexed, digest, before)

    def _is_mostly_gone(self) -> bool:
        """Whether making the index anew would make it much smaller."""
        gone = self._one("SELECT count(*) FROM line WHERE file = ?", _GONE)
        return gone > _MANY + self._one("SELECT sum(json_extract(after, '$.lines')) FROM file")

    def _empty(self) -> None:
        with self._writing():
            self._db.execute("DELETE FROM line")
            self._db.execute("DELETE FROM file")
            self._db.execute("INSERT INTO word (word) VALUES ('delete-all')")
        self._db.execute("VACUUM")

    def _forget_others(self, there: bytearray) -> None:
        """Drops the files, among those that were indexed when `there` was made, that are not marked in it."""
        ids = self._db.execute("SELECT id FROM file WHERE id < ?", (len(there),))
        gone = [id for (id,) in ids if not there[id]]
        with self._writing():
            for id in gone:
                self._drop(id)

    def _drop(self, id: int) -> None:
        self._db.execute("UPDATE line SET file = ? WHERE file = ?", (_GONE, id))
        self._db.execute("DELETE FROM file WHERE id = ?", (id,))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # One file

    def _index(self, file: MemoryPath, folder: Directory) -> Iterator[None]:
        """Indexes a file that stands still, as far as it is there at the beginning: a step for each piece that is in
        the index. What happens to it meanwhile is seen by its signature. One that does not stand still, or cannot be
        held, is left to the searches."""
        if time.time_ns() - file.signature.ctime_ns < _SETTLED or file.size > LIMIT:
            return
        with contextlib.suppress(OSError):
            descriptor = open_file(folder, file.path.rpartition("/")[2], os.O_RDONLY)
            try:
                if signature(os.fstat(descriptor)) == file.signature:
                    yield from self._read_on(file, descriptor)
            finally:
                os.close(descriptor)

    def _read_on(self, file: MemoryPath, descriptor: int) -> Iterator[None]:
        known, pieces = self._known_as(file.path), Pieces(descriptor, file.size)
        if known is None or not self._goes_on(known, file, pieces, descriptor):
            pieces, known = Pieces(descriptor, file.size), self._begun(file, known)
        try:
            for data in pieces:
                with self._writing():
                    known = self._put_piece(known, file, data, pieces)
                yield
        except (_TooMuchError, TooLongError):
            with self._writing():
                self._note(msgspec.structs.replace(known, signature=file.signature, held=False))

    def _begun(self, file: MemoryPath, known: _Known | None) -> _Known:
        with self._writing():
            if known is not None:
                self._drop(known.id)
            return _Known(self._one("SELECT max(id) FROM file") + 1, file.path, file.signature)

    def _goes_on(self, known: _Known, file: MemoryPath, pieces: Pieces, descriptor: int) -> bool:
        """Whether what is in the index still stands there, and only what follows is new."""
        stands = msgspec.structs.replace(known.signature, size=file.size) == file.signature
        moved = moment(known.signature.mtime_ns) != file.about.written
        if not known.digest or known.indexed > file.size or not (stands or file.about.only_grows):
            return False
        pieces.skip(known.indexed)
        if pieces.digest != known.digest:
            return False
        with contextlib.suppress(_TooMuchError), self._writing():
            if moved and file.about.kind is Kind.RECORDS:
                self._date_again(known, file, descriptor)
            return True
        return False

    def _put_piece(self, known: _Known, file: MemoryPath, data: bytes, pieces: Pieces) -> _Known:
        """Puts the lines of a piece into the index, which follows what is known of the file. Gives what is now."""
        document = Document(data, file.about, known.after)
        if document.late is not None:
            self._db.execute(
                "UPDATE line SET mission = ? WHERE file = ? AND number >= ?",
                (document.late, known.id, known.after.heading),
            )
        self._put(known.id, _places(document, known))
        open_ended = bool(data) and not data.endswith(b"\n")
        now = msgspec.structs.replace(
            known,
            signature=msgspec.structs.replace(file.signature, size=pieces.place),
            held=pieces.whole,
            indexed=pieces.place,
            digest=b"" if open_ended else pieces.digest,
            after=document.after,
        )
        self._note(now)
        return now

    def _note(self, known: _Known) -> None:
        self._db.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", known.row())

    # Lines

    def _date_again(self, known: _Known, file: MemoryPath, descriptor: int) -> None:
        """Gives the lines that do not say when they were the time that the file has now."""
        first = moment(known.signature.mtime_ns) << BITS
        rows = self._db.execute(
            "SELECT key, number, start, length FROM line WHERE file = ? AND key BETWEEN ? AND ?",
            (known.id, first, first + (1 << BITS) - 1),
        ).fetchall()
        for key, number, start, length in rows:
            row = os.pread(descriptor, length, start).decode("utf-8", "replace")
            line = record_line(number, row, file.about)
            if line.at == file.about.written:
                self._db.execute("UPDATE line SET file = ? WHERE key = ?", (_GONE, key))
                self._put(known.id, [(number, start, length, line)])
        dated = msgspec.structs.replace(known.signature, mtime_ns=file.signature.mtime_ns)
        self._note(msgspec.structs.replace(known, signature=dated, held=False))

    def _put(self, id: int, places: Iterable[_Place]) -> None:
        entries = self._entries(id, places)
        while some := list(islice(entries, _AT_ONCE)):
            self._db.executemany("INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?)", [one for one, _ in some])
            self._db.executemany(
                "INSERT INTO word (rowid, terms) VALUES (?, ?)", sorted((one[0], text) for one, text in some)
            )

    def _entries(self, id: int, places: Iterable[_Place]) -> Iterator[_Entry]:
        """Rows of `line`, each with its terms. Raises `_TooMuchError`."""
        used: dict[int, int] = {}
        for number, start, length, line in places:
            text = terms.terms(fold(line.text))
            if text is None:
                raise _TooMuchError
            if line.at not in used:
                used[line.at] = self._free(line.at)
            if used[line.at] >= 1 << BITS:
                raise _TooMuchError
            key = (line.at << BITS) + used[line.at]
            used[line.at] += 1
            type = line.type.value if line.type else None
            yield (key, id, number, start, length, line.mission, type), text

    def _free(self, at: int) -> int:
        """The first number that is free at this time."""
        first = at << BITS
        newest = self._one(
            "SELECT coalesce(max(key), ?) FROM line WHERE key BETWEEN ? AND ?",
            first - 1,
            first,
            first + (1 << BITS) - 1,
        )
        return newest - first + 1


def _places(document: Document, known: _Known) -> Iterator[_Place]:
    """The lines of a piece with their places in the file."""
    start = known.indexed
    for number in range(1, len(document) + 1):
        length = document.length(number)
        yield known.after.lines + number, start, length, document.line(number)
        start += length + 1
