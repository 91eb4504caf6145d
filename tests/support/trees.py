"""A swarm's home in a temporary folder, a clock that moves when told, and a short story of one mission."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from swarmmemd.config import Config
from swarmmemd.durable import TEMPORARY
from swarmmemd.layout import JOURNAL
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.tree import Tree, open_tree
from swarmmemd.turn import Clock, Report

CASES = Path(__file__).parent.parent / "cases"
WORKER = WorkerId("builder-1")
MISSION = MissionId("mission-mo5a0001-aaaaaa")
NOON = 1777982400.0
"""2026-05-05T12:00:00Z, after everything that the cases and the story tell."""
_LONG_AGO = 1777852800_000_000_000


class Hands:
    """A clock whose hands move when told."""

    def __init__(self, wall: float = NOON) -> None:
        self.now = 1000.0
        self._apart = wall - self.now

    def move(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds

    def clock(self) -> Clock:
        """The clock that the program is given."""
        return Clock(lambda: self.now, lambda: self.now + self._apart)


class Home:
    """Profiles, workspace, shared memory and state directory below one folder."""

    def __init__(self, base: Path, *workers: WorkerId) -> None:
        self.base = base
        self.hands = Hands()
        self.profiles, self.workspace = base / "profiles", base / "workspace"
        self.shared, self.state = base / "shared", base / "state"
        for folder in (self.profiles, self.workspace, self.shared):
            folder.mkdir(parents=True)
        for worker in workers or (WORKER,):
            (self.profiles / worker).mkdir()
        self.config = Config(
            profiles_root=self.profiles,
            workspace_root=self.workspace,
            shared_root=self.shared,
            state_dir=self.state,
        )

    # Sources

    def put(
        self, content: bytes | Mapping[str, Any], worker: WorkerId = WORKER, in_place: bool = False
    ) -> None:
        """Writes the worker's `runtime.json`, by rename or in place. Its time is long past: it stands still."""
        data = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
        target = self.profiles / worker / "runtime.json"
        aside = target if in_place else target.with_name(".runtime.json.tmp")
        aside.write_bytes(data)
        os.utime(aside, ns=(_LONG_AGO, _LONG_AGO))
        if not in_place:
            aside.replace(target)

    # Turns

    @contextmanager
    def tree(self) -> Iterator[Tree]:
        """The opened tree, its workers found."""
        with open_tree(self.config, self.hands.clock()) as tree:
            tree.discover()
            yield tree

    def turn(self) -> Report:
        """Opens the tree, runs one turn for every worker, and closes it: what `once` does."""
        with self.tree() as tree:
            return tree.everything()

    def turns(self, tree: Tree, most: int = 8) -> Report:
        """Turns over an open tree, the clock moved on between, until nothing stands in the way."""
        for _ in range(most):
            report = tree.everything()
            if not report.obstacles and report.failure is None:
                return report
            self.hands.move(120.0)
        raise AssertionError(f"no end of it: {report}")

    # What is there

    def memory(self, worker: WorkerId = WORKER) -> Path:
        """The worker's memory folder."""
        return self.profiles / worker / "memory"

    def events(self, mission: MissionId = MISSION, worker: WorkerId = WORKER) -> Path:
        """The mission's `events.jsonl`."""
        return self.memory(worker) / "missions" / mission / "events.jsonl"

    def summary(self, mission: MissionId = MISSION, worker: WorkerId = WORKER) -> Path:
        """The mission's `SUMMARY.md`."""
        return self.memory(worker) / "missions" / mission / "SUMMARY.md"

    def files(self, worker: WorkerId = WORKER) -> dict[str, bytes]:
        """The worker's memory tree; temporary files that a kill left behind are not counted."""
        return tree_of(self.memory(worker))

    def journal(self) -> list[bytes]:
        """The lines of all recorded events, in order."""
        return [line for _, line, _ in self.rows()]

    def rows(self) -> list[tuple[str, bytes, int]]:
        """(type, line, applied) of all recorded events, in order."""
        with closing(sqlite3.connect(self.state / JOURNAL)) as db:
            rows = db.execute("SELECT type, line, applied FROM event ORDER BY seq")
            return [(type, line, applied) for type, line, applied in rows]

    def types(self) -> list[str]:
        """The types of all recorded events, in order."""
        return [type for type, _, _ in self.rows()]

    def delete_journal(self) -> None:
        """Takes the journal away, with its log."""
        for suffix in ("", "-wal", "-shm"):
            (self.state / f"{JOURNAL}{suffix}").unlink(missing_ok=True)


