"""From the label lines of a message to its blocks: which label belongs to which STATE line.

A block runs from one STATE line to the next. A deeper quoted (or newly fenced) STATE line begins a block
within a value; if the outer block goes on below it, that inner block was text. docs/contracts.md,
"Checkpoints".
"""

from bisect import bisect_right
from itertools import zip_longest

from swarmmemd.checkpoint.lines import is_blank, unquoted
from swarmmemd.checkpoint.scanning import FEWEST_LABELS, Label, Scanned
from swarmmemd.checkpoint.states import is_stateful

_STATE_ONLY: tuple[str, ...] = ("STATE",)


class Block:
    """A STATE line and the label lines that belong to it, in order."""

    __slots__ = ("labels", "limit", "names", "state", "swallowed")

    def __init__(self, labels: list[Label]) -> None:
        self.state = labels[0]
        self.labels = labels
        self.names = tuple(dict.fromkeys([label.name for label in labels])) if labels[1:] else _STATE_ONLY
        """Each once. Most STATE lines of a long text begin no block: they cost no set."""
        self.swallowed = False
        self.limit = 0

    def add(self, label: Label) -> None:
        self.labels.append(label)
        if label.name not in self.names:
            self.names += (label.name,)

    def fields(self) -> list[Label]:
        """One line for each label. Of several the last in the STATE line's case, else the last of all."""
        if len(self.names) == len(self.labels):
            return list(self.labels)
        chosen: dict[str, Label] = {}
        for label in self.labels:
            known = chosen.get(label.name)
            if known is None or label.case == self.state.case or known.case != self.state.case:
                chosen[label.name] = label
        return sorted(chosen.values(), key=lambda label: label.line)


def blocks(scanned: Scanned) -> list[Block]:
    """The blocks with enough labels, in order, each with the line that it does not go beyond."""
    if _is_one(scanned.labels):
        only = Block(scanned.labels)
        only.limit = len(scanned.lines)
        return [only] if len(only.names) >= FEWEST_LABELS else []
    grouping = _Grouping(scanned)
    whole = [block for block in grouping.found if len(block.names) >= FEWEST_LABELS and not block.swallowed]
    for block in whole:
        after = bisect_right(grouping.starts, block.labels[-1].line)
        block.limit = grouping.starts[after] if after < len(grouping.starts) else len(scanned.lines)
    return whole


def _is_one(labels: list[Label]) -> bool:
    """Whether all is surely one block, as in most messages: one STATE line, and the others stand as deep as it."""
    for label in labels[1:]:
        if label.name == "STATE" or label.quote != labels[0].quote:
            return False
    return bool(labels)


def open_blocks(scanned: Scanned) -> list[Block]:
    """The blocks to which a label below the last line could still belong, the outermost first."""
    return _Grouping(scanned).open


class _Grouping:
    def __init__(self, scanned: Scanned) -> None:
        self.found: list[Block] = []
        self.starts: list[int] = []
        self.open: list[Block] = []
        self._scanned = scanned
        for label, following in zip_longest(scanned.labels, scanned.labels[1:]):
            if label.name != "STATE":
                self._continue(label)
            elif not self._is_text(label, following):
                self._begin(label)

    def _is_text(self, label: Label, following: Label | None) -> bool:
        """A STATE-like line in another case is text without a state, or if the block goes on below it."""
        top = self.open[-1] if self.open else None
        if top is None or top.state.case == label.case or top.state.quote != label.quote:
            return False
        if not is_stateful(label.text.inline or self._below(label)):
            return True
        return (
            following is not None
            and following.quote == label.quote
            and following.case == top.state.case
            and following.name not in top.names
        )

    def _below(self, label: Label) -> str:
        """The first line below the label that says something."""
        lines = self._scanned.lines
        said = next((n for n in range(label.line + 1, len(lines)) if not is_blank(lines[n])), None)
        return "" if said is None else unquoted(lines[said], label.quote)

    def _begin(self, label: Label) -> None:
        while self.open and not _is_within(label, self.open[-1].state):
            self.open.pop()
        block = Block([label])
        self.open.append(block)
        self.found.append(block)
        self.starts.append(label.line)

    def _continue(self, label: Label) -> None:
        """Give the label to its block. Blocks deeper than that block were text of its value."""
        owner = self._owner(label)
        if owner is None:
            while self.open and self.open[-1].state.quote > label.quote:
                self.open.pop()
            return
        while self.open[-1] is not owner:
            self.open.pop().swallowed = True
        owner.add(label)

    def _owner(self, label: Label) -> Block | None:
        """The open block at the label's depth; an outer one if its fence has ended and it lacks the label."""
        if len(self.open) == 1 and self.open[0].state.quote == label.quote:
            return self.open[0]
        for index in range(len(self.open) - 1, -1, -1):
            block = self.open[index]
            if block.state.quote < label.quote:
                return None
            if block.state.quote > label.quote or (index and _resumes(self.open[index - 1], block, label)):
                continue
            return block if block is self.open[-1] or label.name not in block.names else None
        return None


def _is_within(label: Label, outer: Label) -> bool:
    """Deeper quoted than the open block, or in a fence that was opened within it."""
    return label.quote > outer.quote or (label.quote == outer.quote and label.fences > outer.fences)


def _resumes(outer: Block, inner: Block, label: Label) -> bool:
    """Whether the outer block goes on below the fence in which the inner one stands."""
    ended = outer.state.quote == label.quote and inner.state.fences > label.fences
    return ended and label.name not in outer.names
