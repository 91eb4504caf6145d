"""One turn: observe, derive, record, apply, settle. The daemon and `once` run the same one.

The clocks and the sources are passed in. Whatever goes wrong outside is a value or is kept in the report: a
turn raises only `JournalError`. docs/architecture.md, "One turn".
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.derive import HOLD, Safe, Version, derive, floor
from swarmmemd.errors import StorageError
from swarmmemd.handoff import Author, is_local, mirror, sha256
from swarmmemd.journal import Change, Journal, KeptHandoff, Recorded, Rendered
from swarmmemd.memory.obstacles import Obstacle, obstacle
from swarmmemd.memory.readback import read_back
from swarmmemd.memory.shared import SharedMemory
from swarmmemd.memory.summaries import rendered_by
from swarmmemd.memory.versions import Versions
from swarmmemd.memory.worker import Memory
from swarmmemd.model import Absent, Event, MissionId, WorkerId
from swarmmemd.observation import (
    Chat,
    HandoffFile,
    Ledger,
    Observation,
    Phase,
    Roster,
    Runtime,
    TranscriptText,
)
from swarmmemd.remember import bullets_before, remember
from swarmmemd.render.summary import CHECKPOINTS
from swarmmemd.rest import without_resting
from swarmmemd.seam import seam
from swarmmemd.sources.chat import ChatSource, Wanted
from swarmmemd.sources.file import FileSource
from swarmmemd.sources.handoffs import HandoffSource
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.roster import parse_roster
from swarmmemd.sources.runtime import parse_runtime
from swarmmemd.sources.transcripts import TranscriptSource
from swarmmemd.state import WorkerState
from swarmmemd.tracked import Hearing, Posted, Tracked

_T = TypeVar("_T")
_PATIENCE = 1.0
"""Seconds that `runtime.json` waits for a chat that cannot be read."""


class Clock(msgspec.Struct, frozen=True):
    """Where the time comes from: monotonic seconds for waiting, wall seconds for what is written."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]


class Report(msgspec.Struct, kw_only=True):
    """What a turn did, for who runs it: to log, to show, to come back later."""

    recorded: list[Recorded] = []
    obstacles: dict[WorkerId, list[Obstacle]] = {}
    failure: StorageError | None = None
    gone: set[WorkerId] = set()
    skipped_ids: dict[WorkerId, tuple[str, ...]] = {}
    posted: list[Posted] = []


