"""One worker's memory files, brought up to date with the journal. Repeating it changes nothing.

Order within one worker: handoffs, episodes, then `SUMMARY.md`, then `events.jsonl`, so that who sees the line sees the
rest. Each file is written once a turn. What stands in the way of one file stops only the events that belong
into it (none belongs into a handoff); then the worker is tried again with its next event, or after a while.
docs/architecture.md, "Apply".
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from swarmmemd import layout
from swarmmemd.durable import Directory, make_sure
from swarmmemd.journal import Journal, Recorded
from swarmmemd.layout import Place
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.growing import Finish, GrowingFiles
from swarmmemd.memory.handoffs import LocalHandoffs
from swarmmemd.memory.identities import NAMES, introduce, promote
from swarmmemd.memory.obstacles import Obstacle, Obstructed, Stillness, obstacle
from swarmmemd.memory.summaries import Summaries
from swarmmemd.memory.versions import Versions
from swarmmemd.model import EventId, MissionId, WorkerId, utc_day
from swarmmemd.observation import RosterWorker
from swarmmemd.state import MissionState, WorkerState

_K = TypeVar("_K")
_DAYS_OPEN = 8
"""Days that stay open until the rest is written; of more, as after a backfill, each is finished at once."""
_Day = tuple[str, list[Recorded], Finish]


class Memory:
    """The memory trees below one profiles root. `settle` is how long, in seconds, another writer may take;
    `redact` whether handoffs are redacted here too."""

    def __init__(
        self,
        profiles_root: Path,
        journal: Journal,
        settle: float,
        wall: Callable[[], float],
        versions: Versions,
        redact: bool,
    ) -> None:
        stillness = Stillness()
        self._root = profiles_root
        self._journal = journal
        self.auditor = Auditor(journal, wall)
        self.growing = GrowingFiles(journal, stillness, settle, self.auditor)
        self.summaries = Summaries(journal, stillness, settle, wall, self.auditor)
        self.handoffs = LocalHandoffs(journal, versions, redact, self.auditor)

    def settle_within(self, seconds: float) -> None:
        """Changes how long another writer may take."""
        self.growing.settle = self.summaries.settle = seconds

    def apply(self, state: WorkerState, now: float) -> list[Obstacle]:
        """Applies what the journal holds for the worker and its files do not. `now` is monotonic, seconds.

        Raises FileNotFoundError where the profile itself is gone: nothing is ever made in its place.
        """
        waiting = self._journal.waiting(state.worker)
        missions = self._journal.not_shown(state.worker)
        if not waiting and not missions:
            return []

        def run(one: _Pass) -> None:
            applied = one.run(waiting, missions)
            self._journal.settle(applied=applied, shown=[(state.worker, mission) for mission in one.shown])

        return self._with_pass(state, now, run)

    def introduce(self, worker: RosterWorker) -> list[Obstacle]:
        """Makes the worker's identity files where they are missing. Raises FileNotFoundError as `apply` does."""
        return self._with_pass(WorkerState(worker=worker.id), 0.0, lambda one: one.introduce(worker))

    def promote(self, worker: RosterWorker, lesson: str, event: EventId) -> bool:
        """Puts a lesson into the worker's `MEMORY.md`. Raises `Obstructed` and OSError."""
        with Directory.root(layout.profile(self._root, worker.id)) as profile:
            return promote(profile, worker, lesson, event, self.auditor)

    def reshow(
        self, state: WorkerState, mission: MissionId, now: float, others: Sequence[bytes] = ()
    ) -> list[Obstacle]:
        """Makes `SUMMARY.md` true again after somebody else wrote it; `others` are versions that our own
        replacing has hidden. Raises FileNotFoundError as `apply` does."""
        if self.mission(state, mission) is None:
            return []
        return self._with_pass(state, now, lambda one: one.show(mission, others))

    def mission(self, state: WorkerState, mission: MissionId) -> MissionState | None:
        """The worker's mission; one that rests is read from the journal."""
        return state.missions.get(mission) or self._journal.mission(state.worker, mission)

    def let_go(self, worker: WorkerId, kept: Container[MissionId]) -> None:
        """The worker's other missions rest: soon nothing is held of their files."""
        self.growing.let_go(worker, kept)
        self.summaries.let_go(worker, kept)

    def forget(self, worker: WorkerId) -> None:
        """The worker is retired: nothing is held of its files."""
        self.growing.forget(worker)
        self.summaries.forget(worker)

    def _with_pass(self, state: WorkerState, now: float, do: "Callable[[_Pass], object]") -> list[Obstacle]:
        path = layout.profile(self._root, state.worker)
        try:
            profile = Directory.root(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            return [obstacle(error, str(path))]
        with profile:
            one = _Pass(self, profile, state, now)
            do(one)
            return one.obstacles

    def rescued(self, now: float) -> Iterator[tuple[WorkerId, MissionId, bytes]]:
        """What came into replaced versions of `SUMMARY.md`: to be handed to `reshow`."""
        return self.summaries.rescued(now)

    def next_rescue(self) -> float | None:
        """When `rescued` should be asked again, monotonic; None if there is no need."""
        return self.summaries.next_rescue()

    def replaced_by_others(self, worker: WorkerId, mission: MissionId) -> bool:
        """Whether the mission's `SUMMARY.md` is another one than we left: a stat, for the sweep."""
        return self.summaries.replaced_by_others(self._root, worker, mission)

    def close(self) -> None:
        """Lets go of what is held open."""
        self.summaries.close()


class _Pass:
    """One pass over one worker's files."""

    def __init__(self, memory: Memory, profile: Directory, state: WorkerState, now: float) -> None:
        self.obstacles: list[Obstacle] = []
        self.shown: list[MissionId] = []
        """The missions whose `SUMMARY.md` and handoff stand as they should."""
        self._memory = memory
        self._profile = profile
        self._state = state
        self._now = now

    def run(self, waiting: Sequence[Recorded], missions: Sequence[MissionId]) -> list[int]:
        """Applies the events and shows the missions. Gives the sequence numbers of what is in all its files."""
        with ExitStack() as opened:
            stuck, written = self._episodes(waiting, opened)
            by_mission = _grouped((r.event.mission, r) for r in waiting if r.event.mission is not None)
            applied = [r.seq for r in waiting if r.event.mission is None and r.seq not in stuck]
            for mission in dict.fromkeys((*by_mission, *missions)):
                records = by_mission.get(mission, [])
                ids = [record.event.id for record in records]
                mirrored, shown = self._handoff(mission, ids), self._show(mission, (), ids)
                done: list[int] = []
                if records and shown and not any(record.seq in stuck for record in records):
                    done = self._events(mission, records)
                if shown and self._made_sure(mission):
                    applied += done
                    self.shown += [mission] if mirrored else []
            # Readers see the day, and `SUMMARY.md`, before the line. What waits for the disk behind it, the line need
            # not wait for.
            stuck = self._finish(written)
        return [seq for seq in applied if seq not in stuck]

    def _handoff(self, mission: MissionId, events: Sequence[EventId]) -> bool:
        """Puts both copies of the mission's handoff in place. Says whether they stand."""
        known = self._memory.mission(self._state, mission)
        if known is None:
            return True
        show = partial(self._memory.handoffs.show, self._profile, self._state.worker, known)
        places = (layout.handoff(mission), layout.mission_handoff(mission))
        stand = [self._tried(partial(show, place, events), place) for place in places]
        return all(stand)

    def introduce(self, worker: RosterWorker) -> None:
        """Makes the identity files that are missing."""
        for name in NAMES:
            made = partial(introduce, self._profile, worker, self._memory.auditor, name)
            self._tried(made, layout.identity_file(name))

    def show(self, mission: MissionId, others: Sequence[bytes]) -> bool:
        """Makes the mission's `SUMMARY.md` true. Says whether it is, durably."""
        return self._show(mission, others, ()) and self._made_sure(mission)

    def _made_sure(self, mission: MissionId) -> bool:
        """Makes the names in the mission's folder durable, where one of them is not. Says whether they are."""
        place = layout.summary(mission)
        return self._tried(partial(make_sure, self._profile, place.folders), place)

    def _show(self, mission: MissionId, others: Sequence[bytes], events: Sequence[EventId]) -> bool:
        """Makes the mission's `SUMMARY.md` true. Says whether it is; its name may not be durable yet."""
        known = self._memory.mission(self._state, mission)
        show = self._memory.summaries.show
        return known is None or self._tried(
            partial(show, self._profile, self._state.worker, known, others, self._now, events),
            layout.summary(mission),
        )

    def _episodes(self, waiting: Sequence[Recorded], opened: ExitStack) -> tuple[set[int], "list[_Day]"]:
        """Writes the days. Gives the sequence numbers of the events that could not be written, and the others."""
        stuck: set[int] = set()
        days: list[_Day] = []
        write = partial(self._memory.growing.episode, self._profile, self._state.worker)
        by_day = _grouped((utc_day(record.event.at), record) for record in waiting)
        few = len(by_day) <= _DAYS_OPEN

        def step(day: str, records: list[Recorded]) -> None:
            with ExitStack() as own:
                finish = write(day, records, self._now, opened if few else own)
                if few:
                    days.append((day, records, finish))
                else:
                    finish()

        for day, records in by_day.items():
            if not self._tried(partial(step, day, records), layout.episode(day)):
                stuck.update(record.seq for record in records)
        return stuck, days

    def _finish(self, days: "list[_Day]") -> set[int]:
        """Makes the days durable. Gives the sequence numbers of the events of those that could not be."""
        return {
            record.seq
            for day, records, finish in days
            if not self._tried(finish, layout.episode(day))
            for record in records
        }

    def _events(self, mission: MissionId, records: Sequence[Recorded]) -> list[int]:
        write = partial(self._memory.growing.events, self._profile, self._state.worker)
        done = self._tried(partial(write, mission, records, self._now), layout.events(mission))
        return [record.seq for record in records] if done else []

    def _tried(self, step: Callable[[], None], place: Place) -> bool:
        """Whether the step succeeded; what stood in its way is kept."""
        try:
            step()
        except Obstructed as stopped:
            self.obstacles.append(stopped.obstacle)
        except OSError as error:
            if self._profile.removed():
                raise FileNotFoundError(self._profile.shown) from error
            self.obstacles.append(obstacle(error, place.shown))
        else:
            return True
        return False


def _grouped(keyed: Iterable[tuple[_K, Recorded]]) -> dict[_K, list[Recorded]]:
    groups: dict[_K, list[Recorded]] = {}
    for key, record in keyed:
        groups.setdefault(key, []).append(record)
    return groups
