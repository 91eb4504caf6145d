"""The shared folder: each worker's latest handoff, and the archive of completed missions. All of it redacted.

Other programs write there too. A copy of the worker's own handoff that somebody has overwritten is put back
once, no more: then `status` says who does it. docs/contracts.md, "Shared memory".
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Directory, Refused, hold, make_root, read_file, replace, sweep_temporaries
from swarmmemd.errors import StorageError
from swarmmemd.handoff import OWN, sha256
from swarmmemd.journal import Journal, KeptHandoff
from swarmmemd.layout import Place
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.obstacles import Obstacle
from swarmmemd.model import MissionId, WorkerId, iso, worker_id
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import safe_lines, safe_text
from swarmmemd.state import MissionState, WorkerState

_LIMIT = 256 * 1024 * 1024
_HANDOFF_LIMIT = 4 * 1024 * 1024
_MARK = re.compile(r"\[REDACTED:([a-z0-9-]+)\]")
_RETRY = 1.0
_REFUSED_RETRY = 60.0
_RESTORED = 2
"""Once put there, once put back: more would be a fight."""


class SharedMemory:
    """What the daemon keeps below the shared root. `claim` takes the root's lock when it is first made."""

    def __init__(
        self,
        root: Path,
        profiles_root: Path,
        journal: Journal,
        redactor: Redactor,
        auditor: Auditor,
        claim: Callable[[], object],
    ) -> None:
        self._root = root
        self._profiles = profiles_root
        self._journal = journal
        self._redactor = redactor
        self._auditor = auditor
        self._claim = claim
        self.counts: dict[str, int] = {}
        self.overwritten: dict[WorkerId, str] = {}

    def apply(self, state: WorkerState) -> list[Obstacle]:
        """Brings the worker's latest handoff and the archives of its completed missions up to date."""
        missions = self._journal.not_archived(state.worker)
        shown = state.missions.get(state.handed_off) if state.handed_off else None
        if not missions and (shown is None or shown.handoff is None):
            return []
        try:
            with self.opened() as root:
                if shown is not None:
                    self._mirror(root, state.worker, shown)
                for mission in missions:
                    self.archive(root, mission)
                    self._journal.settle(archived=[(state.worker, mission)])
        except Refused as error:
            where, reason = str(error.filename or self._root), error.strerror or "refused"
            return [Obstacle(where, reason, _REFUSED_RETRY, refused=True)]
        except _NotLookedAt as waits:
            return [Obstacle(str(waits), "a new handoff stands there", 0.5, expected=True)]
        except OSError as error:
            return [Obstacle(str(self._root), error.strerror or str(error), _RETRY)]
        return []

    def archive_by_hand(self, mission: MissionId) -> int | None:
        """Archives a mission now. None if no worker has completed it. Raises `StorageError`."""
        if not any(state.completed for _, state in self._journal.sharing(mission)):
            return None
        try:
            with self.opened() as root:
                return self.archive(root, mission)
        except OSError as error:
            raise StorageError(
                f"{error.filename or self._root}: {error.strerror}", "Check what stands there."
            ) from error

    def opened(self) -> Directory:
        """The shared root, made where it is missing. Raises OSError."""
        try:
            return Directory.root(self._root)
        except FileNotFoundError:
            make_root(self._root)
            self._claim()
            return Directory.root(self._root)

    # The latest handoff

    def _mirror(self, root: Directory, worker: WorkerId, mission: MissionState) -> None:
        version = self._journal.handoff(worker, mission.handoff.sha256) if mission.handoff else None
        if version is None or mission.handoff is None:
            return
        text, place = self.safe(version.text), layout.shared_handoff(worker)
        with root.descend(place.folders, create=True) as folder:
            held = hold(folder, place.name, _HANDOFF_LIMIT)
            if held is not None:
                held.close()
                if held.data in (text, version.text):
                    self.overwritten.pop(worker, None)
                    return
                if held.data.strip() and not self._journal.knows_handoff(worker, sha256(held.data)):
                    raise _NotLookedAt(place.shown)
            if may_place(version, mission.handoff.rank):
                self._journal.place(worker, version.sha256)
                sweep_temporaries(folder)
                replace(folder, place.name, text, held.version if held else None)
                self._auditor.replaced(f"{folder.shown}/{place.name}", text)
                self._count(text)
                self.overwritten.pop(worker, None)
            elif held is not None:
                self.overwritten[worker] = self._author(worker, held.data)

    def _author(self, worker: WorkerId, data: bytes) -> str:
        known = self._journal.handoff(worker, sha256(data))
        return known.author.value if known else "another program"

    # The archive

    def archive(self, root: Directory, mission: MissionId) -> int:
        """Archives a mission: every worker that completed it, and the manifest last. Gives the number of files
        that changed; doing it twice changes nothing. Raises OSError."""
        changed, completed, title = 0, 0, ""
        for worker, state in self._journal.sharing(mission):
            if state.completed:
                changed += self._worker(root, worker, mission)
                completed, title = max(completed, state.completed), title or state.title
        if not completed:
            return 0
        manifest = self._manifest(root, mission, title, completed)
        return changed + self._put(root, layout.manifest(mission), manifest)

    def _worker(self, root: Directory, worker: WorkerId, mission: MissionId) -> int:
        place, changed = layout.summary(mission), 0
        try:
            with (
                Directory.root(layout.profile(self._profiles, worker)) as profile,
                profile.descend(place.folders) as folder,
            ):
                for name in (layout.SUMMARY, layout.EVENTS, layout.HANDOFF):
                    data = read_file(folder, name, _LIMIT)
                    if data is not None:
                        safe = archived_form(self._redactor, name, data)
                        changed += self._put(root, layout.archived(mission, worker, name), safe)
        except FileNotFoundError:
            return changed  # the profile is gone; what was archived of it stays
        return changed

    def _manifest(self, root: Directory, mission: MissionId, title: str, completed: int) -> bytes:
        place = layout.manifest(mission)
        files: list[Mapping[str, object]] = []
        workers: list[str] = []
        with root.descend(place.folders) as folder:
            for worker in folder.names():
                if worker_id(worker) is None:
                    continue
                workers.append(worker)
                with folder.child(worker) as one:
                    sweep_temporaries(one)
                    for name in one.names():
                        data = read_file(one, name, _LIMIT) or b""
                        files.append({"path": f"{worker}/{name}", "bytes": len(data), "sha256": sha256(data)})
        content = {
            "missionId": mission,
            "title": self.redacted(title),
            "status": "complete",
            "workers": workers,
            "files": files,
            "archivedAt": iso(completed),
        }
        return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"

    def _put(self, root: Directory, place: Place, data: bytes) -> int:
        with root.descend(place.folders, create=True) as folder:
            held = hold(folder, place.name, _LIMIT)
            if held is not None:
                held.close()
            stands = held is not None and held.data == data
            if not stands:
                sweep_temporaries(folder)
                replace(folder, place.name, data, held.version if held else None)
                self._auditor.replaced(f"{folder.shown}/{place.name}", data)
                self._count(data)
        self._journal.settle(copies={place.shown: sha256(data)})
        return int(not stands)

    # Redaction

    def safe(self, data: bytes) -> bytes:
        """The redacted form of a text: the same for the same text, so that a copy of it is known again."""
        return safe_text(self._redactor, data)

    def redacted(self, text: str) -> str:
        """The text without its secrets."""
        return self._redactor.redact(text).text

    def _count(self, written: bytes) -> None:
        """Counts the marks in what was written, by kind."""
        for kind in _MARK.findall(written.decode("utf-8", "replace")):
            self.counts[kind] = self.counts.get(kind, 0) + 1


def may_place(version: KeptHandoff, rank: int) -> bool:
    """Whether the version may be put into the shared folder: once, and the worker's own once more."""
    return version.placed == 0 or (rank >= OWN and version.placed < _RESTORED)


def archived_form(redactor: Redactor, name: str, data: bytes) -> bytes:
    """What the archive holds of a mission's file: redacted, `events.jsonl` record by record."""
    return safe_lines(redactor, data) if name == layout.EVENTS else safe_text(redactor, data)


class _NotLookedAt(Exception):
    """A text that is no version yet stands where ours should be: it is looked at first."""
