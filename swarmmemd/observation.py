"""What the sources show at one look, as frozen values. Parsed by `sources`, judged by `derive`.

A part of an `Observation` that is None was not looked at, or is unchanged since the last look. A part that
cannot be read is `Unreadable`, one whose file is missing `Absent`: neither says anything about the worker.
docs/contracts.md, "Sources".
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from swarmmemd.model import Absent, AssignmentId, Checkpoint, EventType, MissionId, Unreadable, WorkerId


class Phase(StrEnum):
    """The values of `phase` that mean something; any other text is free."""

    DISPATCHED = "dispatched"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """One believed `runtime.json`. A field of another type than the control plane writes is as if not given.

    `bad_ids` holds what stands in the place of an id and is none; such a snapshot is skipped whole.
    Times are ms. `raw` is the whole message that the control plane took the checkpoint from.
    """

    phase: str | None = None
    status: str | None = None
    task: str | None = None
    mission: MissionId | None = None
    assignment: AssignmentId | None = None
    bad_ids: tuple[str, ...] = ()
    dispatch_at: int | None = None
    dispatch_mode: str | None = None
    dispatch_result: str | None = None
    check_in: int | None = None
    output_at: int | None = None
    cancelled_at: int | None = None
    blocked_reason: str | None = None
    result: str | None = None
    next_action: str | None = None
    control_message: str | None = None
    cancellation: str | None = None
    raw: str | None = None
    written: int = 0
    """mtime of the file: when something happened, if nothing in it says so."""


class LedgerState(StrEnum):
    """Mission states of the ledger."""

    PLANNING = "planning"
    DISPATCHING = "dispatching"
    EXECUTING = "executing"
    REVIEWING = "reviewing"
    BLOCKED = "blocked"
    COMPLETE = "complete"
    CANCELLED = "cancelled"


CLOSED = frozenset({LedgerState.COMPLETE, LedgerState.CANCELLED})


class LedgerAssignment(msgspec.Struct, frozen=True):
    """One assignment of a ledger mission: who does what, when (ms), and what came of it."""

    id: AssignmentId | None
    worker: WorkerId
    task: str | None
    dispatched: int | None = None
    completed: int | None = None
    checkpoint: Checkpoint | None = None


class LedgerMission(msgspec.Struct, frozen=True):
    """One mission of the ledger. `updated` is ms, None when the ledger does not say."""

    id: MissionId
    title: str
    state: LedgerState
    created: int | None
    updated: int | None
    assignments: tuple[LedgerAssignment, ...]

    def says_as(self, other: "LedgerMission | None") -> bool:
        """Whether both say the same of where the mission stands."""
        return other is not None and (self.state, self.updated) == (other.state, other.updated)

    def task_of(self, worker: WorkerId) -> str | None:
        """The task of the worker's first assignment that has one."""
        return next((a.task for a in self.assignments if a.worker == worker and a.task), None)


class Ledger(msgspec.Struct, frozen=True):
    """The missions of one believed ledger, by id and by the workers that they name."""

    missions: Mapping[MissionId, LedgerMission]
    by_worker: Mapping[WorkerId, tuple[LedgerMission, ...]]

    def of(self, worker: WorkerId) -> tuple[LedgerMission, ...]:
        """The missions that name the worker, in the ledger's order."""
        return self.by_worker.get(worker, ())

    def news_since(self, before: "Ledger") -> tuple[MissionId, ...]:
        """The missions of which it says another state or time than `before`."""
        if before is self:
            return ()
        return tuple(id for id, one in self.missions.items() if not one.says_as(before.missions.get(id)))


class RosterWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What `swarm.yaml` says of a worker."""

    id: WorkerId
    name: str
    role: str | None = None
    specialty: str | None = None
    model: str | None = None
    mission: str | None = None
    greenlight: tuple[str, ...] = ()


Roster = Mapping[WorkerId, RosterWorker]


class HandoffFile(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff file that changed and stands still. `path` is below the profile, or below the shared root where
    it is not `local`; `named` the mission whose name the file has, None for the latest; `written` its mtime in ms."""

    path: str
    local: bool
    named: MissionId | None = None
    data: bytes
    sha256: str
    written: int


