"""What could not be read, and how a command then ends. Pure. docs/commands.md, "Exit codes"."""

from collections.abc import Iterable

import msgspec

from swarmmemd.errors import Exit


class Trouble(msgspec.Struct, frozen=True):
    """One place that could not be read: where and why, and the exit code where nothing else was found."""

    text: str
    code: Exit = Exit.NOTHING


def unread(path: str, error: OSError) -> Trouble:
    """The trouble with a path. What is not there is no failure: there is nothing."""
    code = Exit.NOTHING if isinstance(error, FileNotFoundError) else Exit.IO
    code = Exit.PERMISSION if isinstance(error, PermissionError) else code
    return Trouble(f"{path}: {(error.strerror or str(error)).lower()}", code)


def code_of(found: object, troubles: Iterable[Trouble]) -> Exit:
    """How a command ends: what was found is enough; else nobody can say that there is nothing where something could not
    be read."""
    return Exit.DONE if found else max((one.code for one in troubles), default=Exit.NOTHING)
