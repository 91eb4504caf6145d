"""Which folders are watched, and what a hint from each means. docs/architecture.md, "Watching".

Arm, then list: whoever arms a folder looks into it afterwards, since what came before is not reported.
"""

import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from swarmmemd.config import Config
from swarmmemd.layout import CANARY, CHAT, INBOX, MEMORY, RUNTIME, ledger, roster
from swarmmemd.model import WorkerId, worker_id
from swarmmemd.schedule import Wake
from swarmmemd.watch import Armed, Watcher, WatchHealth

PROFILES, LEDGER, REQUESTS, EVERYTHING = "profiles", "ledger", "requests", "everything"
"""Words left for the loop: list the profiles, read ledger and roster, answer requests, sweep all."""

_WORKER = "worker:"
_HANDOFFS = "handoffs:"
_WRITTEN = frozenset((RUNTIME, *CHAT))


class Hinted(msgspec.Struct, frozen=True):
    """Of which workers a hint tells: what comes into the folder and what is closed there; each write to the chat and to
    `runtime.json`; a handoff, in the own folder, in the one in which that would appear, and in the shared one."""

    folders: frozenset[WorkerId] = frozenset()
    writes: frozenset[WorkerId] = frozenset()
    handoffs: frozenset[WorkerId] = frozenset()


