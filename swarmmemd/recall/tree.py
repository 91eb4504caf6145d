"""The memory files of the workers and of the shared folder: listed and read, no link followed.

docs/search.md, "Where".
"""

import os
import stat as mode
from collections.abc import Iterator
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.durable import Directory, open_file
from swarmmemd.model import Unreadable, WorkerId, worker_id
from swarmmemd.recall.lines import About, Document, about, moment
from swarmmemd.recall.troubles import Trouble, unread
from swarmmemd.sources.file import Signature, signature
from swarmmemd.sources.profiles import profiles_in

LIMIT = 64 * 1024 * 1024
"""Bytes of a file that are looked at."""
_PIECE = 64 * 1024
"""Bytes that are read at once. Room for much more would cost more than the reading, and most files are smaller."""
_DEPTH = 8
_SUFFIXES = (".md", ".jsonl")
_SHARED = (("handoffs", "swarm"), ("swarm", "missions"))
"""What of the shared folder is the swarm's; the rest of it is somebody else's."""


class Area(msgspec.Struct, frozen=True):
    """A folder to search, and whose it is; in the shared folder the files say whose they are."""

    root: Path
    folders: tuple[str, ...]
    worker: WorkerId | None
    shared: bool

    @property
    def path(self) -> Path:
        """The folder."""
        return self.root.joinpath(*self.folders)


class MemoryPath:
    """A memory file as a look into its folder shows it. There are many: what the path says is found out when it
    is asked."""

    __slots__ = ("_about", "_area", "_below", "_stat", "path")

    def __init__(self, path: str, area: Area, below: tuple[str, ...], found: os.stat_result) -> None:
        self.path = path
        self._area, self._below, self._stat = area, below, found
        self._about: About | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self._stat.st_size

    @property
    def signature(self) -> Signature:
        """What tells this state of the file from others."""
        return signature(self._stat)

    @property
    def about(self) -> About:
        """What its path says of it."""
        if self._about is None:
            name, shared = self.path.rpartition("/")[2], self._area.shared
            worker = _owner(self._below, name) if shared else self._area.worker
            self._about = about(self._below, name, worker, moment(self._stat.st_mtime_ns), shared)
        return self._about


def walk_of(config: Config, worker: WorkerId | None, scope: str) -> "Walk":
    """A look at the folders that a scope means: `worker`, `shared` or `all`; of one worker, or of all there are."""
    walk = Walk([])
    if scope != "shared":
        try:
            workers = frozenset({worker}) if worker is not None else known_workers(config)
        except OSError as error:
            walk.trouble(str(config.profiles_root), error)
            workers = frozenset()
        walk.areas += [Area(config.profiles_root, (id, layout.MEMORY), id, False) for id in sorted(workers)]
    if scope != "worker":
        walk.areas += [Area(config.shared_root, folders, worker, True) for folders in _SHARED]
    return walk


def known_workers(config: Config) -> frozenset[WorkerId]:
    """The workers there are. The roster is read only where a profile could be one by its word alone. Raises OSError
    where the profiles cannot be listed."""
    listed = profiles_in(config.profiles_root, (), config.workers.include, config.workers.exclude)
    open_ = listed.folders - listed.workers
    if not any(_may_have_memory(config.profiles_root / id) for id in open_):
        return listed.workers
    return listed.workers | (open_ & _roster(config))


def _may_have_memory(profile: Path) -> bool:
    """Whether there is a memory, as far as we may look: a closed profile can have one."""
    try:
        return (profile / layout.MEMORY).is_dir()
    except OSError:
        return True


def _roster(config: Config) -> frozenset[WorkerId]:
    from swarmmemd.sources.document import SIZE_LIMIT
    from swarmmemd.sources.file import read_still
    from swarmmemd.sources.roster import parse_roster

    try:
        data, _ = read_still(layout.roster(config.workspace_root), SIZE_LIMIT)
    except (OSError, ValueError):
        return frozenset()
    found = parse_roster(data or b"", 0)
    return frozenset() if isinstance(found, Unreadable) else frozenset(found)


class Walk:
    """One look at the areas. `troubles` says what could not be looked at."""

    def __init__(self, areas: list[Area]) -> None:
        self.areas = areas
        self.troubles: list[Trouble] = []

    def __iter__(self) -> Iterator[tuple[MemoryPath, Directory]]:
        """Every memory file, with its open folder: until the next one is asked for."""
        for area in self.areas:
            try:
                with Directory.root(area.root) as root, root.descend(area.folders) as folder:
                    yield from self._folder(area, folder, area.folders if area.shared else ())
            except FileNotFoundError:
                continue
            except OSError as error:
                self.trouble(str(area.path), error)

    def _folder(
        self, area: Area, folder: Directory, below: tuple[str, ...]
    ) -> Iterator[tuple[MemoryPath, Directory]]:
        with os.scandir(folder.descriptor) as entries:
            listed = [entry for entry in entries if not entry.name.startswith(".")]
        for entry in listed:
            if entry.name.endswith(_SUFFIXES):
                if (found := self._file(area, folder, below, entry)) is not None:
                    yield found, folder
            elif entry.is_dir(follow_symlinks=False) and len(below) < _DEPTH:
                try:
                    with folder.child(entry.name) as child:
                        yield from self._folder(area, child, (*below, entry.name))
                except OSError as error:
                    self.trouble(f"{folder.shown}/{entry.name}", error)

    def _file(
        self, area: Area, folder: Directory, below: tuple[str, ...], entry: "os.DirEntry[str]"
    ) -> MemoryPath | None:
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return None  # deleted a moment ago
        if not mode.S_ISREG(found.st_mode):
            return None
        if area.shared and area.worker not in (None, _owner(below, entry.name)):
            return None
        return MemoryPath(f"{folder.shown}/{entry.name}", area, below, found)

    def trouble(self, path: str, error: OSError) -> None:
        """Notes what could not be looked at."""
        self.troubles.append(unread(path, error))


def _owner(below: tuple[str, ...], name: str) -> WorkerId | None:
    """Whose a file of the shared folder is."""
    if below == ("handoffs", "swarm"):
        return worker_id(name.removesuffix("-latest.md")) if name.endswith("-latest.md") else None
    return worker_id(below[3]) if len(below) > 3 else None


def read(file: MemoryPath, folder: Directory) -> tuple[Document, Signature] | None:
    """The content of the file, and the signature that it has now; None where it is gone. Raises OSError."""
    try:
        descriptor = open_file(folder, file.path.rpartition("/")[2], os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        data = _all(descriptor)
    finally:
        os.close(descriptor)
    facts = msgspec.structs.replace(file.about, written=moment(found.st_mtime_ns))
    return Document(data, facts), signature(found)


def _all(descriptor: int) -> bytes:
    parts: list[bytes] = []
    left = LIMIT
    while left > 0 and (part := os.read(descriptor, min(left, _PIECE))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
