"""Texts of others made harmless where people read them: on a terminal and in a log line. Pure."""

import re
from functools import cache

_DIRECTION = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"


@cache
def _controls() -> re.Pattern[str]:
    """Compiled for the first text that is not printable as it is: every command imports this, few meet one."""
    return re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_DIRECTION}\ud800-\udfff]")


def harmless(text: str) -> str:
    """`text` with control, escape and direction characters shown as `\\x1b` and the like; line breaks and tabs
    stay."""
    return text if text.isprintable() else _controls().sub(lambda found: _shown(found[0]), text)


def harmless_json(text: str) -> str:
    """A document of JSON with the same characters escaped as `\\u009b`: it says the same."""
    return text if text.isprintable() else _controls().sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def on_one_line(text: str) -> str:
    """`text`, harmless, with its line breaks and tabs shown too: a name of a file can hold some."""
    return harmless(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def _shown(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def whole(text: str) -> str:
    """`text` with half an emoji, which UTF-8 cannot hold, as U+FFFD. Writers cut texts by UTF-16 units."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_whole(text: str) -> bool:
    """Whether UTF-8 can hold `text`: then `whole` changes nothing."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_row(text: str, width: int) -> str:
    """`text` as one line of at most `width` characters, harmless."""
    row = " ".join(harmless(text).split())
    return row if len(row) <= width else row[: max(width - 1, 0)].rstrip() + "…"


def utf8(text: str) -> str:
    """`text` with what is no UTF-8, as a file's name can hold, as U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
