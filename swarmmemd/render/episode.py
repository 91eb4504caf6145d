"""Values to the text of a day's episode file, by the specification's template. Pure.

docs/contracts.md, "Episodes".
"""

from swarmmemd.model import Event, EventType, WorkerId, iso
from swarmmemd.render.markdown import one_line

_STATED = frozenset({EventType.CHECKPOINT, EventType.BLOCKED})


def episode_header(worker: WorkerId, day: str) -> str:
    """The beginning of a new file, with the blank line after it."""
    return f"# Episodes — {worker} — {day}\n\n"


def episode_entry(event: Event) -> str:
    """One entry, without the blank line that parts it from the one before. Every value is one line."""
    lines = [
        f"## {iso(event.at)[11:16]} UTC — {event.type}",
        "",
        f"- Mission: {event.mission or 'none'}",
        f"- Assignment: {event.assignment or 'none'}",
        f"- Summary: {one_line(_summary(event))}",
    ]
    for title, key in (("Result", "result"), ("Next action", "nextAction")):
        if event.detail.get(key):
            lines.append(f"- {title}: {one_line(str(event.detail[key]))}")
    return "\n".join(lines) + "\n"


def _summary(event: Event) -> str:
    """A checkpoint's state is not in its summary, and somebody who greps a day wants it."""
    state = event.detail.get("state")
    return f"{state}: {event.summary}" if event.type in _STATED and state else event.summary
