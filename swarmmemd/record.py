"""One event as one line of `events.jsonl`, and a line as what it is. Pure.

docs/contracts.md, "events.jsonl".
"""

from typing import Any

import msgspec

from swarmmemd.cut import beginning
from swarmmemd.foreign import Foreign, understand
from swarmmemd.model import (
    Event,
    EventId,
    EventType,
    WorkerId,
    assignment_id,
    iso,
    mission_id,
    parse_iso,
    worker_id,
)
from swarmmemd.text import whole

LINE_LIMIT = 64 * 1024
"""Bytes of a line with its line break. Longer values are cut and marked with their length."""

_SHORTEST_CUT = 64
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """The line of `event`, ended with a line break, at most `LINE_LIMIT` bytes."""
    line: dict[str, Any] = {
        "at": iso(event.at),
        "type": event.type.value,
        "workerId": event.worker,
        "missionId": event.mission,
        "assignmentId": event.assignment,
        "summary": whole(event.summary),
    }
    if event.detail:
        line["event"] = {whole(k): whole(v) if isinstance(v, str) else v for k, v in event.detail.items()}
    line["id"] = event.id
    data = _encoder.encode(line)
    if len(data) >= LINE_LIMIT:
        data = _shortened(line)
    return data + b"\n"


def _shortened(line: dict[str, Any]) -> bytes:
    """Cuts the longest value again and again, by half of it or by what is too much, until the line fits."""
    texts = _texts(line)
    kept = {path: len(text) for path, text in texts.items()}
    while len(data := _encoder.encode(line)) >= LINE_LIMIT:
        path = max(kept, key=lambda key: kept[key])
        if kept[path] <= _SHORTEST_CUT:
            line.pop("event", None)  # thousands of short values: none of ours
            kept = {path: length for path, length in kept.items() if path == "summary"}
            continue
        excess = len(data) - LINE_LIMIT + _SHORTEST_CUT
        kept[path] = max(kept[path] - max(excess // 3, _SHORTEST_CUT), kept[path] // 2)
        _put(line, path, texts[path][: kept[path]], len(texts[path]))
    # Only now is looked where each may be cut: it takes longer, and makes nothing longer.
    for path, length in kept.items():
        if length < len(texts[path]):
            _put(line, path, beginning(texts[path], length), len(texts[path]))
    return _encoder.encode(line)


def _put(line: dict[str, Any], path: str, text: str, length: int) -> None:
    value = f"{text}… [cut, {length} characters]"
    if path == "summary":
        line["summary"] = value
    else:
        line["event"] = {**line["event"], path.removeprefix("event."): value}


def _texts(line: dict[str, Any]) -> dict[str, str]:
    texts = {f"event.{key}": value for key, value in line.get("event", {}).items() if isinstance(value, str)}
    return {"summary": line["summary"], **texts}


def decode(data: bytes, worker: WorkerId) -> Event | Foreign | None:
    """What a line (without its line break) of the worker's `events.jsonl` holds.

    An `Event` is one of ours, a `Foreign` what another writer says in words that we know; None is a torn
    line, or one that says nothing we could say.
    """
    try:
        line = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    return _own(line, worker) or understand(line)


def _own(line: dict[str, Any], worker: WorkerId) -> Event | None:
    id, at, summary = line.get("id"), parse_iso(line.get("at")), line.get("summary")
    if not (isinstance(id, str) and id.startswith("ev_") and at is not None and isinstance(summary, str)):
        return None
    if worker_id(line.get("workerId")) != worker or line.get("type") not in set(EventType):
        return None
    detail = line.get("event")
    return Event(
        id=EventId(id),
        at=at,
        type=EventType(line["type"]),
        worker=worker,
        mission=mission_id(line.get("missionId")),
        assignment=assignment_id(line.get("assignmentId")),
        summary=summary,
        detail=_plain(detail) if isinstance(detail, dict) else {},
    )


def _plain(detail: dict[str, Any]) -> dict[str, Any]:
    """The values that a line of ours can hold: texts, numbers, nulls."""
    return {
        key: value for key, value in detail.items() if value is None or isinstance(value, str | int | float)
    }


_SURE_TO_FIT = 8 * 1024
"""Characters of all values together: fewer cannot make a line too long."""


def bounded(event: Event) -> Event:
    """The event as its own line gives it back: values that do not fit are cut before anything is made of them,
    so that files made from the event now and after a restart are the same."""
    size = len(event.summary) + sum(len(value) for value in event.detail.values() if isinstance(value, str))
    if (
        size < _SURE_TO_FIT
        and event.summary.isascii()
        and all(str(v).isascii() for v in event.detail.values())
    ):
        return event
    found = decode(encode(event)[:-1], event.worker)
    return found if isinstance(found, Event) else event