class ChatFile(msgspec.Struct, frozen=True):
    """Which chat database it is: another file, or another generation of one, has other row ids."""

    device: int
    inode: int
    application: int


class Mark(msgspec.Struct, frozen=True):
    """A row that was seen in a chat database, and the time that stood in it: where another one is written over the
    file, or a new file has the inode of the old one, that row is another."""

    row: int
    time: float


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the chat that counts: a user's, or one of the worker's with checkpoints in it.

    `line` is the first of the sessions that continue each other. `text` is the row's own part, without what a
    compaction put around it; it is never kept. `uid` is the agent's own name for the message, if it has one.
    """

    row: int
    session: str
    line: str
    at: int
    user: bool
    text: str
    uid: str = ""
    blocks: tuple[Checkpoint, ...] = ()


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the chat database shows: rows behind the cursor, in the order of their ids.

    `cursor` is the newest row that was passed. `prompts` are older rows that were asked for once more, `gone`
    those earlier rows, of all that were asked for, that are inactive or not there any more. `newest` is the greatest
    row id; `mark` is the newest row that was seen. `restarted`: another file, or another generation of it, read from
    its beginning. `since` and `until` (ms) say where the reading of a chat began that was never read before.
    """

    file: ChatFile
    messages: tuple[Message, ...]
    cursor: int
    newest: int = 0
    mark: Mark | None = None
    prompts: Mapping[int, Message] = {}
    gone: frozenset[int] = frozenset()
    restarted: bool = False
    since: int = 0
    until: int = 0


class TranscriptPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far a transcript was read, and what tells whether it is still that file. docs/contracts.md,
    "Transcripts".

    `offset` is the number of bytes read. `head` is a digest of the first `head_size` of them, `tail` one of the
    last 1024 (or all, if there are fewer): who writes another text into the file changes one of the two.
    `skipping`: the offset stands within a line too long, and its rest is passed over.
    """

    device: int
    inode: int
    offset: int
    head_size: int
    head: str
    tail: str
    skipping: bool = False


class TranscriptText(msgspec.Struct, frozen=True, kw_only=True):
    """What came to a transcript since its position, as plain lines. `path` is below the profile; `written` is the
    file's mtime in ms; `position` is where the next look begins.

    Where a block begins near the top, the lines above it come first, though an earlier text had them: they
    may say whose it is. `whole`: the file stands still and nothing of a block is held back. The text may be empty.
    `again`: another text stands in the file now, and was read from its beginning.
    """

    path: str
    text: str
    written: int
    position: TranscriptPosition
    whole: bool
    again: bool = False


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody left for the worker's memory: an event, or a handoff (`type` is `handoff-written`, `text` the
    whole file). `id` is the random name under which it was left, `at` when, ms."""

    id: str
    at: int
    worker: WorkerId
    type: EventType
    text: str
    mission: MissionId | None = None
    assignment: AssignmentId | None = None
    detail: Mapping[str, str | int | float | None] = {}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """All that one look shows of one worker. `at` is when the look was, ms: no event is later than that."""

    at: int
    runtime: Runtime | Unreadable | Absent | None = None
    ledger: Ledger | None = None
    ledger_news: tuple[MissionId, ...] | None = None
    """The missions of which the ledger says something else than at the worker's last look; None where that look is not
    known, so that it may be all."""
    handoffs: tuple[HandoffFile, ...] = ()
    """Only those whose text is not known yet."""
    chat: Chat | None = None
    transcripts: tuple[TranscriptText, ...] = ()
    posts: tuple[Post, ...] = ()
    tasks: tuple[str, ...] = ()
    """The task texts of the dispatches in the worker's state, in their order; empty where none is known."""
