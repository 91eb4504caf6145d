"""Reads all that the journal says of a tree, for who compares the tree with it. docs/contracts.md, "Verify and
rebuild". It may be written to meanwhile: `stamp` tells whether a worker's part was.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from swarmmemd.errors import JournalError
from swarmmemd.journal.audits import AuditState, audit_state
from swarmmemd.journal.follower import Follower
from swarmmemd.journal.values import (
    HANDOFF_COLUMNS,
    KeptHandoff,
    Recorded,
    kept_handoff,
    kept_mission,
    kept_worker,
    line_digest,
    recorded,
)
from swarmmemd.mending import Owner
from swarmmemd.model import MissionId, WorkerId, utc_day
from swarmmemd.state import MissionState, WorkerState

_AT_ONCE = 500


class Inspector(Follower):
    """A reader of everything. Raises `JournalError` or `StorageError` as `Follower` does."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._indexed = 0
        self._missions: dict[tuple[WorkerId, str], array[int]] = {}
        self._days: dict[tuple[WorkerId, str], array[int]] = {}

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; nothing for a sound one."""
        found = [str(row[0]) for row in self._rows("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def workers(self) -> list[WorkerId]:
        """Every worker that was met, by name."""
        return [WorkerId(worker) for (worker,) in self._rows("SELECT worker FROM worker ORDER BY worker")]

    def count(self) -> int:
        """How many events are recorded."""
        return int(self._rows("SELECT count(*) FROM event")[0][0])

    def state(self, worker: WorkerId) -> WorkerState:
        """The worker's state, without its missions."""
        rows = self._rows("SELECT state FROM worker WHERE worker = ?", worker)
        return kept_worker(rows[0][0]) if rows else WorkerState(worker=worker)

    def missions(self, worker: WorkerId) -> list[MissionId]:
        """The ids of the worker's missions, in their order."""
        sql = "SELECT mission FROM mission WHERE worker = ?"
        return sorted(MissionId(mission) for (mission,) in self._rows(sql, worker))

    def mission(self, worker: WorkerId, mission: MissionId) -> MissionState | None:
        """The worker's mission; None where it has none of that id."""
        rows = self._rows("SELECT state FROM mission WHERE worker = ? AND mission = ?", worker, mission)
        return kept_mission(rows[0][0]) if rows else None

    def current(self, worker: WorkerId) -> MissionState | None:
        """The mission of the worker's newest dispatch; without one the mission that was heard of last."""
        rows = self._rows("SELECT state FROM worker WHERE worker = ?", worker)
        found = kept_worker(rows[0][0]).current if rows else None
        if found is not None and found.mission is not None:
            sql = "SELECT state FROM mission WHERE worker = ? AND mission = ?"
            rows = self._rows(sql, worker, found.mission)
        else:
            rows = self._rows("SELECT state FROM mission WHERE worker = ?", worker)
        missions = [kept_mission(state) for (state,) in rows]
        return max(missions, key=lambda one: one.updated, default=None)

    def unshown(self, worker: WorkerId) -> set[str]:
        """Missions whose `SUMMARY.md` is not brought up to date yet."""
        sql = "SELECT mission FROM mission WHERE worker = ? AND shown = 0"
        return {mission for (mission,) in self._rows(sql, worker)}

    def unarchived(self) -> set[str]:
        """Missions of which some worker's part is not archived yet."""
        return {
            mission for (mission,) in self._rows("SELECT DISTINCT mission FROM mission WHERE archived = 0")
        }

    def waiting(self, worker: WorkerId) -> set[int]:
        """The worker's events that are not applied."""
        return {
            seq for (seq,) in self._rows("SELECT seq FROM event WHERE worker = ? AND applied <> 1", worker)
        }

    def made_until(self, worker: WorkerId) -> int:
        """The newest of the worker's events that was read back from its files."""
        rows = self._rows("SELECT read_back FROM made WHERE worker = ?", worker)
        return int(rows[0][0]) if rows else 0

    def days(self, worker: WorkerId) -> list[str]:
        """The UTC days on which something happened."""
        self._index()
        return sorted(day for whose, day in self._days if whose == worker)

    def of_mission(self, worker: WorkerId, mission: str) -> list[Recorded]:
        """The events of a mission, in order."""
        self._index()
        return list(self._lines(self._missions.get((worker, mission), ())))

    def of_day(self, worker: WorkerId, day: str) -> list[Recorded]:
        """The events of a day, in order."""
        self._index()
        return list(self._lines(self._days.get((worker, day), ())))

    def owner(self, id: str) -> Owner | None:
        """Whose the event of this id is."""
        rows = self._rows("SELECT worker, mission, line FROM event WHERE id = ?", id)
        return Owner(*rows[0]) if rows else None

    def is_ours(self, worker: WorkerId, mission: str, section: str, line: str) -> bool:
        """Whether we rendered exactly this line into that section for an event of the mission."""
        sql = "SELECT 1 FROM rendered WHERE worker = ? AND mission = ? AND section = ? AND line = ?"
        return bool(self._rows(sql, worker, mission, section, line_digest(line)))

    def count_rendered(self, worker: WorkerId, mission: str, section: str) -> int:
        """How many different lines we rendered into that section of the mission."""
        sql = "SELECT count(*) FROM rendered WHERE worker = ? AND mission = ? AND section = ?"
        return int(self._rows(sql, worker, mission, section)[0][0])

    def handoff(self, worker: WorkerId, sha256: str) -> KeptHandoff | None:
        """The version of this digest, or the one whose redacted form has it."""
        sql = f"SELECT {HANDOFF_COLUMNS} FROM handoff WHERE worker = ? AND (sha256 = ? OR redacted = ?)"
        rows = self._rows(sql, worker, sha256, sha256)
        return kept_handoff(rows[0]) if rows else None

    def copies(self) -> dict[str, str]:
        """Path below the shared root to the sha256 of what the archive holds there."""
        return dict(self._rows("SELECT path, sha256 FROM copy ORDER BY path"))

    def audit(self) -> AuditState:
        """What the journal knows of the audit log."""
        return audit_state(self._db)

    def stamp(self, worker: WorkerId) -> bytes:
        """Another one after each change of what is recorded of the worker, and of what is applied."""
        found = hashlib.blake2b()
        for sql in (
            "SELECT state FROM worker WHERE worker = ?",
            "SELECT mission, state, shown, archived FROM mission WHERE worker = ? ORDER BY mission",
            "SELECT seq, applied FROM event WHERE worker = ? AND applied <> 1 ORDER BY seq",
            "SELECT count(*), sum(placed) FROM handoff WHERE worker = ?",
        ):
            for row in self._rows(sql, worker):
                found.update(repr(row).encode("utf-8", "surrogatepass"))
        return found.digest()

    def _index(self) -> None:
        """Which events belong together: numbers only, of what came since the last look."""
        sql = "SELECT seq, worker, mission, at FROM event WHERE seq > ? ORDER BY seq"
        for seq, worker, mission, at in self._rows(sql, self._indexed):
            if mission is not None:
                self._missions.setdefault((worker, mission), array("q")).append(seq)
            self._days.setdefault((worker, utc_day(at)), array("q")).append(seq)
            self._indexed = seq

    def _lines(self, numbers: Iterable[int]) -> Iterator[Recorded]:
        wanted = list(numbers)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT seq, id, worker, mission, at, line FROM event WHERE seq IN ({marks}) ORDER BY seq"
            for seq, id, worker, mission, at, line in self._rows(sql, *some):
                found = recorded(seq, line, WorkerId(worker))
                event = found.event
                if (event.id, event.mission, event.at) != (id, mission, at):
                    raise JournalError(f"event {seq} of the journal is not what its row says")
                yield found
