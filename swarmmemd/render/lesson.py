"""A lesson in a worker's `MEMORY.md`, with the event that it comes from as evidence. Pure.

docs/contracts.md, "Lessons".
"""

import re

from swarmmemd.render.markdown import bullet

SECTION = "Lessons learned"
_HEADING = re.compile(r"^##[ \t]+lessons learned[ \t]*#*[ \t]*$", re.IGNORECASE | re.MULTILINE)
_NEXT = re.compile(r"^#{1,2}[ \t]", re.MULTILINE)
_EMPTY = re.compile(r"^[ \t]*[-*][ \t]+none yet\.?[ \t]*$", re.IGNORECASE | re.MULTILINE)


def with_lesson(text: str, lesson: str, event: str) -> str:
    """`text` with the lesson as the last bullet of its section; as it is where the event is evidence there already.

    The section is made at the end where there is none. Nothing else changes, but that a "None yet." of ours goes.
    """
    line = f"{bullet(lesson)} ({event})"
    heading = _HEADING.search(text)
    if heading is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}## {SECTION}\n\n{line}\n"
    following = _NEXT.search(text, heading.end())
    end = following.start() if following else len(text)
    body = text[heading.end() : end]
    if f"({event})" in body:
        return text
    kept = _EMPTY.sub("", body).strip("\n")
    rest = text[end:]
    return (
        f"{text[: heading.end()]}\n\n{kept}{chr(10) if kept else ''}{line}\n{chr(10) if rest else ''}{rest}"
    )
