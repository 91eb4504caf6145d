"""The gate that every request passes: whose host it names, where it comes from, and whether it has a key.

Loopback is no border against a browser: any page can send requests there. docs/api.md, "Who may ask".
"""

import asyncio
import contextlib
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swarmmemd.web.answers import NoKey, Refusal
from swarmmemd.web.door import refused_at
from swarmmemd.web.keys import Keys
from swarmmemd.web.listen import Address

BODY_LIMIT = 1 << 20
"""Bytes of a request's body."""
_DRAINED = 16 << 20
"""Bytes of a body beyond the limit that are still taken in, so that the client reads the answer."""
_PATIENCE = 5.0
_OPEN = ("/healthz",)
_LINK = "/link/"
_READS = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class Gate:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, keys: Keys, address: Address) -> None:
        self._app, self._keys, self._address = app, keys, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses, or lets it through; in both cases with the headers that every answer has."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                message["headers"] = given + [one for one in _RAW if one[0] not in dict(given)]
            await send(message)

        try:
            self._check(_Asked(scope))
        except Refusal as refusal:
            await refused_at(scope, refusal)(scope, receive, _then_drained(receive, with_headers))
            return
        await self._app(scope, receive, with_headers)

    def _check(self, asked: "_Asked") -> None:
        self._check_names(asked)
        self._check_key(asked)
        if asked.length > BODY_LIMIT:
            raise Refusal(413, "The body is larger than 1 MiB")

    def _check_key(self, asked: "_Asked") -> None:
        if asked.path in _OPEN or (asked.path.startswith(_LINK) and asked.reads):
            return
        bearer = asked.one(b"authorization")
        if bearer is not None:
            scheme, _, given = bearer.partition(b" ")
            if scheme.lower() != b"bearer" or not self._keys.is_token(given.strip()):
                raise Refusal(401, "This is not the token. It stands in the file `token` of the state folder")
            return
        if not any(self._keys.is_cookie(value) for value in asked.cookies(self._address.cookie)):
            raise NoKey(
                401, "A token is needed: Authorization: Bearer, from the file `token` of the state folder"
            )
        self._check_browser(asked)

    def _check_names(self, asked: "_Asked") -> None:
        named = asked.all(b"host")
        if len(named) != 1:
            raise Refusal(400, "One Host header is needed")
        if named[0].lower() not in self._address.hosts:
            raise Refusal(403, "Host is not this server: use 127.0.0.1 or localhost with its port")
        for origin in asked.all(b"origin"):
            if origin.lower() != b"http://" + named[0].lower():
                raise Refusal(403, "Requests from pages of another origin are refused")

    def _check_browser(self, asked: "_Asked") -> None:
        """Other ports of this machine are the same site, so a cookie comes along with their requests as well."""
        site = asked.one(b"sec-fetch-site")
        navigates = asked.reads and asked.one(b"sec-fetch-mode") == b"navigate"
        if site not in (None, b"same-origin", b"none") and not navigates:
            raise Refusal(403, "Requests from pages of another origin are refused")
        if asked.reads:
            return
        if not asked.all(b"origin"):
            raise Refusal(403, "A write with a cookie needs the Origin of this server")
        if (asked.one(b"content-type") or b"").split(b";")[0].strip().lower() != b"application/json":
            raise Refusal(400, "A write with a cookie needs Content-Type: application/json")


class _Asked:
    """What of a request counts here."""

    def __init__(self, scope: Scope) -> None:
        self._headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        self.path: str = scope["path"]
        self.reads = scope["method"] in _READS

    def all(self, name: bytes) -> list[bytes]:
        return [value for given, value in self._headers if given == name]

    def one(self, name: bytes) -> bytes | None:
        """The header; one that is doubled means nothing that could be relied on."""
        found = self.all(name)
        if len(found) > 1:
            raise Refusal(400, f"The header {name.decode()} stands there twice")
        return found[0] if found else None

    @property
    def length(self) -> int:
        """Bytes of the body, as far as they are told beforehand."""
        return int(self.one(b"content-length") or 0)

    def cookies(self, name: str) -> list[str]:
        """The values of a cookie: other ports of this machine may have set one as well."""
        values = []
        for header in self.all(b"cookie"):
            for part in header.decode("latin-1").split(";"):
                try:
                    found = SimpleCookie(part.strip()).get(name)
                except CookieError:
                    continue
                values += [found.value] if found else []
        return values


def _then_drained(receive: Receive, send: Send) -> Send:
    """Sends at once what is said, and ends it when the body is in: who is still sending one would otherwise find the
    connection closed, and never read the answer."""

    async def sent(message: Message) -> None:
        if message["type"] != "http.response.body" or message.get("more_body"):
            await send(message)
            return
        await send({**message, "more_body": True})
        await drain(receive)
        await send({"type": "http.response.body", "body": b""})

    return sent


async def drain(receive: Receive, most: int = _DRAINED) -> None:
    """Takes in the rest of a body, up to `most` bytes, for a few seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while most > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                most -= len(message.get("body", b""))
