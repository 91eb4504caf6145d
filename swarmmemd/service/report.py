"""`status.json`, where `swarmmemd status` finds the figures; liveness is the lock. docs/commands.md, "status"."""

import os
import sys
from typing import Any

import msgspec

import swarmmemd
from swarmmemd import durable, layout
from swarmmemd.fold import status as status_of
from swarmmemd.model import iso
from swarmmemd.notify import notify
from swarmmemd.service.figures import Figures
from swarmmemd.service.running import Running
from swarmmemd.sources.chat import ChatSource
from swarmmemd.sources.file import FileSource
from swarmmemd.text import one_row
from swarmmemd.tracked import Tracked

SCHEMA = 1


def write_status(running: Running, final: bool) -> None:
    """Replaces `status.json`. A disk that refuses it is no reason to stop."""
    tree, figures, plan = running.tree, running.figures, running.plan
    health = plan.check()
    troubles = running.troubles.all(running.now())
    overdue = running.schedule.next()
    content = {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "uid": os.getuid(),
        "prefix": sys.prefix,
        "version": swarmmemd.__version__,
        "running": not final,
        "since": iso(int(figures.started * 1000)),
        "written": iso(int(running.clock.wall() * 1000)),
        "roots": {
            "profiles": str(tree.config.profiles_root),
            "workspace": str(tree.config.workspace_root),
            "shared": str(tree.config.shared_root),
            "state": str(tree.config.state_dir),
        },
        "api": running.api.address if running.api else None,
        "workers": _workers(running),
        "redacted": dict(sorted(tree.shared.counts.items())),
        "troubles": [{**one, "since": _ago(running, one["for_s"])} for one in troubles],
        "lag_s": round(max(running.now() - overdue, 0.0), 3) if overdue is not None else 0.0,
        "watching": {**msgspec.to_builtins(health), "losses": plan.losses, "last_loss": plan.last_loss},
        "turns": {
            "count": figures.turns,
            "events": figures.events,
            "seconds": round(figures.seconds, 6),
            "last_ms": round(figures.last_turn * 1000, 2),
            "longest_ms": round(figures.longest_turn * 1000, 2),
            "full_sweeps": figures.sweeps,
            "skipped_ids": figures.skipped,
        },
    }
    notify("STOPPING=1" if final else f"STATUS={_in_a_line(content, figures)}")
    try:
        durable.replace(tree.state, layout.STATUS, msgspec.json.encode(content), permissions=0o600)
    except OSError:
        return


def _workers(running: Running) -> list[msgspec.Raw]:
    """What there is to say of each worker: of one that nothing has happened to since, what was said the last time."""
    figures, now = running.figures, running.clock.wall()
    found: list[msgspec.Raw] = []
    for id, one in sorted(running.turns.workers.items()):
        said = figures.said.get(id)
        if said is None:
            told = _worker(one, figures, now)
            said = msgspec.Raw(msgspec.json.encode(told))
            if not told["obstacles"] and not any(
                source["trouble"] or source["lag_s"] for source in told["sources"]
            ):
                figures.said[id] = said
        found.append(said)
    return found


def _sources(one: Tracked, now: float) -> list[dict[str, Any]]:
    """Each source of the worker: how far it is read (a row, a byte), how long something in it waits to be read, what
    is wrong with it now, and what was wrong last."""
    chat = one.state.chat if one.state else None
    held = chat.held if chat else None
    return [
        _source("runtime.json", one.runtime, None, None, now),
        _source(
            "state.db", one.chat, chat.cursor if chat else None, held.since / 1000 if held else None, now
        ),
        *_transcripts(one),
    ]


def _source(
    name: str, source: FileSource[Any] | ChatSource, position: int | None, held: float | None, now: float
) -> dict[str, Any]:
    unread = source.trouble is not None or source.changed()
    waits = [when for when in (source.read_at if unread else None, held) if when is not None]
    return {
        "name": name,
        "position": position,
        "read": iso(int(source.read_at * 1000)) if source.read_at is not None else None,
        "lag_s": round(max(now - min(waits, default=now), 0.0), 1),
        "trouble": source.trouble.reason if source.trouble else None,
        "last_error": source.last_error,
    }


def _transcripts(one: Tracked) -> list[dict[str, Any]]:
    known = (one.state.transcripts if one.state else None) or {}
    troubles = one.transcripts.troubles
    return [
        {
            "name": path,
            "position": known[path].offset if path in known else None,
            "read": None,
            "lag_s": 0.0,
            "trouble": troubles.get(path),
            "last_error": troubles.get(path),
        }
        for path in sorted(one.transcripts.present | troubles.keys())
    ]


def _ago(running: Running, seconds: float) -> str:
    return iso(int((running.clock.wall() - seconds) * 1000))


def _in_a_line(content: dict[str, Any], figures: Figures) -> str:
    """For `systemctl status`: version, workers, how far behind, the last event that was recorded, and what
    is degraded and since when."""
    troubles, workers = content["troubles"], content["workers"]
    told = f"{content['version']} watching {len(workers)} workers, {content['turns']['events']} events since the start"
    if content["lag_s"] >= 1.0:
        told += f", {content['lag_s']:.0f} s behind"
    last = max(((event.at, worker) for worker, event in figures.last_events.items()), default=None)
    if last:
        told += f", the last at {iso(last[0])[:19]}Z of {last[1]}"
    if troubles:
        first = min(troubles, key=lambda one: str(one["since"]))
        more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
        told += f"; degraded since {first['since'][:19]}Z: {first['what']}: {first['reason']}{more}"
    return one_row(told, 400)


def _worker(one: Tracked, figures: Figures, now: float) -> dict[str, Any]:
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
        "sources": _sources(one, now),
        "obstacles": [
            f"{obstacle.path}: {obstacle.reason}" for obstacle in one.memory.obstacles + one.shared.obstacles
        ],
    }
