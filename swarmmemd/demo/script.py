"""A scripted swarm: what a control plane and three workers write, step by step.

The files have the shapes of the real ones, and are written as the real control plane does: read, overlay the
own keys, write in place. docs/contracts.md, "runtime.json".
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

MISSION = "mission-demo-harbour"
_TASKS = {
    "builder-1": "Build the landing stage",
    "painter-2": "Paint the harbour office",
    "scout-3": "Find a mooring for the ferry",
}


class Swarm:
    """The files of a small swarm below one home."""

    def __init__(self, home: Path) -> None:
        self.profiles = home / ".hermes" / "profiles"
        self.workspace = home / "hermes-workspace"
        (self.workspace / ".runtime").mkdir(parents=True)
        self.profiles.mkdir(parents=True)

    def open(self) -> None:
        """The roster is there, the workers stand by, and a mission begins."""
        self.roster()
        for worker in _TASKS:
            self.patch(worker, state="idle", phase="standby", checkpointStatus="none")
        self.ledger("executing")

    def roster(self) -> None:
        """Who the workers are."""
        lines = ["version: 1", "workers:"]
        for worker in _TASKS:
            lines += [f"  - id: {worker}", f"    role: {worker.split('-')[0].title()}"]
        (self.workspace / "swarm.yaml").write_text("\n".join(lines) + "\n")

    def ledger(self, state: str) -> None:
        """The mission ledger, replaced by rename."""
        assignments = [
            {"id": _assignment(worker), "workerId": worker, "task": task, "state": "dispatched"}
            for worker, task in _TASKS.items()
        ]
        now = _now()
        mission = {
            "id": MISSION,
            "title": "Open the harbour",
            "state": state,
            "createdAt": now,
            "updatedAt": now,
        }
        target = self.workspace / ".runtime" / "swarm-missions.json"
        aside = target.with_suffix(".tmp")
        aside.write_text(
            json.dumps({"version": 1, "missions": [{**mission, "assignments": assignments}]}, indent=2)
        )
        aside.replace(target)

    def patch(self, worker: str, **keys: object) -> None:
        """Overlays keys of the worker's `runtime.json`, in place."""
        path = self.profiles / worker / "runtime.json"
        path.parent.mkdir(exist_ok=True)
        before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"workerId": worker}
        path.write_text(json.dumps({**before, **keys, "lastCheckIn": _iso()}, indent=2) + "\n")

    def dispatch(self, worker: str) -> None:
        """The control plane hands the worker its task."""
        self.patch(
            worker,
            state="executing",
            phase="dispatched",
            checkpointStatus="in_progress",
            currentTask=_TASKS[worker],
            currentMissionId=MISSION,
            currentAssignmentId=_assignment(worker),
            blockedReason=None,
            lastDispatchAt=_now(),
            lastDispatchMode="tmux",
            lastDispatchResult="Dispatch queued",
        )

    def checkpoint(
        self, worker: str, state: str, result: str, next_action: str, blocker: str = "none"
    ) -> None:
        """The worker's answer, as the control plane writes it down."""
        words = {
            "DONE": ("idle", "done"),
            "BLOCKED": ("blocked", "blocked"),
            "IN_PROGRESS": ("executing", "in_progress"),
        }
        values = (state, f"{worker}/notes.md", "make check", result, blocker, next_action)
        labels = ("STATE", "FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION")
        raw = "\n".join(f"{label}: {value}" for label, value in zip(labels, values, strict=True))
        self.patch(
            worker,
            state=words[state][0],
            phase=words[state][1],
            checkpointStatus=words[state][1],
            lastOutputAt=_now(),
            lastResult=result,
            nextAction=next_action,
            blockedReason=blocker if state == "BLOCKED" else None,
            checkpointRaw=raw,
        )


Step = tuple[str, Callable[[], None]]


def story(swarm: Swarm) -> Iterator[Step]:
    """What happens, in order: a line for the reader, and the step itself."""
    say = swarm.checkpoint
    yield "The roster names three workers, who stand by; the ledger opens a mission", swarm.open
    for worker, task in _TASKS.items():
        yield f"{worker} is dispatched: {task}", partial(swarm.dispatch, worker)
    yield (
        "builder-1 reports half of its work",
        lambda: say("builder-1", "IN_PROGRESS", "Six of twelve piles stand", "Drive the other six"),
    )
    yield (
        "painter-2 is blocked",
        lambda: say(
            "painter-2", "BLOCKED", "The first coat is on", "Second coat", "The blue paint is used up"
        ),
    )
    yield "scout-3 is done", lambda: say("scout-3", "DONE", "Mooring 4 is deep enough", "Tell the ferry")
    yield "builder-1 is done", lambda: say("builder-1", "DONE", "The landing stage stands", "Lay the planks")
    yield "painter-2 gets its paint and the same task again", lambda: swarm.dispatch("painter-2")
    yield "painter-2 is done", lambda: say("painter-2", "DONE", "The harbour office is blue", "none")
    yield "The ledger completes the mission", lambda: swarm.ledger("complete")


def _assignment(worker: str) -> str:
    return f"assign-demo-{worker}"


def _now() -> int:
    return int(time.time() * 1000)


def _iso() -> str:
    now = _now()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03d}Z"
