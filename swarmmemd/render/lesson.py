"""A lesson in a worker's `MEMORY.md`, with the event that it comes from as evidence. Pure.

docs/contracts.md, "Lessons".
"""

import re

from swarmmemd.render.markdown import bullet

SECTION = "Lessons learned"
_HEADING = re.compile(r"\ufeff?##[ \t]+(?:\*\*)?lessons learned(?:\*\*)?:?[ \t]*#*\s*", re.IGNORECASE)
_NEXT = re.compile(r"#{1,2}[ \t]")
_PLACEHOLDER = re.compile(r"\s*[-*][ \t]+(?:none yet\.?|\.\.\.|…)\s*", re.IGNORECASE)
_FENCES = ("```", "~~~")


def with_lesson(text: str, lesson: str, event: str) -> str:
    """`text` with the lesson as the last bullet of its section; as it is where the event is evidence there already.

    The section is made at the end where there is none. Nothing else changes, but that a placeholder ("None yet.",
    "...") goes. What stands in a code block or a comment is no heading.
    """
    if re.search(rf"\({re.escape(event)}\)\s*$", text, re.MULTILINE):
        return text
    eol = "\r\n" if "\r\n" in text else "\n"
    line = f"{bullet(lesson).replace('<!--', '<! --')} ({event}){eol}"
    lines = text.splitlines(keepends=True)
    headings = _headings(lines)
    start = next((n for n in headings if _HEADING.fullmatch(lines[n])), None)
    if start is None:
        gap = "" if not text else eol if text.endswith("\n") else eol * 2
        return f"{text}{gap}## {SECTION}{eol}{eol}{line}"
    end = next((n for n in headings if n > start and _NEXT.match(lines[n])), len(lines))
    return "".join((*lines[:start], *_section(lines[start:end], line, eol, end < len(lines)), *lines[end:]))


def _section(lines: list[str], line: str, eol: str, more: bool) -> list[str]:
    """The section with the line behind its last one that says something."""
    kept = [one for one in lines if not _PLACEHOLDER.fullmatch(one)]
    last = max(n for n, one in enumerate(kept) if one.strip())
    head, rest = kept[: last + 1], kept[last + 1 :]
    if not head[-1].endswith("\n"):
        head[-1] += eol
    if last == 0:
        head.append(eol)
        rest = rest[1:]
    if more and not rest:
        rest = [eol]
    return [*head, line, *rest]


def _headings(lines: list[str]) -> list[int]:
    """The numbers of the lines that can be headings: outside of code blocks and comments."""
    found: list[int] = []
    fence, comment = "", False
    for number, line in enumerate(lines):
        body = line.strip()
        if fence:
            fence = "" if body.startswith(fence) else fence
        elif comment:
            comment = "-->" not in body
        elif body.startswith(_FENCES):
            fence = body[:3]
        elif body.startswith("<!--"):
            comment = "-->" not in body
        elif line.lstrip("\ufeff").startswith("#"):
            found.append(number)
    return found
