"""A Markdown file taken apart into its H2 sections and blocks, and put together again, byte for byte. Pure."""

import re
from functools import lru_cache

import msgspec

BLANKS = " \t\r\n\f\v"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\r\n]*)")
_COMMENT = re.compile(r" {0,3}<!--")
_ITEM = re.compile(r"[-*+][ \t]")
_RULE = re.compile(r"(?:[-*_][ \t]*){3,}[\r\n]*\Z")
_HEADING = re.compile(r"#{1,6}(?:[ \t\r\n]|\Z)")
_START = re.compile(r"[-*+][ \t]|[0-9]{1,9}[.)][ \t]|#{1,6}[ \t\r\n]|```|~~~|<!--|>")


class Part(msgspec.Struct):
    """From one heading to the next. `title` is None before the first H2 and after an H1."""

    title: str | None
    lines: list[str]
    regions: list[int]
    """Per line 0, or the number of the fence or comment that it is in."""


class Block(msgspec.Struct, frozen=True):
    """Lines of a part that belong together: a bullet with what hangs on it, a paragraph, a fence."""

    start: int
    end: int
    lines: tuple[str, ...]
    """Without their line ends."""
    plain: bool
    """It begins outside of fences and comments."""


def lines_of(text: str) -> list[str]:
    """The lines, each with its end."""
    return _LINE.findall(text)


def blank(line: str) -> bool:
    """Whether nothing stands in the line."""
    return not line.strip(BLANKS)


def bare(line: str) -> str:
    """The line without its end."""
    return line.rstrip("\r\n")


def eol_of(text: str) -> str:
    """The line end that the text has."""
    at = text.find("\n")
    if at < 0:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if at and text[at - 1] == "\r" else "\n"


def parse(text: str) -> list[Part]:
    """The parts of `text`; the first one is what stands before the first section, empty or not."""
    lines = lines_of(text)
    regions = regions_of(lines)
    begins: list[tuple[int, str | None]] = [(0, None)]
    for at in [at for at, line in enumerate(lines) if line[0] == "#"]:
        line = lines[at]
        if regions[at]:
            continue
        title = title_of(line)
        # An H1 ends a section as an H2 does; before the first section it is the file's own.
        if title is not None or (len(begins) > 1 and is_h1(line)):
            begins.append((at, title))
    ends = [*(at for at, _ in begins[1:]), len(lines)]
    return [
        Part(title, lines[at:end], regions[at:end]) for (at, title), end in zip(begins, ends, strict=True)
    ]


def is_h1(line: str) -> bool:
    """Whether the line is an H1."""
    return line.startswith("#") and (len(line) == 1 or line[1] in " \t\r\n")


def title_of(line: str) -> str | None:
    """The title of an H2 at the beginning of a line, None for any other line."""
    if not line.startswith("##") or (len(line) > 2 and line[2] not in " \t\r\n"):
        return None
    title = line[2:].strip(BLANKS)
    open_end = title.rstrip("#")
    if open_end != title and (not open_end or open_end[-1] in " \t"):
        return open_end.rstrip(BLANKS)
    return title


def regions_of(lines: list[str]) -> list[int]:
    """Per line the number of its fence or comment, else 0. One that never ends is text.

    Were it not, a fence that somebody forgot to close would hide all sections below it, and each merge would
    append them once more.
    """
    regions = [0] * len(lines)
    places = [at for at, line in enumerate(lines) if "```" in line or "~~~" in line or "--" in line]
    marks = [_mark(lines[at]) for at in places]
    ahead = _ahead(marks)
    number = index = 0
    while index < len(marks):
        begun, start = marks[index], places[index]
        index += 1
        if begun.opens and begun.length <= ahead[index].get(begun.kind, -1):
            while not _ends(marks[index], begun):
                index += 1
            number, end = number + 1, places[index] + 1
            regions[start:end] = [number] * (end - start)
            index += 1
    return regions


_COMMENTED = "comment"


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """What a line is in which a fence or a comment can begin or end."""

    kind: str
    """A comment, or what the fence is made of."""
    length: int
    opens: bool
    closes: bool
    """A fence of its kind, at most as long."""
    ends_comment: bool


