"""Places in a text that are to be replaced, and how they become one. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MARKER = re.compile(r"\[REDACTED:[a-z][a-z0-9-]{1,40}\]")


_ESCAPE = re.compile(r"u[0-9A-Fa-f]{4}|[nrtbf\"/]")


def lowered(text: str) -> str:
    """The text in lower case, each character where it was. Of two that are no ASCII a name can be made too."""
    return text.replace("İ", "i").replace("ſ", "s").lower()


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

    def __bool__(self) -> bool:
        return bool(self._places)

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


def outside_of_escapes(text: str, span: Span) -> Span:
    """The span without a half of an escape of JSON at either end: `\\npm_…` may be a line break and `pm_…`."""
    start, end = span.start, span.end
    if start and text[start - 1] == "\\" and _odd(text, start):
        escape = _ESCAPE.match(text, start)
        start = escape.end() if escape else start
    if end > start and text[end - 1] == "\\" and _odd(text, end):
        end -= 1
    return span if (start, end) == span[:2] else span._replace(start=start, end=end)


def _odd(text: str, at: int) -> bool:
    """Whether a run of backslashes before `at` leaves one that begins an escape."""
    run = at - 1
    while run and text[run - 1] == "\\":
        run -= 1
    return (at - run) % 2 == 1
