"""One worker's files against the journal: what is wrong with our part of each, and what it should be.

`verify` says it, `rebuild` makes it so. docs/contracts.md, "Verify and rebuild".
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarmmemd import layout
from swarmmemd.bodies import dropped, with_bodies
from swarmmemd.config import Config
from swarmmemd.durable import Directory, read_file
from swarmmemd.fold import FILES_SHOWN
from swarmmemd.handoff import Author, read_handoff, sha256
from swarmmemd.journal import KeptHandoff
from swarmmemd.journal.inspector import Inspector
from swarmmemd.layout import Place
from swarmmemd.memory.handoffs import local_text
from swarmmemd.memory.identities import TEXTS
from swarmmemd.memory.shared import archived_form, may_place
from swarmmemd.memory.summaries import summary_of
from swarmmemd.mending import Fault, Mended, mend_entries, mend_lines, mend_summary
from swarmmemd.mending.entries import heading_of
from swarmmemd.mending.summary import mission_named
from swarmmemd.mending.values import Due, Need, counted, says_nothing_new
from swarmmemd.model import Event, MissionId, WorkerId, mission_id, utc_day, worker_id
from swarmmemd.observation import RosterWorker
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import safe_text
from swarmmemd.render.summary import FILES, Ours, Summary
from swarmmemd.state import MissionState, WorkerState

_LIMIT = 256 * 1024 * 1024
_NOTHING = b" \t\r\n\0"
"""Of a file with nothing else in it a failing disk has taken the text: nobody wrote that."""


class Kind(StrEnum):
    """What a file is."""

    EVENTS = "events"
    EPISODE = "episode"
    SUMMARY = "summary"
    HANDOFF = "handoff"
    IDENTITY = "identity"
    SHARED = "shared-handoff"
    ARCHIVE = "archive"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One file that is wholly or partly ours. `data` is what stands there, `right` what should; None for no file, and
    for a file that cannot be made right. `worker`, `mission`: whose it is."""

    kind: Kind
    root: Path
    place: Place
    data: bytes | None = None
    right: bytes | None = None
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    worker: WorkerId | None = None
    mission: MissionId | None = None
    mend: str = ""
    """How a fault is mended that `rebuild` cannot mend."""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.place.below(self.root)

    def with_text(self, mended: Mended) -> "Part":
        """The part with what was found."""
        return replace(self, right=mended.data, faults=mended.faults, notes=mended.notes)


class Examiner:
    """Compares workers' files with the journal. `taken_up`: a daemon runs, which takes up new handoffs by itself."""

    def __init__(
        self,
        config: Config,
        journal: Inspector,
        roster: Mapping[WorkerId, RosterWorker],
        taken_up: bool,
    ) -> None:
        self.journal = journal
        self._config = config
        self._roster = roster
        self.taken_up = taken_up
        self._redactor = Redactor(config.redact.patterns, config.redact.allow)

    def worker(self, worker: WorkerId, mission: MissionId | None = None) -> list[Part]:
        """The worker's files, and its latest handoff in the shared folder; those of one mission where one is named.
        Nothing where its profile is gone."""
        root = layout.profile(self._config.profiles_root, worker)
        if not root.is_dir():
            return []
        return list(_Worker(self, self._config, worker, self.journal.state(worker), root).parts(mission))

    def archives(self, mission: MissionId | None = None, worker: WorkerId | None = None) -> Iterator[Part]:
        """The files of the archives, those of one mission or one worker where one is named."""
        waiting = self.journal.unarchived()
        for path, digest in self.journal.copies().items():
            *folders, name = path.split("/")
            place = Place(tuple(folders), name)
            here = MissionId(folders[2])
            whose = WorkerId(folders[3]) if len(folders) > 3 else None
            if here in waiting or (mission or here) != here or (worker and whose not in (worker, None)):
                continue
            part = self.read(Kind.ARCHIVE, self._config.shared_root, place, here)
            if not part.faults and (part.data is None or sha256(part.data) != digest):
                what = "it is missing" if part.data is None else "it is not what was archived"
                part = replace(part, right=self._archived(here, whose, name), faults=(Fault(1, what),))
            yield part

    def _archived(self, mission: MissionId, worker: WorkerId | None, name: str) -> bytes | None:
        """What would be archived now. Empty for what comes of what is made first: the manifest of the files that it
        lists, a copy of a worker's own file that is gone, too. None where nothing can make it again."""
        if worker is None:
            return b""
        profile = layout.profile(self._config.profiles_root, worker)
        place = Place(layout.summary(mission).folders, name)
        local = self.read(Kind.ARCHIVE, profile, place, mission)
        if local.data is not None:
            return archived_form(self._redactor, name, local.data)
        return b"" if profile.is_dir() and not local.faults else None

    def read(self, kind: Kind, root: Path, place: Place, mission: MissionId | None = None) -> Part:
        """The file as it stands there. What is no file of its own is a fault, and never written through."""
        part = Part(kind=kind, root=root, place=place, mission=mission)
        try:
            with Directory.root(root) as base, base.descend(place.folders) as folder:
                return replace(part, data=read_file(folder, place.name, _LIMIT))
        except FileNotFoundError:
            return part
        except OSError as error:
            fault = Fault(1, f"it cannot be read: {error.strerror or error}", mendable=False)
            return replace(
                part,
                faults=(fault,),
                mend=f"Look at {error.filename or part.path}, and move away what is no file.",
            )

    # What the parts of a worker need

    def local(self, version: KeptHandoff) -> bytes:
        """What the worker's own copies of a version hold."""
        return local_text(version, self._redactor if self._config.redact.local else None)

    def safe(self, data: bytes) -> bytes:
        """What the shared folder may hold of a text."""
        return safe_text(self._redactor, data)

    def roster(self, worker: WorkerId) -> RosterWorker | None:
        """The worker's entry in the roster."""
        return self._roster.get(worker)


