"""Bytes that should be a JSON object, as a mapping of values that UTF-8 can hold. Pure."""

import json
from typing import Any

import msgspec

from swarmmemd.model import Unreadable
from swarmmemd.text import whole

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes. A longer file is none of the control plane's."""


def json_object(data: bytes) -> dict[str, Any] | Unreadable:
    """The object in `data`. Half a file, NULs, other text than UTF-8, or another kind of value is not believed."""
    if not data.strip(b"\0 \t\r\n"):
        return Unreadable("empty" if not data.strip() else "filled with NULs")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        value = _with_halved_pairs(data)
        if value is None:
            return Unreadable(f"not whole JSON ({error})")
    except RecursionError:
        return Unreadable("nested too deeply")
    return value if isinstance(value, dict) else Unreadable("not a JSON object")


def _with_halved_pairs(data: bytes) -> Any:
    """Writers that cut texts by UTF-16 units leave `\\ud83e` alone, which the strict parser refuses."""
    if b"\\ud" not in data.lower():
        return None
    try:
        return _mended(json.loads(data.decode()))
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