class WatchPlan:
    """Keeps the watches on the roots and on each worker's folder."""

    def __init__(self, config: Config, wake: Wake) -> None:
        self._config = config
        self._wake = wake
        self.losses = 0
        self.last_loss = ""
        self.canary: Callable[[], None] = lambda: None
        """Called from the watching threads when the canary's hint has come."""
        self._watcher = Watcher(self._hint, self._lost)
        self._workers: set[WorkerId] = set()
        self._nearest: dict[str, Path] = {}
        self._followed: dict[WorkerId, Path] = {}
        self._busy: set[WorkerId] = set()
        self._hinted = Hinted()
        self._hinted_since = self._watcher.changes

    def start(self) -> None:
        """Starts watching the roots. What cannot be watched is polled."""
        self._watcher.start()
        self.arm_roots()

    def arm_roots(self) -> None:
        """Arms the roots, or the nearest folder above one that is missing; again where another stands there. What came
        into the shared one before is not reported: then every worker is looked at."""
        for key, folder in self._roots().items():
            nearest = _nearest(folder)
            anew = nearest != self._nearest.get(key) or self._watcher.stale(key)
            self._nearest[key] = nearest
            self._watcher.arm(key, nearest)
            if key == "shared" and anew:
                self._all_workers()

    def arm(self, worker: WorkerId) -> Armed:
        """Arms a worker's folder; again where another folder stands in its place."""
        self._workers.add(worker)
        armed = self._watcher.arm(_WORKER + worker, self._config.profiles_root / worker)
        self.heed_writes(worker, worker not in self._busy)
        return armed

    def heed_writes(self, worker: WorkerId, on: bool) -> None:
        """Whether each write to the chat and to `runtime.json` is hinted, whoever keeps them open. Not of a worker at
        work: each would be an event. Of one that is not armed nothing is noted: when it comes back, it begins anew."""
        if worker not in self._workers:
            return
        (self._busy.discard if on else self._busy.add)(worker)
        self._watcher.heed(_WORKER + worker, _WRITTEN if on else frozenset())

    def hinted(self) -> Hinted:
        """What hints tell of each worker. It is asked all the time, so it is made anew only after a change."""
        changes = self._watcher.changes
        if changes != self._hinted_since:
            self._hinted, self._hinted_since = self._found_hinted(), changes
        return self._hinted

    def _found_hinted(self) -> Hinted:
        hears = self._watcher.hears
        folders = frozenset(worker for worker in self._workers if hears(_WORKER + worker))
        heeded = (key for key in self._watcher.heeded_keys() if key.startswith(_WORKER))
        return Hinted(
            folders=folders,
            writes=frozenset(WorkerId(key.removeprefix(_WORKER)) for key in heeded),
            handoffs=frozenset(filter(self._hears_handoffs, self._workers)),
        )

    def _hears_handoffs(self, worker: WorkerId) -> bool:
        own = _HANDOFFS if worker in self._followed else _WORKER
        followed = worker in self._followed or self._watcher.hears_writes
        return followed and self._watcher.hears(own + worker) and self._watcher.hears("shared")

    def disarm(self, worker: WorkerId) -> None:
        """The worker's folder is gone, or no worker's any more."""
        if worker in self._workers:
            self._workers.discard(worker)
            self._watcher.disarm(_WORKER + worker)
        self._busy.discard(worker)
        if self._followed.pop(worker, None):
            self._watcher.disarm(_HANDOFFS + worker)

    def follow_handoffs(self, worker: WorkerId, at_work: bool) -> None:
        """Watches the worker's handoffs: their folder, or the one above until it is there. Where each watch costs a
        thread, only while it has work; those of the others are swept."""
        memory = self._config.profiles_root / worker / MEMORY
        wanted = at_work or self._watcher.hears_writes
        folder = next((one for one in (memory / "handoffs", memory) if wanted and _is_folder(one)), None)
        if folder == self._followed.get(worker) and not (folder and self._watcher.stale(_HANDOFFS + worker)):
            return
        if folder is None:
            del self._followed[worker]
            self._watcher.disarm(_HANDOFFS + worker)
            return
        self._followed[worker] = folder
        self._watcher.arm(_HANDOFFS + worker, folder)
        self._wake.worker(worker)

    def hears_canary(self) -> bool:
        """Arms the canary's folder, and says whether a hint of it can be expected."""
        return self._watcher.arm(CANARY, self._config.state_dir / CANARY) is Armed.EVENTS

    def renew(self, reason: str) -> None:
        """Begins again with all watches: nothing comes of them."""
        self._watcher.renew(reason)

    @property
    def armed(self) -> frozenset[WorkerId]:
        """The workers whose folders are asked for."""
        return frozenset(self._workers)

    def stale(self, worker: WorkerId) -> bool:
        """Whether the worker's path leads to another folder than the one that is watched."""
        return self._watcher.stale(_WORKER + worker)

    def check(self) -> WatchHealth:
        """Health; mends what died."""
        return self._watcher.check()

    def close(self) -> None:
        """Stops watching."""
        self._watcher.close()

    def _roots(self) -> dict[str, Path]:
        config = self._config
        return {
            "profiles-parent": config.profiles_root.parent,
            "profiles": config.profiles_root,
            "workspace": config.workspace_root,
            "ledger": ledger(config.workspace_root).parent,
            "inbox": config.state_dir / INBOX,
            "shared": config.shared_root / "handoffs" / "swarm",
        }

    def _lost(self, reason: str) -> None:
        self.losses += 1
        self.last_loss = reason
        self._wake.word(EVERYTHING)

    def _hint(self, key: str, name: str) -> None:
        """Called from the watching threads: marks, no more. Unknown names are dropped here."""
        if key.startswith(_WORKER):
            if name in (RUNTIME, MEMORY, *CHAT, "") or self._begins_transcript(name):
                self._wake.worker(WorkerId(key.removeprefix(_WORKER)))
        elif key.startswith(_HANDOFFS):
            self._wake.worker(WorkerId(key.removeprefix(_HANDOFFS)))
        elif key == "shared":
            self._shared_hint(name)
        elif key == CANARY:
            self.canary()
        elif key == "inbox":
            self._wake.word(REQUESTS)
        elif key in ("profiles", "profiles-parent"):
            # While a root is missing, the folder above it is watched: then its own name is the news.
            if worker_id(name) is not None or name in ("", *self._config.profiles_root.parts):
                self._wake.word(PROFILES)
        elif name in (
            "",
            *ledger(self._config.workspace_root).parts,
            roster(self._config.workspace_root).name,
        ):
            self._wake.word(LEDGER)

    def _begins_transcript(self, name: str) -> bool:
        """Whether a glob of the transcripts begins with that name. Those further below are swept."""
        return any(fnmatchcase(name, glob.partition("/")[0]) for glob in self._config.transcripts)

    def _shared_hint(self, name: str) -> None:
        worker = worker_id(name.removesuffix("-latest.md"))
        if worker in self._workers and worker is not None:
            self._wake.worker(worker)
        elif not name:
            self._wake.word(LEDGER)  # another folder can stand there: arm again
            self._all_workers()
        elif name in ("handoffs", "swarm", *self._config.shared_root.parts):
            self._wake.word(LEDGER)  # the folder above is watched until this one is there: arm again

    def _all_workers(self) -> None:
        for worker in tuple(self._workers):  # copied at once: called from the watching threads too
            self._wake.worker(worker)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next((one for one in (folder, *folder.parents) if _is_folder(one)), folder)


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - `Path.is_dir` raises where it may not look
