"""From the lines of a value to the value: dedent, marks around the whole, none.

Applied to its own answer it changes nothing.
"""

import re
from collections.abc import Iterable

from swarmmemd.checkpoint.lines import EDGE

_MARKS = ("```", "``", "`", "***", "**", "*", "___", "__", "_")
_MARK_STARTS = ("`", "*", "_")
_NOTHING = re.compile(r"(?:none|n/a|[-–—]+)?\.*", re.IGNORECASE)
_NOTHING_STARTS = frozenset("nN-–—.")
_FILLER = re.compile(r"\.{3,}|…+|<[^<>]*>|.*\bor none\W*", re.IGNORECASE | re.DOTALL)
_FILLER_STARTS = frozenset(".…<")
_FILLER_LENGTH = 200


def value_of(inline: str, below: list[str], pending: str) -> str | None:
    """The value from the text beside the label, without white space around it, and the lines below it."""
    lines = _dedented([line.rstrip() if line.isascii() or line.strip(EDGE) else "" for line in below])
    text = "\n".join([inline, *lines] if inline else lines)
    return value_beside(text.strip(EDGE), pending)


def value_beside(text: str, pending: str) -> str | None:
    """The value of a label below which nothing stands, from the text beside it."""
    if pending and text.endswith(pending):
        text = text.removesuffix(pending).rstrip(EDGE)
    if text.startswith(_MARK_STARTS):
        text = _unwrapped(text)
    # Three dots are a filler, which is counted.
    if text and (text[0] not in _NOTHING_STARTS or len(text) >= 16 or text[:3] == "..."):
        return text
    return None if _NOTHING.fullmatch(text) else text


def _dedented(lines: list[str]) -> list[str]:
    indent = _indent(lines)
    return [line[indent:] for line in lines] if indent else lines


def _indent(lines: list[str]) -> int:
    """The blanks with which every line begins that is not empty."""
    least: int | None = None
    for line in lines:
        if line:
            indent = len(line) - len(line.lstrip())
            least = indent if least is None else min(least, indent)
            if not least:
                break
    return least or 0


def _unwrapped(text: str) -> str:
    """Without the marks around the whole. A kind of mark goes at most once, so this ends soon."""
    while (inner := _inside(text)) is not None:
        text = inner.strip(EDGE)
    return text


def _inside(text: str) -> str | None:
    mark = next((mark for mark in _MARKS if text.startswith(mark)), None)
    if mark is None or len(text) <= 2 * len(mark) or not text.endswith(mark):
        return None
    inner = text[len(mark) : -len(mark)]
    flanked = mark[0] == "`" or inner == inner.strip(EDGE)
    return inner if flanked and mark[0] not in (inner[0], inner[-1]) and mark not in inner else None


def fillers(values: Iterable[str | None]) -> int:
    """How many values are those of a form that nobody filled in."""
    return sum(map(_is_filler, filter(None, values)))


def _is_filler(value: str) -> bool:
    if value[0] not in _FILLER_STARTS and "or none" not in value.lower():
        return False
    return len(value) <= _FILLER_LENGTH and "://" not in value and _FILLER.fullmatch(value) is not None
