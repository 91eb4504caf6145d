"""Where tests plant faults: named points and system calls that can be stopped, failed, shortened or killed.

`durable` calls it before each writing system call, `journal` before each commit, `turn` after each of its
steps. In production it does nothing. docs/architecture.md, "Durability".
"""

from collections.abc import Callable

Hook = Callable[[str, str], int | None]
"""(call or step, name of the file or of the step): may raise OSError, kill the process, or return a number of
bytes after which a write stops short."""


def _pass(call: str, name: str) -> int | None:
    return None


class Seam:
    """Holds the hook of a test."""

    def __init__(self) -> None:
        self.call: Hook = _pass


seam = Seam()
