"""The watcher itself: one watch for each real directory, and a look at their health.

How changes are heard is the listener's: one thread where that can be (`inotify`), else one for each directory
(`observer`). docs/architecture.md, "Watching".

Threads: `arm`, `disarm`, `check`, `stale` and `close` may be called from any thread; `hint` and `lost` are
called from watching threads and from within `check`. Whoever calls in must not hold a lock that `hint` or
`lost` takes.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Protocol

import msgspec

from swarmmemd.watch import kernel, observer
from swarmmemd.watch.alarms import DeathAlarm
from swarmmemd.watch.inotify import DiffersError, InotifyListener
from swarmmemd.watch.listener import OVERFLOW, Listener
from swarmmemd.watch.root import Backoff, Root, confirm, look, text

AUDIT_EVERY = 60.0
"""Seconds between two audits of the threads and of the kernel's list of watches."""
VERIFY_AT_ONCE = 64
"""Up to so many directories each `arm` asks the kernel itself; beyond, the next `check` asks for all: one
question costs 5 µs for each watch there is, 10 ms for 2,000."""

_DEAF = "the kernel does not watch it"


class Hint(Protocol):
    """Called from watching threads: must only mark."""

    def __call__(self, key: str, name: str) -> None:
        """`key` as given to `arm`; `name` the base name concerned, "" for unknown or the whole directory."""


class Armed(StrEnum):
    """How a key is watched."""

    EVENTS = "events"
    POLL = "poll"
    MISSING = "missing"


class WatchHealth(msgspec.Struct, frozen=True):
    """How watching fares. `mode` is "events" or "poll", the platform's way as a whole.

    `reason` is why something is polled, and what cannot be relied on; "" if nothing. `armed` counts
    directories watched with events, `wanted` keys asked for, `polled` keys that are polled only, `overflows`
    overflows of the kernel's queue since the start. `alive` is False while a thread is dead.
    """

    mode: str
    reason: str
    armed: int
    wanted: int
    polled: int
    overflows: int
    alive: bool


class _Count(msgspec.Struct, frozen=True):
    """Directories watched with events, keys that are polled, and why."""

    armed: int
    polled: int
    reasons: tuple[str, ...]


