"""One thread for all watches: the reader that watchdog has inside, without the threads that it puts around it.

The only module that knows `InotifyFD`, which is no public interface. So it is not trusted by its version: each
`InotifyListener` first watches a directory and hears of it, and where that does not work there is `DiffersError`.
Then `observer`, the public interface, is the way. docs/architecture.md, "Watching".
"""

import errno
import logging
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

from watchdog.utils import BaseThread, UnsupportedLibcError

from swarmmemd.watch.kernel import FULL_MASK
from swarmmemd.watch.listener import OVERFLOW, Lost, Mark
from swarmmemd.watch.root import Root

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import (
        CallbackId,
        InotifyEvent,
        InotifyFD,
        Mask,
        WatchCallback,
        WatchDescriptor,
    )

PROOF_SECONDS = 2.0
"""How long the proof may take; it takes a millisecond where nothing is wrong."""
_JOIN_SECONDS = 5.0
_LOGGER = "watchdog.observers.inotify_c"

_MODIFY, _OPEN, _MOVE_SELF, _ONLYDIR, _DONT_FOLLOW = 0x2, 0x20, 0x800, 0x0100_0000, 0x0200_0000
_CHANGES = FULL_MASK | _MOVE_SELF | _ONLYDIR | _DONT_FOLLOW
_REFUSED = -1
"""The descriptor that the library hands out where the kernel said EACCES."""

Handle = tuple["WatchDescriptor", "CallbackId"]
"""Two callbacks of one directory have one descriptor, and are told apart by their ids."""


class DiffersError(Exception):
    """The library's reader is not there, or does not work as it did."""


class InotifyListener:
    """Listens with one thread. Raises OSError if no instance is to be had, RuntimeError if no thread, DiffersError."""

    notes: tuple[str, ...] = ()
    hears_writes = True

    def __init__(self, mark: Mark, lost: Lost) -> None:
        self._mark = mark
        self._lost = lost
        self._ids = count(1)
        self._overflowing = False
        self.closed = False
        self._reader = _made()
        # Overflows come by callback; the library's line about them, which nobody takes, would go to stderr.
        self._unheard = logging.NullHandler()
        logging.getLogger(_LOGGER).addHandler(self._unheard)
        try:
            keep_from_children(self._reader)
            self._reader.start()
            self._prove(Path(__file__).parent)
        except BaseException:
            self.close()
            raise

    def watch(self, root: Root) -> "InotifyWatch":
        """Watches the directory itself, not what a link in its place would lead to."""
        made = InotifyWatch(self, root, self._mark)
        made.handle = self.add(root, made)
        return made

    def add(self, root: Root, callback: "InotifyWatch") -> Handle:
        """Calls back for what happens there. The mask is that of the newest callback: the kernel replaces it."""
        return self._add(root.path, _CHANGES | (_MODIFY if root.written else 0), callback)

    def forget(self, handle: Handle) -> None:
        """Calls back no more."""
        self._reader.remove_callbacks([handle])

    def flows(self) -> None:
        """An event came: the next overflow is another one."""
        self._overflowing = False

    def overflowed(self) -> None:
        """Called for each watch that there is; told once."""
        if not self._overflowing:
            self._overflowing = True
            self._lost(OVERFLOW)

    def owns(self, thread: threading.Thread) -> bool:
        """There is but one."""
        return thread is self._reader

    def dead(self) -> str:
        """A dead reader leaves all watches deaf."""
        return "" if self._reader.is_alive() else type(self._reader).__name__

    def silent(self, roots: Iterable[Root]) -> list[Root]:
        """Those that the kernel said it forgot, if nobody has armed them since."""
        return [root for root in roots if root.watch is not None and root.gone]

    def mend(self) -> str:
        """A callback cannot be switched off."""
        return ""

    def trouble(self) -> str:
        """Nor does it depend on anything."""
        return ""

    def close(self) -> None:
        """Ends the reader; what is queued is dropped."""
        self.closed = True
        wait_not_for(self._reader)
        stop(self._reader)
        logging.getLogger(_LOGGER).removeHandler(self._unheard)

    def _add(self, path: str, mask: int, callback: "WatchCallback") -> Handle:
        number = cast("CallbackId", next(self._ids))
        descriptor = self._reader.add_callback(os.fsencode(path), cast("Mask", mask), callback, number)
        if descriptor == _REFUSED:
            self.forget((descriptor, number))
            raise PermissionError(errno.EACCES, "not readable")
        return descriptor, number

    def _prove(self, directory: Path) -> None:
        """Watches for the opening of a directory, opens it, and hears of it. Nothing is written for that."""
        proof = _Proof()
        try:
            handle = self._add(str(directory), _OPEN | _ONLYDIR, proof)
            any(directory.iterdir())
            if not proof.came.wait(PROOF_SECONDS):
                raise DiffersError("nothing is heard of a watch")
            self.forget(handle)
        except OSError:
            return  # what the system refuses here, no watch left for one, says nothing of the library
        except (AttributeError, TypeError, ValueError) as error:
            raise DiffersError(f"{type(error).__name__}: {error}") from error


