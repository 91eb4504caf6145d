"""Every path there is, made in one place: which root, which folders below it, which name.

A place is made from ids that were checked (`model`) and from constants, so no part of it can leave its root;
`durable` opens it part by part and follows no link. docs/contracts.md, "Paths".
"""

from pathlib import Path

import msgspec

from swarmmemd.model import MissionId, WorkerId

MEMORY = "memory"
RUNTIME = "runtime.json"
CHAT = ("state.db", "state.db-wal", "state.db-journal")
"""The chat database of a worker, and the files beside it that a commit changes."""
SUMMARY = "SUMMARY.md"
EVENTS = "events.jsonl"
HANDOFF = "handoff.md"
JOURNAL = "journal.db"
LOCK = "lock"
STATUS = "status.json"
LAST_EXIT = "last-exit.json"
INBOX = "inbox"
CANARY = "canary"
LOG = "log"
TOKEN = "token"
SEARCH = "search.db"
SEAL = "search.seal"
AUDIT = "audit.jsonl"
DISPLACED = "displaced"


class Place(msgspec.Struct, frozen=True):
    """A file below a root: the folders that lead to it, each a plain name, and its own name."""

    folders: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        for part in (*self.folders, self.name):
            if part in ("", ".", "..") or "/" in part or "\0" in part:
                raise ValueError(f"not a plain name: {part!r}")

    @property
    def shown(self) -> str:
        """The path below its root, for messages and as a key."""
        return "/".join((*self.folders, self.name))

    def below(self, root: Path) -> Path:
        """The path, for messages."""
        return root.joinpath(*self.folders, self.name)


def summary(mission: MissionId) -> Place:
    """Below the worker's profile: what is true of the mission now."""
    return Place((MEMORY, "missions", mission), SUMMARY)


def events(mission: MissionId) -> Place:
    """Below the worker's profile: the mission's events."""
    return Place((MEMORY, "missions", mission), EVENTS)


def episode(day: str) -> Place:
    """Below the worker's profile: what happened on one UTC day, `YYYY-MM-DD`."""
    return Place((MEMORY, "episodes"), f"{day}.md")


def handoff(mission: MissionId) -> Place:
    """Below the worker's profile: the mission's handoff."""
    return Place((MEMORY, "handoffs"), f"{mission}.md")


def mission_handoff(mission: MissionId) -> Place:
    """Below the worker's profile: the same, among the mission's files."""
    return Place((MEMORY, "missions", mission), HANDOFF)


def identity_file(name: str) -> Place:
    """Below the worker's profile: IDENTITY.md, SOUL.md or MEMORY.md."""
    return Place((MEMORY,), name)


def shared_handoff(worker: WorkerId) -> Place:
    """Below the shared root: the worker's latest handoff."""
    return Place(("handoffs", "swarm"), f"{worker}-latest.md")


def archived(mission: MissionId, worker: WorkerId, name: str) -> Place:
    """Below the shared root: one file of a worker in the archive of a completed mission."""
    return Place(("swarm", "missions", mission, worker), name)


def manifest(mission: MissionId) -> Place:
    """Below the shared root: what the archive of a mission holds."""
    return Place(("swarm", "missions", mission), "manifest.json")


def profile(profiles_root: Path, worker: WorkerId) -> Path:
    """The worker's profile directory."""
    return profiles_root / worker


def runtime(profiles_root: Path, worker: WorkerId) -> Path:
    """The worker's `runtime.json`: read."""
    return profiles_root / worker / RUNTIME


def ledger(workspace_root: Path) -> Path:
    """The mission ledger: read."""
    return workspace_root / ".runtime" / "swarm-missions.json"


def roster(workspace_root: Path) -> Path:
    """The roster: read."""
    return workspace_root / "swarm.yaml"
