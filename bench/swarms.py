"""Homes with many workers, for what is measured of a whole swarm."""

import json
import time
from contextlib import closing
from pathlib import Path

from bench.latency import block, chat, dispatch, say


def swarm(home: Path, count: int) -> list[str]:
    """`count` workers that are idle: each was dispatched once, has said DONE, and keeps a chat of one row."""
    template = home / "template.db"
    home.mkdir(parents=True, exist_ok=True)
    with closing(chat(template)) as agent:
        say(agent, block("Planks have their first coat"))
    workers = [f"bench-{number + 1}" for number in range(count)]
    content = template.read_bytes()
    for worker in workers:
        profile = home / "profiles" / worker
        profile.mkdir(parents=True)
        (profile / "state.db").write_bytes(content)
        (profile / "runtime.json").write_text(json.dumps(done(worker)))
    template.unlink()
    return workers


def done(worker: str) -> dict[str, object]:
    """What the control plane leaves of a worker that has nothing to do."""
    raw = block("Planks have their first coat").replace("IN_PROGRESS", "DONE")
    return {
        **dispatch(1),
        "workerId": worker,
        "currentMissionId": f"mission-{worker}",
        "state": "idle",
        "phase": "idle",
        "checkpointStatus": "done",
        "lastDispatchAt": time.time_ns() // 1_000_000 - 3_600_000,
        "lastResult": "Planks have their first coat",
        "checkpointRaw": raw,
    }


def long_chat(path: Path, megabytes: int) -> None:
    """A chat of about that size, of old rows: prose of a worker, no checkpoint."""
    text = "I looked at the planks and they are as they were. " * 160
    with closing(chat(path)) as agent:
        agent.execute("PRAGMA synchronous = OFF")
        agent.execute("BEGIN")
        sql = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('main', 'assistant', ?, ?)"
        old = time.time() - 86_400 * 30
        rows = ((text, old + number) for number in range(megabytes * 1_000_000 // len(text)))
        agent.executemany(sql, rows)
        agent.execute("COMMIT")
