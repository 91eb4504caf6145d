"""What goes into the journal and comes out of it."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from swarmmemd.durable import Mark, Version
from swarmmemd.errors import JournalError
from swarmmemd.handoff import Author
from swarmmemd.model import Event, MissionId, WorkerId
from swarmmemd.record import decode, encode
from swarmmemd.state import Heard, MissionState, WorkerState


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event with its sequence number, which orders all events of all workers, and its line of `events.jsonl`."""

    seq: int
    event: Event
    line: bytes


class Rendered(msgspec.Struct, frozen=True, gc=False):
    """A line that the daemon renders into a section of the mission's `SUMMARY.md`: it is ours."""

    mission: MissionId
    section: str
    line: str


class KeptHandoff(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a handoff in the journal. `redacted` is the sha256 of its redacted form; `placed` counts how
    often it was put into the shared folder."""

    mission: MissionId | None
    sha256: str
    redacted: str
    author: Author
    path: str
    at: int
    text: bytes
    placed: int = 0

    @property
    def dropped(self) -> bool:
        """Whether its text is no longer kept: no handoff is empty."""
        return not self.text


class Placing(msgspec.Struct, frozen=True):
    """An attempt to put a handoff into the shared folder, already counted: which one, and what stood there before.
    As long as the same stands there, it did not succeed."""

    sha256: str
    before: Version | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn found out about one worker: events, and the state with them.

    `applied`: the events stand in the memory files already, they were read from there.
    """

    before: WorkerState | None
    after: WorkerState
    events: tuple[Event, ...] = ()
    rendered: tuple[Rendered, ...] = ()
    handoffs: tuple[KeptHandoff, ...] = ()
    heard: Mapping[str, Heard] = {}
    applied: bool = False


class FileMark(msgspec.Struct, frozen=True):
    """How far an appended file is: identity and size after the event `seq`, the newest that is in it."""

    worker: WorkerId
    path: str
    mark: Mark
    seq: int


_AGAIN = "Stop the daemon, then make the journal again: swarmmemd rebuild --journal"


class _Completed(msgspec.Struct):
    """All that is read of a mission where only that is asked."""

    completed: int = 0


_worker_decoder = msgspec.json.Decoder(WorkerState)
_mission_decoder = msgspec.json.Decoder(MissionState)
_completed_decoder = msgspec.json.Decoder(_Completed)


def kept_worker(data: bytes) -> WorkerState:
    """The state in a row of `worker`, without the missions."""
    with _readable("a worker's state"):
        return _worker_decoder.decode(data)


def kept_mission(data: bytes) -> MissionState:
    """The state in a row of `mission`."""
    with _readable("a mission's state"):
        return _mission_decoder.decode(data)


def is_completed(data: bytes) -> bool:
    """Whether the mission in a row of `mission` is completed."""
    with _readable("a mission's state"):
        return _completed_decoder.decode(data).completed > 0


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except msgspec.DecodeError as error:
        raise JournalError(f"{what} in the journal cannot be read: {error}", _AGAIN) from error


def recorded(seq: int, line: bytes, worker: WorkerId) -> Recorded:
    """The event of a row of the journal."""
    event = decode(line.rstrip(b"\n"), worker)
    if not isinstance(event, Event):
        raise JournalError(f"event {seq} of the journal cannot be read", _AGAIN)
    return Recorded(seq, event, line)


def numbered(recorded: Recorded) -> dict[str, Any]:
    """The event as the object in `events.jsonl`, with `seq`."""
    return {**msgspec.json.decode(encode(recorded.event)), "seq": recorded.seq}


HANDOFF_COLUMNS = "mission, sha256, redacted, author, path, at, text, placed"


def kept_handoff(row: tuple[Any, ...]) -> KeptHandoff:
    """The version in a row of `HANDOFF_COLUMNS`."""
    mission, sha256, redacted, author, path, at, text, placed = row
    return KeptHandoff(
        mission=MissionId(mission) if mission else None,
        sha256=sha256,
        redacted=redacted,
        author=Author(author),
        path=path,
        at=at,
        text=bytes(text),
        placed=placed,
    )


def line_digest(line: str) -> bytes:
    """By what a line that we rendered is known."""
    return hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=12).digest()
