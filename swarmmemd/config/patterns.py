"""Whether a regular expression of the user's can run for ever. Pure; docs/redaction.md, "Your own".

Python's `re` tries every way in which a repeat within a repeat can divide a text: two to the power of its length.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

_FEW = 100_000
"""So many ways are tried in no time."""

_ENOUGH = 17
"""Two to the power of this is more than a few."""

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_SETTLED = ("POSSESSIVE_REPEAT", "ATOMIC_GROUP")
"""What these have matched they never divide anew."""


def can_run_for_ever(pattern: str) -> bool:
    """Whether a repeat holds another, or alternatives that can begin alike, and is not bounded to a few ways.
    Raises `re.error`."""
    # The parser is not public, but it is the only one that reads exactly what `re` reads.
    return _explodes(import_module("re._parser").parse(pattern))


def _explodes(items: Iterable[Any]) -> bool:
    for name, value in _named(items):
        if name in _REPEATS and _ways(value[2]) ** min(value[1], _ENOUGH) > _FEW:
            return True
        if any(_explodes(inner) for inner in _inside(name, value)):
            return True
    return False


def _ways(items: Iterable[Any]) -> int:
    """In how many ways these can match the same place, at most; no more than matters."""
    ways = 1
    for name, value in _named(items):
        if name in _SETTLED:
            continue
        if name in _REPEATS:
            least, most = value[0], min(value[1], _FEW)
            ways *= (most - least + 1) * _ways(value[2]) ** min(most, _ENOUGH)
        elif name == "BRANCH":
            ways *= (1 if _begin_apart(value[1]) else len(value[1])) * max(map(_ways, value[1]))
        else:
            for inner in _inside(name, value):
                ways *= _ways(inner)
        ways = min(ways, _FEW + 1)
    return ways


def _begin_apart(alternatives: list[Any]) -> bool:
    """Whether each alternative begins with a character of its own."""
    firsts = [next(_named(one), ("", None)) for one in alternatives]
    return all(name == "LITERAL" for name, _ in firsts) and len({char for _, char in firsts}) == len(firsts)


def _inside(name: str, value: Any) -> Iterator[Any]:
    """The parts of an item that are patterns themselves."""
    if name in _REPEATS or name == "POSSESSIVE_REPEAT":
        yield value[2]
    elif name == "BRANCH":
        yield from value[1]
    elif name == "SUBPATTERN":
        yield value[3]
    elif name == "ATOMIC_GROUP":
        yield value
    elif name in ("ASSERT", "ASSERT_NOT"):
        yield value[1]
    elif name == "GROUPREF_EXISTS":
        yield from (one for one in value[1:] if one is not None)


def _named(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(name), value) for name, value in items)
