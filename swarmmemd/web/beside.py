"""The server beside the daemon, which records whether anybody listens or not. docs/api.md, "Where".

It is a process of its own: were it a thread, readers would make the daemon wait for the interpreter, and 200 of them
made an event six times as late. Nothing here waits for it but the end.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import msgspec

from swarmmemd.config import Config
from swarmmemd.log import Log
from swarmmemd.notify import unsupervised
from swarmmemd.web.pipe import Word, line_of, word_in

_AGAIN, _LONGEST_WAIT = 5.0, 60.0
"""Seconds until an address that is taken, or a server that ended, is tried again: twice as long each time, until one
has served for the longest of them."""
_START = 10.0
"""Seconds after which a server that has said nothing is worth a word."""
_LAST = 3.0
"""Seconds that a stop waits for answers that are under way."""
_PIECE = 4096
_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""A signal to the whole group is the daemon's to answer: it closes the pipe when it has done so."""


class Beside:
    """Serves as long as it is entered. What stands in the way of it is `trouble`, and stops nothing else."""

    def __init__(self, config: Config, log: Log) -> None:
        self.address: str | None = None
        self.trouble: str | None = None
        self._config, self._log = config, log
        self._process: subprocess.Popen[bytes] | None = None
        self._untold = self._said = b""
        self._heard = False
        self._since = 0.0
        """When it was started, and then when it began to serve."""
        self._next, self._wait = 0.0, _AGAIN

    def __enter__(self) -> "Beside":
        self.tend(time.monotonic())
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def tend(self, now: float) -> None:
        """Starts the server, hears what it says, and starts it again where it ended. `now`: monotonic seconds."""
        if self._process is None:
            if now >= self._next:
                self._open(now)
            return
        ended = self._process.poll()  # before it is heard: what has ended has said all
        self._tell()
        if not self._heard:
            self._hear(self._process, now)
        if ended is not None:
            self._ended(ended, now)

    def reconfigure(self, config: Config) -> None:
        """Takes over a configuration with the same roots. What it says of the API itself takes a restart."""
        self._config = msgspec.structs.replace(config, api=self._config.api)
        if self._process is not None:
            self._untold += line_of(self._config)
            self._tell()

    def _open(self, now: float) -> None:
        """The configuration goes in by a pipe, which stays open: its end is the server's end, however we end."""
        command = [sys.executable, "-P", "-m", "swarmmemd.web.child"]
        self._heard, self._said, self._since = False, b"", now
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # it inherits that, from its first moment
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=unsupervised(), bufsize=0
            )
        except OSError as error:  # no process to be had, or the interpreter is gone
            self.trouble = f"{sys.executable}: {error.strerror or error}"
            self._put_off(now)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self._untold = line_of(self._config)
        self._tell()

    def _tell(self) -> None:
        """As much of what it is to know as the pipe takes: a server that does not read is told the rest later."""
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):  # the pipe is full, or it has ended, which is seen elsewhere
            while self._untold:
                self._untold = self._untold[os.write(self._process.stdin.fileno(), self._untold) :]

    def _hear(self, process: "subprocess.Popen[bytes]", now: float) -> None:
        """Takes the server's word, if all of it has come."""
        assert process.stdout is not None
        try:
            while not self._said.endswith(b"\n") and (piece := os.read(process.stdout.fileno(), _PIECE)):
                self._said += piece
        except BlockingIOError:  # the rest is not there yet
            if now >= self._since + _START:
                self.trouble = "the server has not answered yet"
            return
        self._heard = True
        try:
            word = word_in(self._said)
        except msgspec.DecodeError:
            word = Word(trouble="the server ended before it listened")
        self.address, self.trouble = word.address, word.trouble
        if self.address is not None:
            self._since = now
            self._log.info("serving", address=self.address)

    def _ended(self, code: int, now: float) -> None:
        if self.address is not None:
            self.trouble = f"the server was killed by signal {-code}" if code < 0 else "the server ended"
            if now >= self._since + _LONGEST_WAIT:
                self._wait = _AGAIN
        self._close()
        self._put_off(now)

    def _put_off(self, now: float) -> None:
        self._next, self._wait = now + self._wait, min(2 * self._wait, _LONGEST_WAIT)

    def _close(self) -> None:
        process, self._process, self.address = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_LAST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
