"""Texts of others made harmless where people read them: on a terminal and in a log line. Pure."""

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """`text` with control, escape and direction characters shown as `\\x1b` and the like; line breaks and tabs
    stay."""
    return _CONTROLS.sub(lambda found: _shown(found[0]), text) if not text.isprintable() else text


def _shown(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def whole(text: str) -> str:
    """`text` with half an emoji, which UTF-8 cannot hold, as U+FFFD. Writers cut texts by UTF-16 units."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_row(text: str, width: int) -> str:
    """`text` as one line of at most `width` characters, harmless."""
    row = " ".join(harmless(text).split())
    return row if len(row) <= width else row[: max(width - 1, 0)].rstrip() + "…"


def utf8(text: str) -> str:
    """`text` with what is no UTF-8, as a file's name can hold, as U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
