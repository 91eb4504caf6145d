"""How much of what was added to a transcript is read now, and what waits for its end. Pure.

docs/contracts.md, "Transcripts".
"""

from typing import NamedTuple

from swarmmemd.checkpoint.following import OpenBlock, announcing, counts, open_block, starts_soon
from swarmmemd.sources.terminal import is_redrawn, plain_lines, unbroken

STILL = 2.0
"""Seconds after which a block that does not grow is taken to be at its end."""
_LONGEST_BLOCK = 64 * 1024
"""Bytes. What is longer and has no end is not waited for."""
_ABOVE = 4096
"""Bytes above what waits that are kept with it."""


class Added(NamedTuple):
    """The bytes from `offset` on, and some that stand right above. `more`: there are still more behind them.
    `still`: the file has stood still. `over`: nothing will come to it any more."""

    offset: int
    above: bytes
    data: bytes
    more: bool
    still: bool
    over: bool = False


class Held(NamedTuple):
    """A block that may go on: its first byte, how many lines below that its newest label stands, how far it goes, and
    since when that is so (monotonic seconds)."""

    start: int
    newest: int
    end: int
    since: float


class Left(NamedTuple):
    """What a look has seen of a file and not given out yet: the bytes from `offset` on, and some right above."""

    offset: int
    above: bytes
    data: bytes
    written: int


class Portion(NamedTuple):
    """The plain text that is read now, the number of bytes that it stands for, and the block that waits."""

    text: str
    size: int
    held: Held | None
    whole: bool


def portion(added: Added, held: Held | None, now: float) -> Portion:
    """Complete lines, up to a block that may go on. `held` is the block that waited at the last look."""
    begun = added.above.rpartition(b"\n")[2]
    body = begun + added.data
    end = body.rfind(b"\n") + 1
    ready = unbroken(body) if added.still else body[:end]
    lines = plain_lines(ready)
    block = open_block(lines)
    waiting: Held | None = None
    whole = added.still
    if block is not None and added.still:
        end, whole = _at_rest(ready, lines, block, len(ready) < len(body) and not added.over)
    elif block is not None:
        waiting = _waiting(block, body, added.offset - len(begun), held, now)
        if _may_wait(block, body, end, added.more) and now - waiting.since < STILL:
            end = _byte(body, block.start)
        else:
            waiting = None
    size = max(0, end - len(begun))
    text = _text(added.above[: len(added.above) - len(begun)], body[:end], lines) if size else ""
    return Portion(text, size, waiting, whole)


def left(added: Added, read: Portion, written: int) -> Left | None:
    """What of `added` waits, if it can be that a block stands in it."""
    data = added.data[read.size :]
    if added.more or not data or len(data) > _LONGEST_BLOCK:
        return None
    above = added.above + added.data[: read.size]
    if len(above) > _ABOVE:
        above = above[-_ABOVE:].partition(b"\n")[2]
    return Left(added.offset + read.size, above, data, written)


def last_words(left: Left) -> str:
    """The text of a block that waited in a file that is there no more; empty if none counts as it stands."""
    added = Added(left.offset, left.above, left.data, False, True, over=True)
    return portion(added, None, 0.0).text


def _at_rest(ready: bytes, lines: list[str], block: OpenBlock, breaks_off: bool) -> tuple[int, bool]:
    """Where reading ends in a file that stands still with a block at its end, and whether that is not held back. A last
    line without a line feed is read if it belongs to the block, and does not break off within a character."""
    if not counts(lines, block) or (breaks_off and block.end is None):
        return _byte(ready, block.start), False
    end = ready.rfind(b"\n") + 1
    if breaks_off or (end < len(ready) and _ends_in_prompt(ready[:end], lines[:-1], block)):
        return end, True
    return len(ready), True


def _ends_in_prompt(complete: bytes, lines: list[str], block: OpenBlock) -> bool:
    """Whether the last line is where somebody types: in the stream of a terminal, below a block that needs it not."""
    if not complete.endswith(b"\r\n"):
        return False
    above = open_block(lines)
    return above is not None and above.newest == block.newest and counts(lines, above)


def _may_wait(block: OpenBlock, body: bytes, end: int, more: bool) -> bool:
    start = _byte(body, block.start)
    return not block.complete and end - start <= _LONGEST_BLOCK and (start > 0 or not more)


def _waiting(block: OpenBlock, body: bytes, base: int, held: Held | None, now: float) -> Held:
    """The block as it is now; since earlier, if it is what it was."""
    if block.end is not None:
        end = _byte(body, block.end)
    else:
        # A progress bar below a block does not keep it waiting.
        complete = body.rfind(b"\n") + 1
        end = complete if is_redrawn(body[complete:]) else len(body)
    known = Held(base + _byte(body, block.start), block.newest, base + end, now)
    return known._replace(since=held.since) if held is not None and held[:3] == known[:3] else known


def _byte(body: bytes, line: int) -> int:
    """Where the line begins."""
    return len(body) - len(body.split(b"\n", line)[line])


def _text(above: bytes, data: bytes, lines: list[str]) -> str:
    """The plain text of `data`, with which `lines` begin, and what announces it."""
    lines = lines[: data.count(b"\n") + (not data.endswith(b"\n"))]
    if starts_soon(lines):
        lines = announcing(plain_lines(above)) + lines
    return "\n".join(lines) + ("\n" if data.endswith(b"\n") else "")
