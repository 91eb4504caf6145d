"""The index of the memory files: a disposable SQLite file that makes a search quicker, and never different.

A file counts as indexed only if its signature is the one that it had when it was indexed; every other file is read.
Each line that the index names is read again before it is shown. docs/search.md, "Index".
"""

import contextlib
import heapq
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.config import Config
from swarmmemd.durable import Directory, open_file
from swarmmemd.errors import StorageError
from swarmmemd.layout import SEARCH
from swarmmemd.model import EventType, MissionId
from swarmmemd.recall import terms
from swarmmemd.recall.lines import Document, Kind, Line, record_line
from swarmmemd.recall.seal import sealed
from swarmmemd.recall.search import (
    Ranked,
    Results,
    SearchQuery,
    Wanted,
    best_of,
    is_copy,
    is_record_of_others,
    ranked,
    results,
    scan,
    wanted,
)
from swarmmemd.recall.tree import LIMIT, MemoryPath, Walk, read, standing, walk_of
from swarmmemd.recall.words import Match, Matcher, Query, fold, parse_query
from swarmmemd.sources.file import Signature, signature

_VERSION = 2
"""Of tables, words and lines together: an index of another version is made anew."""

_TABLES = f"""
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL, inode INTEGER NOT NULL, device INTEGER NOT NULL, lines INTEGER NOT NULL,
    digest BLOB NOT NULL, grows INTEGER NOT NULL);
CREATE TABLE line (
    key INTEGER PRIMARY KEY, file INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, mission TEXT, type TEXT);
CREATE INDEX line_of_file ON line (file);
CREATE VIRTUAL TABLE word USING fts5 (terms, content = '', columnsize = 0, tokenize = 'ascii', prefix = '2 3');
PRAGMA user_version = {_VERSION};
"""
_GONE = 0
"""The file of lines that are no more: their keys stay taken, since the words cannot be taken out."""
_BITS = 15
"""A key is the time of the line, ms, and below it so many bits that tell lines of one time apart."""
_SETTLED = 1_000_000_000
"""ns since the last change of a file's content before it is indexed: within one tick of the file system's clock a
file could change again and show the same signature."""
_VERIFIED = 2000
"""Lines that were read in vain before every file is read instead."""
_TRIES = 3
_AT_ONCE = 1_000
"""Lines that are put into the index together: of a long file, no more than these and its bytes are held."""
_Entry = tuple[tuple[Any, ...], str]
"""A row of `line`, and its terms."""
_MANY = 10_000
"""Lines that are no more, beyond as many as there are: then it is made anew."""


class Stale(Exception):
    """A file changed while the search was at it, or the index does not agree with what it was made from."""


