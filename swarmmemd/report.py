"""The daemon's figures, and `status.json`, where `swarmmemd status` finds them. docs/commands.md, "status"."""

import os
from typing import Any

import msgspec

import swarmmemd
from swarmmemd import durable, layout
from swarmmemd.fold import status as status_of
from swarmmemd.model import Event, WorkerId, iso
from swarmmemd.tree import Tree
from swarmmemd.turn import Clock, Report, Tracked
from swarmmemd.watchplan import WatchPlan

SCHEMA = 1


class Figures(msgspec.Struct, kw_only=True):
    """What the daemon counts. Times are seconds."""

    started: float
    written: float = 0.0
    turns: int = 0
    events: int = 0
    sweeps: int = 0
    skipped: int = 0
    failures: int = 0
    longest_turn: float = 0.0
    last_turn: float = 0.0
    last_events: dict[WorkerId, Event] = {}

    def turn(self, seconds: float, report: Report, wall: float) -> None:
        """Counts a turn."""
        self.turns += 1
        self.last_turn = seconds
        self.longest_turn = max(self.longest_turn, seconds)
        self.events += len(report.recorded)
        self.last_events.update({recorded.event.worker: recorded.event for recorded in report.recorded})

    def backoff(self) -> float:
        """How long to wait after one more failure: doubles from a second to a minute."""
        self.failures += 1
        return min(2.0 ** (self.failures - 1), 60.0)


def write_status(
    tree: Tree, figures: Figures, plan: WatchPlan, troubles: list[dict[str, Any]], clock: Clock, final: bool
) -> None:
    """Replaces `status.json`. A disk that refuses it is no reason to stop."""
    health = plan.check()
    content = {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "version": swarmmemd.__version__,
        "running": not final,
        "since": iso(int(figures.started * 1000)),
        "written": iso(int(clock.wall() * 1000)),
        "roots": {
            "profiles": str(tree.config.profiles_root),
            "workspace": str(tree.config.workspace_root),
            "shared": str(tree.config.shared_root),
            "state": str(tree.config.state_dir),
        },
        "workers": [_worker(one, figures) for _, one in sorted(tree.turns.workers.items())],
        "troubles": troubles,
        "watching": {**msgspec.to_builtins(health), "losses": plan.losses, "last_loss": plan.last_loss},
        "turns": {
            "count": figures.turns,
            "events": figures.events,
            "last_ms": round(figures.last_turn * 1000, 2),
            "longest_ms": round(figures.longest_turn * 1000, 2),
            "full_sweeps": figures.sweeps,
            "skipped_ids": figures.skipped,
        },
    }
    try:
        durable.replace(tree.state, layout.STATUS, msgspec.json.encode(content), permissions=0o600)
    except OSError:
        return


def _worker(one: Tracked, figures: Figures) -> dict[str, Any]:
    current = one.state.current if one.state else None
    mission = one.state.missions.get(current.mission) if one.state and current and current.mission else None
    last = figures.last_events.get(one.id)
    return {
        "worker": one.id,
        "mission": mission.mission if mission else None,
        "status": status_of(mission).value if mission else None,
        "updated": iso(mission.updated) if mission and mission.updated else None,
        "last_event": {"at": iso(last.at), "type": last.type.value, "summary": last.summary[:200]}
        if last
        else None,
        "sources": [
            {"name": "runtime.json", "trouble": one.runtime.trouble.reason if one.runtime.trouble else None}
        ],
        "obstacles": [f"{obstacle.path}: {obstacle.reason}" for obstacle in one.obstacles],
    }
