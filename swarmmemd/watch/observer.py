"""watchdog's public interface, with a thread for each watch: macOS, and where `inotify` cannot be the way.

Its event filter, its threads, and what must be set or mended in it. docs/architecture.md, "Watching".
"""

import os
import threading
import warnings
from collections.abc import Iterable
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
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from swarmmemd.watch.alarms import LossAlarm
from swarmmemd.watch.inotify import keep_from_children, reader_beside, stop, wait_not_for
from swarmmemd.watch.listener import OVERFLOW, Lost, Mark
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

INOTIFY = "watchdog.observers.inotify"
LOGGERS = ("watchdog.observers.inotify_c", INOTIFY, "fsevents")
_NATIVE = {INOTIFY: FILTER, "watchdog.observers.fsevents": FILTER_MAC}


def module() -> str:
    """What watchdog chose for this platform."""
    return Observer.__module__


def is_native() -> bool:
    """Whether that is notified by the system; else it polls, as the sweeps do anyway."""
    return module() in _NATIVE


class ObserverListener:
    """Listens with an observer. Raises OSError if no instance is to be had, RuntimeError if no thread is left."""

    hears_writes = False

    def __init__(self, mark: Mark, lost: Lost) -> None:
        self._mark = mark
        self._lost = lost
        # A copied tree makes the library warn in floods, each time with its whole table of watches.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog(\.|$)")
        delay = unset_rename_delay()
        try_a_thread()
        known = set(threading.enumerate())
        self._observer = _started(Observer())
        self._reader = reader_beside(known)
        if self._reader is not None:
            keep_from_children(self._reader)
        unknown = self._reader is None and module() == INOTIFY
        notes = (delay, "the thread that reads inotify is not known" if unknown else "")
        self.notes = tuple(note for note in notes if note)
        self._alarm = LossAlarm(LOGGERS, self._heard)
        self._alarm.attach()

    def watch(self, root: Root) -> "ObserverWatch":
        """Raises RuntimeError if there is no thread for it, which leaves it armed with nobody to hear."""
        handler = Handler(root, self._mark)
        scheduled = self._observer.schedule(
            handler, root.path, recursive=False, event_filter=_NATIVE[module()]
        )
        return ObserverWatch(self._observer, scheduled)

    def owns(self, thread: threading.Thread) -> bool:
        """The observer, its reader and each emitter."""
        return thread in (self._observer, self._reader) or thread in self._observer.emitters

    def dead(self) -> str:
        """A dead reader leaves all watches deaf and everything else alive."""
        for thread in (self._observer, self._reader):
            if thread is not None and not thread.is_alive():
                return type(thread).__name__
        return ""

    def silent(self, roots: Iterable[Root]) -> list[Root]:
        """Those whose emitter is dead."""
        dead = {emitter.watch for emitter in self._observer.emitters if not emitter.is_alive()}
        return [
            root for root in roots if isinstance(root.watch, ObserverWatch) and root.watch.scheduled in dead
        ]

    def mend(self) -> str:
        """Whoever configures logging can take our handler away."""
        return "" if self._alarm.attach() else "overflows could not be heard for a while"

    def trouble(self) -> str:
        """The library tells of an overflow only in a line of the log."""
        return "logging is disabled: overflows go unseen" if self._alarm.silenced() else ""

    def close(self) -> None:
        """Ends observer and reader, and gives the loggers back; what is queued is dropped."""
        if self._reader is not None:
            wait_not_for(self._reader)
        stop(self._observer)
        if self._reader is not None:
            stop(self._reader)
        self._alarm.detach()

    def _heard(self, message: str) -> None:
        if "thread is inactive" in message:  # said of a watch that is being taken away: nothing is lost
            return
        self._lost(OVERFLOW if "overflow" in message.lower() else f"watchdog: {message}")


class ObserverWatch:
    """One scheduled directory."""

    def __init__(self, observer: BaseObserver, scheduled: ObservedWatch) -> None:
        self._observer = observer
        self.scheduled = scheduled

    def end(self) -> None:
        """Needed before scheduling anew, too: with the dead emitter still there that would do nothing."""
        with suppress(Exception):
            self._observer.unschedule(self.scheduled)

    def heed(self) -> None:
        """All watches of an observer have one mask."""


class Handler(FileSystemEventHandler):
    """Turns the events of one directory into hints. No I/O, no lock, no exception.

    An exception here would end the observer's thread (gorakhargosh/watchdog#793).
    """

    def __init__(self, root: Root, mark: Mark) -> None:
        self._root = root
        self._mark = mark

    def dispatch(self, event: FileSystemEvent) -> None:
        """Hints each name of the event; notes that the directory itself was deleted."""
        paths = {os.fsdecode(path) for path in (event.src_path, event.dest_path) if path}
        if isinstance(event, DirDeletedEvent) and self._root.path in paths:
            self._root.gone = True
        for path in paths:
            self._root.tell(self._mark, "" if path == self._root.path else path.rpartition(os.sep)[2])


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


def _started(observer: BaseObserver) -> BaseObserver:
    """Starts it with nothing scheduled: a missing path would end a start half way."""
    try:
        observer.start()
    except Exception:
        observer.stop()  # its reader runs already
        raise
    return observer
