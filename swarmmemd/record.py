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
)
from swarmmemd.text import is_whole, whole

LINE_LIMIT = 64 * 1024
"""Bytes of a line with its line break. Longer values are cut and marked with their length."""

_SHORTEST_CUT = 64
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """The line of `event`, ended with a line break, at most `LINE_LIMIT` bytes."""
    line: dict[str, Any] = {
        "at": iso(event.at),
        "type": event.type,
        "workerId": event.worker,
        "missionId": event.mission,
        "assignmentId": event.assignment,
        "summary": event.summary,
    }
    if event.detail:
        line["event"] = event.detail
    line["id"] = event.id
    try:
        data = _encoder.encode(line)
    except UnicodeEncodeError:
        line = _whole(line)
        data = _encoder.encode(line)
    if len(data) >= LINE_LIMIT:
        data = _shortened(line)
    return data + b"\n"


def _whole(line: dict[str, Any]) -> dict[str, Any]:
    """The line with texts that UTF-8 can hold."""
    values = (
        (whole(key), _whole(value) if isinstance(value, dict) else value) for key, value in line.items()
    )
    return {key: whole(value) if isinstance(value, str) else value for key, value in values}


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
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        line = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return _own(line, worker) or understand(line)


_TYPES = {type.value: type for type in EventType}


def _own(line: dict[str, Any], worker: WorkerId) -> Event | None:
    id, at, summary = line.get("id"), parse_iso(line.get("at")), line.get("summary")
    if not (isinstance(id, str) and id.startswith("ev_") and at is not None and isinstance(summary, str)):
        return None
    type = line.get("type")
    if line.get("workerId") != worker or not (isinstance(type, str) and type in _TYPES):
        return None
    detail = line.get("event")
    return Event(
        id=EventId(id),
        at=at,
        type=_TYPES[type],
        worker=worker,
        mission=mission_id(line.get("missionId")),
        assignment=assignment_id(line.get("assignmentId")),
        summary=summary,
        detail=_plain(detail) if isinstance(detail, dict) else {},
    )


_PLAIN_KINDS = (str, int, float)


def _plain(detail: dict[str, Any]) -> dict[str, Any]:
    """The values that a line of ours can hold: texts, numbers, nulls."""
    return {key: value for key, value in detail.items() if value is None or isinstance(value, _PLAIN_KINDS)}


_SURE_TO_FIT = 8 * 1024
"""Characters of all values together: fewer cannot make a line too long."""


def bounded(event: Event) -> Event:
    """The event as its own line gives it back: values that do not fit are cut before anything is made of them,
    so that files made from the event now and after a restart are the same."""
    together = "".join([event.summary, *map(str, event.detail.values())])
    if len(together) < _SURE_TO_FIT and is_whole(together):
        return event
    found = decode(encode(event)[:-1], event.worker)
    return found if isinstance(found, Event) else event
