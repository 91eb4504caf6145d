"""Reading a worker's chat database as a guest.

It belongs to a running agent, so it is opened read-only, for a look, only when its files have changed, and only
by SQLite: another `open` of them in this process would drop SQLite's locks. Each statement is short and read to
its end; no transaction stays open. docs/contracts.md, "The chat".
"""

import os
import sqlite3
import stat as mode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.derive.chat import keys
from swarmmemd.layout import CHAT
from swarmmemd.model import Absent, Unreadable, WorkerId
from swarmmemd.observation import Chat, ChatFile, Mark, Message
from swarmmemd.sources.file import YOUNG, Signature, Unchanged, age_of, has_another_name
from swarmmemd.sources.rows import Row, Session, message
from swarmmemd.state import ChatState, Heard

_ROWS = 500
"""Rows of one statement."""
_ROWS_A_LOOK = 10_000
_BYTES_A_LOOK = 16 * 1024 * 1024
_LONGEST_ROW = 4 * 1024 * 1024
_BEFORE = 400
"""Rows before the first that is news whose texts are remembered: a compaction can write them once more."""
_TRIES = 3
_AGAIN = (YOUNG, 0.25, 3.0, 15.0)
"""Ages of a change, in seconds, at which it is looked at once more. The owner writes a commit to the log first and
shows it to readers then; where he is held up between the two, no stat tells when he goes on."""
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 60.0
_OWNER_COMMITS = 0.05
"""Seconds that a statement waits for the end of the owner's commit. Who waits holds no lock."""
_COLUMNS = frozenset({"id", "session_id", "role", "content", "timestamp"})
_WANTED = ("finish_reason", "active", "message_uid", "_compressed_summary")
"""Columns that a schema may lack."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the next look is for: where the last one ended, and what is known of the texts that are found.

    Where the chat was never read, it begins at `since` and what is older than `until` may be known (ms).
    """

    state: ChatState | None
    heard: Callable[[str], Heard | None]
    expect: Callable[[Sequence[str]], object] = lambda keys: None
    """Is told of the keys before `heard` is asked."""
    since: int = 0
    until: int = 0