class Watcher:
    """Watches directories, not recursively, and calls `hint(key, name)` when one is worth a look.

    `lost(reason)` means that events may have been lost: the caller looks at everything. It only marks, too.
    `clock` is monotonic, in seconds; `mountinfo` gives the text of /proc/self/mountinfo.
    """

    def __init__(
        self,
        hint: Hint,
        lost: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        mountinfo: Callable[[], str] = kernel.read_mountinfo,
    ) -> None:
        self._hint, self._lost = hint, lost
        self._clock, self._mountinfo = clock, mountinfo
        self._lock = threading.RLock()
        self._roots: dict[str, Root] = {}
        self._wanted: dict[str, tuple[Path, Root]] = {}
        self._listener: Listener | None = None
        self._running = False
        self._why_poll = "not started"
        self._overflows = 0
        self._fatal = ""  # set by the hook: what ended one of our threads
        self._dead = False  # a thread died and nothing took its place yet
        self._owed: deque[str] = deque(maxlen=16)  # reasons for the call of `lost` that `check` makes
        self._again: list[str] = []  # keys that `check` hints
        self._unverified = False
        self._numbers = count(1)
        self.changes = 0
        """Another number after all that can change what is heard: who asks that all the time asks anew only then."""
        self._count: tuple[int, _Count] = (-1, _Count(0, 0, ()))  # and the changes that it is the count of
        self._audit_at = 0.0
        self._foreign: dict[int, str] = {}  # device -> type of a file system to poll, "" if it is a local one
        self._opening = Backoff(60, 3600)  # no inotify instance to be had
        self._revival = Backoff(1, 60)  # threads that die again and again
        self._crowding = Backoff(60, 3600)  # no thread to be had
        self._orphans = False
        self._death_alarm = DeathAlarm(self._died)

    # -- the interface

    def start(self) -> None:
        """Begins to watch, with what was armed before. Never raises: where it cannot watch, it polls."""
        with self._lock:
            if self._running:
                return
            self._running = True
            self._death_alarm.attach()
            self._audit_at = self._clock() + AUDIT_EVERY
            self._open()

    def arm(self, key: str, directory: Path) -> Armed:
        """Watches `directory` for `key`, and says how. Again for the same: nothing, unless it is another now.

        The real path is watched (a link itself would be deaf: gorakhargosh/watchdog#365), once for all its
        keys. List the directory after arming, not before. Nothing is raised: what cannot be watched is POLL,
        and is tried again by `check` after a minute, doubling to an hour.
        """
        with self._lock:
            identity, reason = look(directory)
            root = self._home(key, directory)
            if root.identity != identity or root.gone:
                self._unschedule(root)
                root.identity, root.reason = identity, reason
                root.retry.reset()
            if identity is None and root.reason != reason:
                root.reason = reason
                self._change()
            elif identity is not None and root.watch is None and root.retry.ready(self._clock()):
                self._schedule(root)
            return self._answer(root)

    def disarm(self, key: str) -> None:
        """Forgets `key`; the directory is watched on if another key wants it. Unknown keys are no error."""
        with self._lock:
            _, root = self._wanted.pop(key, (None, None))
            if root is not None:
                self._change()
                self._leave(key, root)

    def heed(self, key: str, names: frozenset[str]) -> None:
        """Hints also writes to these files of the key's directory, whoever keeps them open: where `heeded_keys`
        says so. Each write is an event, so of a file that is written all the time it is dear. None to stop it."""
        with self._lock:
            _, root = self._wanted.get(key, (None, None))
            if root is None or root.heeded.get(key, frozenset()) == names:
                return
            root.heed(key, names)
            self._change()
            if root.watch is not None and not root.gone:
                try:
                    root.watch.heed()
                except Exception as error:
                    self._unschedule(root)
                    self._refuse(root, text(error))

    def hears(self, key: str) -> bool:
        """Whether events come of the key's directory."""
        _, root = self._wanted.get(key, (None, None))
        return root is not None and root.watch is not None and not root.gone

    def heeded_keys(self) -> list[str]:
        """The keys of which writes to the files that they heed are events."""
        if not self.hears_writes:
            return []
        with self._lock:
            roots = [root for root in self._roots.values() if root.written and root.watch and not root.gone]
            return [key for root in roots for key, names in root.heeded.items() if names]

    @property
    def hears_writes(self) -> bool:
        """Whether writes can be heard at all, and a watch costs little."""
        return self._listener is not None and self._listener.hears_writes

    def check(self) -> WatchHealth:
        """Looks after the threads and the kernel's watches, mends what it can, tells what may be lost.

        Cheap; meant for once a second. Calls `lost` and `hint` before it returns.
        """
        with self._lock:
            if self._running:
                self._tend(self._clock())
            health = self._health()
            again, self._again = self._again, []
        # After the lock: the callbacks may take one of the caller's.
        owed = dict.fromkeys(self._owed.popleft() for _ in range(len(self._owed)))
        if owed:
            self._lost("; ".join(owed))
        for key in again:
            self._mark(key, "")
        return health

    def renew(self, reason: str) -> None:
        """Everything seems alive and nothing comes: the next `check` begins again with all of it. `lost` is told."""
        with self._lock:
            if self._listener is not None:
                self._dead = True
                self._owed.append(reason)
                self._shut(reason)

    def stale(self, key: str) -> bool:
        """Whether `arm` would change something: another directory is there than was armed, or none, or one.

        One stat and no lock, for the caller's sweep. True for a key that was never armed.
        """
        directory, root = self._wanted.get(key, (None, None))
        if directory is None or root is None:
            return True
        identity, reason = look(directory)
        seen_before = identity is not None or bool(reason) == bool(root.reason)
        return root.gone or identity != root.identity or not seen_before

    def close(self) -> None:
        """Ends all threads and puts logging and the exception hook back. What is queued is dropped."""
        with self._lock:
            if not self._running:
                return
            self._running = False
            self._shut("closed")
            self._dead = False
            self._death_alarm.detach()

    def _change(self) -> None:
        self.changes = next(self._numbers)  # of two threads each has its own

    # -- called from watching threads: no lock, no exception

    def _mark(self, key: str, name: str) -> None:
        if not name:
            self._change()  # the directory can be gone
        try:
            self._hint(key, name)
        except Exception as error:
            # The hint is lost, not the watcher: the next check has everything looked at.
            self._owed.append(f"a hint failed: {text(error)}")

    def _missed(self, reason: str) -> None:
        self._overflows += reason == OVERFLOW
        try:
            self._lost(reason)
        except Exception:
            self._owed.append(reason)

    def _died(self, thread: threading.Thread, what: str) -> None:
        listener = self._listener
        if listener is not None and listener.owns(thread):
            self._fatal = f"{type(thread).__name__} died: {what}"

    # -- the listener

    def _open(self) -> None:
        """Makes the listener and arms all that is wanted; else notes why not, and when to try again."""
        if not observer.is_native():
            self._why_poll = f"no native notification: {observer.module()}"
            return
        try:
            self._listener = self._listening()
        except Exception as error:
            self._why_poll = text(error)
            self._opening.failed(self._clock())
            return
        self._why_poll, self._fatal, self._dead = "", "", False
        self._change()
        for root in self._roots.values():
            root.retry.reset()
            if root.identity is not None:
                self._schedule(root)

    def _listening(self) -> Listener:
        """With one thread, if that works as it should, else with one for each directory."""
        if observer.module() == observer.INOTIFY:
            with suppress(DiffersError):
                return InotifyListener(self._mark, self._missed)
        return observer.ObserverListener(self._mark, self._missed)

    def _shut(self, why: str) -> None:
        """Ends the listener and forgets its watches; until the next `_open` everything is polled."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        for root in self._roots.values():
            root.forget_watch()
        self._why_poll, self._orphans, self._unverified = why, False, False
        self._change()

    # -- one directory

    def _home(self, key: str, directory: Path) -> Root:
        """The root of the real directory, with the key in it; the key leaves another that it was in."""
        path = os.path.realpath(directory)
        _, old = self._wanted.get(key, (None, None))
        if old is not None and old.path == path:
            self._wanted[key] = (directory, old)
            return old
        self._change()
        if old is not None:
            self._leave(key, old)
        root = self._roots.setdefault(path, Root(path))
        root.keys = (*root.keys, key)
        self._wanted[key] = (directory, root)
        return root

    def _leave(self, key: str, root: Root) -> None:
        root.keys = tuple(other for other in root.keys if other != key)
        root.heed(key, frozenset())
        del root.heeded[key]
        if not root.keys:
            self._unschedule(root)
            del self._roots[root.path]

    def _answer(self, root: Root) -> Armed:
        if self._listener is None or root.reason:
            return Armed.POLL
        return Armed.MISSING if root.watch is None else Armed.EVENTS

    def _schedule(self, root: Root) -> None:
        if self._listener is None:
            return
        self._change()
        reason = self._unwatchable(root)
        if reason:
            self._refuse(root, reason)
            return
        root.forget_watch()
        root.reason = ""
        try:
            root.watch = self._listener.watch(root)
        except (FileNotFoundError, NotADirectoryError):
            root.identity = None
        except RuntimeError as error:
            self._crowded(root, error)
        except Exception as error:
            self._refuse(root, text(error))
        else:
            self._verify(root)

    def _unwatchable(self, root: Root) -> str:
        """Why events of this directory cannot be had or trusted, "" if they can."""
        kind = self._foreign_kind(root)
        if kind:
            return f"changes on {kind} may be made elsewhere"
        # inotify_add_watch says EACCES and the library does not: the watch would be deaf without a word.
        if not os.access(root.path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            return "not readable"
        return "" if self._crowding.ready(self._clock()) else "no thread left for it"

    def _foreign_kind(self, root: Root) -> str:
        device = root.identity[0] if root.identity else 0
        if device not in self._foreign:
            kind = kernel.file_system(root.path, self._mountinfo())
            self._foreign[device] = kind if kernel.is_foreign(kind) else ""
        return self._foreign[device]

    def _crowded(self, root: Root, error: RuntimeError) -> None:
        """No thread for it. The library leaves its kernel watch armed and its queue growing.

        Nothing public takes it away but another listener, which `_tend` makes once threads may be there
        again; until then no more are asked for, so that one orphan stays one.
        """
        self._crowding.failed(self._clock())
        self._orphans = True
        self._refuse(root, text(error))

    def _refuse(self, root: Root, reason: str) -> None:
        self._change()
        root.forget_watch()
        root.reason = reason
        root.retry.failed(self._clock())

    def _unschedule(self, root: Root) -> None:
        self._change()
        if root.watch is not None:
            with suppress(Exception):
                root.watch.end()
        root.forget_watch()

    # -- health

    def _tend(self, now: float) -> None:
        self._bury()
        if self._orphans and self._crowding.ready(now):
            self._shut("no thread left")
            self._owed.append("rebuilt after a lack of threads")
        if self._listener is None:
            self._reopen(now)
        if self._listener is None:
            return
        missed = self._listener.mend()
        if missed:
            self._owed.append(missed)
        self._retry(now)
        if now >= self._audit_at:
            self._audit_at = now + AUDIT_EVERY
            self._foreign.clear()  # device numbers of unmounted file systems are given out again
            for root in self._listener.silent(self._roots.values()):
                self._rearm(root)
            self._audit_kernel()
        elif self._unverified:
            self._audit_kernel()

    def _bury(self) -> None:
        """Without its thread everything is deaf: begin again with all of it."""
        if self._listener is None:
            return
        dead = self._listener.dead()
        cause = self._fatal or (f"{dead} died" if dead else "")
        if cause:
            self._dead = True
            self._owed.append(cause)
            self._shut(cause)

    def _reopen(self, now: float) -> None:
        if not observer.is_native() or not (self._opening.ready(now) and self._revival.ready(now)):
            return
        if self._dead:
            self._revival.failed(now)
        self._open()
        if self._listener is not None:
            self._owed.append("watching again")

    def _retry(self, now: float) -> None:
        if not self._counted().polled:
            return
        for root in self._roots.values():
            if root.reason and root.identity is not None and root.retry.ready(now):
                self._schedule(root)
                if root.watch is not None:
                    self._again += root.keys

    def _audit_kernel(self) -> None:
        self._unverified = False
        armed = kernel.fully_armed()
        if armed is None:
            return
        for root in self._roots.values():
            if root.watch is not None and not confirm(root, armed):
                self._deaf(root)

    def _verify(self, root: Root) -> None:
        """Asks the kernel after scheduling: at once while that is cheap, else in the next check."""
        if len(self._roots) > VERIFY_AT_ONCE:
            self._unverified = True
            return
        armed = kernel.fully_armed()
        if armed is not None and not confirm(root, armed):
            self._unschedule(root)
            self._refuse(root, _DEAF)

    def _deaf(self, root: Root) -> None:
        """Arms once more what was heard before (removed, unmounted, mask replaced); a new one is polled."""
        if root.verified:
            self._rearm(root)
            return
        self._unschedule(root)
        self._refuse(root, _DEAF)
        self._again += root.keys

    def _rearm(self, root: Root) -> None:
        self._unschedule(root)
        self._schedule(root)
        self._again += root.keys

    def _counted(self) -> "_Count":
        """Of all directories, where something changed since it was counted last."""
        changes = self.changes
        if self._count[0] != changes:
            armed, polled, reasons = 0, 0, set()
            for root in self._roots.values():
                if root.watch is not None:
                    armed += 1
                elif self._listener is None or root.reason:
                    polled += len(root.keys)
                    reasons.add(root.reason)
            self._count = (changes, _Count(armed, polled, tuple(sorted(reasons))))
        return self._count[1]

    def _health(self) -> WatchHealth:
        count = self._counted()
        said = [self._why_poll, *count.reasons]
        if self._listener is not None:
            said += [*self._listener.notes, self._listener.trouble()]
        return WatchHealth(
            mode="poll" if self._listener is None else "events",
            reason="; ".join(dict.fromkeys(reason for reason in said if reason)),
            armed=count.armed,
            wanted=len(self._wanted),
            polled=count.polled,
            overflows=self._overflows,
            alive=not self._dead,
        )
