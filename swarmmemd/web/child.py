"""What `beside` starts: a server that ends when the pipe to it does. docs/api.md, "Where"."""

import os
import pickle
import signal
import sys

import msgspec

from swarmmemd.config import Config
from swarmmemd.errors import SwarmmemdError
from swarmmemd.web.beside import Word
from swarmmemd.web.server import Server


def main() -> None:
    """Takes the configuration from stdin, says on stdout where it listens, and serves until stdin ends."""
    # A signal to the whole group is the daemon's to answer: it closes the pipe when it has done so.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    config: Config = pickle.load(sys.stdin.buffer)
    try:
        with Server(config, holds_lock=True) as server:
            _say(Word(address=server.address.shown))
            while os.read(sys.stdin.fileno(), 1):
                pass
    except SwarmmemdError as error:
        _say(Word(trouble=f"{error} {error.mend}".rstrip()))


def _say(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
