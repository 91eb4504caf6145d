"""Bytes that should be a JSON object, as a mapping of values that UTF-8 can hold. Pure."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from swarmmemd.model import Unreadable

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes. A longer file is none of the control plane's."""


class Written(float):
    """A number with a fraction or an exponent; `str` gives it as it was written."""

    def __new__(cls, text: str) -> "Written":
        """The number, from its text."""
        number = super().__new__(cls, text)
        number._text = text
        return number

    _text: str

    def __str__(self) -> str:
        return self._text


_AS_WRITTEN = msgspec.json.Decoder(float_hook=Written)
_ESCAPES = re.compile(
    rb"(?:\\(?:[^u]|u(?![dD][89a-fA-F])|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))++"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)
"""The escapes of a text of JSON: a pair is one, and the half of one is another."""


def json_object(data: bytes, as_written: bool = False) -> dict[str, Any] | Unreadable:
    """The object in `data`. Half a file, NULs, other text than UTF-8, or another kind of value is not believed. With
    `as_written` a number that is no whole one still knows how it was written."""
    if not data.strip(b"\0 \t\r\n"):
        return Unreadable("empty" if not data.strip() else "filled with NULs")
    data = data.removeprefix(b"\xef\xbb\xbf")
    decode = _AS_WRITTEN.decode if as_written else msgspec.json.decode
    try:
        value = _decoded(data, decode)
    except msgspec.DecodeError as error:
        return Unreadable(f"not whole JSON ({error})")
    except RecursionError:
        return Unreadable("nested too deeply")
    return value if isinstance(value, dict) else Unreadable("not a JSON object")


def _decoded(data: bytes, decode: Callable[[bytes], Any]) -> Any:
    try:
        return decode(data)
    except msgspec.DecodeError:
        return decode(with_whole_pairs(data))


def with_whole_pairs(data: bytes) -> bytes:
    """Writers that cut texts by UTF-16 units leave `\\ud83e` alone, which the strict parser refuses: the same JSON with
    U+FFFD in its place."""
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data)


def text(fields: dict[str, Any], key: str) -> str | None:
    """The text at `key`; a value of another type is as if not given."""
    value = fields.get(key)
    return value if isinstance(value, str) else None


def millis(fields: dict[str, Any], key: str) -> int | None:
    """The time at `key` in ms, if it is a number that can be one."""
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return int(value)
