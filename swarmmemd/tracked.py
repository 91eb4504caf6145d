"""One worker that is watched: what is read of it, what is recorded, and what stands in the way of its files."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from swarmmemd.memory.obstacles import Obstacle
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.observation import Ledger, Post, Runtime
from swarmmemd.sources.chat import ChatSource
from swarmmemd.sources.file import FileSource
from swarmmemd.sources.handoffs import HandoffSource
from swarmmemd.sources.transcripts import TranscriptSource
from swarmmemd.state import Heard, WorkerState

_LONGEST_WAIT = 60.0


class Posted(msgspec.Struct, frozen=True):
    """A post that was recorded and applied, or why it cannot be."""

    id: str
    rejected: str | None = None


class Hearing:
    """What was known of texts of the chat when one look began, each asked for once: those that are expected all
    together, which costs a tenth of one by one."""

    def __init__(self, ask: Callable[[Sequence[str]], Mapping[str, Heard]]) -> None:
        self._ask = ask
        self._known: dict[str, Heard | None] = {}

    def expect(self, keys: Sequence[str]) -> None:
        """These will be asked for."""
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        self._known.update(dict.fromkeys(new))
        self._known.update(self._ask(new))

    def __call__(self, key: str) -> Heard | None:
        """What is known of the text with this key."""
        if key not in self._known:
            self.expect((key,))
        return self._known[key]


class Backoff:
    """What stands in the way of one target, and when it is worth another try."""

    def __init__(self) -> None:
        self.obstacles: list[Obstacle] = []
        self.after = 0.0
        self._failures = 0

    def holds(self, now: float) -> bool:
        """Whether nothing is tried now. Where others are just at one file, the rest of the target need not wait."""
        return now < self.after and not all(obstacle.expected for obstacle in self.obstacles)

    def note(self, obstacles: list[Obstacle], now: float) -> None:
        """Soon again where another writer is at it, else after a wait that doubles up to a minute."""
        self.obstacles = obstacles
        if not obstacles:
            self.after, self._failures = 0.0, 0
            return
        soon = all(obstacle.expected for obstacle in obstacles)
        self._failures = 0 if soon else self._failures + 1
        wait = min(obstacle.retry for obstacle in obstacles)
        self.after = now + (wait if soon else min(wait * 2.0 ** (self._failures - 1), _LONGEST_WAIT))


class Tracked:
    """One worker that is watched: its sources, and its state as recorded."""

    def __init__(
        self,
        id: WorkerId,
        runtime: FileSource[Runtime],
        handoffs: HandoffSource,
        chat: ChatSource,
        transcripts: TranscriptSource,
    ) -> None:
        self.id = id
        self.runtime = runtime
        self.handoffs = handoffs
        self.chat = chat
        self.transcripts = transcripts
        self.state: WorkerState | None = None
        self.ledger: Ledger | None = None
        self.hearing: Hearing | None = None
        self.bad_ids: tuple[str, ...] = ()
        self.unshown: set[MissionId] = set()
        self.refused: dict[str, str] = {}
        self.posts: dict[str, Post] = {}
        """What waits in the inbox, by id; what of it this turn takes, and what is recorded and not applied."""
        self.taken: dict[str, Posted] = {}
        self.posted: dict[str, Posted] = {}
        self.memory = Backoff()
        self.shared = Backoff()

    @property
    def obstacles(self) -> list[Obstacle]:
        """What stands in the way of its files, in its own folder and in the shared one."""
        return self.memory.obstacles + self.shared.obstacles

    @property
    def due(self) -> float | None:
        """When a source or a file that waits has to be looked at again, monotonic; None for no need."""
        times = [self.runtime.due, self.handoffs.due, self.chat.due, self.transcripts.due]
        times += [target.after for target in (self.memory, self.shared) if target.obstacles]
        return min((time for time in times if time is not None), default=None)

    def refused_handoffs(self) -> dict[str, str]:
        """Handoff files that cannot be used or read, and why."""
        return {**self.refused, **self.handoffs.troubles}

    def changed(self) -> bool:
        """Whether a stat shows what the last look did not: for the sweep."""
        return (
            self.runtime.changed()
            or self.handoffs.changed()
            or self.chat.changed()
            or self.transcripts.changed()
        )

    def forget(self) -> None:
        """What was looked at is not recorded: the next turn looks again."""
        self.runtime.forget()
        self.handoffs.forget()
        self.chat.forget()
        self.transcripts.forget()
        self.ledger = None
