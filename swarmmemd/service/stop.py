"""What ends the run, and what makes it read its configuration again."""

import signal

from swarmmemd.schedule import Wake


class Stop:
    """Set by signal handlers, heeded by the loop after its current turn."""

    def __init__(self) -> None:
        self.wake = Wake()
        self.now = False
        self.reload = False

    def on_signals(self) -> None:
        """SIGTERM and SIGINT end the run, SIGHUP reads configuration and roster again."""
        signal.signal(signal.SIGTERM, lambda *_: self.set())
        signal.signal(signal.SIGINT, lambda *_: self.set())
        signal.signal(signal.SIGHUP, lambda *_: self.hang_up())

    def set(self) -> None:
        """Ends the run."""
        self.now = True
        self.wake.ring()

    def hang_up(self) -> None:
        """Reads configuration and roster again."""
        self.reload = True
        self.wake.ring()
