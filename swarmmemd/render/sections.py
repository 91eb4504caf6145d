"""A Markdown file taken apart into its H2 sections and blocks, and put together again, byte for byte. Pure."""

import re
from collections.abc import Callable

import msgspec

BLANKS = " \t\r\n\f\v"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\r\n]*)")
_COMMENT = re.compile(r" {0,3}<!--")
_MARKS = ("```", "~~~", "<!--")
"""Without one of these in it a text has no fence and no comment."""
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
    parts = [Part(None, [], [])]
    for line, region in zip(lines, regions, strict=True):
        title = None if region else title_of(line)
        # An H1 ends a section as an H2 does; before the first section it is the file's own.
        if title is not None or (not region and len(parts) > 1 and is_h1(line)):
            parts.append(Part(title, [], []))
        parts[-1].lines.append(line)
        parts[-1].regions.append(region)
    return parts


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
    regions, number, at = [0] * len(lines), 0, 0
    text = "".join(lines)
    if not any(mark in text for mark in _MARKS):
        return regions  # as in most files
    closers = _closers(lines)
    while at < len(lines):
        end = _region_end(lines, at, closers)
        if end > at:
            number += 1
            regions[at:end] = [number] * (end - at)
        at = max(end, at + 1)
    return regions


def _closers(lines: list[str]) -> list[tuple[int, int, int]]:
    """Per line, of the lines from it on: the longest closing fence of each kind, and whether a comment ends.

    It is asked before a search for the end, so that no search is in vain: the cost stays linear.
    """
    ticks = tildes = comment = 0
    closers = [(0, 0, 0)] * (len(lines) + 1)
    for at in range(len(lines) - 1, -1, -1):
        mark, length = _closing(lines[at])
        ticks = max(ticks, length if mark == "`" else 0)
        tildes = max(tildes, length if mark == "~" else 0)
        comment = comment or int("-->" in lines[at])
        closers[at] = (ticks, tildes, comment)
    return closers


def _closing(line: str) -> tuple[str, int]:
    found = _FENCE.match(line)
    return (found[1][0], len(found[1])) if found and blank(found[2]) else ("", 0)


def _region_end(lines: list[str], at: int, closers: list[tuple[int, int, int]]) -> int:
    """The index after the fence or comment that begins at `at`; `at` if none does."""
    ticks, tildes, comment = closers[at + 1]
    if found := _FENCE.match(lines[at]):
        mark, length = found[1][0], len(found[1])
        opens = mark == "~" or "`" not in found[2]
        if opens and length <= (ticks if mark == "`" else tildes):
            return _first(lines, at + 1, lambda line: _closes(line, mark, length)) + 1
    elif (begun := _COMMENT.match(lines[at])) and "-->" not in lines[at][begun.end() - 2 :] and comment:
        return _first(lines, at + 1, lambda line: "-->" in line) + 1
    return at


def _closes(line: str, mark: str, length: int) -> bool:
    kind, size = _closing(line)
    return kind == mark and size >= length


def _first(lines: list[str], at: int, wanted: Callable[[str], bool]) -> int:
    while not wanted(lines[at]):
        at += 1
    return at


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
