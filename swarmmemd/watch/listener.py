"""What the watcher asks of a way to hear of changes: `inotify` is one, `observer` is the other.

docs/architecture.md, "Watching".
"""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from swarmmemd.watch.root import Root, Watch

OVERFLOW = "overflow"
"""The loss that is counted: the kernel's queue was full."""

Mark = Callable[[str, str], None]
"""`mark(key, name)`: something changed. Takes no lock and raises nothing."""
Lost = Callable[[str], None]
"""`lost(reason)`: events may be lost. Takes no lock and raises nothing."""


class Listener(Protocol):
    """Threads that wait for the kernel's word. Made running; what it calls back comes from its threads."""

    notes: tuple[str, ...]
    """What cannot be relied on, for `status`."""
    hears_writes: bool
    """Whether it can tell of a file that is written to and not closed, such as a log of SQLite. Then a watch costs no
    thread either."""

    def watch(self, root: Root) -> Watch:
        """Watches the directory. Raises OSError for what the system refuses, RuntimeError if no thread is left."""

    def owns(self, thread: threading.Thread) -> bool:
        """Whether all is lost if this thread dies."""

    def dead(self) -> str:
        """The name of such a thread that is dead, "" if none is."""

    def silent(self, roots: Iterable[Root]) -> list[Root]:
        """Those of the directories of which nothing comes any more, as far as the listener knows."""

    def mend(self) -> str:
        """Sees to it that losses are heard; "" if they were, else what may have been missed."""

    def trouble(self) -> str:
        """Why losses cannot be heard just now, "" if they can."""

    def close(self) -> None:
        """Ends its threads and gives back what it took, in whatever state it is."""
