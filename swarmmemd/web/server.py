"""Runs the application in a thread, of what `beside` starts or of `swarmmemd serve`. docs/api.md, "Where"."""

import asyncio
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import uvicorn

from swarmmemd.config import Config
from swarmmemd.errors import StorageError, SwarmmemdError
from swarmmemd.layout import JOURNAL
from swarmmemd.web.app import Site
from swarmmemd.web.feed import Feed
from swarmmemd.web.gate import Gate
from swarmmemd.web.keys import Keys, token
from swarmmemd.web.listen import listen, remove
from swarmmemd.web.posting import Posting
from swarmmemd.web.protocol import Protocol
from swarmmemd.web.reading import Reading

_AT_ONCE = 4
"""Threads that read at the same time. More would not read faster, and the loop that answers would wait for each."""
_SWITCH = 0.0005
"""Seconds after which a thread that computes gives way, a tenth of Python's default: the loop that answers waits for
that."""
_LAST = 1
"""Seconds that a stop waits for answers that are under way."""
_START = 20.0


class Server:
    """Listens from the moment it is made; answers once it runs. Raises `StorageError` or `DeniedError`."""

    def __init__(self, config: Config, holds_lock: bool) -> None:
        """`holds_lock`: who makes it holds the instance lock, or knows that nobody does."""
        self._socket, self.address = listen(config.api.listen, holds_lock)
        # After the bind: who finds a token can be sure that it is for whoever listens there.
        try:
            self.keys = Keys(token(config.state_dir), time.time)
        except SwarmmemdError:
            self._socket.close()
            raise
        self._config = config
        self._reading = Reading(config)
        self._feed: Feed | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._uvicorn: uvicorn.Server | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)

    def __enter__(self) -> "Server":
        """Runs in a thread of its own, and waits until it answers."""
        sys.setswitchinterval(_SWITCH)
        self._thread.start()
        if not self._up.wait(_START) or self._uvicorn is None or not self._uvicorn.started:
            raise StorageError(f"{self._config.api.listen}: the API did not start", "See the log.")
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self.stop()
        self._thread.join(_LAST + 2.0)

    def wait(self) -> None:
        """Waits until it was stopped, or has ended by itself."""
        self._thread.join()

    def reconfigure(self, config: Config) -> None:
        """What is asked from now on is answered by this configuration, which has the same roots."""
        self._reading.config = config

    def link(self) -> str:
        """A one-time link to the panel."""
        return f"{self.address.shown}/link/{self.keys.link()}"

    def _run(self) -> None:
        # What goes wrong in a handler stands there with its traceback; requests are not logged.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        try:
            asyncio.run(self._serve())
        finally:
            self._up.set()
            self._socket.close()

    def stop(self) -> None:
        """Ends the streams and then everything, from another thread."""
        loop, server, feed = self._loop, self._uvicorn, self._feed
        if loop is None or server is None or feed is None:
            return

        def end() -> None:
            self._leave()
            feed.close()
            server.should_exit = True

        if not loop.is_closed():
            loop.call_soon_threadsafe(end)

    def _leave(self) -> None:
        """Takes the socket's file away as long as we listen: later it could be the next server's."""
        if self._config.api.listen.startswith("unix:"):
            remove(Path(self._config.api.listen.removeprefix("unix:")))

    async def _serve(self) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _AT_ONCE
        self._feed = Feed(self._config.state_dir / JOURNAL)
        site = Site(self._reading, Posting(self._reading), self._feed, self.keys, self.address)
        self._uvicorn = _Uvicorn(Gate(site.app(), self.keys, self.address), self._feed, self._up.set)
        self._loop = asyncio.get_running_loop()
        await self._uvicorn.serve(sockets=[self._socket])


class _Uvicorn(uvicorn.Server):
    """uvicorn with the settings that fit, which says when it is up and ends the streams when it is told to stop."""

    def __init__(self, app: Gate, feed: Feed, up: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=Protocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                h11_max_incomplete_event_size=16 * 1024,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=_LAST,
            )
        )
        self._feed, self._up_ = feed, up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and says so."""
        await super().startup(sockets)
        self._up_()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams have no end of their own."""
        self._feed.close()
        await super().shutdown(sockets)