class InotifyWatch:
    """One watched directory, called back on the reader's thread: no I/O, no lock, no exception."""

    handle: Handle

    def __init__(self, listener: InotifyListener, root: Root, mark: Mark) -> None:
        self._listener = listener
        self._root = root
        self._mark = mark
        self._ended = False

    def on_event(self, event: "InotifyEvent") -> None:
        """Hints the name that it bears; without one it is the directory itself that has another name now."""
        self._listener.flows()
        if event.mask & _MODIFY and event.name not in self._root.written:
            return
        if event.name:
            self._root.tell(self._mark, os.fsdecode(event.name))
        elif event.mask & _MOVE_SELF:
            self._is_gone()

    def on_watch_deleted(self, wd: int) -> None:
        """The kernel watches it no more: deleted, or unmounted. The library calls this when it is closed, too."""
        if not self._listener.closed:
            self._is_gone()

    def on_queue_overflow(self) -> None:
        """The kernel's queue was full."""
        self._listener.overflowed()

    def end(self) -> None:
        """Watches no more."""
        self._ended = True
        self._listener.forget(self.handle)

    def heed(self) -> None:
        """Changes the mask, without a moment in between that nobody watches."""
        before, self.handle = self.handle, self._listener.add(self._root, self)
        self._listener.forget(before)

    def _is_gone(self) -> None:
        if not self._ended:
            self._root.gone = True
            self._root.tell(self._mark, "")


class _Proof:
    """Hears that what is called back is called and looks as `InotifyWatch` expects."""

    def __init__(self) -> None:
        self.came = threading.Event()

    def on_event(self, event: "InotifyEvent") -> None:
        if event.mask & _OPEN and isinstance(event.name, bytes):
            self.came.set()

    def on_watch_deleted(self, wd: int) -> None:
        """Only if this program is being deleted."""

    def on_queue_overflow(self) -> None:
        """Nothing is queued yet."""


def _made() -> "InotifyFD":
    try:
        from watchdog.observers.inotify_c import InotifyFD
    except (ImportError, UnsupportedLibcError) as error:
        raise DiffersError(str(error)) from error
    try:
        return InotifyFD()
    except TypeError as error:
        raise DiffersError(str(error)) from error


def reader_beside(known: set[threading.Thread]) -> BaseThread | None:
    """The reader that an observer has started: nobody else tells of its death. None where there is none (macOS)."""
    for thread in threading.enumerate():
        if thread not in known and isinstance(thread, BaseThread) and type(thread).__name__ == "InotifyFD":
            return thread
    return None


def keep_from_children(reader: BaseThread) -> None:
    """The library opens its descriptor so that programs which are started would inherit it."""
    descriptor = vars(reader).get("_inotify_fd")
    if isinstance(descriptor, int):
        os.set_inheritable(descriptor, False)


def wait_not_for(reader: BaseThread) -> None:
    """One that was killed in the midst of reading, or never started, cannot close the descriptors: the library does."""
    if not reader.is_alive() and "_is_reading" in vars(reader):
        vars(reader)["_is_reading"] = False


def stop(thread: BaseThread) -> None:
    """Ends a thread of the library, whatever it raises."""
    with suppress(Exception):
        thread.stop()
    with suppress(RuntimeError):  # never started
        thread.join(_JOIN_SECONDS)
