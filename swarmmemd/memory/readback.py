"""A worker's memory files as lines: where the start without a journal begins.

docs/architecture.md, "Without a journal".
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Appending, Directory, Mark, read_file
from swarmmemd.foreign import Foreign
from swarmmemd.journal import FileMark
from swarmmemd.memory.summaries import SUMMARY_LIMIT
from swarmmemd.model import Event, MissionId, WorkerId, mission_id
from swarmmemd.record import decode
from swarmmemd.render.summary import CHECKPOINTS, bodies


class Readback(msgspec.Struct, frozen=True):
    """The lines of one mission's `events.jsonl` that say something, and where the whole lines end."""

    mission: MissionId
    lines: tuple[Event | Foreign, ...]
    mark: FileMark
    bullets: tuple[str, ...]
    """Of the Checkpoints in its `SUMMARY.md`."""


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
                yield _lines(file, worker, mission, _bullets(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue


def _bullets(folder: Directory) -> tuple[str, ...]:
    """None where `SUMMARY.md` cannot be read: then its bullets are somebody's."""
    try:
        data = read_file(folder, layout.SUMMARY, SUMMARY_LIMIT) or b""
    except OSError:
        return ()
    lines = bodies(data.decode("utf-8", "surrogateescape")).get(CHECKPOINTS, "").splitlines()
    return tuple(line for line in lines if line.startswith("- "))


def _lines(file: Appending, worker: WorkerId, mission: MissionId, bullets: tuple[str, ...]) -> Readback:
    data, at = file.read(0), file.mark()
    end = data.rfind(b"\n") + 1
    lines = (decode(line, worker) for line in data[:end].split(b"\n") if line)
    place = layout.events(mission)
    mark = FileMark(worker, place.shown, Mark(at.device, at.inode, end), 0)
    return Readback(mission, tuple(line for line in lines if line is not None), mark, bullets)
