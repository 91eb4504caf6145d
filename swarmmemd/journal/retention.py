"""Takes bodies of old events and old versions of handoffs out of the journal, a slice at a time.

Ids, sequence numbers, types and times stay, and so does all that a later turn may ask for. docs/contracts.md,
"Retention".
"""

import sqlite3

import msgspec

from swarmmemd.bodies import dropped, without_body
from swarmmemd.journal.values import kept_mission, recorded
from swarmmemd.model import WorkerId
from swarmmemd.record import encode

_SLICE = 2000
"""Sequence numbers looked at in one piece."""
_DISPATCHES = 64
"""The newest dispatches of a worker keep their bodies: prompts are known by the texts of their tasks."""


class Slice(msgspec.Struct, frozen=True):
    """What one piece has to drop: rows (line, seq) of events, rows (worker, sha256) of handoffs. `last` is the sequence
    number up to which it has looked; None at the end."""

    events: tuple[tuple[bytes, int], ...] = ()
    handoffs: tuple[tuple[str, str], ...] = ()
    last: int | None = None


def old(db: sqlite3.Connection, after: int, before: int) -> Slice:
    """What there is to drop behind sequence number `after`, of times before `before` (ms). Old handoffs come with the
    last piece."""
    newest = int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])
    last = after + _SLICE
    events = tuple(_events(db, after, last, before))
    return Slice(events, last=last) if last < newest else Slice(events, tuple(_handoffs(db, before)))


def drop(db: sqlite3.Connection, found: Slice) -> None:
    """Drops it."""
    db.executemany("UPDATE event SET line = ? WHERE seq = ?", found.events)
    db.executemany("UPDATE handoff SET text = x'' WHERE worker = ? AND sha256 = ?", found.handoffs)


def _events(db: sqlite3.Connection, after: int, last: int, before: int) -> list[tuple[bytes, int]]:
    """Events that are in their files, of missions that are complete: nothing of them is rendered again."""
    sql = (
        "SELECT seq, worker, mission, line FROM event WHERE seq > ? AND seq <= ? AND at < ? AND applied = 1 "
        "AND mission IS NOT NULL AND NOT (type = 'dispatch' AND seq IN (SELECT seq FROM event AS newer "
        f"WHERE newer.worker = event.worker AND newer.type = 'dispatch' ORDER BY seq DESC LIMIT {_DISPATCHES}))"
    )
    over: dict[tuple[str, str], bool] = {}
    found = []
    for seq, worker, mission, line in db.execute(sql, (after, last, before)).fetchall():
        key = (worker, mission)
        if key not in over:
            over[key] = _is_over(db, *key)
        event = recorded(seq, line, WorkerId(worker)).event
        if over[key] and dropped(event) is None:
            found.append((encode(without_body(event)), seq))
    return found


def _is_over(db: sqlite3.Connection, worker: str, mission: str) -> bool:
    sql = "SELECT state FROM mission WHERE worker = ? AND mission = ? AND shown = 1 AND archived = 1"
    row = db.execute(sql, (worker, mission)).fetchone()
    return row is not None and bool(kept_mission(row[0]).completed)


def _handoffs(db: sqlite3.Connection, before: int) -> list[tuple[str, str]]:
    """Versions that no mission counts any more."""
    sql = "SELECT worker, sha256 FROM handoff WHERE at < ? AND length(text) > 0"
    rows = db.execute(sql, (before,)).fetchall()
    counted = {
        (worker, state.handoff.sha256)
        for worker in {worker for worker, _ in rows}
        for (data,) in db.execute("SELECT state FROM mission WHERE worker = ?", (worker,))
        if (state := kept_mission(data)).handoff
    }
    return [row for row in rows if row not in counted]
