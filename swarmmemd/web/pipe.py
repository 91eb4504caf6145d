"""What the daemon and the server beside it tell each other: lines of JSON on two pipes. docs/api.md, "Where"."""

import os
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from swarmmemd.config import Config


class Word(msgspec.Struct, frozen=True):
    """What the server says once: where it listens, or why it does not."""

    address: str | None = None
    trouble: str | None = None


def line_of(value: Config | Word) -> bytes:
    """The value as it goes through a pipe."""
    return msgspec.json.encode(value, enc_hook=_quoted) + b"\n"


def config_in(line: bytes) -> Config:
    """The configuration. Raises `DecodeError` for a line that was cut, or of another version."""
    return msgspec.json.decode(line, type=Config, dec_hook=lambda _, text: _path(text))


def word_in(line: bytes) -> Word:
    """What the server said. Raises `DecodeError` where it ended before."""
    return msgspec.json.decode(line, type=Word)


def _quoted(path: Path) -> str:
    """A path need be no UTF-8, as JSON is."""
    return quote_from_bytes(os.fsencode(path))


def _path(text: str) -> Path:
    return Path(os.fsdecode(unquote_to_bytes(text)))