class ChatSource:
    """The chat of one worker. `look` raises nothing; `due` says when to look again without a hint."""

    def __init__(self, profile: Path, worker: WorkerId) -> None:
        self.path = profile / CHAT[0]
        self.due: float | None = None
        self.trouble: Unreadable | None = None
        self.failing_since: float | None = None
        self.changed_at: float | None = None
        self.read_at: float | None = None
        self.elsewhere = False
        """The database has another name as well, by which it is written: whoever watches its folder hears nothing."""
        self.more = False
        """The last look ended before the newest row."""
        self.last_error: str | None = None
        self._files = _files_of(self.path)
        self._worker = worker
        self._seen: tuple[Signature | None, ...] | None = None
        self._sessions: dict[str, Session] = {}
        self._file: ChatFile | None = None
        self._passed = 0
        self._mark: Mark | None = None
        self._tries = 0

    def changed(self) -> bool:
        """Whether a stat shows other files than the last look did."""
        if self.trouble is not None:
            return False  # it waits; `due` says how long
        if self.elsewhere:
            self._files = _files_of(self.path)
        if self._seen is None:
            return _signature(self._files[0]) is not None
        # A commit changes one of these two, whatever its journal is: the third is there for a moment only.
        return not all(map(_stands, self._files[:2], self._seen[:2]))

    def forget(self) -> None:
        """The next look reads again, whatever was seen before."""
        self._seen, self._passed = None, 0

    def come_back(self, when: float) -> None:
        """A row waits: look again then (monotonic seconds), if not earlier."""
        self.due = when if self.due is None else min(self.due, when)

    def look(self, wanted: Wanted, now: float, wall: float) -> Chat | Unchanged | Unreadable | Absent:
        """The rows behind the cursor, if the files changed or something waits."""
        waits = wanted.state is not None and wanted.state.held is not None
        self._files = _files_of(self.path)
        found = self._signatures()
        if found[0] is None:
            self.elsewhere = os.path.islink(self.path)  # what it leads to can come
            self._seen, self.due, self.trouble, self.failing_since, self._tries = found, None, None, None, 0
            return Absent()
        if self.trouble is not None and self.due is not None and now < self.due:
            return self.trouble
        if found == self._seen and (self.due is None or now < self.due) and not waits:
            return Unchanged()
        if found != self._seen and self._seen is not None:
            self.changed_at = now
        return self._read(wanted, found, now, wall)

    def _signatures(self) -> tuple[Signature | None, ...]:
        return tuple(_signature(path) for path in self._files)

    def _read(
        self, wanted: Wanted, found: tuple[Signature | None, ...], now: float, wall: float
    ) -> Chat | Unchanged | Unreadable:
        try:
            _check(self.path)
            self.elsewhere = has_another_name(self.path)
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(
                sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_OWNER_COMMITS)
            ) as connection:
                connection.execute("PRAGMA query_only = 1")
                connection.text_factory = _text
                chat, self.more = self._rows(connection, wanted, found[0])
        except (sqlite3.Error, OSError, ValueError) as error:
            return self._failed(now, str(error))
        # Opening can make -wal and -shm: what is seen now is what this look has seen, if the rows are all there.
        after = self._signatures()
        self._seen = found if found[:1] != after[:1] or _grew(found, after) else after
        self._tries, self.trouble, self.failing_since, self.read_at = 0, None, None, wall
        self.due = now if self.more or self._seen != after else _next_look(found, now, wall)
        news = chat.messages or chat.restarted or wanted.state is None
        return chat if news else Unchanged()

    def _failed(self, now: float, reason: str) -> Unreadable:
        """`locked` in the middle of the owner's commit is no fault: again soon, then less and less often."""
        self.due = now + min(_FIRST_WAIT * 2.0**self._tries, _LONGEST_WAIT)
        self._tries += 1
        self.failing_since = now if self.failing_since is None else self.failing_since
        self.trouble, self.last_error = Unreadable(reason), reason
        return self.trouble

    # What is read in one look

    def _rows(
        self, connection: sqlite3.Connection, wanted: Wanted, at: Signature | None
    ) -> tuple[Chat, bool]:
        reader = _Reader(connection)
        file = reader.file(self.path)
        if at is None or (file.device, file.inode) != (at.device, at.inode):
            raise ValueError("replaced while it was opened")
        newest, state = reader.newest(), wanted.state
        if file != self._file:
            self._file, self._sessions, self._passed, self._mark = file, {}, 0, None
        passed = max(state.cursor if state else 0, self._passed)
        restarted = state is not None and (
            file != state.file or newest < passed or any(map(reader.denies, (self._mark, state.mark)))
        )
        if restarted:
            self._sessions, self._passed, self._mark = {}, 0, None
        anew = state is None or restarted
        cursor = reader.start(state.since if state else wanted.since) if anew else passed
        for _ in range(_TRIES):
            rows, last = reader.page(cursor, newest)
            messages = self._messages(reader, rows)
            prompts, gone, moved = self._earlier(reader, wanted, rows, messages)
            if not moved:
                break
        else:
            raise ValueError("compacted all the time while it was read")
        self._mark = reader.mark(last) or self._mark
        chat = Chat(
            file=file,
            messages=messages,
            cursor=last,
            newest=newest,
            mark=self._mark,
            prompts=prompts,
            gone=gone,
            restarted=restarted,
            since=wanted.since,
            until=wanted.until,
        )
        if not (messages or anew):
            # Nothing that is worth a commit. After a restart these rows are passed once more.
            self._passed = last
        return chat, last < newest

    def _messages(self, reader: "_Reader", rows: list[Row]) -> tuple[Message, ...]:
        reader.sessions({row.session_id for row in rows}, self._sessions)
        found = (message(row, self._worker, self._sessions) for row in rows)
        return tuple(one for one in found if one is not None)

    def _earlier(
        self, reader: "_Reader", wanted: Wanted, rows: list[Row], messages: tuple[Message, ...]
    ) -> tuple[dict[int, Message], frozenset[int], bool]:
        """The prompt rows that wait for their dispatch; which of the rows that are remembered stand no more; and
        whether a row of this page, whose text is known, has left the conversation since it was read.

        One statement tells of both, so that a compaction is seen on both sides of it or on none.
        """
        state, asked, doubtful = wanted.state, set[int](), set[int]()
        prompts: dict[int, Message] = {}
        here = {row.id: row for row in rows}
        if state is not None and messages:
            asked |= {one.row for one in state.asked.values()}
            pending = {prompt.row for prompt in state.prompts.values() if prompt.pending}
            prompts = {one.row: one for one in self._messages(reader, reader.by_id(pending))}
            named = [(one, keys(one)) for one in messages]
            wanted.expect([key for _, names in named for key in names])
            for one, names in named:
                known = [heard for key in names if (heard := wanted.heard(key)) is not None]
                asked |= {heard.row for heard in known}
                if known and here[one.row].stands:
                    doubtful.add(one.row)
        earlier = asked - here.keys()
        standing = reader.standing(earlier | doubtful) if earlier else doubtful
        fallen = frozenset(row.id for row in rows if not row.stands)
        gone = frozenset(earlier - standing) | fallen
        return prompts | {m.row: m for m in messages if m.user}, gone, not doubtful <= standing


