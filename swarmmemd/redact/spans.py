"""Places in a text that are to be replaced, and how they become one. Pure."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

MARKER = re.compile(r"\[REDACTED:[a-z][a-z0-9-]{1,40}\]")


class Span(NamedTuple):
    """A secret in a text. `quote` is put round its replacement. `core` is the part that decides whether it is
    allowed; None if that is all of it."""

    start: int
    end: int
    kind: str
    quote: str = ""
    core: tuple[int, int] | None = None


class Places:
    """Places in a text, in order and apart from each other."""

    def __init__(self, found: Iterable[tuple[int, int]]) -> None:
        self._places = list(found)
        self._next = 0

    def reset(self) -> None:
        self._next = 0

    def overlapping(self, start: int, end: int) -> list[tuple[int, int]]:
        """Those that share a character with start..end. Asked in ascending order of `start`."""
        while self._next < len(self._places) and self._places[self._next][1] <= start:
            self._next += 1
        found = []
        for at in range(self._next, len(self._places)):
            if self._places[at][0] >= end:
                break
            found.append(self._places[at])
        return found


def united(spans: Sequence[Span], ranks: dict[str, int]) -> list[Span]:
    """Spans that overlap as one, of the kind that says most; ascending."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start < result[-1].end:
            last = result[-1]
            kind = min(last.kind, span.kind, key=ranks.__getitem__)
            result[-1] = Span(last.start, max(last.end, span.end), kind, last.quote or span.quote)
        else:
            result.append(span)
    return result


def apart(spans: Sequence[Span]) -> bool:
    return all(one.end <= other.start for one, other in pairwise(spans))
