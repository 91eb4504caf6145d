"""What the daemon remembers of a worker, as frozen values: the fold of its events, and the last look.

All but `Look` and `MissionState.ledger` can be computed again from the worker's events; those two come
again from the sources. docs/architecture.md, "State".
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from swarmmemd.model import AssignmentId, MissionId, WorkerId
from swarmmemd.observation import LedgerState


class Fact(StrEnum):
    """The worker's last own fact in a mission; with the ledger's state it decides the Status."""

    NONE = "none"
    DISPATCHED = "dispatched"
    IN_PROGRESS = "in-progress"
    HANDOFF = "handoff"
    RESUMED = "resumed"
    DONE = "done"
    REVIEW = "review"
    BLOCKED = "blocked"


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch of a worker.

    `number` counts the dispatches of its mission from 1. `task` is the digest of the task's text.
    `ended`: a terminal status came since, so the same task may be dispatched again. `answered`: the worker
    said DONE, HANDOFF, BLOCKED or NEEDS_INPUT itself, so the control plane's block is no news.
    `said` holds digests of what another writer's lines recorded of this dispatch.
    """

    mission: MissionId | None
    assignment: AssignmentId | None
    number: int
    at: int
    task: str
    ended: bool = False
    ended_at: int = 0
    answered: bool = False
    said: tuple[str, ...] = ()


class Kept(msgspec.Struct, frozen=True):
    """The handoff of a mission that counts: which text, and how much it counts (`handoff.rank`)."""

    sha256: str
    rank: int


class MissionState(msgspec.Struct, frozen=True, kw_only=True):
    """One mission of one worker: what `SUMMARY.md` shows, and what decides the next event."""

    mission: MissionId
    title: str = ""
    objective: str = ""
    dispatches: int = 0
    dispatched_at: int = 0
    fact: Fact = Fact.NONE
    closed: bool = False
    ledger: LedgerState | None = None
    assignment: AssignmentId | None = None
    updated: int = 0
    decisions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    checkpoint_count: int = 0
    blockers: tuple[str, ...] = ()
    next_action: str | None = None
    commands: tuple[str, ...] = ()
    handoff: Kept | None = None
    completed: int = 0
    """`at` of the newest `complete`; 0 for none."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the last believed look at `runtime.json` showed, as digests.

    `met` is false until the first look, and after a fold from files: then a field that no event tells of
    is learned, not taken for news. Empty text is "none was there".
    """

    met: bool = False
    kind: str = ""
    dispatch_at: int | None = None
    raw: str = ""
    status: str = ""
    result: str = ""
    blocker: str = ""
    next_action: str | None = None


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. `dispatches` holds the newest 64, oldest first; `missions` every mission that started."""

    worker: WorkerId
    dispatches: tuple[Dispatch, ...] = ()
    missions: Mapping[MissionId, MissionState] = {}
    handed_off: MissionId | None = None
    """The mission of the newest handoff: what the shared copy shows."""
    look: Look = Look()

    @property
    def current(self) -> Dispatch | None:
        """The newest dispatch."""
        return self.dispatches[-1] if self.dispatches else None