class _Reader:
    """Short statements over one open connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._columns = {row[1] for row in connection.execute("PRAGMA table_info(messages)").fetchall()}
        if not _columns_suffice(self._columns):
            raise ValueError("not a chat database of a known schema")

    def _all(self, sql: str, *values: object) -> list[Any]:
        return self._db.execute(sql, values).fetchall()

    def newest(self) -> int:
        """The greatest row id; 0 for none."""
        return int(self._all("SELECT coalesce(max(id), 0) FROM messages")[0][0])

    def file(self, path: Path) -> ChatFile:
        """Which file it is."""
        found = os.stat(path)
        return ChatFile(found.st_dev, found.st_ino, int(self._all("PRAGMA application_id")[0][0]))

    def mark(self, row: int) -> Mark | None:
        """What the row is known again by; None where it is not there."""
        found = self._all("SELECT timestamp FROM messages WHERE id = ?", row)
        times = [time for (time,) in found if isinstance(time, int | float)]
        return Mark(row, times[0]) if times else None

    def denies(self, mark: Mark | None) -> bool:
        """Whether another row has the id of the marked one. One that was deleted says nothing."""
        found = None if mark is None else self.mark(mark.row)
        return found not in (None, mark)

    def page(self, cursor: int, newest: int) -> tuple[list[Row], int]:
        """The rows behind the cursor that count, as many as a look takes, and the row id that they reach to."""
        rows: list[Row] = []
        size = 0
        while len(rows) < _ROWS_A_LOOK and size < _BYTES_A_LOOK:
            found = self._select(
                f"id > ? AND id <= ?{self._counts()} ORDER BY id LIMIT {_ROWS}", cursor, newest
            )
            rows += found
            size += sum(len(row.content or "") for row in found)
            if len(found) < _ROWS:
                return rows, newest
            cursor = rows[-1].id
        return rows, cursor

    def by_id(self, ids: Iterable[int]) -> list[Row]:
        """These rows, as far as they are there."""
        wanted = sorted(ids)
        return self._select(f"id IN ({_marks(wanted)})", *wanted) if wanted else []

    def standing(self, ids: Iterable[int]) -> set[int]:
        """Those of the rows that are there and active."""
        active = " AND active = 1" if "active" in self._columns else ""
        found: set[int] = set()
        for some in _batches(sorted(ids)):
            sql = f"SELECT id FROM messages WHERE id IN ({_marks(some)}){active}"
            found |= {row[0] for row in self._all(sql, *some)}
        return found

    def sessions(self, ids: set[str], known: dict[str, Session]) -> None:
        """Learns the sessions, and those that they continue."""
        columns = {row[1] for row in self._all("PRAGMA table_info(sessions)")}
        parent = "parent_session_id" if "parent_session_id" in columns else "NULL"
        if "source" not in columns or "id" not in columns:
            return
        while missing := sorted(ids - known.keys()):
            for some in _batches(missing):
                sql = f"SELECT id, source, {parent} FROM sessions WHERE id IN ({_marks(some)})"
                known.update({row[0]: Session(row[1], row[2]) for row in self._all(sql, *some)})
            known.update({id: Session(None, None) for id in missing if id not in known})
            parents = (known[id].parent for id in missing)
            ids = {id for id in parents if id}

    def start(self, since: int) -> int:
        """The row before the first that is read where the chat was never read: some rows before `since`.

        Walks back from the newest row, so that it costs what is news, and never the whole chat.
        """
        if since <= 0:
            return 0
        below = self.newest() + 1
        while True:
            sql = "SELECT id, timestamp FROM messages WHERE id < ? ORDER BY id DESC LIMIT ?"
            found = self._all(sql, below, _BEFORE)
            if len(found) < _BEFORE:
                return 0
            below = found[-1][0]
            if all(isinstance(at, int | float) and at * 1000 < since for _, at in found):
                return int(below) - 1

    def _select(self, where: str, *values: object) -> list[Row]:
        optional = [name if name in self._columns else "NULL" for name in _WANTED]
        content = f"CASE WHEN length(CAST(content AS BLOB)) > {_LONGEST_ROW} THEN NULL ELSE content END"
        columns = ", ".join(("id", "session_id", "role", content, "timestamp", *optional))
        found = self._all(f"SELECT {columns} FROM messages WHERE {where}", *values)
        return [self._row(row) for row in found]

    def _row(self, row: tuple[Any, ...]) -> Row:
        id, session, role, content, timestamp, finish_reason, active, uid, summary = row
        return Row(
            id=id,
            session_id=str(session),
            role=role,
            content=_str(content),
            timestamp=timestamp,
            finish_reason=finish_reason,
            active=active if "active" in self._columns else 1,
            uid=_str(uid),
            is_summary=bool(summary),
        )

    def _counts(self) -> str:
        stands = ""
        if "active" in self._columns:
            compacted = " OR compacted = 1" if "compacted" in self._columns else ""
            stands = f" AND (active = 1{compacted})"
        return f" AND role IN ('user', 'assistant'){stands}"


def _columns_suffice(columns: set[str]) -> bool:
    return columns >= _COLUMNS


def _marks(values: list[Any]) -> str:
    return ", ".join("?" * len(values))


def _batches(values: list[Any], size: int = 500) -> Iterator[list[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _str(value: object) -> str | None:
    if isinstance(value, bytes):
        return _text(value)
    return value if isinstance(value, str) else None


_text = partial(str, encoding="utf-8", errors="replace")
"""Rows can end in the middle of a character."""


def _files_of(path: Path) -> tuple[str, ...]:
    """The database and the files that a commit changes: SQLite keeps them beside what a link leads to."""
    place = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
    return tuple(place + name.removeprefix(CHAT[0]) for name in CHAT)


def _signature(path: str) -> Signature | None:
    """Without the ctime: SQLite touches that of the log when it opens it."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return Signature(found.st_size, found.st_mtime_ns, 0, found.st_ino, found.st_dev)


