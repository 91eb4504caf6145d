"""One pass over the lines of a message: where labels stand, how deep, and what stands above each STATE."""

from collections import deque

import msgspec

from swarmmemd.checkpoint.lines import (
    PLAIN_STARTS,
    LabelText,
    fence,
    is_blank,
    is_heading,
    is_rule,
    is_separator,
    label,
    may_hold_state,
    quoted,
)

FEWEST_LABELS = 4
"""Fewer are no block."""

_ABOVE = 5
_LABEL_STARTS = frozenset("bcdfnrsBCDFNRS")
"""A line that begins with one of these is a label or plain text, and nothing else."""


class Above(msgspec.Struct, frozen=True, gc=False):
    """A line above a STATE line. Glued: it continues a value of the block before."""

    text: str
    glued: bool


class Label(msgspec.Struct, frozen=True, gc=False):
    """A label line of the message."""

    line: int
    quote: int
    fences: int
    name: str
    case: str
    text: LabelText
    above: tuple[Above, ...]
    """The nearest lines above, nearest first; only for STATE."""


class Scanned(msgspec.Struct, frozen=True):
    """The lines of a message and what was found in them."""

    lines: list[str]
    labels: list[Label]
    closing: frozenset[int]
    """The fence lines that close a fence."""


def scan(text: str) -> Scanned:
    """Find every label line of `text`."""
    if not may_hold_state(text):
        return Scanned([], [], frozenset())
    scanner = _Scanner()
    lines = text.splitlines()
    done = 0
    for number, line in enumerate(lines):
        if line[:1] in PLAIN_STARTS:
            continue
        if done < number:
            scanner.read_plain(lines[max(done, number - _ABOVE) : number])
        scanner.read(number, line)
        done = number + 1
    return Scanned(lines, scanner.labels, frozenset(scanner.closing))


class _Scanner:
    def __init__(self) -> None:
        self.labels: list[Label] = []
        self.closing: list[int] = []
        self._open: list[tuple[str, int]] = []
        self._above: deque[Above] = deque(maxlen=_ABOVE)
        self._in_value = False
        self._newest = 0
        """Index of the newest STATE label."""
        self._cases: set[str] = set()
        self._hopeless = False
        """Whether the STATE label before the newest one has too few labels, and ends where the newest one stands."""

    def read_plain(self, lines: list[str]) -> None:
        """The last of some lines in a row that are plain text."""
        if self._open:
            self._leave_quotes(0)
        self._above.extendleft([Above(line, self._in_value) for line in lines])

    def read(self, number: int, line: str) -> None:
        if line[:1] in _LABEL_STARTS:
            if self._open:
                self._leave_quotes(0)
            if (found := label(line)) is not None:
                self._label(number, 0, line, found)
            else:
                self._above.appendleft(Above(line, self._in_value))
        elif is_blank(line):
            self._in_value = False
        else:
            self._structured(number, line)

    def _leave_quotes(self, depth: int) -> None:
        """A fence ends with the quote in which it was opened."""
        while self._open and self._open[-1][1] > depth:
            self._open.pop()

    def _structured(self, number: int, line: str) -> None:
        depth, body = quoted(line)
        self._leave_quotes(depth)
        if (mark := fence(body)) is not None:
            self._fence(number, depth, *mark)
        elif (found := label(body)) is not None:
            self._label(number, depth, body, found)
        elif is_rule(body) or is_separator(body):
            self._in_value = False
        else:
            self._in_value = self._in_value and not is_heading(body)
            self._above.appendleft(Above(body, self._in_value))

    def _fence(self, number: int, depth: int, mark: str, language: bool) -> None:
        """A named fence within a fence opens another one: models nest them so."""
        self._in_value = False
        if not language and self._open and mark.startswith(self._open[-1][0]):
            self._open.pop()
            self.closing.append(number)
        else:
            self._open.append((mark, depth))

    def _label(self, number: int, depth: int, body: str, found: LabelText) -> None:
        above: tuple[Above, ...] = ()
        if found.name == "STATE":
            self._leave_hopeless(depth, found.case)
            above = tuple(self._above)
        elif not self.labels:
            # Without a STATE line above it is prose, and may announce something.
            self._above.appendleft(Above(body, False))
            return
        self.labels.append(Label(number, depth, len(self._open), found.name, found.case, found, above))
        self._above.clear()
        self._in_value = True
        if found.fence is not None:
            self._open.append((found.fence[0], depth))

    def _leave_hopeless(self, depth: int, case: str) -> None:
        """Of STATE labels in a row that can be no block the first is enough: it ends the block before. Else a text of
        nothing but labels would take long."""
        self._cases.add(case)
        hopeless = 0 < len(self.labels) - self._newest < FEWEST_LABELS and self._stands_at(depth)
        if hopeless and self._hopeless and len(self._cases) == 1:
            del self.labels[self._newest :]
        self._hopeless = hopeless
        self._newest = len(self.labels)

    def _stands_at(self, depth: int) -> bool:
        """Whether all labels from the newest STATE on stand as deep as the line that is read."""
        fences = len(self._open)
        for one in self.labels[self._newest :]:  # noqa: SIM110
            if one.quote != depth or one.fences != fences:
                return False
        return True
