"""What a program sent to a terminal, as the plain lines that a person would read. Pure.

Each line is read by itself: an escape sequence ends with its line at the latest, so it does not matter in
which portions a stream is read. docs/contracts.md, "Transcripts".
"""

import re

_SPECIAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_BREAKS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
"""Other signs for a new line. Only a line feed makes a line here, as in the count of bytes."""

_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)(?:(?P<home>1?+[ -/]*+G)|(?P<rest>0?+[ -/]*+K)|(?P<line>2[ -/]*+K)|(?P<right>[0-?]*+[ -/]*+C)"
    "|[0-?]*+[ -/]*+[@-~]?+)"
    # tmux wraps the sequences of a program within tmux, every ESC doubled.
    "|\x1bPtmux;(?:[^\x1b\n]++|\x1b\x1b)*+(?:\x1b\\\\)?+"
    "|(?:\x1b\\]|\x9d)[^\x07\n\x18\x1a\x1b\x9c]*+(?:\x07|\x9c|\x1b\\\\)?+"
    "|(?:\x1b[PX^_k]|[\x90\x98\x9e\x9f])[^\n\x18\x1a\x1b\x9c]*+(?:\x9c|\x1b\\\\)?+"
    "|\x1b[ -/]*+[0-~]?+"
)
_WRITTEN_OVER = re.compile("^(?:[^\r\n]*+\r++(?!\n|\\Z))++", re.MULTILINE)
_TYPED_OVER = re.compile("^[^\b\n]*+\b[^\n]*+", re.MULTILINE)
_EFFECTS = {"home": "\r", "rest": "\0", "line": "\r\0", "right": " ", None: ""}
"""Sequences that do what a control character does. A NUL stands for "the rest of the line is erased"; a cursor that
moves right leaves a gap: some programs draw their blanks so."""

_BROKEN_END = re.compile(
    rb"(?:\x1b(?:\[[0-?]*+[ -/]*+|[ -/]*+|[\]PX^_k][^\x07\x1b\n]*+\x1b?)"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
_LONGEST_END = 4096


def plain_lines(data: bytes) -> list[str]:
    """The lines of `data` as plain text, one for each line feed and one for what stands behind the last."""
    text = data.removesuffix(b"\n").decode("utf-8", "replace")
    return plain(text).split("\n") if data else []


def plain(text: str) -> str:
    """Each line as it stands on the screen in the end: redrawn lines once, without escapes and controls."""
    if _SPECIAL.search(text) is None:
        return text
    shown = _WRITTEN_OVER.sub("", _ESCAPE.sub(_effect, text))
    return _SPECIAL.sub("", _BREAKS.sub(" ", _TYPED_OVER.sub(_typed, shown)))


def is_redrawn(line: bytes) -> bool:
    """Whether the line is a progress bar or the like: it is written over while it stands there."""
    return b"\b" in line or b"\r" in line.rstrip(b"\r")


def unbroken(data: bytes) -> bytes:
    """`data` without half a character or half an escape sequence at its end."""
    found = _BROKEN_END.search(data, max(0, len(data) - _LONGEST_END))
    return data[: found.start()] if found else data


def _effect(found: re.Match[str]) -> str:
    return _EFFECTS[found.lastgroup]


def _typed(line: re.Match[str]) -> str:
    kept: list[str] = []
    for character in line[0]:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
