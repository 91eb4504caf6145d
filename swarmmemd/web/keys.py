"""Who may come in: the bearer token in the state folder, one-time links, and the cookies made of them.

A cookie is signed with the token and holds a random id, so that it outlives a restart and is no token itself.
docs/api.md, "Who may ask".
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from swarmmemd import layout
from swarmmemd.durable import Directory, Moved, open_file, private_directory, replace
from swarmmemd.errors import DeniedError

_TOKEN = re.compile(rb"[A-Za-z0-9_-]{43}")
_LINK_LIFE = 600.0
_COOKIE_LIFE = 7 * 86400.0
_LINKS = 64
"""Links that wait to be used at most; the oldest gives way."""


class Keys:
    """What opens the door. `wall` gives seconds since the epoch. Safe to use from several threads."""

    def __init__(self, token: bytes, wall: Callable[[], float]) -> None:
        self._token = token
        self._wall = wall
        self._links: dict[str, float] = {}

    def is_token(self, given: bytes) -> bool:
        """Whether it is the token; how long that takes does not tell."""
        return hmac.compare_digest(given, self._token)

    def link(self) -> str:
        """The secret part of a new one-time link."""
        secret = secrets.token_urlsafe(24)
        while len(self._links) >= _LINKS:
            with contextlib.suppress(KeyError, StopIteration):
                del self._links[next(iter(self._links))]
        self._links[secret] = self._wall() + _LINK_LIFE
        return secret

    def redeem(self, secret: str) -> bool:
        """Whether the link is good. It is not good a second time."""
        until = self._links.pop(secret, None)
        return until is not None and self._wall() < until

    def cookie(self) -> str:
        """A new cookie's value."""
        content = f"{int(self._wall() + _COOKIE_LIFE)}.{secrets.token_urlsafe(18)}"
        return f"{content}.{self._signature(content)}"

    def is_cookie(self, value: str) -> bool:
        """Whether the value was made here and is not too old."""
        content, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(content).encode()):
            return False
        return self._wall() < int(content.partition(".")[0])

    def _signature(self, content: str) -> str:
        return hmac.new(self._token, b"cookie " + content.encode(), hashlib.sha256).hexdigest()


def held(state_dir: Path) -> bytes | None:
    """The token in the state folder, for who asks the server; None where there is none. Raises `DeniedError`."""
    try:
        with Directory.root(state_dir) as state:
            return _read(state, state_dir / layout.TOKEN)
    except FileNotFoundError:
        return None


def token(state_dir: Path) -> bytes:
    """The token in the state folder, made where there is none. Raises `DeniedError` for a file that others could
    have read or written."""
    path = state_dir / layout.TOKEN
    with private_directory(state_dir) as state:
        found = _read(state, path)
        if found is not None:
            return found
        made = secrets.token_urlsafe(32).encode()
        try:
            replace(state, layout.TOKEN, made + b"\n", expected=None, permissions=0o600)
        except Moved:  # another process was quicker
            return _read(state, path) or made
        return made


def _read(state: Directory, path: Path) -> bytes | None:
    try:
        descriptor = open_file(state, layout.TOKEN, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, (error.strerror or str(error)).lower()) from error
    try:
        found = os.fstat(descriptor)
        data = os.read(descriptor, 256).strip()
    finally:
        os.close(descriptor)
    if found.st_uid != os.geteuid():
        raise _refused(path, "belongs to somebody else")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise _refused(path, "others may read or write it")
    if not _TOKEN.fullmatch(data):
        raise _refused(path, "holds no token")
    return data


def _refused(path: Path, reason: str) -> DeniedError:
    return DeniedError(f"{path}: {reason}", "Take it away: a new one is made at the next start.")
