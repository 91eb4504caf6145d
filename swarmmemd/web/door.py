"""What a person sees who stands before the panel without a key that fits: how to get one. docs/api.md, "Panel"."""

import base64
import hashlib
from importlib.resources import files

from starlette.responses import Response
from starlette.types import Scope

from swarmmemd.web.answers import NoKey, Refusal, refuse

_PAGE = (files("swarmmemd") / "web" / "panel" / "door.html").read_text("utf-8")
_STYLE = _PAGE.partition("<style>")[2].partition("</style>")[0]
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
}
"""Whoever has no key gets no file either, so the page carries its style with it."""
_NO_KEY = "Your browser has no key to it yet, or an old one."
_USED = "This link was used, or is too old."


def refused_at(scope: Scope, refusal: Refusal) -> Response:
    """The refusal: a page for a browser that wants the panel, JSON for everybody else."""
    accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
    at_link = scope["path"].startswith("/link/")
    if not (isinstance(refusal, NoKey) and b"text/html" in accepts and (at_link or scope["path"] == "/")):
        return refuse(refusal)
    told = _PAGE.replace("REASON", _USED if at_link else _NO_KEY)
    headers = {"WWW-Authenticate": "Bearer"} if refusal.code == 401 else {}
    return Response(told, refusal.code, {**_HEADERS, **headers}, "text/html")
