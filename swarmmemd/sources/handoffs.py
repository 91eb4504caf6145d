"""Handoff files of a worker: in its own memory folder, and its latest one in the shared folder.

Written in place by agents, so a file counts only when it has stood still for a moment.
docs/contracts.md, "Handoffs".
"""

import os
import stat as mode
from pathlib import Path

import msgspec

from swarmmemd.handoff import sha256
from swarmmemd.model import MissionId, WorkerId, mission_id
from swarmmemd.observation import HandoffFile
from swarmmemd.sources.document import SIZE_LIMIT
from swarmmemd.sources.file import Signature, read_still, signature

_FOLDERS = ("memory/handoffs", "memory/session-snapshots")
_SHARED_WAY = ("handoffs", "handoffs/swarm")
_LATEST = "latest.md"
_STILL = 0.3
"""Seconds that a file must have stood still before it is read."""
_RETRY = 1.0


class _Seen(msgspec.Struct):
    signature: Signature
    since: float
    read: bool = False


class HandoffSource:
    """The handoff files that can concern one worker. Raises nothing; `due` says when to look again."""

    def __init__(self, profile: Path, shared: Path, worker: WorkerId) -> None:
        self._profile = os.fspath(profile)
        self._shared = os.fspath(shared)
        self._shared_name = f"handoffs/swarm/{worker}-latest.md"
        self._places = (
            f"{self._shared}/{self._shared_name}",
            *(f"{self._profile}/{folder}" for folder in _FOLDERS),
        )
        """Where handoffs are, if there are any."""
        self._seen: dict[str, _Seen] = {}
        self.due: float | None = None
        self.troubles: dict[str, str] = {}
        self._links: set[str] = set()
        self.fresh: tuple[str, ...] = ()
        self.present: frozenset[str] = frozenset()
        self.snapshots = False
        """There are files in the folder that only some agents have."""

    def look(self, now: float, wall: float) -> tuple[HandoffFile, ...]:
        """The files that changed since the last look and stand still, in the order in which they were written."""
        self.due = None
        paths = self._paths()
        self.present = frozenset(name for _, name in paths)
        self.snapshots = any(name.startswith(_FOLDERS[1]) for name in self.present)
        known = {name: why for name, why in self.troubles.items() if name in self.present}
        self.troubles = {**known, **dict.fromkeys(self._links, "a link, not followed")}
        self._seen = {name: one for name, one in self._seen.items() if name in self.present}
        found = [file for path, name in paths if (file := self._look_at(path, name, now, wall))]
        self.fresh = tuple(file.path for file in found)
        return tuple(sorted(found, key=lambda file: (file.written, not file.local)))

    def forget(self) -> None:
        """The next look gives every file again."""
        self._seen.clear()

    def look_again(self, now: float) -> None:
        """The same, and the next look is due now."""
        self.forget()
        self._again(now)

    def changed(self) -> bool:
        """Whether a stat shows anything that the last look did not: for the sweep."""
        if not self._seen and not any(map(_kind, self._places)):
            return False  # so it is with most workers, and then nothing more is asked
        seen = {name: one.signature for name, one in self._seen.items()}
        return {name: found for path, name in self._paths() if (found := _stat(path))} != seen

    def _paths(self) -> list[tuple[str, str]]:
        """The files that can be there. A folder that is a link is not looked into: it leads out of the tree."""
        paths: list[tuple[str, str]] = []
        shared = f"{self._shared}/{self._shared_name}"
        # Who writes there says that it is a link, or that a folder on the way is one: once, and not for every worker.
        kind, ways = _kind(shared), (f"{self._shared}/{way}" for way in _SHARED_WAY)
        if kind and not mode.S_ISLNK(kind) and not any(mode.S_ISLNK(_kind(way)) for way in ways):
            paths.append((shared, self._shared_name))
        # Of most workers there is neither folder, and then nothing more is asked.
        kinds = {folder: _kind(f"{self._profile}/{folder}") for folder in _FOLDERS}
        if any(kinds.values()):
            kinds["memory"] = _kind(f"{self._profile}/memory")
        self._links = {folder for folder, kind in kinds.items() if mode.S_ISLNK(kind)}
        for folder in () if "memory" in self._links else _FOLDERS:
            if mode.S_ISDIR(kinds[folder]):
                place = f"{self._profile}/{folder}"
                paths += [(f"{place}/{name}", f"{folder}/{name}") for name in _names(place)]
        return paths

    def _look_at(self, path: str, name: str, now: float, wall: float) -> HandoffFile | None:
        found = _stat(path)
        if found is None:
            self._seen.pop(name, None)
            self.present -= {name}
            self.troubles.pop(name, None)
            return None
        seen = self._seen.get(name)
        if seen is None or seen.signature != found:
            seen = self._seen[name] = _Seen(found, now)
        if seen.read:
            return None
        age = wall - found.mtime_ns / 1e9
        waits = min(_STILL - (now - seen.since), _STILL - age if age >= 0 else _STILL)
        if waits > 0:
            self._again(now + waits)
            return None
        return self._read(path, name, seen, now)

    def _read(self, path: str, name: str, seen: _Seen, now: float) -> HandoffFile | None:
        try:
            data, found = read_still(Path(path), SIZE_LIMIT, follow=False)
        except (OSError, ValueError) as error:
            self.troubles[name] = str(getattr(error, "strerror", None) or error)
            self._again(now + _RETRY * 10)
            return None
        if data is None or found != seen.signature:
            self._again(now + _RETRY / 10)
            return None
        seen.read = True
        self.troubles.pop(name, None)
        return HandoffFile(
            path=name,
            local=name != self._shared_name,
            named=None if name == self._shared_name else _named(name.rpartition("/")[2]),
            data=data,
            sha256=sha256(data),
            written=found.mtime_ns // 1_000_000,
        )

    def _again(self, when: float) -> None:
        self.due = when if self.due is None else min(self.due, when)


def _names(folder: str) -> list[str]:
    """The names that a handoff can have: `latest.md`, or that of a mission. Any other name, also one that is no
    UTF-8, means nothing here."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [name for name in names if name == _LATEST or _named(name) is not None]


def _named(name: str) -> MissionId | None:
    """The mission that a file is named after; None for `latest.md` and for what has no mission's name."""
    return mission_id(name.removesuffix(".md")) if name.endswith(".md") and name != _LATEST else None


def _stat(path: str) -> Signature | None:
    try:
        return signature(os.stat(path, follow_symlinks=False))
    except OSError:
        return None


def _kind(path: str) -> int:
    """The mode of what stands there, link or not; 0 for nothing."""
    try:
        return os.stat(path, follow_symlinks=False).st_mode
    except OSError:
        return 0