class Index:
    """The index of one state directory, opened for searching or, with `write`, for keeping."""

    def __init__(self, path: Path, write: bool = False) -> None:
        """Raises `sqlite3.Error`, or `StorageError` for what is no file."""
        if write:
            from swarmmemd.journal.schema import check_file  # a search needs nothing of the journal

            check_file(path)
        mode = "rw" if write else "ro"
        self._db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(write)
        except BaseException:
            self._db.close()
            raise
        self._files: dict[str, tuple[int, Signature]] = {}
        self._seen = -1

    def _prepare(self, write: bool) -> None:
        self._db.execute("PRAGMA busy_timeout = 200")
        if write:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA journal_size_limit = 4194304")
        version = self._version()
        if version == 0 and write and not self._one("SELECT count(*) FROM sqlite_master"):
            self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
            version = self._version()
        if version != _VERSION:
            raise sqlite3.DatabaseError(f"the index is of version {version}")

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _version(self) -> int:
        return self._one("PRAGMA user_version")

    def _one(self, sql: str, *values: object) -> int:
        return int(self._db.execute(sql, values).fetchone()[0] or 0)

    # Searching

    def search(self, config: Config, query: SearchQuery) -> Results:
        """What `scan` finds. Raises `Stale` or `sqlite3.Error` where only reading every file can tell."""
        worker, filters = wanted(query)
        words = parse_query(query.text)
        if not terms.askable(words):
            return scan(config, query)
        for _ in range(_TRIES):
            with contextlib.suppress(_ChangedError), self._reading():
                walk = walk_of(config, worker, query.scope)
                found = self._best(walk, words, filters, query)
                return results(found, config, query, words, walk)
        raise Stale

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """One view of the index, whatever its keeper does meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("ROLLBACK")

    def _best(self, walk: Walk, words: Query, filters: Wanted, query: SearchQuery) -> list[Ranked]:
        indexed, matcher = self._known(), Matcher(words)
        current: dict[int, MemoryPath] = {}

        def others() -> Iterator[tuple[MemoryPath, Directory]]:
            for file, folder in walk:
                known = indexed.get(file.path)
                if known is not None and known[1] == file.signature:
                    current[known[0]] = file
                else:
                    yield file, folder

        read_now = best_of(others(), walk, matcher, filters, query.limit)
        with _Lines(walk, matcher) as lines:
            narrow = len(current) * 2 < len(indexed)
            asked = _Asked(self._db, words, filters, current, lines, narrow)
            merged = heapq.merge(asked.ranked(), read_now, key=_place)
            best = list(islice(merged, query.limit))
            if not query.context:
                return best
            return [one._replace(document=one.document or lines.document(one.file)) for one in best]

    def _known(self) -> dict[str, tuple[int, Signature]]:
        """The files that are indexed, with their signatures; read again where somebody has changed them."""
        self._one("SELECT count(*) FROM (SELECT 1 FROM file LIMIT 1)")  # begins the view
        now = self._one("PRAGMA data_version")
        if now != self._seen:
            rows = self._db.execute("SELECT path, id, size, mtime, ctime, inode, device FROM file")
            self._files = {path: (id, Signature(*rest)) for path, id, *rest in rows}
            self._seen = now
        return self._files

    # Keeping

    def update(self, config: Config, pause: Callable[[], bool] = lambda: False) -> int:
        """Brings the index up to date with the files. `pause` is called after each file; True ends it. Gives how many
        files were indexed."""
        walk = walk_of(config, None, "all")
        there, done = bytearray(self._one("SELECT max(id) FROM file") + 1), 0
        for file, folder in walk:
            id, known = self._entry(file.path)
            if id < len(there):
                there[id] = True
            if known != file.signature and self._index(file, folder):
                done += 1
                if pause():
                    break
        else:
            if not walk.troubles:
                self._forget_others(there)
        self._seen = -1
        if self._is_mostly_gone():
            self._empty()
        return done

    def settle(self) -> bool:
        """Brings all of it from SQLite's log into the file itself. False where somebody still reads the log."""
        self._db.execute("PRAGMA busy_timeout = 2000")
        return not self._one("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_mostly_gone(self) -> bool:
        """Whether making the index anew would make it much smaller."""
        gone = self._one("SELECT count(*) FROM line WHERE file = ?", _GONE)
        return gone > _MANY + self._one("SELECT coalesce(sum(lines), 0) FROM file")

    def _empty(self) -> None:
        with self._writing():
            self._db.execute("DELETE FROM line")
            self._db.execute("DELETE FROM file")
            self._db.execute("INSERT INTO word (word) VALUES ('delete-all')")
        self._db.execute("VACUUM")

    def _entry(self, path: str) -> tuple[int, Signature | None]:
        """The id under which the file is indexed, and its signature; 0 and None where it is not."""
        sql = "SELECT id, size, mtime, ctime, inode, device FROM file WHERE path = ?"
        row = self._db.execute(sql, (path,)).fetchone()
        return (row[0], Signature(*row[1:])) if row is not None else (0, None)

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

    def _index(self, file: MemoryPath, folder: Directory) -> bool:
        """Indexes one file that stands still. One that does not, or that cannot be held, is left to the searches."""
        content = _settled(file, folder)
        if content is None:
            return False
        document, data, now = content
        row = self._db.execute(
            "SELECT id, size, lines, digest, grows FROM file WHERE path = ?", (file.path,)
        ).fetchone()
        with self._writing():
            skip, start = 0, 0
            if row is not None and row[4] and row[1] <= len(data) and _digest(data[: row[1]]) == row[3]:
                skip, start = row[2], row[1]  # only what was appended is new
            elif row is not None:
                self._drop(row[0])
                row = None
            id = row[0] if row is not None else self._one("SELECT coalesce(max(id), 0) + 1 FROM file")
            try:
                entries = self._entries(document, id, skip, start)
                while some := list(islice(entries, _AT_ONCE)):
                    self._put(some)
            except _TooMuchError:
                self._drop(id)
                return False
            grows = document.about.kind is Kind.RECORDS and data.endswith(b"\n") and document.dated
            self._db.execute(
                "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (id, file.path, *msgspec.structs.astuple(now), len(document), _digest(data), grows),
            )
        return True

    def _put(self, entries: list[_Entry]) -> None:
        self._db.executemany("INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?)", [one for one, _ in entries])
        self._db.executemany(
            "INSERT INTO word (rowid, terms) VALUES (?, ?)", sorted((one[0], text) for one, text in entries)
        )

    def _entries(self, document: Document, id: int, skip: int, start: int) -> Iterator[_Entry]:
        """Rows of `line`, each with its terms. Raises `_TooMuchError`."""
        used: dict[int, int] = {}
        for number in range(skip + 1, len(document) + 1):
            line, length = document.line(number), document.length(number)
            text = terms.terms(fold(line.text))
            if text is None:
                raise _TooMuchError
            if line.at not in used:
                used[line.at] = self._free(line.at)
            if used[line.at] >= 1 << _BITS:
                raise _TooMuchError
            key = (line.at << _BITS) + used[line.at]
            used[line.at] += 1
            type = line.type.value if line.type else None
            yield (key, id, number, start, length, line.mission, type), text
            start += length + 1

    def _free(self, at: int) -> int:
        """The first number that is free at this time."""
        first = at << _BITS
        newest = self._one(
            "SELECT coalesce(max(key), ?) FROM line WHERE key BETWEEN ? AND ?",
            first - 1,
            first,
            first + (1 << _BITS) - 1,
        )
        return newest - first + 1


class _TooMuchError(Exception):
    """A line or a time has more than the index can hold."""


class _ChangedError(Exception):
    """A file is no longer what it was when the folders were looked at."""


def _place(one: Ranked) -> tuple[tuple[bool, int, int], str, int]:
    return one.worse, one.path, one.number


def _digest(data: bytes) -> bytes:
    from hashlib import blake2b  # brings OpenSSL with it, and a search asks for no digest

    return blake2b(data, digest_size=16).digest()


def _settled(file: MemoryPath, folder: Directory) -> tuple[Document, bytes, Signature] | None:
    try:
        found = read(file, folder)
    except OSError:
        return None
    if found is None:
        return None
    document, now = found
    data = document.data
    young = time.time_ns() - now.ctime_ns < _SETTLED
    if young or now != file.signature or len(data) != now.size or now.size > LIMIT:
        return None
    return (document, data, now) if standing(file, folder) == now else None


class _Asked:
    """The lines that the index names for one query, the best first."""

    def __init__(
        self,
        db: sqlite3.Connection,
        words: Query,
        filters: Wanted,
        current: dict[int, MemoryPath],
        lines: "_Lines",
        narrow: bool,
    ) -> None:
        self._db, self._words, self._current, self._lines = db, words, current, lines
        self._since = filters.since or 0
        conditions, self._values = ["1"], list[object]()
        for column, value in (("l.mission", filters.mission), ("l.type", filters.type)):
            if value is not None:
                conditions.append(f"{column} = ?")
                self._values.append(value)
        if narrow:
            conditions.append("l.file IN (SELECT value FROM json_each(?))")
            self._values.append(json.dumps(list(current)))
        self._where = " AND ".join(conditions)
        self._shown: set[int] = set()
        self._vain = 0

    def ranked(self) -> Iterator[Ranked]:
        """Every line that answers, in rank order."""
        yield from self._told(self._rows(terms.whole_phrase(self._words)), None)
        most = len(self._words.words)
        if terms.at_least(most, self._words) is None:
            rows = self._counted()
            for count, some in groupby(rows, key=lambda row: row[-1]):
                yield from self._told((row[:-1] for row in some), count)
            return
        for count in range(most, 0, -1):
            yield from self._told(self._rows(terms.at_least(count, self._words) or ""), count)

    def _told(self, rows: "Iterator[tuple[Any, ...]]", count: int | None) -> Iterator[Ranked]:
        """The lines of one tier. Rows come by time, the newest first; lines of one time are put in order of place."""
        for at, some in groupby(rows, key=lambda row: row[0] >> _BITS):
            if at < self._since:
                return
            found = [one for row in some if (one := self._checked(row, at, count)) is not None]
            yield from sorted(found, key=_place)

    def _checked(self, row: "tuple[Any, ...]", at: int, count: int | None) -> Ranked | None:
        """The line as it stands in its file, if it belongs into the tier: `count` words, or None for the phrase."""
        key, id, number, start, length, mission, type = row
        file = self._current.get(id)
        if file is None or key in self._shown:
            return None
        row_text, text = self._lines.text(file, number, start, length)
        line = Line(
            number=number,
            text=text,
            at=at,
            mission=MissionId(mission) if mission else None,
            type=EventType(type) if type else None,
        )
        match = self._lines.matcher.match(fold(line.text))
        if match is None or (count is not None and (match.phrase or match.count != count)):
            raise Stale
        if not match.phrase and count is None:
            self._vain += 1
            if self._vain > _VERIFIED:
                raise Stale
            return None
        self._shown.add(key)
        if is_record_of_others(row_text, file.about) and self._lines.copied(file, line, match):
            return None
        return ranked(match, line, file, None)

    def _rows(self, asked: str) -> "Iterator[tuple[Any, ...]]":
        sql = (
            "SELECT l.key, l.file, l.number, l.start, l.length, l.mission, l.type FROM word CROSS JOIN line l "
            f"ON l.key = word.rowid WHERE word MATCH ? AND {self._where} ORDER BY word.rowid DESC"
        )
        return iter(self._db.execute(sql, (asked, *self._values)))

    def _counted(self) -> "Iterator[tuple[Any, ...]]":
        """The same with the number of distinct words, for queries of many words."""
        asked = [terms.one_word(word, self._words) for word in self._words.words]
        each = " UNION ALL ".join("SELECT rowid AS key FROM word WHERE word MATCH ?" for _ in asked)
        sql = (
            "SELECT l.key, l.file, l.number, l.start, l.length, l.mission, l.type, c FROM "
            f"(SELECT key, count(*) AS c FROM ({each}) GROUP BY key) w CROSS JOIN line l ON l.key = w.key "
            f"WHERE {self._where} ORDER BY c DESC, l.key DESC"
        )
        return iter(self._db.execute(sql, (*asked, *self._values)))


class _Lines:
    """Lines of files as they are now, for one query. A file that has changed since the look ends the search."""

    def __init__(self, walk: Walk, matcher: Matcher) -> None:
        self.matcher = matcher
        self._roots = {str(area.root): area.root for area in walk.areas}
        self._open: dict[str, int] = {}
        self._documents: dict[str, Document] = {}

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def text(self, file: MemoryPath, number: int, start: int, length: int) -> tuple[str, str]:
        """The line as it stands there, and what is searched of it."""
        row = os.pread(self._descriptor(file), length, start).decode("utf-8", "replace")
        return row, (record_line(number, row, file.about).text if file.about.kind is Kind.RECORDS else row)

    def copied(self, file: MemoryPath, line: Line, match: Match) -> bool:
        """Whether the line is a copy of another one in its file."""
        return is_copy(self.document(file), line, match, self.matcher)

    def document(self, file: MemoryPath) -> Document:
        """The whole file."""
        if file.path not in self._documents:
            descriptor = self._descriptor(file)
            data = os.pread(descriptor, min(file.signature.size, LIMIT), 0)
            self._documents[file.path] = Document(data, file.about)
        return self._documents[file.path]

    def _descriptor(self, file: MemoryPath) -> int:
        if file.path not in self._open:
            if len(self._open) >= 64:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[file.path] = self._opened(file)
        return self._open[file.path]

    def _opened(self, file: MemoryPath) -> int:
        root = next(root for shown, root in self._roots.items() if file.path.startswith(f"{shown}/"))
        *folders, name = file.path[len(str(root)) + 1 :].split("/")
        try:
            with Directory.root(root) as base, base.descend(tuple(folders)) as folder:
                descriptor = open_file(folder, name, os.O_RDONLY)
        except OSError:
            raise _ChangedError from None
        if signature(os.fstat(descriptor)) != file.signature:
            os.close(descriptor)
            raise _ChangedError
        return descriptor


def search(config: Config, query: SearchQuery) -> Results:
    """Searches with the index where there is one that can be used, and else by reading every file. Raises
    `UsageError`."""
    if (before := sealed(config)) is not None:
        with contextlib.suppress(Stale, sqlite3.Error, OSError, StorageError):
            index = Index(config.state_dir / SEARCH)
            try:
                found = index.search(config, query)
            finally:
                index.close()
            if sealed(config) == before:
                return found
    return scan(config, query)
