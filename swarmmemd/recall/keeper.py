"""Keeps the index current beside the daemon, in a thread of its own. docs/search.md, "Index"."""

import contextlib
import sqlite3
import threading
import time

from swarmmemd.config import Config
from swarmmemd.durable import Directory
from swarmmemd.errors import SwarmmemdError
from swarmmemd.layout import SEAL, SEARCH
from swarmmemd.recall.indexing import Indexer
from swarmmemd.recall.seal import seal, sealed
from swarmmemd.recall.search import has_index
from swarmmemd.recall.tree import walk_of

_EVERY = 60.0
"""Seconds between two looks where something changes."""
_SELDOM = 300.0
"""Seconds between two looks whether there is enough for an index."""
_SHARE = 1000.0
"""Times the CPU of a look that found nothing to do is waited for the next one, so that many files that stand still do
not mean much work."""
_LONGEST = 600.0
"""Seconds: what changes meanwhile is read by each search."""
_WORTH = 3 * 1024 * 1024
"""Bytes of memory files below which no index is made: a search as a process of its own takes no 150 ms without one."""


class Keeper:
    """The thread. It never disturbs who started it: an index that cannot be kept is only not there."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="search index", daemon=True)

    def __enter__(self) -> "Keeper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends after the piece of a file that it is at."""
        self._end.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        wait = 1.0
        while not self._end.wait(wait):
            wait = self._look()

    def _look(self) -> float:
        """Keeps the index, if it is worth it. Gives after how many seconds to look again."""
        began, indexed = time.thread_time(), 0
        worth = is_worth_it(self._config)
        if worth:
            with contextlib.suppress(sqlite3.Error, OSError, SwarmmemdError):
                indexed = keep(self._config, self._end)
        if indexed:
            return _EVERY
        seldom = min(_SHARE * (time.thread_time() - began), _LONGEST)
        return max(_EVERY if worth else _SELDOM, seldom)


def is_worth_it(config: Config) -> bool:
    """Whether there is an index already, or enough to read for one."""
    if has_index(config):
        return True
    size = 0
    for file, _ in walk_of(config, None, "all"):
        size += file.size
        if size > _WORTH:
            return True
    return False


def keep(config: Config, end: threading.Event) -> int:
    """Brings the index up to date and seals it; one that is not as it was sealed, or of another version, is made anew.
    Between two pieces of files it rests as long as the last one took. Gives how many files were indexed."""
    last = time.monotonic()

    def pause() -> bool:
        nonlocal last
        ended = end.wait(min(time.monotonic() - last, 1.0))
        last = time.monotonic()
        return ended

    if sealed(config) is None:
        discard(config)
    try:
        index = Indexer(config.state_dir / SEARCH)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        discard(config)
        index = Indexer(config.state_dir / SEARCH)
    try:
        indexed = index.update(config, pause)
        if index.settle() and sealed(config) is None:
            seal(config)
        return indexed
    except sqlite3.DatabaseError as error:
        index.close()
        if not isinstance(error, sqlite3.OperationalError):
            discard(config)
        raise
    finally:
        index.close()


def discard(config: Config) -> None:
    """Removes the index. The log goes first: with another index it would be taken for that one's."""
    with Directory.root(config.state_dir) as state:
        for name in (SEAL, f"{SEARCH}-wal", f"{SEARCH}-shm", SEARCH):
            with contextlib.suppress(FileNotFoundError):
                state.unlink(name)
