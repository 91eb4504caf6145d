"""Telling what could not be read, and the exit code that follows. Shared by `search`, `resume` and `context`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from swarmmemd.cli.output import say_line
from swarmmemd.errors import Exit

if TYPE_CHECKING:
    from swarmmemd.recall.troubles import Trouble


def tell_unread(found: object, troubles: "Iterable[Trouble]") -> Exit:
    """Says on stderr where something could not be read, and how to mend it. Gives how the command ends."""
    from swarmmemd.recall.troubles import code_of
    from swarmmemd.text import one_row

    troubles = list(dict.fromkeys(troubles))
    for trouble in troubles:
        say_line(one_row(trouble.text, 400), err=True)
    if any(trouble.code > Exit.NOTHING for trouble in troubles):
        say_line("  Check what stands there, its owner and its permissions: swarmmemd doctor", err=True)
    return code_of(found, troubles)
