"""One kind of a worker's memory, read from its files. docs/commands.md, "show"."""

import re
from datetime import date
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.durable import Directory, read_file
from swarmmemd.errors import SwarmmemdError, UsageError
from swarmmemd.model import MissionId, mission_id, worker_id

_LIMIT = 64 * 1024 * 1024
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PROFILE = ("IDENTITY.md", "SOUL.md", "MEMORY.md")


class MemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which memory is wanted. Without a mission or date: the one written last. Only shared memory can be that of
    no worker: then it is the latest handoffs of all, and the manifests of the archive."""

    worker: str | None
    kind: str
    mission: str | None = None
    date: str | None = None


class MemoryFile(msgspec.Struct, frozen=True):
    """One file that was read."""

    name: str
    path: Path
    content: str


class Found(msgspec.Struct, frozen=True):
    """Where it was looked for, and the files that are there."""

    path: Path
    files: tuple[MemoryFile, ...]


def read_memory(config: Config, query: MemoryQuery) -> Found:
    """Reads the files of one kind. Raises `UsageError` for an id or a date that is none."""
    if query.date is not None and not _is_day(query.date):
        raise UsageError(f"{query.date!r} is no date", "Write it as 2026-04-28.")
    mission = _mission(query)
    if query.kind == "shared" and query.worker is None:
        return _shared(config.shared_root)
    worker = worker_id(query.worker)
    if worker is None:
        raise UsageError(f"{query.worker!r} is no worker id", "Letters, digits, - and _, at most 64.")
    if query.kind == "shared":
        return _read(config.shared_root, ("handoffs", "swarm"), (f"{worker}-latest.md",))
    profile = layout.profile(config.profiles_root, worker)
    folders, names = _wanted(profile, query, mission)
    return _read(profile, folders, names)


def _is_day(text: str) -> bool:
    """Whether the calendar has such a day, written so."""
    try:
        return bool(_DAY.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _shared(root: Path) -> Found:
    """What all may read: each worker's latest handoff, and what was archived."""
    handoffs = _listed(root / "handoffs" / "swarm", "*-latest.md")
    files = list(_read(root, ("handoffs", "swarm"), handoffs).files)
    for mission in _listed(root / "swarm" / "missions", "*"):
        if mission_id(mission) is None:
            continue
        place = layout.manifest(MissionId(mission))
        found = _read(root, place.folders, (place.name,)).files
        files += [MemoryFile(f"{mission}/{place.name}", file.path, file.content) for file in found]
    return Found(root, tuple(files))


def _listed(folder: Path, glob: str) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.glob(glob) if not path.name.startswith(".")))


def _wanted(profile: Path, query: MemoryQuery, mission: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders below the profile, and the names in the last of them."""
    memory = layout.MEMORY
    if query.kind == "profile":
        return (memory,), _PROFILE
    if query.kind == "episodic":
        day = query.date or _newest(profile, (memory, "episodes")).removesuffix(".md")
        return (memory, "episodes"), (f"{day}.md",) if day else ()
    mission = mission or _newest(profile, (memory, "missions"))
    if query.kind == "handoff":
        return (memory, "handoffs"), (f"{mission}.md",) if mission else ()
    place = layout.summary(MissionId(mission or "none"))
    return place.folders, (layout.SUMMARY, layout.EVENTS, "handoff.md") if mission else ()


def _mission(query: MemoryQuery) -> str:
    if query.mission is None:
        return ""
    found = mission_id(query.mission)
    if found is None:
        raise UsageError(f"{query.mission!r} is no mission id", "Letters, digits and _.:- , at most 128.")
    return found


def _newest(profile: Path, folders: tuple[str, ...]) -> str:
    """The name in the folder that was written last; empty where there is none. Days: the latest day."""
    folder = profile.joinpath(*folders)
    try:
        entries = [(path.stat(follow_symlinks=False).st_mtime_ns, path.name) for path in folder.iterdir()]
    except OSError:
        return ""
    days = sorted(name for _, name in entries if _DAY.fullmatch(name.removesuffix(".md")))
    return days[-1] if days else max(entries, default=(0, ""))[1]


def _read(root: Path, folders: tuple[str, ...], names: tuple[str, ...]) -> Found:
    where = root.joinpath(*folders)
    try:
        with Directory.root(root) as base, base.descend(folders) as folder:
            read = [(name, read_file(folder, name, _LIMIT)) for name in names]
    except FileNotFoundError:
        return Found(where, ())
    except OSError as error:
        raise SwarmmemdError(
            f"{error.filename or where}: {error.strerror}", "Check what stands there."
        ) from error
    return Found(
        where,
        tuple(
            MemoryFile(name, where / name, data.decode("utf-8", "replace"))
            for name, data in read
            if data is not None
        ),
    )
