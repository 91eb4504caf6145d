"""What is wrong now: sources that cannot be read, files that cannot be written, watches that died."""

from collections.abc import Iterable
from typing import Any

from swarmmemd.log import GRACE
from swarmmemd.model import WorkerId
from swarmmemd.service.running import Running
from swarmmemd.sources.chat import ChatSource
from swarmmemd.sources.file import FileSource
from swarmmemd.tracked import Backoff, Tracked
from swarmmemd.watch import WatchHealth


def judge(running: Running, workers: Iterable[WorkerId], watching: WatchHealth) -> set[WorkerId]:
    """Notes what is wrong and what is well again, of these workers and of what all share; each change is one log line.

    What is wrong with a worker changes in its turns only. Gives the workers of whom something is: they are judged
    again, since what lasts becomes worth a line.
    """
    known = running.turns.workers
    wrong = {worker for worker in workers if worker in known and _is_wrong(running, known[worker])}
    now = running.now()
    running.troubles.update("audit log", running.tree.audit.trouble, now)
    _source(running, "ledger", running.turns.ledger)
    _source(running, "roster", running.turns.roster)
    if running.api is not None:
        running.troubles.update("api", running.api.trouble, now)
    running.troubles.update("watching", watching.reason or None, now)
    running.troubles.update("watcher", None if watching.alive else "a thread died", now)
    return wrong


def _is_wrong(running: Running, one: Tracked) -> bool:
    """Notes what is wrong with a worker, and says whether anything is."""
    by = running.tree.shared.overwritten.get(one.id)
    reasons = (
        _source(running, f"{one.id}/runtime.json", one.runtime),
        _source(running, f"{one.id}/state.db", one.chat),
        _target(running, f"{one.id}/memory", one.memory),
        _target(running, f"{one.id}/shared", one.shared),
        _note(running, f"{one.id}/handoffs", _listed(one.refused_handoffs())),
        _note(running, f"{one.id}/transcripts", _listed(one.transcripts.troubles)),
        _note(running, f"{one.id}/shared handoff", f"overwritten by {by}" if by else None),
    )
    return any(reasons)


def _target(running: Running, key: str, target: Backoff) -> str | None:
    found = [f"{obstacle.path}: {obstacle.reason}" for obstacle in target.obstacles if not obstacle.expected]
    return _note(running, key, "; ".join(found) or None)


def _source(running: Running, key: str, source: FileSource[Any] | ChatSource) -> str | None:
    return _note(running, key, source.trouble.reason if source.trouble else None, GRACE)


def _listed(troubles: dict[str, str]) -> str | None:
    return "; ".join([f"{path}: {why}" for path, why in sorted(troubles.items())]) or None


def _note(running: Running, key: str, reason: str | None, grace: float = 0.0) -> str | None:
    running.troubles.update(key, reason, running.now(), grace)
    return reason
