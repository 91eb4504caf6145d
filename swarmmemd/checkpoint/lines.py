"""The shapes of one line: quote marks, fences, headings, rules, and a label with its decoration.

Every pattern is possessive: a line is read once, however long it is.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

INVISIBLE = "\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_INVISIBLES = re.compile(f"[{INVISIBLE}]")
EDGE = "".join(c for c in map(chr, range(0x3001)) if c.isspace() or _INVISIBLES.match(c)) + "\ufeff"
"""What is cut off at both ends of a value: white space and characters without a shape."""

EMOJI = (
    "[\u200d\u20e3\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\ufe00-\ufe0f\U0001f000-\U0001faff]"
)
PLAIN_STARTS = frozenset("aeghijklmopqtuvwxyzAEGHIJKLMOPQTUVWXYZ")
"""No label begins with one of these letters, and no other structure: most lines of a message end here."""


def _spread(*words: str) -> str:
    """A pattern of the words, with characters between their letters that nobody sees."""
    return "|".join(f"[{INVISIBLE}]*+".join(word) for word in words)


_GAP = rf"[\s{INVISIBLE}]"
_QUOTE = re.compile(rf"(?:{_GAP}*+>)*+")
_ITEM = r"(?:[-+*•‣·–—](?=\s)|[0-9]{1,3}[.)](?=[\s*_`]))"
_FENCE = re.compile(rf"(?:{_GAP}|{_ITEM})*+(?P<mark>`{{3,}}+(?=[^`]*+\Z)|~{{3,}}+)(?P<info>.*+)", re.DOTALL)
_HEADING = re.compile(rf"{_GAP}*+#{{1,6}}+(?:\s|\Z)")
_RULES = ("*", "_", "=", "─", "━", "═", "-")
_SEPARATOR = re.compile(r"[\s|:-]*+\Z")

_JOIN = r"[_\-\\ \t\u00a0\u2010\u2011\u3000]{1,4}+"
_WORD = f"STATE|FILES{_JOIN}CHANGED|COMMANDS{_JOIN}RUN|RESULT|BLOCKER|NEXT{_JOIN}ACTION|DECISIONS"
_LABEL = re.compile(
    rf"(?P<lead>(?:{_GAP}|[>|#]|{_ITEM}|\[[ xX✓✔]?\]|[0-9]\ufe0f?\u20e3|{EMOJI})*+)"
    rf"(?P<open>(?:[*_`]|{EMOJI}|{_GAP}|[0-9]{{1,3}}[.)])*+)"
    rf"(?P<word>(?ai:{_WORD}))(?P<close>[*_`]*+){_GAP}*+"
    r"(?P<sep>:(?![:=])|[：﹕]|=(?![=~>])|\|)?+"
)
_SPACE = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and f"{c}.".splitlines()[0] != "")
_AROUND = rf"{_SPACE}{INVISIBLE}>|#+*•‣·–—.)[\]0-9xX✓✔_{EMOJI[1:-1]}-"
_BEGUN = _spread("STATE", "FILES", "COMMANDS", "RESULT", "BLOCKER", "NEXT", "DECISIONS")
_END = r"(?=\n|\Z)"
_NOT_PLAIN = rf"\n(?![{''.join(sorted(PLAIN_STARTS))}])"
_MARKED = re.compile(rf"{_NOT_PLAIN}(?!\n)[{_AROUND}]*+(?:```|~~~|[{_AROUND}`]*+(?ai:{_BEGUN}))")
_MAY_END = re.compile(
    rf"{_NOT_PLAIN}(?:[{_AROUND}]*+(?:```|~~~)|[{_SPACE}{INVISIBLE}]*+{_END}|[{_SPACE}{INVISIBLE}>]*+"
    rf"(?:#{{1,6}}+(?:[{_SPACE}]|{_END})|[{_SPACE}:-]*+\|[{_SPACE}|:-]*+{_END}"
    rf"|(?P<stroke>[{''.join(_RULES)}])[{_SPACE}{INVISIBLE}]*+(?P=stroke)))"
)
_AS_ASKED = re.compile(r"(STATE|FILES_CHANGED|COMMANDS_RUN|RESULT|BLOCKER|NEXT_ACTION|DECISIONS):(?![:=])")
"""A label as the form shows it, with nothing around it: `_LABEL` would find the same."""
_STATE = re.compile(_spread("STATE"), re.IGNORECASE)
_OUTCOME = re.compile(_spread("RESULT", "BLOCKER"), re.IGNORECASE)
_HEAD = 120
_SHORT = 200
_NAMES = {"S": "STATE", "F": "FILES_CHANGED", "C": "COMMANDS_RUN", "R": "RESULT", "B": "BLOCKER"}
_NAMES |= {"N": "NEXT_ACTION", "D": "DECISIONS"}


class LabelText(msgspec.Struct, frozen=True, gc=False):
    """A label as one line shows it, and what stands behind it on that line."""

    name: str
    case: str
    inline: str
    pending: str
    """Marks opened before the label and not closed beside it: they close behind the value."""
    table: bool
    opens: str
    """The mark of a fence that begins beside the label; empty where none does."""


def may_hold_state(text: str) -> bool:
    """Whether the word stands anywhere: most messages hold no block at all."""
    return _STATE.search(text) is not None


def may_hold_outcome(text: str) -> bool:
    """Whether one of the two labels stands anywhere without which a block says nothing."""
    return _OUTCOME.search(text) is not None


def marked(lines: list[str]) -> Iterator[int]:
    """The numbers of the lines that can be a label or a fence, and of few others. None of the rest costs anything."""
    return _numbers(_MARKED, lines)


def may_end(lines: list[str]) -> Iterator[int]:
    """The numbers of the lines that can end a value, and of few others."""
    return _numbers(_MAY_END, lines)


def _numbers(pattern: re.Pattern[str], lines: list[str]) -> Iterator[int]:
    text = "\n".join(["", *lines])
    number, begin = -1, 0
    for found in pattern.finditer(text):
        before, begin = begin, found.start() + 1
        number += text.count("\n", before, begin)
        yield number


def is_blank(line: str) -> bool:
    """Nothing to see on this line."""
    return not line.strip(EDGE)


def quoted(line: str) -> tuple[int, str]:
    """How deep the line is quoted, and the line without its quote marks."""
    found = _QUOTE.match(line) if ">" in line else None
    if found is None or not found.end():
        return 0, line
    return found.group().count(">"), line[found.end() :].removeprefix(" ")


def unquoted(line: str, depth: int) -> str:
    """The line without its first `depth` quote marks: deeper ones are text of the value."""
    has, rest = quoted(line) if depth else (0, line)
    if has <= depth:
        return rest
    end = 0
    for _ in range(depth):
        end = line.index(">", end) + 1
    return line[end:].removeprefix(" ")


def fence(line: str) -> tuple[str, bool] | None:
    """The mark of a fence line and whether it names a language; None for any other line."""
    if "```" not in line and "~~~" not in line:
        return None
    return _known_fence(line) if len(line) <= _SHORT else _fence(line)


def _fence(line: str) -> tuple[str, bool] | None:
    found = _FENCE.match(line)
    return (found["mark"], not is_blank(found["info"])) if found else None


_known_fence = lru_cache(maxsize=256)(_fence)
"""Most fences are one of a few."""


def is_heading(line: str) -> bool:
    """A Markdown heading."""
    return _HEADING.match(line) is not None


def is_rule(line: str) -> bool:
    """A line of three or more of the same stroke."""
    body = line.strip(EDGE)
    if not body.startswith(_RULES):
        return False
    compact = "".join(body.split())
    return len(compact) >= 3 and compact == compact[0] * len(compact)


def is_separator(line: str) -> bool:
    """The row of dashes below the head of a table."""
    return "|" in line and "-" in line and _SEPARATOR.match(line) is not None


def is_row(line: str) -> bool:
    """A row of a table, or a line behind a pipe."""
    return line.lstrip(EDGE).startswith("|")


def ends_value(line: str) -> bool:
    """Nothing below this line continues a value above it."""
    body = quoted(line)[1]
    return (
        is_blank(line) or is_rule(body) or is_heading(body) or is_separator(body) or fence(body) is not None
    )


class Shape(msgspec.Struct, frozen=True, gc=False):
    """What a line is, behind its quote marks: a fence, a label, or text."""

    quote: int
    fence: tuple[str, bool] | None
    label: LabelText | None


def shape(line: str) -> Shape:
    """The shape of a line that is marked."""
    return _known_shape(line) if len(line) <= _SHORT else _shape(line)


def _shape(line: str) -> Shape:
    depth, body = quoted(line)
    mark = fence(body)
    return Shape(depth, mark, label(body) if mark is None else None)


_known_shape = lru_cache(maxsize=1024)(_shape)
"""Many label lines are one of a few."""


def label(line: str) -> LabelText | None:
    """The label that the line begins with. docs/contracts.md, "Checkpoints"."""
    if (found := _AS_ASKED.match(line)) is not None:
        inline = line[found.end() :].strip(EDGE)
        return LabelText(found[1], "upper", inline, "", False, _mark(inline))
    found = _LABEL.match(line)
    if found is None and not line.isascii():
        line = _INVISIBLES.sub("", line[:_HEAD]) + line[_HEAD:]
        found = _LABEL.match(line)
    if found is None:
        return None
    before, close, sep = found.group("open", "close", "sep")
    opened = "".join(mark for mark in before if mark in "*_`") if before else ""
    if len(close) > len(opened):
        return None
    if sep is None:
        return _bare(found, opened, line[found.end() :])
    return _with_value(found, opened, line[found.end() :])


def _bare(found: re.Match[str], opened: str, rest: str) -> LabelText | None:
    """A heading or a bold line with nothing but the label: the value stands below."""
    bold = opened[-2:] in ("**", "__") and opened[::-1] == found["close"]
    if not (bold or "#" in found["lead"]) or rest.strip(EDGE + "#"):
        return None
    return _label_text(found["word"], "", "", "|" in found["lead"])


def _with_value(found: re.Match[str], opened: str, rest: str) -> LabelText | None:
    lead, word, close, sep = found.group("lead", "word", "close", "sep")
    table = "|" in lead
    if sep == "|" and not table:
        return None
    pending = opened[::-1][len(close) :]
    inline = rest.strip(EDGE)
    if table:
        inline = inline.removeprefix("|").lstrip(EDGE) if sep != "|" else inline
        inline = inline.removesuffix("|").rstrip(EDGE).replace("\\|", "|")
    if pending and inline.startswith(pending):
        inline, pending = inline[len(pending) :].lstrip(EDGE), ""
    elif pending and inline.endswith(pending):
        inline, pending = inline.removesuffix(pending).rstrip(EDGE), ""
    return _label_text(word, inline, pending, table)


def _label_text(word: str, inline: str, pending: str, table: bool) -> LabelText:
    case = "upper" if word.isupper() else "lower" if word.islower() else "mixed"
    return LabelText(_NAMES[word[0].upper()], case, inline, pending, table, _mark(inline))


def _mark(inline: str) -> str:
    found = fence(inline)
    return found[0] if found else ""


def _is_structure(line: str) -> bool:
    """Whether the line would not be read as plain text of a value."""
    return (
        is_blank(line)
        or quoted(line)[0] > 0
        or is_heading(line)
        or is_rule(line)
        or fence(line) is not None
        or label(line) is not None
    )


def escaped(line: str) -> str:
    """The line with a backslash before it if it looks like structure (or like such an escape)."""
    body = line.lstrip()
    if not _is_structure(body.lstrip("\\")):
        return line
    return line[: len(line) - len(body)] + "\\" + body


def unescaped(line: str) -> str:
    """The inverse of `escaped`. A backslash before anything else is the worker's."""
    body = line.lstrip()
    if not body.startswith("\\") or not _is_structure(body.lstrip("\\")):
        return line
    return line[: len(line) - len(body)] + body[1:]
