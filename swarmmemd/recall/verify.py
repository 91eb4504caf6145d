"""The whole tree against the journal: every finding with its place and the way to mend it. Reads only.

It works beside a running daemon: what changed while it was read is read again. docs/contracts.md, "Verify and
rebuild".
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.audit import damages, names
from swarmmemd.config import Config
from swarmmemd.durable import Directory, read_file
from swarmmemd.errors import JournalError
from swarmmemd.instance import is_running
from swarmmemd.journal.inspector import Inspector
from swarmmemd.model import MissionId, Unreadable, WorkerId
from swarmmemd.observation import RosterWorker
from swarmmemd.recall.parts import Examiner, Part
from swarmmemd.recall.secrets import secrets_in
from swarmmemd.redact import Redactor
from swarmmemd.sources.profiles import list_profiles
from swarmmemd.sources.roster import parse_roster

_LIMIT = 64 * 1024 * 1024
_TRIES = 4
_PAUSE = 0.4
"""Seconds after which what seems wrong is looked at again, where a daemon may just be writing it."""
BUSY = "its files were being written all the while: look again"
_CHANGED = "Nothing can make it again. Find out who changed it; a backup tells what stood there."
_SECRET = "Take it out of this file, and make it worthless: others could read it."


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong: in which part, where, and how it is mended. `line` is from 1."""

    part: str
    path: str
    line: int
    what: str
    mend: str


class Information(msgspec.Struct, frozen=True, kw_only=True):
    """What is no fault and worth knowing."""

    part: str
    path: str
    line: int
    what: str


class Verdict(msgspec.Struct, kw_only=True):
    """What was found, and how much was looked at."""

    findings: list[Finding] = []
    information: list[Information] = []
    workers: int = 0
    events: int = 0
    files: int = 0

    def fault(self, part: str, path: Path, line: int, what: str, mend: str) -> None:
        """Adds a finding."""
        self.findings.append(Finding(part=part, path=str(path), line=line, what=what, mend=mend))

    def note(self, part: str, path: Path, line: int, what: str) -> None:
        """Adds an information."""
        self.information.append(Information(part=part, path=str(path), line=line, what=what))


def verify(config: Config, secrets: bool = False) -> Verdict:
    """Looks at everything. Raises `StorageError` where there is no journal."""
    verdict = Verdict()
    path = config.state_dir / layout.JOURNAL
    running = is_running(config.state_dir) is not None
    try:
        journal = Inspector(path)
        try:
            _tree(config, journal, running, verdict)
        finally:
            journal.close()
    except JournalError as error:
        verdict.fault("journal", path, 1, str(error), error.mend or "swarmmemd rebuild --journal")
    if secrets:
        _secrets(config, verdict)
    return verdict


def examiner(config: Config, journal: Inspector, taken_up: bool) -> Examiner:
    """An examiner with the roster as it is now, narrowed to those who are workers by the configuration."""
    return Examiner(config, journal, roster_of(config), taken_up)


def settled(
    one: Examiner, worker: WorkerId, running: bool, mission: MissionId | None = None
) -> list[Part] | None:
    """The worker's files, those of one mission where one is named; where a daemon runs, as they are when nothing is
    being written to them. None where that never was."""
    for attempt in range(_TRIES):
        before = one.journal.stamp(worker)
        parts = one.worker(worker, mission)
        still = one.journal.stamp(worker) == before
        sure = not running or attempt > 1 or not any(part.faults for part in parts)
        if still and sure:
            return parts
        time.sleep(_PAUSE)
    return None


def settled_archives(
    one: Examiner, running: bool, mission: MissionId | None = None, worker: WorkerId | None = None
) -> list[Part]:
    """The files of the archives in the same way."""
    parts = list(one.archives(mission, worker))
    for _ in range(_TRIES if running else 0):
        if not any(part.faults for part in parts):
            break
        time.sleep(_PAUSE)
        parts = list(one.archives(mission, worker))
    return parts


