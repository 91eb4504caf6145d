"""What the daemon remembers of a worker, as frozen values: the fold of its events, and the last look.

All but `look`, `chat`, `floor`, `said`, `transcripts` and `MissionState.ledger` can be computed again from the worker's
events; those come again from the sources. docs/architecture.md, "State".
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from swarmmemd.model import AssignmentId, Checkpoint, MissionId, WorkerId
from swarmmemd.observation import ChatFile, LedgerState, Mark, TranscriptPosition


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
    `ended`: the control plane showed a terminal status since, so the same task may be dispatched again.
    `answered`: the worker said DONE, HANDOFF, BLOCKED or NEEDS_INPUT itself, so the control plane's block is no
    news. `ended_at` is when it was ended or answered.
    `said` holds digests of what another writer's lines recorded of this dispatch.
    `told` is the task's text where the dispatch was found without one and a later look showed it.
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
    told: str = ""


class Kept(msgspec.Struct, frozen=True):
    """The handoff of a mission that counts: which text, and how much it counts (`handoff.rank`). One that is `local`
    is not for the shared folder."""

    sha256: str
    rank: int
    local: bool = False


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
    handoff_asked: bool = False
    """A handoff was requested, and none came since."""


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


class Heard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a text that the chat has shown: where it stood last, and since when it is known.

    `first` and `last` number the sights of the worker's chat: when the text was new, and when it counted last.
    `row`, `session`, `at` and `generation` are of the newest row with it. `mission` and `number` name the dispatch
    that it was given to (number 0: to none), `count` how often it counted there. `seen` is the sight of the newest
    row; a copy keeps that of the row it was written from, and says so by `copied`. `rows` is in how many rows the text
    stands, and `copies` how many of those that stood before may still be written again. Only digests are kept of texts.
    """

    first: int
    last: int
    row: int
    session: str
    at: int
    generation: int
    mission: MissionId | None = None
    number: int = 0
    count: int = 0
    seen: int = 0
    rows: int = 1
    copies: int = 0
    copied: bool = False


class Asked(msgspec.Struct, frozen=True):
    """The newest user row of a session, and the sight at which its text was new."""

    row: int
    first: int


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The newest prompt row of a line of sessions, and the dispatch that it belongs to (number 0: not known).

    `pending`: the dispatch may not be known yet, since some control planes deliver before they write.
    """

    row: int
    at: int
    mission: MissionId | None = None
    number: int = 0
    pending: bool = False


class Glance(msgspec.Struct, frozen=True):
    """How far the chat was seen at a moment, ms."""

    row: int
    at: int


class Held(msgspec.Struct, frozen=True):
    """A row that waits for its dispatch since `since`, ms. `glances` tell since when the rows behind it are there."""

    row: int
    since: int
    glances: tuple[Glance, ...] = ()


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the chat is read. `mark` is the newest row that was seen when it was kept.

    Of the rows up to `base`, which stood there when reading began, those older than `since` (ms) are base line; those
    up to `until` were perhaps recorded before the journal was lost. `asked` and `prompts` hold the newest 32 sessions
    and lines.
    """

    file: ChatFile
    generation: int = 1
    cursor: int = 0
    mark: Mark | None = None
    base: int = 0
    sights: int = 0
    since: int = 0
    until: int = 0
    held: Held | None = None
    asked: Mapping[str, Asked] = {}
    prompts: Mapping[str, Prompt] = {}


class Said(msgspec.Struct, frozen=True):
    """The newest checkpoint that the chat gave, and its dispatch."""

    mission: MissionId | None
    number: int
    block: Checkpoint


class Floor(msgspec.Struct, frozen=True):
    """From when on the chat is news, ms, and until when it may have been recorded before. It holds from the first
    look at the worker on, also where the chat could not be read then."""

    since: int
    until: int


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. `dispatches` holds the newest 64, oldest first; `missions` the missions that do not rest, and those
    that a look has asked for."""

    worker: WorkerId
    dispatches: tuple[Dispatch, ...] = ()
    missions: Mapping[MissionId, MissionState] = {}
    handed_off: MissionId | None = None
    """The mission of the newest handoff: what the shared copy shows."""
    look: Look = Look()
    chat: ChatState | None = None
    """None until a chat database was read."""
    floor: Floor | None = None
    said: Said | None = None
    transcripts: Mapping[str, TranscriptPosition] | None = None
    """How far each transcript is read, by its path; None until they were looked at."""

    @property
    def current(self) -> Dispatch | None:
        """The newest dispatch."""
        return self.dispatches[-1] if self.dispatches else None