def _mark(line: str) -> _Mark:
    return _known_mark(line) if len(line) <= _SHORT else _read_mark(line)


def _read_mark(line: str) -> _Mark:
    ends_comment = "-->" in line
    if ("```" in line or "~~~" in line) and (fence := _FENCE.match(line)):
        mark, rest = fence[1], fence[2]
        opens = mark[0] == "~" or "`" not in rest
        return _Mark(mark[0], len(mark), opens, not rest or blank(rest), ends_comment)
    begun = _COMMENT.match(line)
    opens = begun is not None and "-->" not in line[begun.end() - 2 :]
    return _Mark(_COMMENTED, 0, opens, False, ends_comment)


_SHORT = 200
_known_mark = lru_cache(maxsize=256)(_read_mark)
"""Most fences are one of a few."""


def _ahead(marks: list[_Mark]) -> list[dict[str, int]]:
    """Per mark, of the marks from it on: the longest closing fence of each kind, and whether a comment ends.

    It is asked before a search for the end, so that no search is in vain: the cost stays linear.
    """
    longest: dict[str, int] = {}
    ahead = [longest] * (len(marks) + 1)
    for index in range(len(marks) - 1, -1, -1):
        mark = marks[index]
        if mark.closes and mark.length > longest.get(mark.kind, 0):
            longest = {**longest, mark.kind: mark.length}
        if mark.ends_comment and _COMMENTED not in longest:
            longest = {**longest, _COMMENTED: 0}
        ahead[index] = longest
    return ahead


def _ends(mark: _Mark, opening: _Mark) -> bool:
    if opening.kind == _COMMENTED:
        return mark.ends_comment
    return mark.closes and mark.kind == opening.kind and mark.length >= opening.length


def blocks_of(part: Part) -> list[Block]:
    """The blocks of `part` below its heading."""
    blocks: list[Block] = []
    at = _body(part)
    while at < len(part.lines):
        if blank(part.lines[at]) and not part.regions[at]:
            at += 1
            continue
        end = _block_end(part, at)
        lines = tuple(bare(line) for line in part.lines[at:end])
        blocks.append(Block(at, end, lines, not part.regions[at]))
        at = end
    return blocks


def _body(part: Part) -> int:
    """Where what is below the heading begins. The file's own H1 and all before it is no body."""
    if part.title is not None:
        return 1
    heads = (at for at, line in enumerate(part.lines) if is_h1(line.removeprefix("\ufeff")))
    return next(heads, -1) + 1


def _block_end(part: Part, start: int) -> int:
    end = start + 1
    while end < len(part.lines) and (after := _follows(part, start, end)):
        end = after
    return end


def _follows(part: Part, start: int, at: int) -> int:
    """The index after the further lines at `at` of the block that began at `start`; 0 if it has none."""
    line, region = part.lines[at], part.regions[at]
    if region and region == part.regions[at - 1]:
        return at + 1
    if blank(line):
        return _hanging(part, at) if is_item(part.lines[start]) else 0
    indented = line[0] in " \t"
    if _START.match(line) or _RULE.match(line) or _HEADING.match(part.lines[start]):
        return 0
    return 0 if part.regions[at - 1] and not indented else at + 1


def _hanging(part: Part, at: int) -> int:
    """The index after an indented line that comes after the blank ones at `at`: it belongs to the bullet."""
    while at < len(part.lines) and blank(part.lines[at]):
        at += 1
    return at + 1 if at < len(part.lines) and part.lines[at].startswith(("  ", "\t")) else 0


def is_item(line: str) -> bool:
    """Whether the line begins a bullet."""
    return _ITEM.match(line) is not None and _RULE.match(line) is None


def join(parts: list[Part]) -> str:
    """The text of all parts."""
    return "".join(line for part in parts for line in part.lines)


def ended(lines: list[str], eol: str) -> list[str]:
    """`lines`, the last one with its line end: something is put after it."""
    if not lines or lines[-1].endswith(("\r", "\n")):
        return lines
    return [*lines[:-1], lines[-1] + eol]


def find(parts: list[Part], title: str) -> Part | None:
    """The first section of that title, in any case."""
    wanted = title.casefold()
    return next((part for part in parts if part.title is not None and part.title.casefold() == wanted), None)