def _stands(path: str, seen: Signature | None) -> bool:
    """Whether the file has that signature, None for no file. Asked all the time: nothing is made for it."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return seen is None
    return (
        seen is not None
        and found.st_mtime_ns == seen.mtime_ns
        and found.st_size == seen.size
        and found.st_ino == seen.inode
        and found.st_dev == seen.device
    )


def _next_look(found: tuple[Signature | None, ...], now: float, wall: float) -> float | None:
    """When a change that may not be shown yet is looked at once more (monotonic seconds)."""
    ages = [age for one in found if one is not None and (age := age_of(one.mtime_ns, wall)) is not None]
    age = min(ages, default=_AGAIN[-1])
    return next((now + again - age for again in _AGAIN if age < again), None)


def _grew(before: tuple[Signature | None, ...], after: tuple[Signature | None, ...]) -> bool:
    """Whether somebody else wrote the log meanwhile: an empty new one is our own."""
    return any(
        new != old and new is not None and not (old is None and new.size == 0)
        for old, new in zip(before, after, strict=True)
    )


def _check(path: Path) -> None:
    """Raises ValueError for what is no database of this user."""
    found = os.stat(path)
    if not mode.S_ISREG(found.st_mode):
        raise ValueError("not a regular file")
    if found.st_uid != os.geteuid():
        raise ValueError(f"belongs to user {found.st_uid}, and this is user {os.geteuid()}")
    if found.st_size == 0:
        raise ValueError("empty")
