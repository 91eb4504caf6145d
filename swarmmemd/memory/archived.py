"""Whether somebody has changed a part of a completed mission since it was archived. Stats only, for the sweep.

docs/contracts.md, "Shared memory".
"""

from collections.abc import Container
from pathlib import Path

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Versions, stands, versions_below
from swarmmemd.journal import Journal
from swarmmemd.layout import Place
from swarmmemd.model import MissionId, WorkerId

PARTS = (layout.SUMMARY, layout.EVENTS, layout.HANDOFF)
"""What is archived of a worker's mission."""
_KNOWN = 2048
"""Missions of which the very versions that were archived are known. Of older ones the times tell."""


class _Known(msgspec.Struct, frozen=True):
    """What was archived of a worker's mission, and the folder that it was in."""

    folder: str
    parts: Versions

    def stands(self) -> bool:
        """Whether it is there, whatever the way. Asked all the time: nothing is made for it."""
        return all(
            stands(f"{self.folder}/{name}", part) for name, part in zip(PARTS, self.parts, strict=True)
        )


class Archived:
    """What was archived, and what has to be archived again."""

    def __init__(self, root: Path, profiles: Path, journal: Journal) -> None:
        self._root = root
        self._profiles = profiles
        self._journal = journal
        self._known: dict[tuple[WorkerId, MissionId], _Known] = {}
        self._again: set[tuple[WorkerId, MissionId]] = set()
        self._believed = True
        """Copies as new as their parts count as true, those that another run has made too."""
        self._last = ("", "")

    def look(self, count: int, watched: Container[WorkerId]) -> tuple[set[WorkerId], bool]:
        """Looks at the next missions, `count` at most: which of the watched workers have to archive one again, and
        whether all were looked at."""
        found = self._journal.missions_after(*self._last, count)
        workers = {
            worker
            for worker, mission, completed in found
            if completed and worker in watched and self._changed(worker, mission)
        }
        over = len(found) < count
        self._last = ("", "") if over else found[-1][:2]
        self._believed = self._believed or over
        return workers, over

    def look_at_all(self, watched: Container[WorkerId]) -> None:
        """Looks at every mission, from the first to the last."""
        self._last = ("", "")
        while not self.look(_KNOWN, watched)[1]:
            pass

    def again(self, worker: WorkerId) -> list[MissionId]:
        """The worker's missions that have to be archived again."""
        return [mission for whose, mission in self._again if whose == worker]

    def redact_anew(self) -> None:
        """What was archived was redacted otherwise: all of it counts as changed, once."""
        self._known.clear()
        self._believed = False
        self._last = ("", "")

    def versions(self, worker: WorkerId, mission: MissionId) -> Versions | None:
        """The versions of the parts as they stand now; None where there is no such folder."""
        return _versions(layout.profile(self._profiles, worker), layout.summary(mission))

    def shows(self, worker: WorkerId, mission: MissionId, parts: Versions | None) -> None:
        """The archive shows what was read when the parts had these versions."""
        if parts is not None:
            self._known.pop((worker, mission), None)
            self._know(worker, mission, parts)
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]

    def done(self, worker: WorkerId, mission: MissionId) -> None:
        """The mission is archived."""
        self._again.discard((worker, mission))

    def _changed(self, worker: WorkerId, mission: MissionId) -> bool:
        known = self._known.get((worker, mission))
        if known is not None and known.stands():
            return False
        parts = self.versions(worker, mission)
        if parts is None:
            return False
        if known is None and self._believed and not self._is_newer(worker, mission, parts):
            if len(self._known) < _KNOWN:
                self._know(worker, mission, parts)
            return False
        self._again.add((worker, mission))
        return True

    def _know(self, worker: WorkerId, mission: MissionId, parts: Versions) -> None:
        folder = layout.summary(mission).below(layout.profile(self._profiles, worker)).parent
        self._known[worker, mission] = _Known(str(folder), parts)

    def _is_newer(self, worker: WorkerId, mission: MissionId, parts: Versions) -> bool:
        copies = _versions(self._root, layout.archived(mission, worker, layout.SUMMARY))
        if copies is None:
            return False  # somebody has deleted the archive: it is made again by hand
        return any(
            part is not None and (copy is None or part.mtime_ns > copy.mtime_ns)
            for part, copy in zip(parts, copies, strict=True)
        )


def _versions(root: Path, place: Place) -> Versions | None:
    return versions_below(root, place.folders, PARTS)
