"""What goes into the journal and comes out of it."""

import msgspec

from swarmmemd.durable import Mark
from swarmmemd.errors import JournalError
from swarmmemd.model import Event, MissionId, WorkerId
from swarmmemd.record import decode
from swarmmemd.state import WorkerState


class Recorded(msgspec.Struct, frozen=True):
    """An event with its sequence number: it orders all events of all workers."""

    seq: int
    event: Event


class Rendered(msgspec.Struct, frozen=True):
    """A line that the daemon renders into a section of the mission's `SUMMARY.md`: it is ours."""

    mission: MissionId
    section: str
    line: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn found out about one worker: events, and the state with them.

    `applied`: the events stand in the memory files already, they were read from there.
    """

    before: WorkerState | None
    after: WorkerState
    events: tuple[Event, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    applied: bool = False


class FileMark(msgspec.Struct, frozen=True):
    """How far an appended file is: identity and size after the event `seq`, the newest that is in it."""

    worker: WorkerId
    path: str
    mark: Mark
    seq: int


def recorded(seq: int, line: bytes, worker: WorkerId) -> Recorded:
    """The event of a row of the journal."""
    event = decode(line.rstrip(b"\n"), worker)
    if not isinstance(event, Event):
        raise JournalError(f"event {seq} of the journal cannot be read", "Set the journal aside (rename it).")
    return Recorded(seq, event)
