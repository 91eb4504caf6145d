"""Answers: everything that goes wrong is `{"ok": false, "error": …}`, whatever it is. docs/api.md, "Errors"."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from swarmmemd.errors import SwarmmemdError, UsageError


class Refusal(Exception):
    """A question that is answered with this code and these words."""

    def __init__(self, code: int, error: str, **more: Any) -> None:
        super().__init__(error)
        self.code, self.error, self.more = code, error, more


class NoKey(Refusal):
    """A refusal that another key would mend."""


def answer(content: Mapping[str, Any], code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(content), code, headers, "application/json")


def refuse(refusal: Refusal) -> Response:
    """The answer to a question that is refused."""
    headers = {"WWW-Authenticate": "Bearer"} if refusal.code == 401 else {}
    return answer({"ok": False, "error": refusal.error, **refusal.more}, refusal.code, headers)


def failed(_: Request, error: Exception) -> Response:
    """The answer where memory cannot be read: wrong question, or something that a person has to mend."""
    assert isinstance(error, SwarmmemdError)
    text = f"{error}. {error.mend}".rstrip() if error.mend else str(error)
    return refuse(Refusal(400 if isinstance(error, UsageError) else 503, text))
