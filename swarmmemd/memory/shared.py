"""The shared folder: each worker's latest handoff, and the archive of completed missions. All of it redacted.

Other programs write there too. A copy of the worker's own handoff that somebody has overwritten is put back
once, no more: then `status` says who does it. docs/contracts.md, "Shared memory".
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import (
    Directory,
    Refused,
    Version,
    hold,
    make_root,
    read_file,
    sweep_temporaries,
    version_at,
)
from swarmmemd.errors import StorageError, system_error
from swarmmemd.handoff import OWN, Author, sha256
from swarmmemd.journal import Journal, KeptHandoff, Placing
from swarmmemd.layout import Place
from swarmmemd.memory.archived import PARTS, Archived
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.obstacles import Obstacle, Obstructed, Stillness, obstacle, put
from swarmmemd.memory.portions import Portions, Unfinished
from swarmmemd.memory.versions import Versions
from swarmmemd.model import MissionId, WorkerId, iso, worker_id
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import safe_lines, safe_text
from swarmmemd.state import MissionState, WorkerState

_LIMIT = 256 * 1024 * 1024
_HANDOFF_LIMIT = 4 * 1024 * 1024
_MARK = re.compile(r"\[REDACTED:([a-z0-9-]+)\]")
_SWEPT = 512
"""Folders of which is known that no left-overs are in them. To look again costs a listing."""
_AT_WORK = 60.0
"""Seconds without an event after which a mission that was dispatched again, and is not complete yet, is archived."""
_RESTORED = 2
"""Once put there, once put back: more would be a fight."""


class SharedMemory:
    """What the daemon keeps below the shared root. `claim` takes the root's lock, and says whether the
    root is there."""

    def __init__(
        self,
        root: Path,
        profiles_root: Path,
        journal: Journal,
        versions: Versions,
        auditor: Auditor,
        claim: Callable[[], bool],
    ) -> None:
        self._root = root
        self._profiles = profiles_root
        self._journal = journal
        self._versions = versions
        self._auditor = auditor
        self._claim = claim
        self._swept: dict[tuple[str, ...], None] = {}
        self._under_way: dict[MissionId, Portions] = {}
        self._stillness = Stillness()
        self.archived = Archived(root, profiles_root, journal)
        self.counts: dict[str, int] = {}
        self.overwritten: dict[WorkerId, str] = {}

    def apply(self, state: WorkerState, now: float, at_once: bool) -> list[Obstacle]:
        """Brings the worker's latest handoff and the archives of its completed missions up to date; if not `at_once`,
        a long archive a portion further, and one of a mission that is at work again when it rests. `now` is monotonic
        seconds."""
        steps: list[Callable[[Directory], object]] = []
        shown = state.missions.get(state.handed_off) if state.handed_off else None
        if shown is not None and shown.handoff is not None and not shown.handoff.local:
            steps.append(partial(self._mirror, state.worker, shown))
        again = self.archived.again(state.worker)
        if missions := dict.fromkeys([*self._journal.not_archived(state.worker), *again]):
            # What is archived is what is there: not before the mission's own files are true.
            waiting = {record.event.mission for record in self._journal.waiting(state.worker)}
            ready = [mission for mission in missions if mission not in waiting]
            when = None if at_once else now
            steps += [partial(self._archive, state, mission, when) for mission in ready]
        if not steps:
            return []
        try:
            with self.opened() as root:
                return list(self._obstacles(steps, root))
        except OSError as error:
            return [obstacle(error, str(self._root))]

    def _obstacles(
        self, steps: Iterable[Callable[[Directory], object]], root: Directory
    ) -> Iterator[Obstacle]:
        """What stands in the way of each target: it stops no other. One portion of a long archive is enough for a
        turn."""
        for step in steps:
            try:
                step(root)
            except Unfinished as stopped:
                yield stopped.obstacle
                return
            except Obstructed as stopped:
                yield stopped.obstacle
            except OSError as error:
                yield obstacle(error, str(self._root))

    def _archive(self, state: WorkerState, mission: MissionId, now: float | None, root: Directory) -> None:
        worker, known, path = state.worker, state.missions.get(mission), layout.manifest(mission).shown
        if now is not None and known is not None and not known.closed:
            # All of a long mission would be redacted once more for each event of it.
            self._stillness.check(worker, path, known, now, _AT_WORK)
        self._journal.archive_again([(worker, mission)])
        self.archive(root, mission, None if now is None else worker)
        self._stillness.forget(worker, path)
        self.archived.done(worker, mission)
        self._journal.settle(archived=[(worker, mission)])

    def archive_by_hand(self, mission: MissionId) -> int | None:
        """Archives a mission now. None if no worker has completed it. Raises `StorageError`."""
        completed = [worker for worker, state in self._journal.sharing(mission) if state.completed]
        if not completed:
            return None
        try:
            with self.opened() as root:
                again = self._journal.archive_again([(worker, mission) for worker in completed])
                changed = self.archive(root, mission)
        except Obstructed as stopped:
            raise StorageError(
                f"{stopped.obstacle.path}: {stopped.obstacle.reason}", "Try it again."
            ) from stopped
        except OSError as error:
            raise system_error(error.filename or self._root, error, "Check what stands there.") from error
        self._journal.settle(archived=again)
        return changed

    def opened(self) -> Directory:
        """The shared root, made where it is missing. Whoever opens it to write holds its lock. Raises OSError."""
        if not self._claim():
            make_root(self._root)
            self._claim()
        return Directory.root(self._root)

    def _folder(self, root: Directory, place: Place) -> Directory:
        """The folder of a place; left-overs of a crash are removed when it is first opened."""
        folder = root.descend(place.folders, create=True)
        if place.folders not in self._swept:
            try:
                sweep_temporaries(folder)
            except OSError:
                folder.close()
                raise
            self._swept[place.folders] = None
            if len(self._swept) > _SWEPT:
                del self._swept[next(iter(self._swept))]
        return folder

    # The latest handoff

    def _mirror(self, worker: WorkerId, mission: MissionState, root: Directory) -> None:
        place = layout.shared_handoff(worker)
        with self._folder(root, place) as folder:
            held = hold(folder, place.name, _HANDOFF_LIMIT)
            before = held.version if held else None
            if held is not None:
                held.close()
            if (attempt := self._journal.placing(worker)) is not None:
                self._journal.placed(worker, succeeded=before != attempt.before)
            version = self._journal.handoff(worker, mission.handoff.sha256) if mission.handoff else None
            if version is None or mission.handoff is None:
                return
            text = self._versions.safe(version.text)
            if held is not None and held.data == text:
                self.overwritten.pop(worker, None)
                return
            there = self._versions.known(worker, held.data) if held is not None else None
            if held is not None and held.data.strip() and there is None:
                raise Obstructed(Obstacle(place.shown, "a new handoff stands there", 0.5, expected=True))
            write = partial(self._write, folder, place, worker, version, text, before)
            if held is not None and there is not None and self._is_other_form(there, version, held.data):
                write()
            elif may_place(version, mission.handoff.rank):
                self._counted(worker, Placing(version.sha256, before), write)
            elif held is not None:
                self.overwritten[worker] = _author(there)

    def _counted(self, worker: WorkerId, placing: Placing, write: Callable[[], None]) -> None:
        """Counted before it is done, and taken back by the next look where the same stands there as before: so a
        crash makes it be restored no more often, and what failed is tried again."""
        self._journal.place(worker, placing)
        try:
            write()
        except Obstructed:
            self._journal.placed(worker, succeeded=False)
            raise
        self._journal.placed(worker)

    def _write(
        self,
        folder: Directory,
        place: Place,
        worker: WorkerId,
        version: KeptHandoff,
        text: bytes,
        before: Version | None,
    ) -> None:
        with self._versions.noted(worker, version, text):
            put(folder, place, text, before)
        self._auditor.replaced(f"{folder.shown}/{place.name}", text)
        self._count(text)
        self.overwritten.pop(worker, None)

    def _is_other_form(self, there: KeptHandoff, version: KeptHandoff, data: bytes) -> bool:
        """Whether what stands there is only another form of what should, or holds secrets of a text that we know:
        then nobody's text is displaced, and it may be replaced however often."""
        return there.sha256 == version.sha256 or self._versions.safe(data) != data

    # The archive

    def archive(self, root: Directory, mission: MissionId, asking: WorkerId | None = None) -> int:
        """Archives a mission: every worker that completed it, and the manifest last. Gives the number of files
        that changed; doing it twice changes nothing. Raises OSError.

        In a turn of the worker `asking` a portion further: raises `Unfinished` until all is archived. The part of
        another one that is at work again is left to its own turns.
        """
        portions = self._under_way.pop(mission, None) or Portions() if asking is not None else None
        try:
            return self._archive_all(root, mission, asking, portions)
        except Unfinished:
            if portions is not None:
                self._under_way[mission] = portions
            raise

    def _archive_all(
        self, root: Directory, mission: MissionId, asking: WorkerId | None, portions: Portions | None
    ) -> int:
        changed, completed, title = 0, 0, ""
        for worker, state in self._journal.sharing(mission):
            if state.completed:
                if state.closed or asking in (None, worker):
                    changed += self._worker(root, worker, state, portions)
                completed, title = max(completed, state.completed), title or state.title
        if not completed:
            return 0
        manifest = self._manifest(root, mission, title, completed)
        return changed + self._put(root, layout.manifest(mission), manifest)

    def forget(self, worker: WorkerId) -> None:
        """The worker is retired: what was begun, for it too, is begun anew."""
        self._under_way.clear()
        self._stillness.forget_all(worker)

    def _worker(
        self, root: Directory, worker: WorkerId, state: MissionState, portions: Portions | None
    ) -> int:
        mission, place, changed = state.mission, layout.summary(state.mission), 0
        kept_local = state.handoff is not None and state.handoff.local
        read = self.archived.versions(worker, mission)
        try:
            with (
                Directory.root(layout.profile(self._profiles, worker)) as profile,
                profile.descend(place.folders) as folder,
            ):
                for name in PARTS:
                    if kept_local and name == layout.HANDOFF:
                        continue
                    copy = layout.archived(mission, worker, name)
                    form = self._form(folder, copy, portions)
                    changed += self._put(root, copy, form) if form is not None else 0
        except FileNotFoundError:
            return changed  # the profile is gone; what was archived of it stays
        self.archived.shows(worker, mission, read)
        return changed

    def _form(self, folder: Directory, copy: Place, portions: Portions | None) -> bytes | None:
        """The redacted form of a part; None where there is none, or its form was put there in an earlier turn."""
        redactor = self._versions.redactor
        if portions is not None and copy.name == layout.EVENTS:
            return portions.form(
                copy, _version(folder, copy.name), redactor, partial(_part, folder, copy.name)
            )
        data = _part(folder, copy.name)
        return None if data is None else archived_form(redactor, copy.name, data)

    def _manifest(self, root: Directory, mission: MissionId, title: str, completed: int) -> bytes:
        place = layout.manifest(mission)
        files: list[Mapping[str, object]] = []
        workers: list[str] = []
        with root.descend(place.folders) as folder:
            for worker in filter(worker_id, folder.names()):
                parts = _parts(folder, worker)
                if parts is not None:
                    workers.append(worker)
                    files += [
                        {"path": f"{worker}/{name}", "bytes": len(data), "sha256": sha256(data)}
                        for name, data in parts.items()
                    ]
        content = {
            "missionId": mission,
            "title": self._versions.redacted(title),
            "status": "complete",
            "workers": workers,
            "files": files,
            "archivedAt": iso(completed),
        }
        return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"

    def _put(self, root: Directory, place: Place, data: bytes) -> int:
        with self._folder(root, place) as folder:
            held = hold(folder, place.name, _LIMIT)
            if held is not None:
                held.close()
            stands = held is not None and held.data == data
            if not stands:
                put(folder, place, data, held.version if held else None)
                self._auditor.replaced(f"{folder.shown}/{place.name}", data)
                self._count(data)
        self._journal.settle(copies={place.shown: sha256(data)})
        return int(not stands)

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


def _author(there: KeptHandoff | None) -> str:
    if there is None or there.author is Author.NOBODY:
        return "another program"
    return there.author.value


def _parts(folder: Directory, worker: str) -> dict[str, bytes] | None:
    """What the archive has of a worker, by name; None where the name is that of something else."""
    try:
        with folder.child(worker) as one:
            found = ((name, _part(one, name)) for name in sorted(PARTS))
            return {name: data for name, data in found if data is not None}
    except Refused:
        return None


def _version(folder: Directory, name: str) -> Version | None:
    """The version of a part that stands there."""
    try:
        return version_at(folder, name)
    except Refused:
        return None


def _part(folder: Directory, name: str) -> bytes | None:
    """A part of the archive; None where there is none, or something that is never read, a link or a device."""
    try:
        return read_file(folder, name, _LIMIT)
    except Refused:
        return None
