"""Whether the service that was started has come up, and why not."""

import time
from pathlib import Path

from swarmmemd.errors import ServiceError
from swarmmemd.layout import LAST_EXIT
from swarmmemd.standing import standing

_POLL = 0.05


class Health:
    """Looks at the daemon's state directory from the moment on in which it is made."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._before = self._stamp()

    def wait(self, patience: float) -> None:
        """Waits until the daemon holds its lock and its watches are up. Raises `ServiceError`."""
        end = time.monotonic() + patience
        while not standing(self._state_dir).running:
            reason = self.reason()
            if reason is not None:
                raise reason
            if time.monotonic() > end:
                raise ServiceError(
                    f"The daemon is not up after {patience:.0f} s", "See: swarmmemd service logs"
                )
            time.sleep(_POLL)

    def reason(self) -> ServiceError | None:
        """Why the daemon could not run, in its own words; None where it has left none since."""
        last = standing(self._state_dir).last_exit
        if last is None or self._stamp() == self._before:
            return None
        return ServiceError(f"The daemon cannot run: {last.reason}", last.mend)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = (self._state_dir / LAST_EXIT).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
