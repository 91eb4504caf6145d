"""A text that is still being written: which block at its end may go on, and what announces the next one. Pure.

docs/contracts.md, "Transcripts".
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from swarmmemd.checkpoint.blocks import open_blocks
from swarmmemd.checkpoint.lines import EDGE, ends_value, fence, is_blank, is_rule, label, quoted
from swarmmemd.checkpoint.parsing import SIX, parse, value_end
from swarmmemd.checkpoint.scanning import scan

_ABOVE = 5
_COLONS = (":", "：")


class OpenBlock(NamedTuple):
    """The block at the end of a text, by line numbers.

    `end` is the line behind its last value, None as long as that value may grow. `newest`: how far below `start` its
    newest label stands. `full`: it has all six labels.
    """

    start: int
    end: int | None
    newest: int
    full: bool

    @property
    def complete(self) -> bool:
        """It has all six labels and an end, so nothing of it can come."""
        return self.full and self.end is not None


def open_block(lines: Sequence[str]) -> OpenBlock | None:
    """The block at the end of the lines to which a further line might belong."""
    scanned = scan("\n".join(lines))
    opened = open_blocks(scanned) if scanned.labels else []
    if not opened:
        return None
    start = opened[0].state.line
    end = value_end(scanned.labels[-1], scanned, len(scanned.lines))
    return OpenBlock(
        start=start,
        end=end if any(map(_goes_on, scanned.lines[end:])) else None,
        newest=scanned.labels[-1].line - start,
        full=all(set(SIX).issubset(block.names) for block in opened),
    )


def counts(lines: Sequence[str], block: OpenBlock) -> bool:
    """Whether the block at the end of the lines is one already, as it stands."""
    return block.full or bool(parse("\n".join(lines[block.start :])))


def _goes_on(line: str) -> bool:
    """Text of its own, behind a value that has ended."""
    return not is_blank(line) and not is_rule(line) and fence(quoted(line)[1]) is None


def starts_soon(lines: Sequence[str]) -> bool:
    """Whether a block begins so near the top that lines above the first one may announce it."""
    filled = (number for number, line in enumerate(lines) if line and not is_blank(line))
    top = list(islice(filled, _ABOVE))
    return bool(top) and bool(scan("\n".join(lines[: top[-1] + 1])).labels)


def announcing(above: Sequence[str]) -> list[str]:
    """Of the lines above a text, those that its first block would be judged by.

    Lines of the block before are none, and what goes on with its last value only if it ends in a colon.
    """
    first = next((n for n in range(len(above), 0, -1) if label(quoted(above[n - 1])[1])), 0)
    lines = list(above[first:])
    glued = next((n for n, line in enumerate(lines) if ends_value(line)), len(lines)) if first else 0
    return [line for line in lines[:glued] if line.rstrip(EDGE + "*_`").endswith(_COLONS)] + lines[glued:]
