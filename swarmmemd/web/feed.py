"""The events of the journal as they are recorded, for all streams at once. docs/api.md, "Events".

The journal's files are looked at while somebody listens, and only then. A stream that is behind what is kept here
reads the journal itself, so a slow reader holds nothing up and nothing grows for it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
from starlette.concurrency import run_in_threadpool

from swarmmemd.errors import SwarmmemdError
from swarmmemd.journal import Filter, Follower, Recorded

_POLL = 0.1
_KEPT = 1000
_PAGE = 500
_QUIET = 15.0
"""Seconds after which a stream that has nothing to say says so: a connection that is dead is found out by it."""


class Seen(msgspec.Struct, frozen=True):
    """What a look at the journal shows. `base` is where the journal began by itself: what is older was read back."""

    events: tuple[Recorded, ...]
    last: int
    base: int


class Feed:
    """Belongs to one event loop."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._recent: deque[Recorded] = deque(maxlen=_KEPT)
        self._last = 0
        self._from = 0
        """Everything after this number and up to `_last` is in `_recent`."""
        self._file: tuple[int, int] | None = None
        self._generation = 0
        self._base = 0
        self._stat: object = None
        self._listeners = 0
        self._poller: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._closed = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """For as long as somebody follows."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    @property
    def listeners(self) -> int:
        """How many streams there are."""
        return self._listeners

    def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        self._tell()

    async def follow(self, after: int | None, recent: int) -> AsyncIterator[Recorded | None]:
        """The events after number `after`; without it the newest `recent` ones and those to come. None is a sign of
        life. A number that the journal does not have yet is one of a journal that is gone."""
        await self._start()
        generation = self._generation
        if after is None:
            newest = await self._read(0, newest=recent) if recent else None
            after = self._last
            for one in newest.events if newest else ():
                yield one
                after = one.seq
        elif after > self._last:
            after = self._base
        while not self._closed:
            if generation != self._generation:
                generation, after = self._generation, self._base
            events = await self._after(after)
            for event in events:
                yield event
                after = event.seq
            if not events and not await self._waited():
                yield None

    async def _after(self, after: int) -> list[Recorded]:
        if after >= self._last:
            return []
        if after >= self._from:
            return [one for one in self._recent if one.seq > after]
        seen = await self._read(after)
        return list(seen.events) if seen else []

    async def _waited(self) -> bool:
        """Whether there is news; False after a while without."""
        try:
            await asyncio.wait_for(self._news.wait(), _QUIET)
        except TimeoutError:
            return False
        return True

    async def _start(self) -> None:
        """Sees to it that somebody looks, and that it was looked once."""
        if self._poller is None or self._poller.done():
            await self._look()
            if self._poller is None or self._poller.done():
                self._poller = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while self._listeners and not self._closed:
            await asyncio.sleep(_POLL)
            await self._look()

    async def _look(self) -> None:
        """Reads on if the journal's files have changed."""
        now = (_stat(self._journal), _stat(self._journal.with_name(self._journal.name + "-wal")))
        if now == self._stat or now[0] is None:
            return
        file = now[0][:2]
        if self._file is not None and file != self._file:
            # Deleted and made anew: its numbers begin again.
            self._generation += 1
            self._recent.clear()
            self._last = self._from = 0
        first = self._last == 0
        seen = await self._read(self._last)
        if seen is None:
            return
        self._stat, self._file, self._base = now, file, seen.base
        if first:
            self._from = self._last = seen.last
        else:
            self._keep(seen.events)
        self._tell()

    def _keep(self, events: tuple[Recorded, ...]) -> None:
        for one in events:
            if len(self._recent) == _KEPT:
                self._from = self._recent[0].seq
            self._recent.append(one)
            self._last = one.seq
        if len(events) == _PAGE:
            self._stat = None  # there is more

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _read(self, after: int, newest: int = 0) -> Seen | None:
        """None where it cannot be read now: there is none yet, it is just being made, or it is damaged. A stream goes
        on through all of that. Read where questions are read, so that posts that wait for the disk hold nothing up."""
        try:
            return await run_in_threadpool(_read, self._journal, after, newest)
        except SwarmmemdError:
            return None


def _read(journal: Path, after: int, newest: int) -> Seen:
    follower = Follower(journal)
    try:
        events = follower.newest(Filter(), newest) if newest else follower.events(Filter(), after, _PAGE)
        return Seen(tuple(events), follower.last(), follower.read_back())
    finally:
        follower.close()


def _stat(path: Path) -> tuple[int, int, int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
    return None
