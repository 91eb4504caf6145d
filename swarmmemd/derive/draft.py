"""The events of one look while they are being found: each is folded at once, so the next one sees it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from swarmmemd.cut import shortened
from swarmmemd.fold import LINE_KEPT, fold, number_of
from swarmmemd.handoff import Author
from swarmmemd.identity import digest, event_id
from swarmmemd.model import AssignmentId, Event, EventId, EventType, MissionId
from swarmmemd.observation import Message, Observation
from swarmmemd.record import bounded
from swarmmemd.state import Dispatch, Heard, MissionState, WorkerState

Known = Callable[[EventId], bool]
HeardOf = Callable[[str], Heard | None]
"""What is known of a text of the chat, by its key."""
Expect = Callable[[Sequence[str]], object]
"""Is told of keys that will be asked for, so that they can be asked for together."""
Recall = Callable[[Sequence[MissionId]], Mapping[MissionId, MissionState]]
"""Which of these missions are the worker's, with their states: those that rest are not in the worker's."""
Safe = Callable[[str], str]
"""A text as it may stand in a worker's own memory; with `redact.local`, without its secrets."""
Words = tuple[str | None, ...]


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a handoff: what the journal keeps of it. `at` is when it was written, ms."""

    mission: MissionId | None
    sha256: str
    author: Author
    path: str
    at: int
    text: bytes


class Draft:
    """The state so far, and the events found so far. Lives for one call of `derive`."""

    def __init__(
        self,
        state: WorkerState,
        seen: Observation,
        known: Known,
        safe: Safe,
        heard: HeardOf,
        expect: Expect = lambda keys: None,
        recall: Recall = lambda missions: {},
    ) -> None:
        self.state = state
        self.missions = Missions(self, recall)
        self.met = state.look.met
        """Whether the worker was met before this look, and the journal remembers it."""
        self.seen = seen
        self.events: list[Event] = []
        self.versions: list[Version] = []
        self.refused: dict[str, str] = {}
        self.rejected: dict[str, str] = {}
        self.newly_heard: dict[str, Heard] = {}
        self.unread: Sequence[Message] = ()
        """Rows of the chat that this look has not judged: the chat says whose their blocks are."""
        self._heard = heard
        self.expect_heard = expect
        dispatches = ((d.mission, d.number) for d in state.dispatches)
        self._tasks = dict(zip(dispatches, seen.tasks, strict=False))
        self._known = cache(known)
        self._safe = safe
        self._new: set[EventId] = set()

    def has(self, id: EventId) -> bool:
        """Whether the event was recorded before, or found in this look."""
        return id in self._new or self._known(id)

    def heard(self, key: str) -> Heard | None:
        """What is known of a text of the chat."""
        return self.newly_heard.get(key) or self._heard(key)

    def note_heard(self, key: str, heard: Heard) -> None:
        """Keeps what is known now of a text of the chat."""
        self.newly_heard[key] = heard

    @property
    def tasks(self) -> tuple[str, ...]:
        """The task texts of the dispatches in the state, in their order; empty where nobody tells."""
        return tuple(self._task(dispatch) for dispatch in self.state.dispatches)

    def _task(self, dispatch: Dispatch) -> str:
        """What the dispatch said, or what the ledger says of its assignment."""
        said = self._tasks.get((dispatch.mission, dispatch.number)) or dispatch.told
        ledger = self.seen.ledger
        mission = ledger.missions.get(dispatch.mission) if ledger and dispatch.mission else None
        if said or mission is None or dispatch.assignment is None:
            return said or ""
        return next((a.task for a in mission.assignments if a.id == dispatch.assignment and a.task), "")

    def note_task(self, dispatch: Dispatch, task: str | None) -> None:
        """Keeps the task text of a dispatch that was found in this look."""
        self._tasks[dispatch.mission, dispatch.number] = task or ""

    def tell_task(self, task: str | None) -> None:
        """Keeps what only a later look tells of the newest dispatch: its text was gone when it was found."""
        last = self.state.current
        if last is None or not task or last.told or last.task != digest(None):
            return
        told = replace(last, told=shortened(self._safe(task), LINE_KEPT))
        self.state = replace(self.state, dispatches=(*self.state.dispatches[:-1], told))

    def capped(self, *times: int | None) -> int:
        """The first time that is given, never later than the look itself."""
        for at in times:
            if at is not None and at > 0:
                return min(at, self.seen.at)
        return self.seen.at

    def once(
        self,
        type: EventType,
        dispatch: Dispatch | MissionId | None,
        words: Words,
        *,
        at: int,
        summary: str,
        detail: dict[str, Any] | None = None,
        occurrence: int = 1,
        number: int | None = None,
        assignment: AssignmentId | None = None,
    ) -> bool:
        """Adds the event unless it is there already. Says whether it was added.

        `dispatch` is the dispatch that the event belongs to, or the mission alone (None: no mission); then it
        belongs to the mission's dispatch `number`, by default the newest.
        """
        if isinstance(dispatch, Dispatch):
            mission, assignment, number = dispatch.mission, dispatch.assignment, dispatch.number
        else:
            mission = dispatch
            number = self.number_of(mission) if number is None else number
        id = event_id(self.state.worker, mission, number, type, words, occurrence)
        if self.has(id):
            return False
        event = bounded(
            Event(
                id=id,
                at=at,
                type=type,
                worker=self.state.worker,
                mission=mission,
                assignment=assignment,
                summary=self._safe(summary),
                detail=self._safe_detail(detail or {}),
            )
        )
        self._new.add(id)
        self.events.append(event)
        self.missions.wake(mission)
        self.state = fold(self.state, event, number)
        return True

    def number_of(self, mission: MissionId | None) -> int:
        """How many dispatches of the mission there were."""
        self.missions.wake(mission)
        return number_of(self.state, mission)

    def _safe_detail(self, detail: dict[str, Any]) -> dict[str, Any]:
        safe = self._safe
        return detail if safe is str else {k: safe(v) if isinstance(v, str) else v for k, v in detail.items()}

    def start_mission(self, mission: MissionId, title: str, task: str | None, at: int) -> None:
        """The mission's `mission-start`, unless the worker has it already."""
        if mission in self.missions:
            return
        detail = {"task": shortened(self._safe(task), LINE_KEPT)} if task else {}
        self.once(EventType.MISSION_START, mission, (), at=at, summary=title, detail=detail, number=0)


class Missions:
    """The worker's missions by their ids. One that rests comes back into the state when it is asked for."""

    def __init__(self, draft: Draft, recall: Recall) -> None:
        self._draft = draft
        self._recall = recall
        self._asked: set[MissionId] = set()
        self.recalled: dict[MissionId, MissionState] = {}
        """Those that came back, as they were."""

    def get(self, mission: MissionId) -> MissionState | None:
        """The mission; None where it is none of the worker's."""
        self.wake(mission)
        return self._draft.state.missions.get(mission)

    def __contains__(self, mission: object) -> bool:
        return isinstance(mission, str) and self.get(MissionId(mission)) is not None

    def wake(self, mission: MissionId | None) -> None:
        """Brings the mission back, if it is one that rests."""
        state = self._draft.state
        if mission is None or mission in state.missions or mission in self._asked:
            return
        self._asked.add(mission)
        if found := self._recall((mission,)):
            self.recalled.update(found)
            self._draft.state = replace(state, missions={**state.missions, **found})

    def resting(self, missions: Sequence[MissionId]) -> Mapping[MissionId, MissionState]:
        """Those of these missions that rest; they stay at rest."""
        awake = self._draft.state.missions
        new = [mission for mission in missions if mission not in awake]
        return self._recall(new) if new else {}