class Turns:
    """Runs turns over the workers that it was given."""

    def __init__(
        self,
        config: Config,
        journal: Journal,
        memory: Memory,
        shared: SharedMemory,
        versions: Versions,
        clock: Clock,
    ) -> None:
        self._profiles_root, self._shared_root = config.profiles_root, config.shared_root
        self._transcripts = config.transcripts
        self._shared = shared
        self._versions = versions
        self.redact(config.redact.local)
        self._journal = journal
        self._memory = memory
        self._clock = clock
        self.workers: dict[WorkerId, Tracked] = {}
        self._compared: tuple[Ledger, tuple[MissionId, ...]] | None = None
        self.ledger: FileSource[Ledger] = FileSource(
            "ledger", layout.ledger(config.workspace_root), parse_ledger
        )
        self.roster: FileSource[Roster] = FileSource(
            "roster", layout.roster(config.workspace_root), parse_roster
        )

    def redact(self, local: bool) -> None:
        """Says whether what is recorded from now on is redacted, and so the worker's own memory."""
        self.safe: Safe = self._versions.redacted if local else str

    def track(self, worker: WorkerId) -> Tracked:
        """Begins to watch a worker; twice is once."""
        if worker not in self.workers:
            self.workers[worker] = self._tracked(worker)
        return self.workers[worker]

    def _tracked(self, worker: WorkerId) -> Tracked:
        runtime = FileSource("runtime.json", layout.runtime(self._profiles_root, worker), parse_runtime)
        profile = layout.profile(self._profiles_root, worker)
        handoffs = HandoffSource(profile, self._shared_root, worker)
        transcripts = TranscriptSource(profile, self._transcripts)
        return Tracked(worker, runtime, handoffs, ChatSource(profile, worker), transcripts)

    def retire(self, worker: WorkerId) -> None:
        """Stops to watch a worker. Its memory stays."""
        self.workers.pop(worker, None)
        self._memory.forget(worker)
        self._shared.forget(worker)

    def run(self, workers: Iterable[WorkerId]) -> Report:
        """One turn for these workers. What cannot be done now is in the report, with when to come back."""
        tracked = self._known(workers)
        report = self._look(tracked)
        self._apply_all(tracked, report)
        return report

    def look(self, workers: Iterable[WorkerId]) -> Report:
        """The first half of a turn: observe, derive, record. A state that is overwritten before it was looked at
        is gone, so nobody's look waits for somebody else's files."""
        return self._look(self._known(workers))

    def apply(self, workers: Iterable[WorkerId], at_once: bool = True) -> Report:
        """The second half: apply, settle. Repeating it changes nothing. If not `at_once`, a long archive takes some
        turns."""
        report = Report()
        self._apply_all(self._known(workers), report, at_once)
        return report

    def _known(self, workers: Iterable[WorkerId]) -> list[Tracked]:
        return [self.workers[worker] for worker in dict.fromkeys(workers) if worker in self.workers]

    def _look(self, tracked: list[Tracked]) -> Report:
        report = Report()
        self._compared = None
        self.ledger.look(self._clock.monotonic(), self._clock.wall())
        try:
            seen = [(one, shown) for one in tracked if (shown := self._tried(one, self._observed, report))]
            seam.call("turn", "observe")
            found = [
                (one, c)
                for one, shown in seen
                if (c := self._tried(one, partial(self._derived, shown), report))
            ]
            seam.call("turn", "derive")
            self._record(found, report)
            seam.call("turn", "record")
        except StorageError as error:
            report.failure = error
            for one in tracked:
                one.forget()
        return report

    def _apply_all(self, tracked: list[Tracked], report: Report, at_once: bool = True) -> None:
        for one in tracked:
            self._apply(one, report, at_once)
            self._let_go(one)
        seam.call("turn", "settle")

    def _let_go(self, one: Tracked) -> None:
        """What rests need not be held: it is recorded."""
        if one.state is not None:
            one.state = without_resting(one.state, one.ledger)
            self._memory.let_go(one.id, one.state.missions.keys())

    def show_later(self, one: Tracked, mission: MissionId) -> None:
        """A `SUMMARY.md` that others are writing is made true by a later turn."""
        one.unshown.add(mission)

    def settle(self) -> None:
        """Commits what was applied, where no later turn did it on its way. Raises `StorageError`."""
        self._journal.flush()

    # 1 observe

    def _observed(self, one: Tracked, report: Report) -> Observation | None:
        """What there is to judge: a changed `runtime.json`, a changed ledger; None where there is neither."""
        self._state(one)
        view = one.runtime.look(self._clock.monotonic(), self._clock.wall())
        if isinstance(view, Absent):
            report.gone.add(one.id)
        if isinstance(view, Runtime):
            if view.bad_ids and view.bad_ids != one.bad_ids:
                report.skipped_ids[one.id] = view.bad_ids
            one.bad_ids = view.bad_ids
        shown = view if isinstance(view, Runtime) else None
        # The other sources tell of a worker only once it was met, or if the roster names it.
        met = shown is not None or one.state is not None or self._in_roster(one)
        handoffs = self._new_handoffs(one) if met else ()
        chat = self._chat(one, shown) if met else None
        if shown is not None and self._waits_for_chat(one, shown):
            one.runtime.forget()
            shown = None
        transcripts = self._transcripts_of(one) if met else ()
        waiting = sorted(one.posts.values(), key=lambda post: (post.at, post.id))
        posts = tuple(post for post in waiting if post.id not in one.posted)
        news = shown is not None or handoffs or chat is not None or transcripts or posts
        if not news and not self._ledger_is_news(one):
            return None
        return Observation(
            at=int(self._clock.wall() * 1000),
            runtime=shown,
            ledger=self.ledger.value,
            ledger_news=self._ledger_news(one),
            handoffs=handoffs,
            chat=chat,
            transcripts=transcripts,
            posts=posts,
            tasks=self._tasks(one) if chat is not None and chat.messages else (),
        )

    def _chat(self, one: Tracked, shown: Runtime | None) -> Chat | None:
        """The new rows of the chat, if there are any."""
        state, wall = one.state, self._clock.wall()
        at = floor(state, shown or one.runtime.value, int(wall * 1000))
        hearing = one.hearing = Hearing(partial(self._journal.heard, one.id))
        wanted = Wanted(
            state=state.chat if state else None,
            heard=hearing,
            expect=hearing.expect,
            since=at.since,
            until=at.until,
        )
        with self._journal.reading():
            found = one.chat.look(wanted, self._clock.monotonic(), wall)
        return found if isinstance(found, Chat) else None

    def _waits_for_chat(self, one: Tracked, shown: Runtime) -> bool:
        """Whether a message in `runtime.json` has to wait for a moment: the chat says whose it is, and it is locked
        by a commit of its owner."""
        since = one.chat.failing_since
        busy = since is not None and self._clock.monotonic() - since < _PATIENCE
        return busy and shown.raw is not None and shown.phase != Phase.DISPATCHED

    def _transcripts_of(self, one: Tracked) -> tuple[TranscriptText, ...]:
        known = one.state.transcripts if one.state else None
        return one.transcripts.look(known or {}, self._clock.monotonic(), self._clock.wall())

    def _in_roster(self, one: Tracked) -> bool:
        return self.roster.value is not None and one.id in self.roster.value

    def _tasks(self, one: Tracked) -> tuple[str, ...]:
        dispatches = one.state.dispatches if one.state else ()
        return self._journal.tasks(one.id, len(dispatches))

    def _new_handoffs(self, one: Tracked) -> tuple[HandoffFile, ...]:
        """The files whose text is no version that is known, nor the redacted form of one."""
        new: dict[tuple[str, MissionId | None], HandoffFile] = {}
        safe: set[str] = set()
        found = one.handoffs.look(self._clock.monotonic(), self._clock.wall())
        # Of one text in two places the one counts that the worker wrote at home.
        for file in sorted(found, key=lambda file: (not file.local, file.named is not None)):
            at_home = not file.local and any(sha == file.sha256 for sha, _ in new)
            if not at_home and file.sha256 not in safe and self._is_news(one, file):
                new.setdefault((file.sha256, file.named), file)
                safe.update({sha256(self._versions.safe(file.data))} - {file.sha256})
        gone = [
            path for path in one.refused if path in one.handoffs.fresh or path not in one.handoffs.present
        ]
        for path in gone:
            del one.refused[path]
        return tuple(sorted(new.values(), key=lambda file: file.written))

    def _is_news(self, one: Tracked, file: HandoffFile) -> bool:
        """One that was refused is refused again, so that `status` can say why; one that was base line counts once its
        mission is the worker's; one that was known from the shared folder only counts for more where the worker
        writes it at home."""
        known = self._versions.known(one.id, file.data)
        if known is None or known.author is Author.NOBODY:
            return True
        mission = self._journal.mission(one.id, known.mission) if known.mission else None
        if mission is not None and mission.handoff is None:
            return True
        mirrored = known.mission is not None and file.path == mirror(known.mission)
        return known.sha256 == file.sha256 and file.local and not is_local(known.path) and not mirrored

    def _ledger_is_news(self, one: Tracked) -> bool:
        """A ledger alone tells of a worker only once the worker was met, or is named by the roster."""
        if self.ledger.value is None or self.ledger.value is one.ledger:
            return False
        return one.state is not None or self._in_roster(one)

    def _ledger_news(self, one: Tracked) -> tuple[MissionId, ...] | None:
        """What the ledger says anew since the worker's last look: found once for all who have seen the same."""
        before, now = one.ledger, self.ledger.value
        if before is None or now is None:
            return None
        if self._compared is None or self._compared[0] is not before:
            self._compared = (before, now.news_since(before))
        return self._compared[1]

    # 2 derive

    def _derived(self, seen: Observation, one: Tracked, report: Report) -> Change:
        before = self._state(one)
        hearing, one.hearing = one.hearing or Hearing(partial(self._journal.heard, one.id)), None
        with self._journal.reading():
            state = before or WorkerState(worker=one.id)
            recall = partial(self._journal.missions, one.id)
            found = derive(state, seen, self._journal.knows, self.safe, hearing, hearing.expect, recall)
        one.ledger = seen.ledger
        if before is not None:
            before = replace(before, missions={**before.missions, **found.recalled})
        if before is not None and found.state.missions.keys() > before.missions.keys():
            one.handoffs.look_again(self._clock.monotonic())  # what was nobody's can be this mission's
        one.refused.update(found.refused)
        one.taken = {post.id: Posted(post.id, found.rejected.get(post.id)) for post in seen.posts}
        waits = found.state.chat.held if found.state.chat else None
        if waits is not None:
            rest = min(max(waits.since + HOLD - seen.at, 0), HOLD) / 1000
            one.chat.come_back(self._clock.monotonic() + rest)
        return Change(
            before=before,
            after=found.state,
            events=found.events,
            rendered=_rendered(found.events),
            handoffs=tuple(self._kept(version) for version in found.versions),
            heard=found.heard,
        )

    def _kept(self, version: Version) -> KeptHandoff:
        return KeptHandoff(
            mission=version.mission,
            sha256=version.sha256,
            redacted=sha256(self._versions.safe(version.text)),
            author=version.author,
            path=version.path,
            at=version.at,
            text=version.text,
        )

    def _tried(self, one: Tracked, step: Callable[[Tracked, Report], _T | None], report: Report) -> _T | None:
        """What the step gives; None where the worker's own memory cannot be read, which stops it alone."""
        try:
            return step(one, report)
        except OSError as error:
            one.forget()
            one.memory.note([obstacle(error, str(one.runtime.path.parent))], self._clock.monotonic())
            report.obstacles[one.id] = one.obstacles
            return None

    def _state(self, one: Tracked) -> WorkerState | None:
        """The worker's state; of a worker that the journal does not know, what its memory files tell."""
        if one.state is None:
            one.state = self._journal.load(one.id) or self._read_back(one.id)
        return one.state

    def _read_back(self, worker: WorkerId) -> WorkerState | None:
        files = read_back(self._profiles_root, worker)
        if not files:
            return None
        state, events = remember(worker, [(file.mission, file.lines) for file in files])
        bullets = bullets_before(events, [(file.mission, line) for file in files for line in file.bullets])
        earlier = tuple(Rendered(mission, CHECKPOINTS, line) for mission, line in bullets)
        self._journal.settle(marks=[file.mark for file in files])
        self._journal.record(
            [
                Change(
                    before=None,
                    after=state,
                    events=events,
                    rendered=_rendered(events) + earlier,
                    applied=True,
                )
            ]
        )
        return state

    # 3 record

    def _record(self, found: list[tuple[Tracked, Change]], report: Report) -> None:
        changes = [
            change
            for _, change in found
            if change.after != change.before or change.events or change.handoffs or change.heard
        ]
        if changes:
            report.recorded += self._journal.record(changes)
        for one, change in found:
            one.state = change.after
            one.posted.update(one.taken)
            one.taken = {}
            if change.events:
                # What stands in the way of one file need not stand in the way of these.
                one.memory.after = one.shared.after = 0.0

    def record_past(self, worker: WorkerId, change: Change) -> None:
        """Records what happened to the worker before it was watched, and applies it. Raises `StorageError`."""
        self._journal.record([change])
        self.workers[worker].state = change.after
        self.apply([worker])

    # 4 apply

    def recover(self) -> Report:
        """Finishes what was recorded and not applied when the daemon ended; a long archive is only begun."""
        report = Report()
        for worker in self._journal.workers_waiting():
            one = self.workers.get(worker) or self._tracked(worker)
            one.state = self._journal.load(worker)
            self._apply(one, report, at_once=False)
            self._let_go(one)
        return report

    def _apply(self, one: Tracked, report: Report, at_once: bool = True) -> None:
        now = self._clock.monotonic()
        found: list[Obstacle] = []
        try:
            if now >= one.memory.after:
                one.memory.note(self._apply_own(one, one.state, now), now)
                found += one.memory.obstacles
        except FileNotFoundError:
            # The profile is gone. It is never made again; what was to be written there waits, out of the way.
            self._journal.settle(unplaced=[record.seq for record in self._journal.waiting(one.id)])
            return
        if one.state is not None and not one.shared.holds(now):
            try:
                one.shared.note(self._shared.apply(one.state, now, at_once), now)
                found += one.shared.obstacles
            except StorageError as error:
                report.failure = report.failure or error
        if found:
            report.obstacles[one.id] = found
        report.posted += one.posted.values()
        for id in one.posted:
            one.posts.pop(id, None)
        one.posted = {}

    def _apply_own(self, one: Tracked, state: WorkerState | None, now: float) -> list[Obstacle]:
        """One that was never met gets its identity files only."""
        obstacles: list[Obstacle] = []
        if state is not None:
            obstacles += self._memory.apply(state, now)
            for mission in one.unshown:
                obstacles += self._memory.reshow(state, mission, now)
            if not obstacles:
                one.unshown.clear()
        entry = self.roster.value.get(one.id) if self.roster.value is not None else None
        if entry is not None:
            obstacles += self._memory.introduce(entry)
        return obstacles


def _rendered(events: Iterable[Event]) -> tuple[Rendered, ...]:
    return tuple(line for event in events for line in rendered_by(event))
