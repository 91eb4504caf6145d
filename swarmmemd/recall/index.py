"""The index of the memory files: a disposable SQLite file that makes a search quicker, and never different.

A file counts as indexed only if its signature is the one that it had when it was indexed; every other file is read.
Each line that the index names is read again before it is shown. docs/search.md, "Index".
"""

import contextlib
import heapq
import json
import os
import sqlite3
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

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
from swarmmemd.recall.tree import LIMIT, MemoryPath, Walk, walk_of
from swarmmemd.recall.words import Match, Matcher, Query, fold, parse_query
from swarmmemd.sources.file import Signature, signature

VERSION = 3
"""Of tables, words and lines together: an index of another version is made anew."""

BITS = 15
"""A key is the time of the line, ms, and below it so many bits that tell lines of one time apart."""
_VERIFIED = 2000
"""Lines that were read in vain before every file is read instead."""
_TRIES = 3


class Stale(Exception):
    """A file changed while the search was at it, or the index does not agree with what it was made from."""


class Index:
    """The index of one state directory, opened for searching."""

    _mode = "ro"

    def __init__(self, path: Path) -> None:
        """Raises `sqlite3.Error`."""
        uri = f"{path.absolute().as_uri()}?mode={self._mode}"
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA busy_timeout = 200")
            self._prepare()
        except BaseException:
            self._db.close()
            raise
        self._files: dict[str, tuple[int, Signature]] = {}
        self._seen = -1

    def _prepare(self) -> None:
        if (version := self._one("PRAGMA user_version")) != VERSION:
            raise sqlite3.DatabaseError(f"the index is of version {version}")

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _one(self, sql: str, *values: object) -> int:
        return int(self._db.execute(sql, values).fetchone()[0] or 0)

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
        """The files whose lines are all indexed, with their signatures; read again where somebody changed them."""
        self._one("SELECT count(*) FROM (SELECT 1 FROM file LIMIT 1)")  # begins the view
        now = self._one("PRAGMA data_version")
        if now != self._seen:
            sql = "SELECT path, id, size, mtime, ctime, inode, device FROM file WHERE held"
            rows = self._db.execute(sql)
            self._files = {path: (id, Signature(*rest)) for path, id, *rest in rows}
            self._seen = now
        return self._files


class _ChangedError(Exception):
    """A file is no longer what it was when the folders were looked at."""


def _place(one: Ranked) -> tuple[tuple[bool, int, int], str, int]:
    return one.worse, one.path, one.number


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
        for at, some in groupby(rows, key=lambda row: row[0] >> BITS):
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