class _Worker:
    def __init__(
        self, examiner: Examiner, config: Config, worker: WorkerId, state: WorkerState, root: Path
    ) -> None:
        self._examiner = examiner
        self._journal = examiner.journal
        self._config = config
        self._worker = worker
        self._state = state
        self._root = root
        self._waiting = self._journal.waiting(worker)
        self._unshown = self._journal.unshown(worker)
        self._read_back = self._journal.made_until(worker)
        self._own: set[str] = set()
        """Ids of events that were read back and whose own line stands in its file."""
        self._bodies: dict[str, Event] = {}
        """Events whose body the journal has dropped, by their ids, as their lines still tell them."""

    def parts(self, mission: MissionId | None) -> Iterator[Part]:
        """All files; those of one mission and its days where one is named."""
        days: set[str] = set()
        for known in self._journal.missions(self._worker):
            events = self._journal.of_mission(self._worker, known)
            part = self._events(known, [Due(r.event, self._need(r.seq)) for r in events])
            if mission is None or known == mission:
                days.update(utc_day(r.event.at) for r in events)
                yield part
                if known not in self._unshown and not any(r.seq in self._waiting for r in events):
                    yield from self._shown_of(known)
        for day in self._journal.days(self._worker):
            if mission is None or day in days:
                yield self._episode(day)
        if mission is None:
            yield from self._identity()
        if not self._waiting and not self._unshown and mission in (None, self._state.handed_off):
            yield from self._shared()

    def _shown_of(self, mission: MissionId) -> Iterator[Part]:
        state = self._mission(mission)
        if state is not None:
            yield self._summary(state)
            yield from self._handoffs(state)

    def _mission(self, mission: MissionId | None) -> MissionState | None:
        return self._journal.mission(self._worker, mission) if mission else None

    def _read(self, kind: Kind, place: Place, mission: MissionId | None = None) -> Part:
        return replace(self._examiner.read(kind, self._root, place, mission), worker=self._worker)

    def _need(self, seq: int) -> Need:
        return Need.MAY if seq in self._waiting else Need.DUE

    def _events(self, mission: MissionId, due: list[Due]) -> Part:
        part = self._read(Kind.EVENTS, layout.events(mission), mission)
        if part.faults:
            return part
        data = part.data or b""
        self._bodies |= with_bodies((one.event for one in due), data, self._worker)
        due, gone = self._with_bodies(due)
        if self._read_back:
            self._own.update(one.event.id for one in due if one.event.id.encode() in data)
        mended = mend_lines(data, self._worker, mission, due, self._journal.owner)
        if gone:
            what = (
                f"{counted(gone, 'event', 'events')} without a line of ours here; the text is no longer kept"
            )
            mended = replace(mended, notes=(*mended.notes, Fault(1, what)))
        return replace(
            part.with_text(mended),
            mend="To take it into the journal: swarmmemd rebuild --journal",
        )

    def _episode(self, day: str) -> Part:
        part = self._read(Kind.EPISODE, layout.episode(day))
        if part.faults:
            return part
        due = []
        for one in self._journal.of_day(self._worker, day):
            read_back = one.seq <= self._read_back
            told_by_others = read_back and one.event.id not in self._own
            need = Need.MAY if told_by_others else self._need(one.seq)
            due.append(Due(one.event, need, ordered=not read_back))
        due, _ = self._with_bodies(due)
        data = part.data or b""
        mended = mend_entries(data, self._worker, day, due, self._elsewhere(data, day))
        return part.with_text(mended)

    def _with_bodies(self, due: list[Due]) -> tuple[list[Due], int]:
        """The events that can be compared, and how many cannot: their texts are neither in the journal nor here."""
        known = [
            replace(one, event=self._bodies[one.event.id]) if one.event.id in self._bodies else one
            for one in due
        ]
        told = [one for one in known if dropped(one.event) is None]
        return told, len(known) - len(told)

    def _elsewhere(self, data: bytes, day: str) -> list[Due]:
        """The events of the worker and the day that the file says to be of, where those are others."""
        names = heading_of(data).split(" — ")
        worker = worker_id(names[1]) if len(names) == 3 else None
        if worker is None or (worker, names[2]) == (self._worker, day):
            return []
        return [Due(one.event) for one in self._journal.of_day(worker, names[2].strip())]

    def _summary(self, mission: MissionState) -> Part:
        part = self._read(Kind.SUMMARY, layout.summary(mission.mission), mission.mission)
        if part.faults:
            return part
        data = part.data or b""
        named = mission_id(mission_named(data)) if data else None
        other = self._mission(named) if named != mission.mission else None
        mended = mend_summary(
            data,
            self._shown(mission),
            self._ours(mission.mission),
            self._shown(other) if other else None,
            self._ours(other.mission) if other else None,
        )
        return part.with_text(mended)

    def _shown(self, mission: MissionState) -> Summary:
        shown = len(mission.files)
        more = 0
        if shown >= FILES_SHOWN:
            more = self._journal.count_rendered(self._worker, mission.mission, FILES) - shown
        return summary_of(mission, more)

    def _ours(self, mission: MissionId) -> Ours:
        return lambda section, line: self._journal.is_ours(self._worker, mission, section, line)

    # Handoffs

    def _handoffs(self, mission: MissionState) -> Iterator[Part]:
        version = self._journal.handoff(self._worker, mission.handoff.sha256) if mission.handoff else None
        if version is None:
            return
        right = self._examiner.local(version)
        for place, source in (
            (layout.handoff(mission.mission), True),
            (layout.mission_handoff(mission.mission), False),
        ):
            part = self._read(Kind.HANDOFF, place, mission.mission)
            yield part if part.faults else self._copy(part, right, source)

    def _copy(self, part: Part, right: bytes, source: bool) -> Part:
        """A copy of the handoff that counts. In a source a new text is somebody's handoff; elsewhere it is none, and
        stands in the way of the copy: `rebuild` keeps it aside."""
        if part.data == right:
            return replace(part, right=right)
        what = self._absent_or_known(part)
        if what is None and not source:
            what = "the copy was changed, cut off or replaced"
        return self._new(part, right) if what is None else self._faulty(part, right, what)

    def _absent_or_known(self, part: Part) -> str | None:
        """What is wrong with a copy for certain: None for a text that may be somebody's."""
        if part.data is None:
            return "it is missing"
        if not part.data.strip():
            return "it is empty"
        if self._journal.handoff(self._worker, sha256(part.data)):
            return "it is not the handoff that counts"
        return None

    def _new(self, part: Part, right: bytes) -> Part:
        """A text in a place where handoffs are looked for, and that was not looked at."""
        found = read_handoff((part.data or b"").decode("utf-8", "replace"), self._worker)
        if found.refused is not None:
            return self._faulty(
                part, right, f"it is not the handoff that counts, and cannot be one: {found.refused}"
            )
        if says_nothing_new(part.data or b"", right):
            return self._faulty(part, right, "the copy was cut off, or its lines were changed about")
        if self._examiner.taken_up:
            return replace(part, notes=(Fault(1, "a new handoff, not taken up yet"),))
        fault = Fault(1, "a text stands there that was not taken up yet", mendable=False)
        return replace(part, faults=(fault,), mend="To take it up: swarmmemd once")

    def _faulty(self, part: Part, right: bytes, what: str) -> Part:
        return replace(part, right=right, faults=(Fault(1, what),))

    def _shared(self) -> Iterator[Part]:
        shown = self._mission(self._state.handed_off)
        kept = shown.handoff if shown and shown.handoff and not shown.handoff.local else None
        version = self._journal.handoff(self._worker, kept.sha256) if kept else None
        if kept is None or version is None:
            return
        place = layout.shared_handoff(self._worker)
        part = self._examiner.read(Kind.SHARED, self._config.shared_root, place)
        right = self._examiner.safe(version.text)
        if part.faults:
            yield part
        elif part.data in (right, version.text):
            yield replace(part, right=part.data)
        elif (what := self._absent_or_known(part)) is None:
            yield self._new(part, right)
        elif (by := self._keeps_overwriting(part, version, kept.rank)) is not None:
            yield replace(part, notes=(Fault(1, f"overwritten by {by.value}, and left so"),))
        else:
            yield self._faulty(part, right, what)

    def _keeps_overwriting(self, part: Part, version: KeptHandoff, rank: int) -> Author | None:
        """Who does, where the copy is left to him. A text of ours that should not stand there any more nobody wrote."""
        if not part.data or not part.data.strip() or may_place(version, rank):
            return None
        known = self._journal.handoff(self._worker, sha256(part.data))
        by = known.author if known else Author.WORKER
        return None if by is Author.DAEMON else by

    def _identity(self) -> Iterator[Part]:
        entry = self._examiner.roster(self._worker)
        for name, text in TEXTS.items() if entry is not None else ():
            assert entry is not None
            part = self._read(Kind.IDENTITY, layout.identity_file(name))
            if not (part.data or b"").strip(_NOTHING) and not part.faults:
                what = "it is missing" if part.data is None else "it is empty"
                part = self._faulty(part, text(entry).encode("utf-8", "surrogateescape"), what)
            yield part
