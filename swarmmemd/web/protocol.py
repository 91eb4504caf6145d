"""HTTP on one connection: what is no request is refused in our own words, and nobody holds a connection by saying
nothing. Neither ever comes to the application. docs/api.md, "Errors"."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from swarmmemd.web.answers import Refusal, refuse
from swarmmemd.web.gate import HEADERS

_HEAD_SECONDS = 10.0
"""Within which a request has to be there, without its body, from the moment that the connection is free for it."""


class Protocol(H11Protocol):
    """One connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Takes in what came, which may be a request, a part of one, or none."""
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._late is None and self.conn.trailing_data[0]:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answers, and closes the connection."""
        body = refuse(Refusal(400, f"This is no HTTP request that can be answered: {msg}")).body
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        events: tuple[Any, ...] = (
            h11.Response(status_code=400, headers=[*headers, *HEADERS.items()], reason=b"Bad Request"),
            h11.Data(data=bytes(body)),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        self._late = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        """Who said nothing gets no answer: browsers open connections in advance."""
        self._late = None
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self.send_400_response("It did not come.")
        else:
            self.transport.close()
