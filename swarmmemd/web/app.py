"""The application: which address is answered by what. docs/api.md, "Addresses"."""

from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import swarmmemd
from swarmmemd.errors import SwarmmemdError
from swarmmemd.journal import Recorded, numbered
from swarmmemd.web.answers import NoKey, Refusal, answer, failed, refuse
from swarmmemd.web.door import refused_at
from swarmmemd.web.feed import Feed
from swarmmemd.web.keys import Keys
from swarmmemd.web.listen import Address
from swarmmemd.web.metrics import CONTENT_TYPE
from swarmmemd.web.posting import Posting
from swarmmemd.web.reading import Reading, number, once

_STREAMS = 100
_FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "panel.css": ("panel.css", "text/css; charset=utf-8"),
    "panel.js": ("panel.js", "text/javascript; charset=utf-8"),
    "markdown.js": ("markdown.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}


class Site:
    """What the addresses answer."""

    def __init__(self, reading: Reading, posting: Posting, feed: Feed, keys: Keys, address: Address) -> None:
        self._reading, self._posting, self._feed = reading, posting, feed
        self._keys, self._address = keys, address

    def app(self) -> Starlette:
        """The application, without the gate."""
        routes = [
            Route("/api/swarm-memory", self.memory, methods=["GET", "POST"]),
            Route("/api/swarm-memory/search", self.search),
            Route("/api/workers", self.workers),
            Route("/api/events", self.events),
            Route("/api/link", self.make_link, methods=["POST"]),
            Route("/healthz", self.health),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.document),
            Route("/link/{secret}", self.link),
            *(Route(f"/{path}", _file(name, kind)) for path, (name, kind) in _FILES.items()),
        ]
        handlers: dict[Any, Callable[[Request, Exception], Response]] = {
            Refusal: _refused,
            SwarmmemdError: failed,
            HTTPException: _unknown,
            Exception: _broken,
        }
        found = Starlette(routes=routes, exception_handlers=handlers)
        found.router.redirect_slashes = False  # another address is no address
        return found

    async def memory(self, request: Request) -> Response:
        """Files of one kind of memory, or, posted, an event or a handoff that somebody tells."""
        if request.method == "POST":
            return answer(await self._posting.take(request))
        return answer(await run_in_threadpool(self._reading.memory, once(request.query_params)))

    async def search(self, request: Request) -> Response:
        """Lines that hold words of a query."""
        return answer(await run_in_threadpool(self._reading.search, once(request.query_params)))

    async def workers(self, _: Request) -> Response:
        """A card for each worker."""
        return answer(await run_in_threadpool(self._reading.workers))

    async def events(self, request: Request) -> Response:
        """The events as they are recorded, without an end."""
        asked = once(request.query_params)
        given = request.headers.get("last-event-id", asked.get("after"))
        after = number({"after": given} if given else {}, "after", -1, 0, 10**18 - 1)
        recent = number(asked, "recent", 0, 0, 500)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _Stream(self._feed, self._frames(None if after < 0 else after, recent))

    async def _frames(self, after: int | None, recent: int) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n: events as they are recorded\n\n"
        async for one in self._feed.follow(after, recent):
            yield _frame(one) if one is not None else b": nothing new\n\n"

    async def health(self, _: Request) -> Response:
        """Whether the daemon is well, and no more: anybody may ask."""
        well = await run_in_threadpool(self._reading.healthy)
        return answer({"ok": True}) if well else answer({"ok": False, "error": "not well"}, 503)

    async def metrics(self, _: Request) -> Response:
        """Figures for Prometheus."""
        text = await run_in_threadpool(self._reading.metrics, self._feed.listeners)
        return Response(text, media_type=CONTENT_TYPE)

    async def document(self, _: Request) -> Response:
        """What may be asked, for programs."""
        text = (files(swarmmemd) / "web" / "openapi.json").read_bytes()
        for name, value in (("VERSION", swarmmemd.__version__), ("COOKIE", self._address.cookie)):
            text = text.replace(b'"%b"' % name.encode(), b'"%b"' % value.encode())
        return Response(text, media_type="application/json")

    async def make_link(self, _: Request) -> Response:
        """A new one-time link to the panel."""
        return answer({"ok": True, "url": f"{self._address.shown}/link/{self._keys.link()}"})

    async def link(self, request: Request) -> Response:
        """Takes a one-time link for a cookie, and goes on to the panel."""
        if request.method == "HEAD":
            raise Refusal(405, "A link is opened with GET")
        if not self._keys.redeem(request.path_params["secret"]):
            raise NoKey(403, "This link was used, or is too old. A new one: swarmmemd serve --link")
        found = RedirectResponse("/", 303)
        name, value = self._address.cookie, self._keys.cookie()
        found.set_cookie(name, value, max_age=7 * 86400, httponly=True, samesite="strict")
        return found


class _Stream(StreamingResponse):
    """An answer without an end. It takes its place before it says anything, so that there are never too many."""

    def __init__(self, feed: Feed, frames: AsyncIterator[bytes]) -> None:
        super().__init__(frames, media_type="text/event-stream")
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Streams. Raises `Refusal` where there are too many."""
        if self._feed.listeners >= _STREAMS:
            raise Refusal(503, f"There are {_STREAMS} streams already")
        with self._feed.listening():
            await super().__call__(scope, receive, send)


def _frame(one: Recorded) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (one.seq, msgspec.json.encode(numbered(one)))


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    content = (files(swarmmemd) / "web" / "panel" / name).read_bytes()

    def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refused_at(request.scope, error)


def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: f"There is nothing at {request.url.path[:200]}",
        405: f"{request.method} means nothing here",
    }
    found = refuse(Refusal(error.status_code, words.get(error.status_code, str(error.detail))))
    found.headers.update(error.headers or {})
    return found


def _broken(_: Request, __: Exception) -> Response:
    return refuse(Refusal(500, "This is a bug. Its traceback stands on the server's stderr."))
