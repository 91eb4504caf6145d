"""`swarm.yaml`: who the workers are. Pure; docs/contracts.md, "Roster"."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from swarmmemd.model import Unreadable, WorkerId, worker_id
from swarmmemd.observation import Roster, RosterWorker

_MOST = 100
_DEEPEST = 2
_NODES = 100_000
"""Keys and values of a file, with those that merge keys bring: some thousands of workers with all their fields. A
node takes its time however short it is, and merge keys multiply what they name."""

_NESTED = 32
"""A list in a list in a list: no roster has more, and each level makes every token below it dearer."""

_SCALAR_LENGTH = 256
"""No number and no date is longer. A text may be."""

_TEXT = "tag:yaml.org,2002:str"
_NUMBERS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    """YAML's own types, and no more of it than a roster can have."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = self._depth = 0

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        """Called by YAML where a node begins."""
        self._depth += 1
        if self._depth > _NESTED:
            raise yaml.YAMLError("nested too deeply")
        self._count(1)

    def ascend_resolver(self) -> None:
        """Called where it ends."""
        self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Called for a mapping, and for each that a merge key names, before its pairs are taken over."""
        super().flatten_mapping(node)
        self._count(len(node.value))

    def resolve(self, kind: type, value: str, implicit: object) -> Any:
        """Called for the type of what names none itself: what is too long for any other is a text."""
        if kind is yaml.ScalarNode and len(value) > _SCALAR_LENGTH:
            return _TEXT
        return super().resolve(kind, value, implicit)

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        """Called for each value that is one. A number takes the square of its length."""
        if node.tag in _NUMBERS and len(node.value) > _SCALAR_LENGTH:
            raise yaml.YAMLError("a number is too long")
        return super().construct_scalar(node)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _NODES:
            raise yaml.YAMLError(f"more than {_NODES} values")


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
