"""Whose prompt a user row of the chat is: which dispatch it hands to the worker. Pure.

docs/contracts.md, "Whose checkpoint it is".
"""

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from swarmmemd.identity import fold
from swarmmemd.observation import Message
from swarmmemd.state import Dispatch

LATE_DISPATCH = 60_000
"""ms. So much later than the prompt itself can a control plane say that it has dispatched."""
_FORM = "required checkpoint format"
_SHORTEST_CUT = 200


class Token(StrEnum):
    """The first words of the control plane's lifecycle prompts."""

    HANDOFF = "CONTEXT_HANDOFF_REQUIRED"
    RESUME = "RESUME_AFTER_HANDOFF"


_FIRST_WORD = re.compile(r"\s*+([A-Z_]++)\b")
_CUT = re.compile(r"… \[cut, \d+ characters\]\Z")


class Meant(msgspec.Struct, frozen=True):
    """The dispatch that a row hands over, if any. `sure` is false where the right one may not be known yet."""

    dispatch: Dispatch | None
    sure: bool = True


def token(text: str) -> Token | None:
    """The lifecycle token that the text begins with."""
    first = _FIRST_WORD.match(text)
    return Token(first[1]) if first and first[1] in set(Token) else None


def has_form(text: str) -> bool:
    """Whether the text holds the heading of the checkpoint form, which ends every dispatch prompt."""
    return _FORM in fold(text).casefold()


def meant(message: Message, dispatches: Sequence[Dispatch], tasks: Sequence[str]) -> Meant | None:
    """Which dispatch the row hands over; None where it is no prompt.

    Prompts carry old memory, so a row can hold the tasks of several dispatches: the newest that was sent by
    then is meant. One that was answered before the row was written is old memory, if a later one is near.
    """
    text = fold(message.text)
    hits = [d for d, task in zip(dispatches, tasks, strict=True) if _holds(text, task)]
    form = has_form(message.text)
    sent = next((d for d in reversed(hits) if d.at <= message.at), None)
    if sent is not None and not answered_before(sent, message):
        return Meant(sent)
    soon = next((d for d in hits if message.at < d.at <= message.at + LATE_DISPATCH), None)
    if soon is not None:
        return Meant(soon)
    if sent is not None:
        return Meant(sent, sure=not form)
    if hits:
        return Meant(hits[0])
    return _without_task(message, dispatches, tasks) if form else None


def _without_task(message: Message, dispatches: Sequence[Dispatch], tasks: Sequence[str]) -> Meant:
    """A prompt of an unknown task: that of the newest dispatch, if nobody knows its task."""
    known = [
        (d, task) for d, task in zip(dispatches, tasks, strict=True) if d.at <= message.at + LATE_DISPATCH
    ]
    if known and not known[-1][1] and not answered_before(known[-1][0], message):
        return Meant(known[-1][0])
    return Meant(None, sure=False)


def answered_before(dispatch: Dispatch, message: Message) -> bool:
    """Whether the worker had answered the dispatch when the row was written."""
    return dispatch.answered and dispatch.ended_at < message.at


def _holds(text: str, task: str) -> bool:
    """Whether the folded `text` holds the task as words of its own. A task that was cut counts as far as it goes."""
    needle, cuts = _CUT.subn("", task)
    needle = fold(needle)
    if not needle or (cuts and len(needle) < _SHORTEST_CUT):
        return False
    start = text.find(needle)
    while start >= 0:
        end = start + len(needle)
        if not _joined(text, start) and (cuts or not _joined(text, end)):
            return True
        start = text.find(needle, start + 1)
    return False


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of `at` belong to one word."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum() and text[at].isascii()
