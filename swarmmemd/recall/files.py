"""One kind of a worker's memory, read from its files. docs/commands.md, "show"."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.durable import Directory, read_file
from swarmmemd.errors import UsageError, system_error
from swarmmemd.model import MissionId, mission_id, worker_id
from swarmmemd.recall.troubles import Trouble, unread

_LIMIT = 64 * 1024 * 1024
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
    """Where it was looked for, the files that are there, and what could not be read."""

    path: Path
    files: tuple[MemoryFile, ...]
    troubles: tuple[Trouble, ...] = ()


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
    """Whether it is a day of the calendar, as the names of episodes have it."""
    try:
        return len(text) == 10 and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _shared(root: Path) -> Found:
    """What all may read: each worker's latest handoff, and what was archived."""
    handoffs = [name for name in _names(root, ("handoffs", "swarm")) if name.endswith("-latest.md")]
    found = [_read(root, ("handoffs", "swarm"), handoffs)]
    for name in _names(root, ("swarm", "missions")):
        mission = mission_id(name)
        if mission is None:
            continue
        place = layout.manifest(mission)
        manifest = _read(root, place.folders, (place.name,))
        named = (msgspec.structs.replace(file, name=f"{mission}/{place.name}") for file in manifest.files)
        found.append(msgspec.structs.replace(manifest, files=tuple(named)))
    return Found(
        root,
        tuple(file for one in found for file in one.files),
        tuple(trouble for one in found for trouble in one.troubles),
    )


def _wanted(
    profile: Path, query: MemoryQuery, mission: MissionId | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders below the profile, and the names in the last of them."""
    memory = layout.MEMORY
    if query.kind == "profile":
        return (memory,), _PROFILE
    if query.kind == "episodic":
        day = query.date or _newest_day(profile)
        return (memory, "episodes"), (f"{day}.md",) if day else ()
    mission = mission or _newest_mission(profile)
    if query.kind == "handoff":
        return (memory, "handoffs"), (f"{mission}.md",) if mission else ()
    if mission is None:
        return (memory, "missions"), ()
    return layout.summary(mission).folders, (layout.SUMMARY, layout.EVENTS, layout.HANDOFF)


def _mission(query: MemoryQuery) -> MissionId | None:
    if query.mission is None:
        return None
    found = mission_id(query.mission)
    if found is None:
        raise UsageError(f"{query.mission!r} is no mission id", "Letters, digits and _.:- , at most 128.")
    return found


def _newest_day(profile: Path) -> str | None:
    names = _names(profile, (layout.MEMORY, "episodes"))
    return max((day for name in names if _is_day(day := name.removesuffix(".md"))), default=None)


def _newest_mission(profile: Path) -> MissionId | None:
    """The mission whose folder was written last."""
    folders = (layout.MEMORY, "missions")
    found = [mission for name in _names(profile, folders) if (mission := mission_id(name)) is not None]

    def written(mission: MissionId) -> int:
        try:
            return profile.joinpath(*folders, mission).stat(follow_symlinks=False).st_mtime_ns
        except FileNotFoundError:
            return 0  # deleted a moment ago

    with _explained(profile.joinpath(*folders)):
        return max(found, key=written, default=None)


def _names(root: Path, folders: tuple[str, ...]) -> list[str]:
    """The names in a folder that do not begin with a dot; none where it is not there. Raises `StorageError`."""
    try:
        with (
            _explained(root.joinpath(*folders)),
            Directory.root(root) as base,
            base.descend(folders) as folder,
        ):
            return [name for name in folder.names() if not name.startswith(".")]
    except FileNotFoundError:
        return []


def _read(root: Path, folders: tuple[str, ...], names: Sequence[str]) -> Found:
    """Those of the files that are there. One that cannot be read does not hide the others."""
    where, files, troubles = root.joinpath(*folders), list[MemoryFile](), list[Trouble]()
    try:
        with Directory.root(root) as base, base.descend(folders) as folder:
            for name in names:
                try:
                    data = read_file(folder, name, _LIMIT)
                except OSError as error:
                    troubles.append(unread(str(where / name), error))
                    continue
                if data is not None:
                    files.append(MemoryFile(name, where / name, data.decode("utf-8", "replace")))
    except FileNotFoundError:
        pass
    except OSError as error:
        troubles.append(unread(str(error.filename or where), error))
    return Found(where, tuple(files), tuple(troubles))


@contextmanager
def _explained(where: Path) -> Iterator[None]:
    """What the system refuses in it is said as it is; what is not there is for the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise system_error(error.filename or where, error, "Check what stands there.") from error
