"""The server beside the daemon, which records whether anybody listens or not. docs/api.md, "Where"."""

from swarmmemd.config import Config
from swarmmemd.errors import StorageError
from swarmmemd.log import Log
from swarmmemd.web.server import Server

_AGAIN = 5.0
"""Seconds until an address that is taken, or a server that ended, is tried again."""


class Beside:
    """Serves as long as it is entered. What stands in the way of it is `trouble`, and stops nothing else."""

    def __init__(self, config: Config, log: Log) -> None:
        self.address: str | None = None
        self.trouble: str | None = None
        self._config, self._log = config, log
        self._server: Server | None = None
        self._after = 0.0

    def __enter__(self) -> "Beside":
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def tend(self, now: float) -> None:
        """Opens again what could not be opened, or ended by itself. `now`: monotonic seconds."""
        if self._server is not None and self._server.alive:
            return
        if self._after == 0.0:
            self._after = now + _AGAIN
        elif now >= self._after:
            self._after = 0.0
            self._close()
            self._open()

    def _open(self) -> None:
        try:
            self._server = Server(self._config, holds_lock=True).__enter__()
        except StorageError as error:
            self.trouble = f"{error} {error.mend}".rstrip()
            return
        self.address, self.trouble = self._server.address.shown, None
        self._log.info("serving", address=self.address)

    def _close(self) -> None:
        server, self._server, self.address = self._server, None, None
        if server is not None:
            server.__exit__()
