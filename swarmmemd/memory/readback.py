"""A worker's memory files as lines: where the start without a journal begins.

docs/architecture.md, "Without a journal".
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Appending, Directory, Mark
from swarmmemd.foreign import Foreign
from swarmmemd.journal import FileMark
from swarmmemd.model import Event, MissionId, WorkerId, mission_id
from swarmmemd.record import decode


class Readback(msgspec.Struct, frozen=True):
    """The lines of one mission's `events.jsonl` that say something, and where the whole lines end."""

    mission: MissionId
    lines: tuple[Event | Foreign, ...]
    mark: FileMark


def read_back(profiles_root: Path, worker: WorkerId) -> tuple[Readback, ...]:
    """What the worker's `events.jsonl` files hold. No memory folder is no memory; nothing is made.

    Raises OSError where a file that is there cannot be read: beginning without it would record it again.
    """
    try:
        with (
            Directory.root(layout.profile(profiles_root, worker)) as profile,
            profile.descend((layout.MEMORY, "missions")) as missions,
        ):
            return tuple(_files(missions, worker))
    except FileNotFoundError:
        return ()


def _files(missions: Directory, worker: WorkerId) -> Iterator[Readback]:
    for name in missions.names():
        mission = mission_id(name)
        if mission is None:
            continue
        try:
            with missions.child(name) as folder, Appending(folder, layout.EVENTS, create=False) as file:
                yield _lines(file, worker, mission)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _lines(file: Appending, worker: WorkerId, mission: MissionId) -> Readback:
    data, at = file.read(0), file.mark()
    end = data.rfind(b"\n") + 1
    lines = (decode(line, worker) for line in data[:end].split(b"\n") if line)
    place = layout.events(mission)
    mark = FileMark(worker, place.shown, Mark(at.device, at.inode, end), 0)
    return Readback(mission, tuple(line for line in lines if line is not None), mark)
