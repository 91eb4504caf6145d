"""The server beside the daemon, which records whether anybody listens or not. docs/api.md, "Where".

It is a process of its own: were it a thread, readers would make the daemon wait for the interpreter, and 200 of them
made an event six times as late.
"""

import pickle
import select
import subprocess
import sys
from contextlib import suppress

import msgspec

from swarmmemd.config import Config
from swarmmemd.log import Log

_AGAIN, _LONGEST_WAIT = 5.0, 60.0
"""Seconds until an address that is taken, or a server that ended, is tried again: twice as long each time."""
_START = 5.0
"""Seconds that a start waits for the server."""
_LAST = 3.0
"""Seconds that a stop waits for answers that are under way."""


class Word(msgspec.Struct, frozen=True):
    """What the server says once: where it listens, or why it does not."""

    address: str | None = None
    trouble: str | None = None


class Beside:
    """Serves as long as it is entered. What stands in the way of it is `trouble`, and stops nothing else."""

    def __init__(self, config: Config, log: Log) -> None:
        self.address: str | None = None
        self.trouble: str | None = None
        self._config, self._log = config, log
        self._process: subprocess.Popen[bytes] | None = None
        self._after, self._wait, self._heard = 0.0, _AGAIN, False

    def __enter__(self) -> "Beside":
        self._open()
        self._hear(_START)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def tend(self, now: float) -> None:
        """Opens again what could not be opened, or ended by itself. `now`: monotonic seconds."""
        if not self._heard:
            self._hear(0.0)
        if self._process is not None and self._process.poll() is None:
            return
        if self._after == 0.0:
            self._after, self._wait = now + self._wait, min(2 * self._wait, _LONGEST_WAIT)
            self.address, self.trouble = None, self.trouble or "the server ended"
        elif now >= self._after:
            self._after = 0.0
            self._close()
            self._open()

    def _open(self) -> None:
        """The configuration goes in by a pipe, which stays open: its end is the server's end, however we end."""
        command = [sys.executable, "-P", "-m", "swarmmemd.web.child"]
        self._heard = False
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:  # no process to be had, or the interpreter is gone
            self.trouble = f"{sys.executable}: {error.strerror or error}"
            return
        assert self._process.stdin is not None
        with suppress(OSError):  # it ended at once: its silence says so
            pickle.dump(self._config, self._process.stdin)
            self._process.stdin.flush()

    def _hear(self, seconds: float) -> None:
        """Takes the server's word, if it comes so soon. The daemon's loop asks again and never waits for it."""
        if self._process is None:
            return
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self.trouble = "the server has not answered yet"
            return
        self._heard = True
        try:
            word = msgspec.json.decode(self._process.stdout.readline(), type=Word)
        except msgspec.DecodeError:
            word = Word(trouble="the server ended before it listened")
        self.address, self.trouble = word.address, word.trouble
        if self.address is not None:
            self._wait = _AGAIN
            self._log.info("serving", address=self.address)

    def _close(self) -> None:
        process, self._process, self.address = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has ended, and what was on the way to it is lost
            process.stdin.close()
        try:
            process.wait(_LAST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
