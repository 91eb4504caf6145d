"""One value: from text or YAML to its type, checked. Pure. docs/configuration.md, "Keys" and "Refused"."""

import ipaddress
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from swarmmemd.config.keys import Key, Kind
from swarmmemd.config.patterns import can_run_for_ever

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_WHOLE = r"[+-]?[0-9]{1,18}"
_NUMBER = r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})"
_COMMA = r"(?<!\\),"
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})", re.ASCII)
_SHOWN = 80
_SOCKET_BYTES = 103
"""macOS allows 104 bytes of a socket's path with its final NUL; Linux allows a few more."""


@cache
def _unfit() -> re.Pattern[str]:
    """Control characters break lines of output; lone surrogates are bytes that were no UTF-8. Compiled for the first
    text that is not printable as it is."""
    return re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Nested(NamedTuple):
    """A value of the file that is deeper than any key's value; it is never built."""

    kind: str


class BadError(Exception):
    """A value that is refused: what is wrong, and the mend."""

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(what)
        self.what, self.mend = what, mend


def problem(key: str, where: str, what: str, mend: str) -> str:
    """The line that a person reads: key, where, what, mend. Never more than one line."""
    return _unfit().sub(" ", f"{key}: {where}: {what}; {mend}")


def shown(value: object) -> str:
    """A value in a message or a listing: lists and switches as JSON, text in quotes, cut when long."""
    import json  # for those who are told of a value

    if isinstance(value, Nested):
        return value.kind
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except ValueError:  # a number with more digits than Python is willing to print
        text = "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def from_text(key: Key, text: str) -> object:
    """The typed value of a text from the environment or a flag."""
    if key.many:
        parts = [part.replace("\\,", ",").strip() for part in re.split(_COMMA, text)]
        return [part for part in parts if part]
    if key.kind is Kind.BOOL:
        return _switch(text)
    if key.kind is Kind.WHOLE and re.fullmatch(_WHOLE, text):
        return int(text)
    if key.kind is Kind.SECONDS and re.fullmatch(_NUMBER, text):
        return float(text)
    return text


def _switch(text: str) -> object:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else text


def check(key: Key, value: object, home: Path) -> object:
    """The value as `Config` holds it, or BadError."""
    if key.kind is Kind.PATH:
        return path(value, home)
    return _CHECKS[key.kind](key, value)


def path(value: object, home: Path) -> Path:
    """An absolute path with `~` expanded from `home`; symlinks and `..` stay as they are."""
    text = _string(value, "a path")
    if text == "~" or text.startswith("~/"):
        text = f"{home}/{text[2:]}"
    if text.startswith("~"):
        raise BadError("names the home of another account", "write that path in full")
    if not text.startswith("/"):
        raise BadError("is a relative path", "write it from / or from ~/")
    return Path("/" + text.lstrip("/"))


def _string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise BadError(f"is {_kind(value)}, not {what}", f"write {what}, in quotes if need be")
    if not value.strip():
        raise BadError("is empty", f"write {what}, or remove it")
    if not value.isprintable() and _unfit().search(value):
        raise BadError("holds a control character or is not UTF-8", "write plain text")
    return value


def _kind(value: object) -> str:
    if isinstance(value, Nested):
        return value.kind
    names = {
        bool: "a switch",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
    }
    return names.get(type(value), f"a {type(value).__name__}")


def _bool(key: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadError(f"is {_kind(value)}, not a switch", "write true or false")
    return value


def _whole(key: Key, value: object) -> int:
    mend = f"write a whole number from {key.least} to {key.most}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadError(f"is {_kind(value)}, not a whole number", mend)
    if not key.least <= value <= key.most:
        raise BadError("is out of range", mend)
    return value


def _seconds(key: Key, value: object) -> float:
    mend = f"write seconds, more than 0 and at most {key.most}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadError(f"is {_kind(value)}, not a number", mend)
    if not 0 < value <= key.most:  # not a number is in no range
        raise BadError("is out of range", mend)
    return float(value)


def _choice(key: Key, value: object) -> str:
    if not isinstance(value, str) or value not in key.choices:
        raise BadError("is not one of the words allowed", f"write one of {', '.join(key.choices)}")
    return value


def _listen(key: Key, value: object) -> str:
    text = _string(value, "an address")
    mend = "write 127.0.0.1:PORT, [::1]:PORT, localhost:PORT or unix:/PATH"
    if text.startswith("unix:"):
        return _socket(text, mend)
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise BadError("is no address with a port", mend)
    if not _loopback(match["host"]):
        raise BadError("is not loopback, and the API serves this machine only", mend)
    return text


def _socket(text: str, mend: str) -> str:
    name = text.removeprefix("unix:")
    if not name.startswith("/") or name.endswith("/"):
        raise BadError("names no absolute path of a socket", mend)
    if len(name.encode()) > _SOCKET_BYTES:
        raise BadError(f"has a path longer than {_SOCKET_BYTES} bytes", "choose a shorter path")
    return text


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    # Only ::1 itself: whether ::ffff:127.0.0.1 is loopback depends on the version of Python.
    bracketed = host.startswith("[")
    return address.is_loopback and (str(address) == "::1" if bracketed else address.version == 4)


def _texts(value: object, each: Callable[[str], None]) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadError(f"is {_kind(value)}, not a list", "write a list, such as [one, two]")
    for item in value:
        try:
            each(_string(item, "text"))
        except BadError as bad:
            raise BadError(f"item {shown(item)} {bad.what}", bad.mend) from None
    return tuple(value)


def _glob(text: str) -> None:
    if "[" in re.sub(r"\[!?\]?[^\]]*\]", "", text):
        raise BadError("opens a [ that is never closed", "close it, or write [[] for the character itself")


def _worker_glob(text: str) -> None:
    if "/" in text:
        raise BadError("is a path, and worker ids hold no /", "write a glob of ids, such as swarm*")
    _glob(text)


def _file_glob(text: str) -> None:
    parts = text.split("/")
    if text.startswith(("/", "~")) or ".." in parts or "" in parts or "." in parts:
        raise BadError("leaves the profile", "write a glob relative to the profile, without .. or //")
    # A profile holds virtual environments and browser trees of gigabytes.
    if any("**" in part for part in parts):
        raise BadError("searches whole trees", "name the folder, such as checkpoints/*.md")
    _glob(text)


def _pattern(text: str) -> None:
    try:
        empty, endless = re.compile(text).search(""), can_run_for_ever(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadError(f"is no regular expression: {error}", "correct it") from None
    if endless:
        raise BadError(
            "can run for ever: a repeat within a repeat", "make the inner one possessive (a++) or bounded"
        )
    if empty:
        raise BadError("matches the empty text, so it would redact everywhere", "let it match a character")


_CHECKS: dict[Kind, Callable[[Key, object], object]] = {
    Kind.LISTEN: _listen,
    Kind.BOOL: _bool,
    Kind.WHOLE: _whole,
    Kind.SECONDS: _seconds,
    Kind.CHOICE: _choice,
    Kind.WORKER_GLOBS: lambda _, value: _texts(value, _worker_glob),
    Kind.FILE_GLOBS: lambda _, value: _texts(value, _file_glob),
    Kind.PATTERNS: lambda _, value: _texts(value, _pattern),
    Kind.TEXTS: lambda _, value: _texts(value, lambda _text: None),
}
