"""A checkpoint in the plain form, such that `parse` gives it back.

A line of a value that would be read as structure (a label, a fence, a heading, a quote) gets a backslash
before it, as in Markdown; so does a blank line of the last value, which would end it. `parse` takes the
backslash away.
"""

from swarmmemd.checkpoint.lines import escaped, fence
from swarmmemd.model import Checkpoint


def render(checkpoint: Checkpoint) -> str:
    """The six labels, one below the other, and DECISIONS where there are any."""
    entries = [
        f"STATE: {checkpoint.state}",
        _entry("FILES_CHANGED", checkpoint.files_changed),
        _entry("COMMANDS_RUN", checkpoint.commands_run),
        _entry("RESULT", checkpoint.result),
        _entry("BLOCKER", checkpoint.blocker),
        _entry("NEXT_ACTION", checkpoint.next_action),
    ]
    if checkpoint.decisions is not None:
        entries.insert(4, _entry("DECISIONS", checkpoint.decisions))
    return "\n".join(entries)


def _entry(label: str, value: str | None) -> str:
    """A value of one line beside its label, a longer one below it, so that its indents stay."""
    if value is None:
        return f"{label}: none"
    if "\n" not in value and fence(value) is None:
        return f"{label}: {value}"
    return "\n".join([f"{label}:", *map(escaped, value.split("\n"))])
