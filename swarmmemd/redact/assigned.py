"""Values given to a name that says what they are: `password = …`, `"api_key": …`, `--token …`. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from swarmmemd.redact.spans import Span
from swarmmemd.redact.values import secret_bare, secret_in_quotes

_LONGEST = 8192
"""A quoted value is looked for no further than this."""

_NAME = r"""
    (?P<password> passw(?:or)?[dt] | passwd | kennwort | passphrase | passcode | 密码 | 密碼 | 口令
      | (?:(?<![a-z])|(?-i:(?<=[a-z])(?=P))) (?:pass|pwd|pw) )
  | (?P<apikey> (?:api|app|application|consumer|subscription|function|service|license|x)[_\-.\ ]?key )
  | (?P<token> token )
  | (?P<secret> (?:access|secret|private|encryption|encrypt|signing|signature|master|auth|account|storage|shared
        |admin|client|deploy|crypto|hmac|jwt|webhook|cookie|root|ssh|server)[_\-.\ ]?key
      | secret | credentials? )
"""
_SUFFIX = r"""(?:[_-]?\d{1,2}
  | [_-](?:prod|production|dev|test|staging|live|local|old|new|base|value|text|plain|raw|default|admin|root|db))?"""
_NAMED = re.compile(rf"(?:{_NAME}){_SUFFIX}(?![A-Za-z0-9])", re.IGNORECASE | re.VERBOSE)
_ASSIGNED = re.compile(
    r"""(?P<closed>(?P<quote>\\{0,7}["'`])\]?|\*\*|__|\?)?
    (?: (?:[\s,]|\\n){1,40}(?:\\{0,7}["'])?value(?:\\{0,7}["'])?[ \t]{0,8}[:=][ \t]{0,8}    # name: X, value: …
      | [ \t]{0,8}
        (?P<sign> :[ \t]{0,4}[A-Za-z][\w.\[\]|?\x20]{0,40}?=(?!=) | =>|:=|={1,3}|!=|:(?!:)|：|%3[dD]|\\u003[dD] )
        (?P<gap>[ \t]{0,8}) )
    (?:\*\*[ \t]{0,4})?(?P<prefix>[fbru]{0,2}(?=\\{0,7}["'`]))?(?P<open>\\{0,7}["'`])?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FLAG = re.compile(r"(?:\\{0,7}[\"'`])?(?:[ \t]{1,4}|[\"'],[ \t]{0,4}[\"'])(?P<open>\\{0,7}[\"'`])?")
_BARE = re.compile(
    r"""(?:[^\s"'`<>\\,;&|，。：；、）】」]
      | [,;](?!\s|$|\\n|[\w.\-\x20"'\\]{1,40}[=:]) | &(?!\#?\w{1,8};|&|\s|$|[\w.%\[\]-]{1,64}=)
      | \\u(?!00(?:26|22|27|3[ce]))[0-9a-f]{4} | \\\\(?![nrtu"'\\]) ){1,8192}""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS = re.compile(r"(\\*)([\"'`])|[\n\r]")
_TAIL = ".,;:)]}>*"
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class _Value(NamedTuple):
    start: int
    end: int
    quoted: bool


def kind_of(name: str) -> str | None:
    """The kind of secret that a name of this kind holds: `DB_PASSWORD` is a `password`."""
    for found in _NAMED.finditer(name):
        if found.end() == len(name):
            return _kind(found)
    return None


def assigned(text: str) -> Iterator[Span]:
    done = 0
    for name in _NAMED.finditer(text):
        # What looks like a name within a secret is a part of it.
        if name.start() < done:
            continue
        found = _ASSIGNED.match(text, name.end())
        if found:
            span = _after_sign(text, name, found)
        else:
            span = _after_flag(text, name) if _is_flag(text, name.start()) else None
        if span:
            yield span
            done = span.end


def _kind(name: re.Match[str]) -> str:
    return {"apikey": "api-key"}.get(name.lastgroup or "", name.lastgroup or "secret")


def _after_sign(text: str, name: re.Match[str], found: re.Match[str]) -> Span | None:
    value = _value(text, found)
    if value is None:
        return None
    kind = _kind(name)
    held = text[value.start : value.end]
    if value.quoted:
        if secret_in_quotes(held):
            return Span(value.start, value.end, kind)
        return None
    tight = found["gap"] == "" and (found["sign"] or "") in ("=", "%3D", "%3d")
    flag = tight and _is_flag(text, name.start())
    if secret_bare(held, kind == "password", tight) or (flag and secret_in_quotes(held)):
        return Span(value.start, value.end, kind, _quote_for(found))
    return None


def _quote_for(found: re.Match[str]) -> str:
    """A number in JSON has no quotes, its replacement needs them: those of its key."""
    key = found["quote"]
    missing = (
        key and not found["open"] and not (found["closed"] or "").endswith("]") and not key.endswith("`")
    )
    return key if missing else ""


def _after_flag(text: str, name: re.Match[str]) -> Span | None:
    found = _FLAG.match(text, name.end())
    value = found and _value(text, found)
    if not value:
        return None
    held = text[value.start : value.end]
    if secret_in_quotes(held) if value.quoted else secret_bare(held, _kind(name) == "password"):
        return Span(value.start, value.end, _kind(name))
    return None


def _is_flag(text: str, at: int) -> bool:
    """Whether the name that goes on at `at` is an option of a command: `--db-password`."""
    before = text[max(0, at - 48) : at]
    stem = before.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    return before[len(stem) :].startswith("--") or (before[len(stem) :] == "-" and stem.endswith((" ", "`")))


def _value(text: str, found: re.Match[str]) -> _Value | None:
    start = found.end()
    if found["open"]:
        end = _closing(text, start, found["open"])
        if end is not None:
            return _Value(start, end, True)
    bare = _BARE.match(text, start)
    if bare is None:
        return None
    return _Value(start, _trimmed(text, start, bare.end()), False)


def _closing(text: str, start: int, opening: str) -> int | None:
    """Where the value behind an opening quote ends.

    A quote with more backslashes than the opening one is part of the value. One with fewer closes a string round
    it. So does a double quote before a comma, colon or bracket: the text may be JSON, and must stay so.
    """
    depth, mark = len(opening) - 1, opening[-1]
    for end in _ENDS.finditer(text, start, start + _LONGEST):
        if not end[2]:
            return None
        slashes = len(end[1])
        if end[2] == mark and (slashes == depth or (depth == 0 and slashes % 2 == 0)):
            return end.end() - 1 - depth if depth else end.end() - 1
        if end[2] == mark and slashes < depth:
            return None
        if end[2] == '"' != mark and slashes < max(depth, 1) and _closes(text, end.end()):
            return None
    return None


def _closes(text: str, after: int) -> bool:
    return text[after : after + 1] in ("", ",", ":", "}", "]", " ", "\n", "\r", "\t")


def _trimmed(text: str, start: int, end: int) -> int:
    """Without what belongs to the sentence or to a bracket that was opened before the value."""
    while end > start and text[end - 1] in _TAIL:
        opened = _BRACKETS.get(text[end - 1])
        if opened and text.count(opened, start, end) >= text.count(text[end - 1], start, end):
            break
        end -= 1
    return end
