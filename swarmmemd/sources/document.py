"""Bytes that should be a JSON object, as a mapping of values that UTF-8 can hold. Pure."""

from typing import Any

import msgspec

from swarmmemd.model import Unreadable
from swarmmemd.text import whole

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


def json_object(data: bytes, as_written: bool = False) -> dict[str, Any] | Unreadable:
    """The object in `data`. Half a file, NULs, other text than UTF-8, or another kind of value is not believed. With
    `as_written` a number that is no whole one still knows how it was written."""
    if not data.strip(b"\0 \t\r\n"):
        return Unreadable("empty" if not data.strip() else "filled with NULs")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        value = _AS_WRITTEN.decode(data) if as_written else msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        value = _with_halved_pairs(data, Written if as_written else float)
        if value is None:
            return Unreadable(f"not whole JSON ({error})")
    except RecursionError:
        return Unreadable("nested too deeply")
    return value if isinstance(value, dict) else Unreadable("not a JSON object")


def _with_halved_pairs(data: bytes, number: type[float]) -> Any:
    """Writers that cut texts by UTF-16 units leave `\\ud83e` alone, which the strict parser refuses."""
    if b"\\ud" not in data.lower():
        return None
    import json  # who reads whole texts does not pay for it

    try:
        return _mended(json.loads(data.decode(), parse_float=number))
    except (ValueError, RecursionError):
        return None


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): _mended(item) for key, item in value.items()}
    return value


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
