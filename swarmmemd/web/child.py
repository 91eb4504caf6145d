"""What `beside` starts: a server that ends when the pipe to it does. docs/api.md, "Where"."""

import io
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from swarmmemd.errors import SwarmmemdError
from swarmmemd.web.pipe import Word, config_in, line_of

if TYPE_CHECKING:
    from swarmmemd.web.server import Server

_IN, _OUT, _ERR = 0, 1, 2


def main() -> None:
    """Takes the configuration from stdin, says on stdout where it listens, and serves until stdin ends."""
    answer = os.dup(_OUT)
    with suppress(OSError):  # stderr is closed
        os.dup2(_ERR, _OUT)  # what anybody prints is no answer
    lines = io.FileIO(_IN, closefd=False)
    try:
        from swarmmemd.web.server import Server  # an upgrade can have taken the extra away

        with Server(config_in(lines.readline()), holds_lock=True) as server:
            _say(answer, Word(address=server.address.shown))
            threading.Thread(target=_heed, args=(lines, server), name="pipe", daemon=True).start()
            server.wait()
    except SwarmmemdError as error:
        _say(answer, Word(trouble=f"{error} {error.mend}".rstrip()))
    except (ImportError, msgspec.DecodeError) as error:
        _say(answer, Word(trouble=f"the program has changed, start the daemon again: {error}"))


def _heed(lines: io.FileIO, server: "Server") -> None:
    """Takes over each configuration that comes, and ends the server with the pipe."""
    try:
        for line in lines:
            server.reconfigure(config_in(line))
    finally:
        server.stop()


def _say(answer: int, word: Word) -> None:
    with suppress(OSError):  # nobody is left to hear it
        os.write(answer, line_of(word))
    os.close(answer)


if __name__ == "__main__":
    main()
