"""`swarm.yaml`: who the workers are. Pure; docs/contracts.md, "Roster"."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from swarmmemd.model import Unreadable, WorkerId, worker_id
from swarmmemd.observation import Roster, RosterWorker

_MOST = 100
_DEEPEST = 2
_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_roster(data: bytes, written: int) -> Roster | Unreadable:
    """The workers in `data`. An entry without a valid id is left out; the others count."""
    try:
        fields = yaml.load(data.decode(), Loader=_Loader)
    except Exception as error:
        # A tag such as `!!bool maybe` ends in whatever the constructor stumbles over: KeyError, IndexError, ...
        return Unreadable(f"not YAML ({' '.join(str(error).split())[:160]})")
    listed = fields.get("workers") if isinstance(fields, dict) else None
    if not isinstance(listed, list):
        return Unreadable("workers is no list")
    workers: dict[WorkerId, RosterWorker] = {}
    for item in listed:
        if isinstance(item, dict) and (id := worker_id(item.get("id"))) is not None:
            workers.setdefault(id, _worker(id, item))
    return workers


def _worker(id: WorkerId, fields: dict[str, Any]) -> RosterWorker:
    return RosterWorker(
        id=id,
        name=_text(fields, "name") or id,
        role=_text(fields, "role"),
        specialty=_text(fields, "specialty"),
        model=_text(fields, "model"),
        mission=_text(fields, "mission"),
        greenlight=_texts(fields.get("greenlightRequiredFor")),
    )


def _text(fields: dict[str, Any], key: str) -> str | None:
    """What names one thing is a text; a value of another type is as if not given (tests/cases/roster)."""
    value = fields.get(key)
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: object) -> tuple[str, ...]:
    """What needs a green light, however YAML takes it: a text, a number, a date, a list of such, a mapping.

    A limit to what a worker may do is never dropped for its type; an alias can hold the same again and again, so
    there is an end.
    """
    found = islice(_said(value, 0), _MOST)
    return tuple(text for text in found if text.strip())


def _said(value: object, depth: int) -> Iterator[str]:
    if value is None or depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, one in islice(value.items(), _MOST):
            inner = ", ".join(islice(_said(one, depth + 1), _MOST))
            yield f"{_scalar(key)}: {inner}" if inner else _scalar(key)
    elif isinstance(value, list | tuple | set):
        for one in islice(value, _MOST):
            if isinstance(one, list | tuple | set | dict):
                yield ", ".join(islice(_said(one, depth + 1), _MOST))
            else:
                yield from _said(one, depth)
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
