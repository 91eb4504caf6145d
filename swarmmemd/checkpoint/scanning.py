"""One pass over the lines of a message: where labels stand, and how deep. What stands above a STATE line is asked for
only where it counts."""

from itertools import islice

import msgspec

from swarmmemd.checkpoint.lines import (
    LabelText,
    ends_value,
    is_blank,
    is_heading,
    marked,
    may_end,
    may_hold_state,
    quoted,
    shape,
)

FEWEST_LABELS = 4
"""Fewer are no block."""

_ABOVE = 5


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
    before: int
    """The line of the label before; -1 for the first."""


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
    lines = text.splitlines()
    scanner = _Scanner(lines)
    for number in marked(lines):
        scanner.read(number, lines[number])
    return Scanned(lines, scanner.labels, frozenset(scanner.closing))


def above(state: Label, scanned: Scanned) -> list[Above]:
    """The nearest lines between a STATE line and the label before that say something, nearest first."""
    lines = scanned.lines
    said = (n for n in range(state.line - 1, state.before, -1) if lines[n] and _says_something(lines[n]))
    nearest = list(islice(said, _ABOVE))
    end = 0
    if nearest and state.before >= 0:
        between = lines[state.before + 1 : nearest[0] + 1]
        end = state.before + 1 + next((n for n in may_end(between) if ends_value(between[n])), len(between))
    return [Above(quoted(lines[n])[1], n < end) for n in nearest]


def _says_something(line: str) -> bool:
    return not ends_value(line) or is_heading(quoted(line)[1])


class _Scanner:
    def __init__(self, lines: list[str]) -> None:
        self.labels: list[Label] = []
        self.closing: list[int] = []
        self._lines = lines
        self._open: list[tuple[str, int]] = []
        self._read = -1
        """The line that was read last."""
        self._before = -1
        """The line of the newest label."""
        self._newest = 0
        """Index of the newest STATE label."""
        self._level: tuple[int, int] | None = None
        """How deep all labels from the newest STATE label on stand; None where they differ."""
        self._cases: set[str] = set()
        self._hopeless = False
        """Whether the STATE label before the newest one has too few labels, and ends where the newest one stands."""

    def read(self, number: int, line: str) -> None:
        """A line that is marked."""
        if self.labels and self._before == number - 1 and self._is_repeated(number, line):
            self._before = number
            return
        if self._open and self._open[-1][1]:
            self._leave_quotes(number)
        self._read = number
        found = shape(line)
        if found.fence is not None:
            self._fence(number, found.quote, *found.fence)
        elif found.label is not None and (self.labels or found.label.name == "STATE"):
            # Without a STATE line above it is prose, and may announce something.
            self._label(number, found.quote, found.label)

    def _is_repeated(self, number: int, line: str) -> bool:
        """Of one label line again and again the first ends what stands above, the last has what stands below; those
        between are read over. A text of nothing else would take long."""
        lines = self._lines
        last = number == len(lines) - 1
        return (
            lines[number - 1] == line
            and not last
            and lines[number + 1] == line
            and not self.labels[-1].text.opens
        )

    def _leave_quotes(self, number: int) -> None:
        """A fence ends with the quote in which it was opened: at the first line, up to this one, that is less deep."""
        for line in self._lines[self._read + 1 : number + 1]:
            if not is_blank(line):
                depth = quoted(line)[0]
                while self._open and self._open[-1][1] > depth:
                    self._open.pop()

    def _fence(self, number: int, depth: int, mark: str, language: bool) -> None:
        """A named fence within a fence opens another one: models nest them so."""
        if not language and self._open and mark.startswith(self._open[-1][0]):
            self._open.pop()
            self.closing.append(number)
        else:
            self._open.append((mark, depth))

    def _label(self, number: int, depth: int, found: LabelText) -> None:
        fences = len(self._open)
        if found.name == "STATE":
            self._leave_hopeless((depth, fences), found.case)
        elif self._level != (depth, fences):
            self._level = None
        self.labels.append(Label(number, depth, fences, found.name, found.case, found, self._before))
        self._before = number
        if found.opens:
            self._open.append((found.opens, depth))

    def _leave_hopeless(self, level: tuple[int, int], case: str) -> None:
        """Leaves out STATE labels that can begin no block where the line that is read stands. The first of them stays:
        it ends the block before. Else a text of nothing but labels would take long."""
        self._cases.add(case)
        if len(self._cases) == 1:
            self._leave_bare(level)
            hopeless = level == self._level and len(self.labels) - self._newest < FEWEST_LABELS
            if hopeless and self._hopeless:
                del self.labels[self._newest :]
            self._hopeless = hopeless
        self._level = level
        self._newest = len(self.labels)

    def _leave_bare(self, level: tuple[int, int]) -> None:
        """Those with no label below them, and not further out than the line that is read."""
        while self._newest == len(self.labels) - 1 > 0 and self.labels[-2].name == "STATE":
            if self._level is not None and level > self._level:
                break
            self.labels.pop()
            above = self.labels[-1]
            self._newest, self._level, self._hopeless = self._newest - 1, (above.quote, above.fences), False
