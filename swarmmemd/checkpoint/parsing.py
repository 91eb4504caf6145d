"""From one assistant message to the checkpoints in it. docs/contracts.md, "Checkpoints"."""

from itertools import pairwise

from swarmmemd.checkpoint.announced import is_refused
from swarmmemd.checkpoint.blocks import Block, blocks
from swarmmemd.checkpoint.content import own_part
from swarmmemd.checkpoint.lines import (
    fence,
    is_blank,
    is_heading,
    is_row,
    is_rule,
    is_separator,
    may_end,
    may_hold_outcome,
    quoted,
    unescaped,
    unquoted,
)
from swarmmemd.checkpoint.scanning import Label, Scanned, scan
from swarmmemd.checkpoint.states import read_state
from swarmmemd.checkpoint.values import fillers, value_beside, value_of
from swarmmemd.model import BLOCKING, Checkpoint, CheckpointState, WorkerId

SIX = ("STATE", "FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION")
_BELOW_STATE = frozenset(SIX[1:])
_FEWEST_LABELS = 4
_MOST_FILLERS = 1


def parse(text: str, worker: WorkerId | None = None) -> tuple[Checkpoint, ...]:
    """Every checkpoint in one message of `worker`, in order."""
    return parse_own(own_part(text), worker)


def parse_own(own: str, worker: WorkerId | None = None) -> tuple[Checkpoint, ...]:
    """Every checkpoint in the part of a message that is the worker's own, in order."""
    if not may_hold_outcome(own):
        return ()
    scanned = scan(own)
    found = [_read(block, scanned, worker) for block in blocks(scanned)]
    return tuple([checkpoint for checkpoint in found if checkpoint is not None])


def _read(block: Block, scanned: Scanned, worker: WorkerId | None) -> Checkpoint | None:
    if is_refused(block.state, scanned, worker):
        return None
    fields = block.fields()
    if fields[-1].name == "RESULT" and _is_cut_off(fields[-1], block, scanned):
        fields.pop()
    raw = _values(fields, block, scanned)
    state = read_state(raw.pop("STATE") or "")
    if state is None or not _is_enough(state, {"STATE", *raw}, raw):
        return None
    return None if fillers(raw.values()) > _MOST_FILLERS else _checkpoint(state, raw)


def _is_cut_off(last: Label, block: Block, scanned: Scanned) -> bool:
    """A message that ends with a bare label ends too soon."""
    if _inline(last) or block.limit < len(scanned.lines):
        return False
    below = scanned.lines[last.line + 1 :]
    return all(is_blank(line) or fence(unquoted(line, last.quote)) is not None for line in below)


def _is_enough(state: CheckpointState, labels: set[str], raw: dict[str, str | None]) -> bool:
    if len(labels.intersection(SIX)) < _FEWEST_LABELS:
        return False
    return "RESULT" in labels or (state in BLOCKING and raw.get("BLOCKER") is not None)


def _checkpoint(state: CheckpointState, raw: dict[str, str | None]) -> Checkpoint:
    return Checkpoint(
        state=state,
        result=raw.get("RESULT"),
        files_changed=raw.get("FILES_CHANGED"),
        commands_run=raw.get("COMMANDS_RUN"),
        blocker=raw.get("BLOCKER"),
        next_action=raw.get("NEXT_ACTION"),
        decisions=raw.get("DECISIONS"),
        whole=raw.keys() >= _BELOW_STATE,
    )


def _values(fields: list[Label], block: Block, scanned: Scanned) -> dict[str, str | None]:
    """The value of each field: up to the next label, the last one up to its own end."""
    values = {}
    for label, following in pairwise(fields):
        values[label.name] = _value(label, block, scanned, following.line)
    last = fields[-1]
    values[last.name] = _value(last, block, scanned, value_end(last, scanned, block.limit))
    return values


def _value(label: Label, block: Block, scanned: Scanned, end: int) -> str | None:
    inline, pending = _inline(label), label.text.pending
    if end == label.line + 1:
        return value_beside(inline, pending)
    return value_of(inline, _kept(scanned.lines[label.line + 1 : end], label, block.state.quote), pending)


def _kept(below: list[str], label: Label, quote: int) -> list[str]:
    lines = [unquoted(line, quote) for line in below] if quote else below
    text = "\n".join(lines)
    if "```" in text or "~~~" in text or label.text.table:
        lines = [line for line in lines if not _is_dropped(line, label)]
    return [unescaped(line) for line in lines] if "\\" in text else lines


def _inline(label: Label) -> str:
    return "" if label.text.opens else label.text.inline


def _is_dropped(line: str, label: Label) -> bool:
    return fence(line) is not None or (label.text.table and is_separator(line))


def value_end(label: Label, scanned: Scanned, limit: int) -> int:
    """The line at which the last value of a block ends; `limit` if nothing before that line ends it."""
    below = scanned.lines[label.line + 1 : limit]
    framed = label.quote > 0 or label.text.table
    begun = bool(_inline(label))
    following = 0
    for number in range(len(below)) if framed else may_end(below):
        line = below[number]
        begun = begun or number > following
        following = number + 1
        end = label.line + following
        if is_blank(line):
            if begun:
                return end
        elif _is_end(line, label, begun or end in scanned.closing):
            return end
        else:
            begun = begun or fence(unquoted(line, label.quote)) is None
    return limit


def _is_end(line: str, label: Label, fence_ends: bool) -> bool:
    depth, _ = quoted(line)
    body = unquoted(line, label.quote)
    if depth < label.quote or (label.text.table and not is_row(body)):
        return True
    return is_heading(body) or is_rule(body) or (fence_ends and fence(body) is not None)