def flags(home: Home) -> list[str]:
    """The home's roots as options of a command."""
    roots = ("profiles_root", "workspace_root", "shared_root", "state_dir")
    return [part for key in roots for part in (f"--{key.replace('_', '-')}", str(getattr(home.config, key)))]


def tree_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(TEMPORARY)
    }


class Kept:
    """The bytes of all files of a home; putting them back keeps the files that are there, and their inodes."""

    def __init__(self, home: Home) -> None:
        self._base = home.base
        self._files = {
            path: path.read_bytes() for path in home.base.rglob("*") if path.is_file() and _is_kept(path)
        }

    def put_back(self) -> None:
        """Makes the files what they were. A file that is there is written in place."""
        for path in self._base.rglob("*"):
            if path.is_file() and path not in self._files:
                path.unlink()
        for path, data in self._files.items():
            if not path.exists():
                path.write_bytes(data)
            elif path.read_bytes() != data:
                times = path.stat()
                path.write_bytes(data)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _is_kept(path: Path) -> bool:
    return not path.name.endswith("-shm")


# A story

_AT = {
    "dispatch": ("2026-05-04T09:00:00.000Z", 1777885200000),
    "work": ("2026-05-04T09:10:00.000Z", 1777885800000),
    "blocked": ("2026-05-04T09:20:00.000Z", 1777886400000),
    "again": ("2026-05-04T23:40:00.000Z", 1777938000000),
    "done": ("2026-05-05T00:10:00.000Z", 1777939800000),
}


def block(state: str, result: str, files: str = "none", blocker: str = "none", action: str = "none") -> str:
    """A checkpoint block."""
    return (
        f"STATE: {state}\nFILES_CHANGED: {files}\nCOMMANDS_RUN: none\nRESULT: {result}\n"
        f"BLOCKER: {blocker}\nNEXT_ACTION: {action}"
    )


def dispatched(step: str = "dispatch", **more: object) -> dict[str, Any]:
    """`runtime.json` when the task is handed out."""
    stamp, at = _AT[step]
    return {
        "workerId": WORKER,
        "state": "executing",
        "phase": "dispatched",
        "currentTask": "Lay the garden path",
        "currentMissionId": MISSION,
        "currentAssignmentId": "assign-mo5a0001-aaaa01",
        "checkpointStatus": "in_progress",
        "blockedReason": None,
        "lastDispatchAt": at,
        "lastDispatchMode": "tmux",
        "lastCheckIn": stamp,
        "nextAction": "Worker carries out the task and reports back.",
        **more,
    }


def answered(step: str, state: str, result: str, **parts: str) -> dict[str, Any]:
    """`runtime.json` when the worker has answered."""
    stamp, at = _AT[step]
    first = _AT["again" if step == "done" else "dispatch"][1]
    word = state.lower()
    return {
        **dispatched(),
        "state": {"done": "idle", "blocked": "blocked"}.get(word, "executing"),
        "phase": word,
        "checkpointStatus": word,
        "currentTask": "Lay the garden path" if word == "in_progress" else None,
        "blockedReason": parts.get("blocker"),
        "lastDispatchAt": first,
        "lastCheckIn": stamp,
        "lastOutputAt": at,
        "lastResult": result,
        "nextAction": parts.get("action", "none"),
        "checkpointRaw": block(state, result, **parts),
    }


def story() -> list[dict[str, Any]]:
    """Dispatch, IN_PROGRESS, BLOCKED, the same task once more, DONE: over two days."""
    blocked = answered("blocked", "BLOCKED", "砂 is out — half laid", blocker="No sand", action="Buy sand")
    old = {key: blocked[key] for key in ("lastOutputAt", "lastResult", "checkpointRaw")}
    return [
        dispatched(),
        answered("work", "IN_PROGRESS", "First row laid", files="path/plan.svg, path/list.md"),
        blocked,
        dispatched("again", **old),
        answered("done", "DONE", "The path is laid", files="path/photo.txt", action="Water the lawn"),
    ]


STORY_TYPES = ["mission-start", "dispatch", "checkpoint", "blocked", "dispatch", "checkpoint", "complete"]


class Undisturbed:
    """What the story leaves after each of its steps when nothing goes wrong."""

    def __init__(self, base: Path, work: Callable[[Home], object] = Home.turn) -> None:
        home = Home(base)
        self.files: list[dict[str, bytes]] = []
        self.journals: list[list[bytes]] = []
        for content in story():
            home.put(content)
            work(home)
            self.files.append(home.files())
            self.journals.append(home.journal())
        assert home.types() == STORY_TYPES
