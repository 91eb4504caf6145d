"""The past of a worker that was never watched: what its ledger and its chat still tell. Pure.

The ordinary derivation plays it on a state of its own; what is known already is then left out.
docs/contracts.md, "Backfill".
"""

from collections.abc import Container, Mapping

from msgspec.structs import replace

from swarmmemd.derive import derive
from swarmmemd.derive.blocks import checkpoint
from swarmmemd.derive.classify import IN_PROGRESS, is_control_plane
from swarmmemd.derive.draft import Draft, Safe
from swarmmemd.fold import DISPATCHES_KEPT, LEDGER, is_open
from swarmmemd.model import Event, EventId, MissionId, WorkerId
from swarmmemd.observation import (
    CLOSED,
    Chat,
    Ledger,
    LedgerAssignment,
    LedgerMission,
    LedgerState,
    Observation,
    Phase,
    Runtime,
)
from swarmmemd.state import Heard, WorkerState


class Past:
    """The past of one worker while it is played. Times are ms; what is older than `since` is left out."""

    def __init__(self, worker: WorkerId, since: int, at: int, safe: Safe) -> None:
        self.state = WorkerState(worker=worker)
        self.events: list[Event] = []
        self.heard: dict[str, Heard] = {}
        self._since, self._at, self._safe = since, at, safe
        self._tasks: list[str] = []
        self._ids: set[EventId] = set()
        self._work: list[tuple[LedgerMission, LedgerAssignment]] = []

    def dispatches(self, ledger: Ledger) -> None:
        """Each assignment of the ledger that was dispatched, in the order of time."""
        own = (
            (mission, assignment)
            for mission in ledger.of(self.state.worker)
            for assignment in mission.assignments
            if assignment.worker == self.state.worker and (assignment.dispatched or 0) >= max(self._since, 1)
        )
        self._work = sorted(own, key=lambda item: item[1].dispatched or 0)
        for mission, assignment in self._work:
            self._look(runtime=_start(mission, assignment), ledger=_still_open(mission))

    def chat(self, chat: Chat) -> bool:
        """One page of the chat. False where a message waits: it is to be read again."""
        before = self.state.chat
        self._at += 2 * 60_000  # nothing waits for a dispatch of the past
        self._look(chat=chat)
        return before is None or self.state.chat is None or self.state.chat.held is None

    def outcomes(self, ledger: Ledger) -> None:
        """What the ledger says of each assignment, where the chat did not; then how the missions ended."""
        numbers: dict[str, int] = {}
        for mission, assignment in self._work:
            numbers[mission.id] = number = numbers.get(mission.id, 0) + 1
            block = assignment.checkpoint
            dispatch = next(
                (d for d in self.state.dispatches if (d.mission, d.number) == (mission.id, number)), None
            )
            if block is None or dispatch is None or dispatch.answered or is_control_plane(block.blocker):
                continue
            draft = self._draft(Observation(at=self._at))
            at = draft.capped(assignment.completed, mission.updated)
            checkpoint(draft, dispatch, block, at=at, origin=LEDGER)
            self._take(draft)
        self._look(ledger=ledger)

    def news(
        self, known: WorkerState | None, recorded: Container[MissionId]
    ) -> tuple[WorkerState, tuple[Event, ...]]:
        """The events of the missions that are not recorded, and the state with them. What is current stays current."""
        before = known or WorkerState(worker=self.state.worker)
        new = {m: state for m, state in self.state.missions.items() if m not in recorded and state.dispatches}
        events = tuple(e for e in self.events if e.mission in new and e.at >= self._since)
        old = [d for d in self.state.dispatches if d.mission in new]
        dispatches = (*old, *before.dispatches)[-DISPATCHES_KEPT:]
        return replace(before, missions={**new, **before.missions}, dispatches=dispatches), events

    def known_texts(self) -> Mapping[str, Heard]:
        """The texts of the chat, as known for ever: their rows, written once more, are no news."""
        return {key: replace(heard, first=0, last=0) for key, heard in self.heard.items()}

    def _look(
        self, runtime: Runtime | None = None, ledger: Ledger | None = None, chat: Chat | None = None
    ) -> None:
        seen = Observation(
            at=self._at,
            runtime=runtime,
            ledger=ledger,
            chat=chat,
            tasks=tuple(self._tasks[-DISPATCHES_KEPT:]),
        )
        found = derive(self.state, seen, self._ids.__contains__, self._safe, self.heard.get)
        self.heard.update(found.heard)
        self._keep(found.state, list(found.events))
        if runtime is not None:
            self._tasks += [runtime.task or ""] * sum(e.type == "dispatch" for e in found.events)

    def _draft(self, seen: Observation) -> Draft:
        return Draft(self.state, seen, self._ids.__contains__, self._safe, self.heard.get)

    def _take(self, draft: Draft) -> None:
        self._keep(draft.state, draft.events)

    def _keep(self, state: WorkerState, events: list[Event]) -> None:
        self.state = state
        self.events += events
        self._ids |= {event.id for event in events}


def _start(mission: LedgerMission, assignment: LedgerAssignment) -> Runtime:
    return Runtime(
        phase=Phase.DISPATCHED,
        status=IN_PROGRESS,
        task=assignment.task,
        mission=mission.id,
        assignment=assignment.id,
        dispatch_at=assignment.dispatched,
    )


def _still_open(mission: LedgerMission) -> Ledger:
    """The ledger as it stood then: the mission had not ended."""
    state = mission.state if is_open(mission.state) else LedgerState.EXECUTING
    assert state not in CLOSED
    then = LedgerMission(
        mission.id, mission.title, state, mission.created, mission.created, mission.assignments
    )
    return Ledger({then.id: then}, {a.worker: (then,) for a in then.assignments})
