"""What is wrong now: sources that cannot be read, files that cannot be written, watches that died."""

from typing import Any

from swarmmemd.log import GRACE
from swarmmemd.service.running import Running
from swarmmemd.sources.chat import ChatSource
from swarmmemd.sources.file import FileSource
from swarmmemd.turn import Backoff


def judge(running: Running) -> None:
    """Notes what is wrong and what is well again; each change is one log line."""
    now = running.now()
    for one in running.turns.workers.values():
        _source(running, f"{one.id}/runtime.json", one.runtime)
        _source(running, f"{one.id}/state.db", one.chat)
        _target(running, f"{one.id}/memory", one.memory)
        _target(running, f"{one.id}/shared", one.shared)
        reasons = [f"{path}: {why}" for path, why in sorted(one.refused_handoffs().items())]
        running.troubles.update(f"{one.id}/handoffs", "; ".join(reasons) or None, now)
        unread = [f"{path}: {why}" for path, why in sorted(one.transcripts.troubles.items())]
        running.troubles.update(f"{one.id}/transcripts", "; ".join(unread) or None, now)
        by = running.tree.shared.overwritten.get(one.id)
        running.troubles.update(f"{one.id}/shared handoff", f"overwritten by {by}" if by else None, now)
    running.troubles.update("audit log", running.tree.audit.trouble, now)
    _source(running, "ledger", running.turns.ledger)
    _source(running, "roster", running.turns.roster)
    health = running.plan.check()
    running.troubles.update("watching", health.reason or None, now)
    running.troubles.update("watcher", None if health.alive else "a thread died", now)


def _target(running: Running, key: str, target: Backoff) -> None:
    found = [f"{obstacle.path}: {obstacle.reason}" for obstacle in target.obstacles if not obstacle.expected]
    running.troubles.update(key, "; ".join(found) or None, running.now())


def _source(running: Running, key: str, source: FileSource[Any] | ChatSource) -> None:
    reason = source.trouble.reason if source.trouble else None
    running.troubles.update(key, reason, running.now(), GRACE)
