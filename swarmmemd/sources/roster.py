"""`swarm.yaml`: who the workers are. Pure; docs/contracts.md, "Roster"."""

from typing import Any

import yaml

from swarmmemd.model import Unreadable, WorkerId, worker_id
from swarmmemd.observation import Roster, RosterWorker

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
    listed = fields.get("greenlightRequiredFor")
    return RosterWorker(
        id=id,
        name=_text(fields, "name") or id,
        role=_text(fields, "role"),
        specialty=_text(fields, "specialty"),
        model=_text(fields, "model"),
        mission=_text(fields, "mission"),
        greenlight=tuple(item for item in listed if isinstance(item, str))
        if isinstance(listed, list)
        else (),
    )


def _text(fields: dict[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) and value.strip() else None
