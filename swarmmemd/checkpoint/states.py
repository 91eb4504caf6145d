"""The words of a STATE line. docs/contracts.md, "Checkpoints"."""

import re
from functools import lru_cache

from swarmmemd.checkpoint.lines import EDGE, EMOJI, INVISIBLE
from swarmmemd.model import CheckpointState

_WORDS = {
    "DONE": CheckpointState.DONE,
    "COMPLETED": CheckpointState.DONE,
    "COMPLETE": CheckpointState.DONE,
    "FINISHED": CheckpointState.DONE,
    "完成": CheckpointState.DONE,
    "已完成": CheckpointState.DONE,
    "BLOCKED": CheckpointState.BLOCKED,
    "STUCK": CheckpointState.BLOCKED,
    "NEEDS_INPUT": CheckpointState.NEEDS_INPUT,
    "NEED_INPUT": CheckpointState.NEEDS_INPUT,
    "WAITING_FOR_INPUT": CheckpointState.NEEDS_INPUT,
    "HANDOFF": CheckpointState.HANDOFF,
    "HAND_OFF": CheckpointState.HANDOFF,
    "IN_PROGRESS": CheckpointState.IN_PROGRESS,
    "WORKING": CheckpointState.IN_PROGRESS,
    "ONGOING": CheckpointState.IN_PROGRESS,
    "NEEDS_REVIEW": CheckpointState.NEEDS_REVIEW,
    "READY_FOR_REVIEW": CheckpointState.NEEDS_REVIEW,
}
_READ = 200
_BETWEEN = re.compile(r"[\s_\-‐‑]++")
_WORD = re.compile("(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")(?![^\W_])")
_UNSAID = re.compile(rf"~~[^~]*+~~|[*`~\"'\\{INVISIBLE}]|{EMOJI}")
_NO_WORD = re.compile(r"[\W_]*+")
_OR = re.compile(r"(?:OR(?![^\W_])|或)[\W_]*+")
_JOINTS = frozenset("|/,｜／，、")
_COMMAS = frozenset(",，、")


def read_state(value: str) -> CheckpointState | None:
    """The state that the value begins with; None for a choice of states or an unknown word."""
    return _read(value[:_READ])


@lru_cache(maxsize=64)
def _read(value: str) -> CheckpointState | None:
    """Most messages use one of a few words."""
    said = _said(value)
    word = _WORD.match(said)
    if word is None or "[ ]" in value or _is_choice(said, word.end()):
        return None
    return _WORDS[word.group()]


def is_stateful(value: str) -> bool:
    """A known state, or the form's choice or placeholder for one."""
    return _is_stateful(value[:_READ]) or value.lstrip(EDGE).startswith("<")


@lru_cache(maxsize=64)
def _is_stateful(value: str) -> bool:
    return _WORD.match(_said(value)) is not None


def _said(value: str) -> str:
    """The value without marks, emoji and leading punctuation, in upper case, line breaks kept."""
    plain = _UNSAID.sub("", value[:_READ]).upper()
    joined = _BETWEEN.sub(lambda gap: "\n" if "\n" in gap.group() else "_", plain)
    start = _NO_WORD.match(joined)
    return joined[start.end() :] if start else joined


def _is_choice(said: str, end: int) -> bool:
    """Whether a second known word is joined to the first: that is the form, not an answer."""
    gap = _gap(said, end)
    start = end + len(gap)
    either = _OR.match(said, start)
    second = _WORD.match(said, either.end() if either else start)
    if second is None:
        return False
    joints = _JOINTS.intersection(gap)
    if either or joints - _COMMAS:
        return True
    # "DONE, handoff written" says more than a list would; "DONE" above "BLOCKED" is a list.
    return bool(joints or "\n" in gap) and _ends(said, second.end())


def _ends(said: str, end: int) -> bool:
    gap = _gap(said, end)
    start = end + len(gap)
    return (
        start == len(said) or bool(_JOINTS.intersection(gap)) or "\n" in gap or bool(_OR.match(said, start))
    )


def _gap(said: str, start: int) -> str:
    found = _NO_WORD.match(said, start)
    return found.group() if found else ""
