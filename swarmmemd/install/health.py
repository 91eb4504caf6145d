"""Whether the service that was started has come up, and why not."""

import time
from pathlib import Path

from swarmmemd.errors import ServiceError
from swarmmemd.install.supervised import Manager
from swarmmemd.layout import LAST_EXIT
from swarmmemd.standing import seen

_POLL = 0.05


class Health:
    """Looks at the daemon's state directory from the moment on in which it is made, and at who has started it."""

    def __init__(self, state_dir: Path, manager: Manager) -> None:
        self._state_dir = state_dir
        self._manager = manager
        self._before = self._stamp()

    def wait(self, patience: float) -> None:
        """Waits until the daemon of this manager holds its lock and its watches are up. Raises `ServiceError`."""
        end = time.monotonic() + patience
        while not self._up():
            reason = self.reason()
            if reason is not None:
                raise reason
            if time.monotonic() > end:
                raise ServiceError(
                    f"The daemon is not up after {patience:.0f} s",
                    "See: swarmmemd service logs. Where it reads a large memory, give it longer: --wait 600",
                )
            time.sleep(_POLL)

    def _up(self) -> bool:
        """The daemon that runs is the manager's: one that somebody else has started would be taken for it."""
        found = seen(self._state_dir)
        return found.running and found.holder is not None and found.holder.pid == self._manager.look().pid

    def reason(self) -> ServiceError | None:
        """Why the daemon could not run, in its own words; None where it has left none since."""
        found = seen(self._state_dir)
        if found.unseen:
            return ServiceError(
                f"The daemon cannot run: {found.unseen}", "Give the state folder back: chown."
            )
        last = found.last_exit
        if last is None or self._stamp() == self._before:
            return None
        return ServiceError(f"The daemon cannot run: {last.reason}", last.mend)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = (self._state_dir / LAST_EXIT).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
