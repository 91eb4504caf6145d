"""Texts made shorter, at a place that is no part of a secret. Pure.

What is cut here may pass through redaction later, and half a token is not recognised any more. So a secret is
whole in the part that is kept, or not there. docs/redaction.md, "Shortened texts".
"""

import re
from bisect import bisect_right
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmmemd.redact import Redactor

_AHEAD = 8192
"""So far behind the cut a secret is looked at: no rule of redaction looks further."""

_WORD = 256
"""A run without blanks of up to this length is whole or absent, whatever it is: the user's own patterns are not
known here."""

_TRIES = 4
_GLUED = "…"
"""What often comes behind a cut. It is part of no secret, but can make one look like a placeholder."""


_MARK = re.compile(r"… \[cut, [0-9]{1,12} characters\]\Z")


def shortened(text: str, limit: int) -> str:
    """`text`, or of one of more than `limit` characters its beginning and `… [cut, N characters]`, with the
    length that it had. What is cut already keeps its mark."""
    if len(text) <= limit:
        return text
    mark = _MARK.search(text)
    body = text[: mark.start()] if mark else text
    if len(body) <= limit:
        return text
    return f"{beginning(body, limit)}{mark[0] if mark else f'… [cut, {len(text)} characters]'}"


def beginning(text: str, limit: int) -> str:
    """The first characters of `text`, at most `limit`; of a longer text fewer, where a word or a secret would
    be cut."""
    if len(text) <= limit:
        return text
    window = text[: limit + _AHEAD]
    return window[: _kept(window, limit)]


@lru_cache(128)
def _kept(window: str, limit: int) -> int:
    at = len(window[: _between_words(window, limit)].rstrip())
    secrets = [place for place in _secrets(window) if place[0] < at]
    for _ in range(_TRIES):
        lost = _first_lost(window, at, secrets)
        if lost is None:
            return at
        at = len(window[:lost].rstrip())
    return len(window[: secrets[0][0]].rstrip())


def _first_lost(window: str, at: int, secrets: list[tuple[int, int]]) -> int | None:
    """Where the first secret begins that is not found any more, or not all that is left of it, if only the text
    before `at` is kept."""
    found = _secrets(window[:at] + _GLUED) if secrets else []
    for start, end in secrets:
        if start >= at:
            return None
        before = bisect_right(found, (start, len(window))) - 1
        if before < 0 or found[before][1] < min(end, at):
            return start
    return None


def _secrets(text: str) -> list[tuple[int, int]]:
    return _redactor().extents(text)


@cache
def _redactor() -> "Redactor":
    # Imported here: redaction takes long to load, and few texts are too long.
    from swarmmemd.redact import Redactor

    return Redactor()


def _between_words(text: str, at: int) -> int:
    """`at`, or the end of the last word before it if a word of no great length goes on there."""
    if len(text) <= at or text[at].isspace():
        return at
    lowest = max(0, at - _WORD)
    return next((place for place in range(at - 1, lowest - 1, -1) if text[place].isspace()), at)


def _within(start: int, end: int, known: list[tuple[int, int]]) -> bool:
    return any(low <= start and end <= high for low, high in known)
