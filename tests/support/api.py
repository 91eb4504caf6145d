"""A client of the HTTP API that knows only what docs/api.md says."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec

from tests.support.daemon import PATIENCE, Home, until

SERVED = ("--api-enabled", "--api-listen", "127.0.0.1:0")
"""Options of a daemon that serves on a free port."""


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Api:
    """Asks the server at `address`. `None` as the value of a header leaves it out."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token

    @property
    def port(self) -> int:
        """The port."""
        return int(self.address.rpartition(":")[2])

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
        **query: Any,
    ) -> Answer:
        """One request. `body` is JSON, or bytes as they are."""
        with self.connected() as asked:
            given = {"Authorization": f"Bearer {self.token}", **(headers or {})}
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            if data is not None:
                given = {"Content-Type": "application/json", **given}
            target = f"{path}?{urlencode(query)}" if query else path
            kept = {name: value for name, value in given.items() if value is not None}
            asked.request(method, target, data, kept)
            found = asked.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def get(self, path: str, **query: Any) -> Any:
        """A GET that succeeds: its JSON."""
        found = self.ask("GET", path, **query)
        assert found.code == 200, (path, query, found)
        return found.json

    def post(self, **body: Any) -> Any:
        """A post that succeeds: its JSON."""
        found = self.ask("POST", "/api/swarm-memory", body)
        assert found.code == 200, (body, found)
        return found.json

    @contextmanager
    def connected(self) -> Iterator[http.client.HTTPConnection]:
        """A connection."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            yield asked
        finally:
            asked.close()

    @contextmanager
    def stream(self, last: int | None = None, **query: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The stream of events."""
        with self.connected() as asked:
            headers = {"Authorization": f"Bearer {self.token}"}
            if last is not None:
                headers["Last-Event-ID"] = str(last)
            asked.request("GET", f"/api/events?{urlencode(query)}", headers=headers)
            found = asked.getresponse()
            assert found.status == 200, found.read()
            assert found.getheader("Content-Type", "").startswith("text/event-stream")
            yield _messages(found)

    def raw(self, request: bytes) -> bytes:
        """The answer to bytes that no library would send."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as asked:
            asked.sendall(request)
            parts = []
            while part := asked.recv(1 << 16):
                parts.append(part)
            return b"".join(parts)


def _messages(found: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    fields: dict[str, str] = {}
    for line in found:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            message = json.loads(fields["data"])
            assert message["seq"] == int(fields["id"])
            yield message
            fields = {}


def api_of(home: Home) -> Api:
    """The API of the home's running daemon."""
    until(lambda: home.figures().get("api"), "the API")
    return Api(home.figures()["api"], (home.state / "token").read_text().strip())