def _tree(config: Config, journal: Inspector, running: bool, verdict: Verdict) -> None:
    one = examiner(config, journal, taken_up=running)
    for worker in journal.workers():
        verdict.workers += 1
        profile = layout.profile(config.profiles_root, worker)
        if not profile.is_dir():
            verdict.note(
                "worker", profile, 1, "the profile is gone; what is recorded of it stays in the journal"
            )
            continue
        parts = settled(one, worker, running)
        if parts is None:
            verdict.note("worker", profile, 1, BUSY)
        _told(parts or [], f"swarmmemd rebuild --worker {worker}", verdict)
        if waiting := journal.waiting(worker):
            verdict.note(
                "worker", profile, 1, f"{len(waiting)} events are recorded and not in their files yet"
            )
    _told(settled_archives(one, running), "", verdict)
    verdict.findings += beyond_repair(config, journal)
    verdict.events = journal.count()


def _told(parts: list[Part], mend: str, verdict: Verdict) -> None:
    for part in parts:
        verdict.files += part.data is not None
        for fault in part.faults:
            verdict.fault(
                part.kind.value, part.path, fault.line, fault.what, _mend(part, mend, fault.mendable)
            )
        for note in part.notes:
            verdict.note(part.kind.value, part.path, note.line, note.what)


def _mend(part: Part, mend: str, mendable: bool) -> str:
    if not mendable:
        return part.mend
    if part.right is None:
        return "It cannot be made again: the worker's profile is gone."
    return mend or f"swarmmemd rebuild --mission {part.mission}"


def beyond_repair(config: Config, journal: Inspector) -> list[Finding]:
    """What is wrong with the journal and the audit log: nothing in the files makes that right."""
    verdict = Verdict()
    for what in journal.integrity():
        verdict.fault("journal", config.state_dir / layout.JOURNAL, 1, what, "swarmmemd rebuild --journal")
    _audit(config, journal, is_running(config.state_dir) is not None, verdict)
    return verdict.findings


def _audit(config: Config, journal: Inspector, running: bool, verdict: Verdict) -> None:
    for attempt in range(_TRIES):
        known = journal.audit()
        found = damages(
            _audit_files(config.state_dir),
            known.head,
            [line for _, line in known.waiting],
            newest=lambda: journal.audit().head,
        )
        if not found or not running or attempt == _TRIES - 1:
            break
        time.sleep(_PAUSE)
    for one in found:
        verdict.fault("audit", config.state_dir / one.name, one.line, one.what, _CHANGED)


def _audit_files(state_dir: Path) -> Iterator[tuple[str, bytes]]:
    with Directory.root(state_dir) as state:
        for name in names(state.names(), layout.AUDIT):
            try:
                data = read_file(state, name, _LIMIT)
            except OSError:
                data = b""  # no file of its own: all of its lines are missing
            if data is not None:
                yield name, data


def _secrets(config: Config, verdict: Verdict) -> None:
    redactor = Redactor(config.redact.patterns, config.redact.allow)
    for place in secrets_in(config.shared_root, redactor):
        if place.trouble:
            verdict.note("secret", place.path, place.line, f"not looked at: {place.trouble}")
        else:
            verdict.fault("secret", place.path, place.line, f"a secret stands here: {place.kind}", _SECRET)


def roster_of(config: Config) -> Mapping[WorkerId, RosterWorker]:
    """The roster's entries of those who are workers; none where it cannot be read."""
    try:
        found = parse_roster(layout.roster(config.workspace_root).read_bytes(), 0)
    except OSError:
        return {}
    if isinstance(found, Unreadable):
        return {}
    workers = config.workers
    listed = list_profiles(config.profiles_root, found.keys(), workers.include, workers.exclude)
    return {} if isinstance(listed, Unreadable) else {w: e for w, e in found.items() if w in listed.workers}
