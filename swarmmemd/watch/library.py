"""watchdog as it is: its event filter, its threads, and what must be set or mended in it.

docs/architecture.md, "Watching".
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver
from watchdog.utils import BaseThread

from swarmmemd.watch.root import Root

# One list for every watch: watches share one kernel mask for a directory, and the last one asked for wins.
# Each class is needed: Created alone misses a rename over the target, Moved a rename from elsewhere, Deleted
# alone a rename out, Closed alone renames. Modified is left out: a WAL database would send hundreds a second.
FILTER: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileClosedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]
FILTER_MAC: list[type[FileSystemEvent]] = [*FILTER, FileModifiedEvent]  # FSEvents never sends Closed

LOGGERS = ("watchdog.observers.inotify_c", "watchdog.observers.inotify", "fsevents")
JOIN_SECONDS = 5.0

NATIVE = {"watchdog.observers.inotify": FILTER, "watchdog.observers.fsevents": FILTER_MAC}


class Handler(FileSystemEventHandler):
    """Turns the events of one directory into hints. No I/O, no lock, no exception.

    An exception here would end the observer's thread (gorakhargosh/watchdog#793).
    """

    def __init__(self, root: Root, hint: Callable[[str, str], None]) -> None:
        self._root = root
        self._hint = hint

    def dispatch(self, event: FileSystemEvent) -> None:
        """Hints each key with each name of the event; notes that the directory itself was deleted."""
        paths = {os.fsdecode(path) for path in (event.src_path, event.dest_path) if path}
        if isinstance(event, DirDeletedEvent) and self._root.path in paths:
            self._root.gone = True
        for path in paths:
            name = "" if path == self._root.path else path.rpartition(os.sep)[2]
            for key in self._root.keys:
                self._hint(key, name)


def unset_rename_delay() -> str:
    """Takes out the 0.5 s for which a rename out holds up all later events (gorakhargosh/watchdog#649).

    The price: now and then a rename comes as a deletion and a creation. Returns a note if it cannot be done.
    """
    try:
        from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper
    except ImportError:
        return "the delay of renames cannot be set"
    if not hasattr(InotifyMoveEventGrouper, "delay"):
        return "the delay of renames cannot be set"
    InotifyMoveEventGrouper.delay = 0
    return ""


def try_a_thread() -> None:
    """Raises RuntimeError if no thread can be had: the observer would find out with descriptors leaked."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def started(observer: BaseObserver) -> BaseObserver:
    """Starts it with nothing scheduled: a missing path would end a start half way."""
    try:
        observer.start()
    except Exception:
        observer.stop()  # its reader runs already
        raise
    return observer


def reader_beside(known: set[threading.Thread]) -> BaseThread | None:
    """The thread that reads inotify: nobody else tells of its death. None where there is none (macOS)."""
    for thread in threading.enumerate():
        if thread not in known and isinstance(thread, BaseThread) and type(thread).__name__ == "InotifyFD":
            return thread
    return None


def stop(observer: BaseObserver, reader: BaseThread | None) -> None:
    """Ends an observer in any state, and its reader; whatever fails, the rest is still tried."""
    if reader is not None and not reader.is_alive() and "_is_reading" in vars(reader):
        # Killed in the midst of reading, it left the library waiting for it to close the descriptors.
        vars(reader)["_is_reading"] = False
    for thread in (observer, reader):
        if thread is not None:
            with suppress(Exception):
                thread.stop()
            with suppress(RuntimeError):  # never started
                thread.join(JOIN_SECONDS)
