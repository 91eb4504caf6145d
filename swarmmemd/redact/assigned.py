"""Values given to a name that says what they are: `password = …`, `"api_key": …`, `--token …`. Pure."""

import re
import string
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from swarmmemd.redact.spans import Span
from swarmmemd.redact.values import secret_bare, secret_in_quotes

_LONGEST = 8192
"""A quoted value is looked for no further than this."""

_API = "api|app|application|consumer|subscription|function|service|license|x"
_SECRET = (
    "access|secret|private|encryption|encrypt|signing|signature|master|auth|account|storage|shared"
    "|admin|client|deploy|crypto|hmac|jwt|webhook|cookie|root|ssh|server"
)
_KEY_WORDS = tuple(sorted(f"{_API}|{_SECRET}".split("|"), key=len, reverse=True))
"""With one of these in front of it a `key` is a secret."""

_NAME = rf"""
    (?P<password> passw(?:or)?[dt] | passwd | kennwort | passphrase | passcode | 密码 | 密碼 | 口令
      | (?:(?<![a-z])|(?-i:(?<=[a-z])(?=P))|(?-i:(?<=\\[nrtbf]))) (?:pass|pwd|pw) )
  | (?P<apikey> (?:{_API})[_\-.\ ]?key )
  | (?P<token> token )
  | (?P<secret> (?:{_SECRET})[_\-.\ ]?key
      | secret | credentials? )
"""
_SUFFIX = r"""(?:[_-]?\d{1,2}
  | [_-](?:prod|production|dev|test|staging|live|local|old|new|base|value|text|plain|raw|default|admin|root|db))?"""
_NAMED = re.compile(rf"(?:{_NAME}){_SUFFIX}(?![A-Za-z0-9])", re.IGNORECASE | re.VERBOSE)
_KEY = re.compile(rf"(?:{'|'.join(_KEY_WORDS)})[_\-.\ ]?key\Z")
_LONGEST_KEY = len(f"{_KEY_WORDS[0]}_key")

_ASSIGNED = re.compile(
    r"""(?P<closed>(?P<quote>\\{0,7}["'`])\]?|\*\*|__|\?)?
    (?: (?:[\s,]|\\{1,8}[nrt]){1,40}(?:\\{0,7}["'])?value(?:\\{0,7}["'])?[ \t]{0,8}[:=][ \t]{0,8}    # name: X, value: …
      | [ \t]{0,8}
        (?P<sign> :[ \t]{0,4}[A-Za-z][\w.\[\]|?\x20]{0,40}?=(?!=) | =>|:=|={1,3}|!={1,2}|:(?!:)|：|%3[dD]|\\u003[dD] )
        (?P<gap>[ \t]{0,8}) )
    (?:\*\*[ \t]{0,4})?(?P<prefix>[fbru]{0,2}(?=\\{0,7}["'`]))?(?P<open>\\{0,7}["'`])?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FLAG = re.compile(r"(?:\\{0,7}[\"'`])?(?:[ \t]{1,4}|[\"'],[ \t]{0,4}[\"'])(?P<open>\\{0,7}[\"'`])?")
_BARE = re.compile(
    r"""[^\s"'`<>\\,;&|，。：；、）】」]{1,8191}+(?=[\s"'`<>|，。：；、）】」]|\Z)      # most are no more than that
      | (?:[^\s"'`<>\\,;&|，。：；、）】」]
      | [,;](?!\s|$|\\n|[\w.\-\x20"'\\]{1,40}[=:]) | &(?!\#?\w{1,8};|&|\s|$|[\w.%\[\]-]{1,64}=)
      | \\u(?!00(?:26|22|27|3[ce]))[0-9a-f]{4} | \\\\(?![nrtu"'\\]) ){1,8192}""",
    re.IGNORECASE | re.VERBOSE,
)
_SCALAR = re.compile(r"[^\s,;{}\[\]\"'`\\<>]{1,8192}+")
"""Behind a key in quotes: a number of JSON and no bracket that follows it."""

_ENDS = re.compile(r"(?<!\\)(\\*+)([\"'`])|[\n\r]")
_QUOTE = r"""\\{0,7}["'`]"""
_EVEN = r"[\x00-\x08\x0e-\x1b\x7fa-z()\[\]{}+,\-./:;=?&\\|_]"
_ODD = r"[0-9!@\#$%^*~\x80-\U0010ffff]"
"""What makes a bare value look like a secret, or may; and what does not."""

_MAYBE = re.compile(
    rf"""(?=pa|pw|ke|to|se|cr|密|口)      # seen at once: most letters begin no name
    (?P<core>(?P<password>pass|pwd|pw|kennwort|密码|密碼|口令)|key|token|secret|credential)
    (?= [\w-]{{0,24}}+
      (?: (?>(?:{_QUOTE}\]?|\*\*|\?)?
          (?: (?P<said>(?:[\s,]|\\{{1,8}}[nrt]){{1,40}}(?:\\{{0,7}}["'])?value)
            | [ \t]{{0,8}}(?::[ \t]{{0,4}}[a-z][\w.\[\]|?\x20]{{0,40}}?=(?!=)|=>|:=|={{1,3}}|!={{1,2}}|:|：|%3d|\\u003d)
              [ \t]{{0,8}} ))
        | (?:{_QUOTE})?(?:[ \t]{{1,4}}|["'],[ \t]{{0,4}}["']) )
      (?(said)
        | (?:\*\*[ \t]{{0,4}})?(?:[fbru]{{0,2}}(?={_QUOTE}))?
          (?: \\{{0,7}}(?P<quote>["'`])(?!(?:(?!(?P=quote))[^\\]){{0,5}}(?P=quote))
            | (?=[^\s"'`<>]{{6}})
              (?!\[redacted:)
              (?: (?(password)(?P<long>[^\s"'`<>]{{20}})|(?!))
                | (?P<sure>{_EVEN}{{0,255}}+{_ODD}|[a-z]{{20}})
                | (?P<word>[a-z]{{6,19}}+)
                | ) )))
    """,
    re.VERBOSE,
)
"""In a text in lower case: what stands in each name, and behind the name something that could be a value. One of these
is in front of every secret, and most names of a text are in front of none: a word of prose, `null`, nothing."""

_CORE = re.compile(
    r"(?=pa|pw|ke|to|se|cr|密|口)(?:pass|pwd|pw|kennwort|密码|密碼|口令|key|token|secret|credent[iı]al)"
)
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-"
_FLAG_LENGTH = 48
"""An option of a command begins no further from the name in it."""

_JUDGED = 256
"""A bare value is judged by its beginning."""

_COMPARISONS = ("==", "===", "!=", "!==")
_MARKED = "[REDACTED:"
"""A value that was replaced already: seen at once, as a text is looked through again when all was replaced."""

_TAIL = ".,;:)]}>*"
_BRACKETS = {")": "(", "]": "[", "}": "{"}


def kind_of(name: str) -> str | None:
    """The kind of secret that a name of this kind holds: `DB_PASSWORD` is a `password`."""
    return _known_kind_of(name) if len(name) <= _USUAL else _kind_of(name)


def _kind_of(name: str) -> str | None:
    for found in _NAMED.finditer(name):
        if found.end() == len(name):
            return _kind(found)
    return None


_USUAL = 64
_known_kind_of = lru_cache(maxsize=256)(_kind_of)
"""Documents have few names, again and again."""


def holds_a_name(folded: str) -> bool:
    """Whether a value in the text may have a name of ours. `folded`: in lower case."""
    return _CORE.search(folded) is not None


def assigned(text: str, folded: str) -> Iterator[Span]:
    """The values in `text`. `folded` is the same in lower case."""
    reader = _Reader(text)
    at = 0
    while name := _next_name(text, folded, at):
        at = name.end()
        found = _ASSIGNED.match(text, at)
        if found and text.startswith(_MARKED, found.end()):
            continue
        span = _after_sign(reader, name, found) if found else _after_flag(reader, name)
        if span:
            yield span
            at = span.end  # what looks like a name within a secret is a part of it


def _next_name(text: str, folded: str, at: int) -> re.Match[str] | None:
    """The first name from `at` on that may have a secret behind it."""
    for maybe in _MAYBE.finditer(folded, at):
        start, end = maybe.span()
        kind = maybe.lastgroup
        harmless = kind == "core" or (kind == "word" and not _changes_case(maybe, text))
        # An option of a command is given whatever stands there: `--token=letters`.
        if harmless and "-" not in text[max(0, start - _FLAG_LENGTH) : start]:
            continue
        begun = _key_begins(folded, end) if maybe[0] == "key" else start
        name = _NAMED.match(text, begun) if begun >= at else None
        if name is not None and name.end() >= end:
            return name
    return None


def _key_begins(folded: str, end: int) -> int:
    """Where the name begins whose `key` ends at `end`; -1 where that is no name of ours."""
    found = _KEY.search(folded, max(0, end - _LONGEST_KEY), end)
    return found.start() if found else -1


def _changes_case(maybe: re.Match[str], text: str) -> bool:
    word = maybe["word"]
    return not text.startswith((word, word.upper()), maybe.start("word"))


class _Value(NamedTuple):
    start: int
    end: int
    quoted: bool
    text: str


class _Reader:
    """Reads values. Remembers how far the last bare one went: the names within it share its end, and looking for
    it from each of them would take the square of its length."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._reach = 0

    def value(self, found: re.Match[str]) -> _Value | None:
        """What stands behind a sign and perhaps a quote."""
        start = found.end()
        if _ends_a_string(self.text, found):
            return None
        end = _closing(self.text, start, found["open"]) if found["open"] else None
        if end is not None:
            return _Value(start, end, True, self.text[start:end])
        if found["open"] is None and found.re is _ASSIGNED and found["quote"]:
            scalar = _SCALAR.match(self.text, start)
            return scalar and _Value(*scalar.span(), False, scalar[0][:_JUDGED])
        if start >= self._reach:
            bare = _BARE.match(self.text, start)
            if bare is None:
                return None
            self._reach = bare.end()
        end = _trimmed(self.text, start, self._reach)
        return _Value(start, end, False, self.text[start : min(end, start + _JUDGED)])


def _kind(name: re.Match[str]) -> str:
    return {"apikey": "api-key"}.get(name.lastgroup or "", name.lastgroup or "secret")


def _after_sign(reader: _Reader, name: re.Match[str], found: re.Match[str]) -> Span | None:
    value = reader.value(found)
    if value is None:
        return None
    kind = _kind(name)
    if value.quoted:
        meant = secret_in_quotes(value.text)
        if found["sign"] in _COMPARISONS:
            # A comparison gives nothing to the name: `"token" == "refresh"`. What is compared can still be one.
            meant = meant and secret_bare(value.text, kind == "password")
        return Span(value.start, value.end, kind) if meant else None
    tight = found["gap"] == "" and (found["sign"] or "") in ("=", "%3D", "%3d")
    meant = secret_bare(value.text, kind == "password", tight)
    # To an option of a command a value is given literally, as if in quotes.
    meant = meant or (tight and _is_flag(reader.text, name.start()) and secret_in_quotes(value.text))
    return Span(value.start, value.end, kind, _quote_for(found)) if meant else None


def _quote_for(found: re.Match[str]) -> str:
    """A number in JSON has no quotes, its replacement needs them: those of its key."""
    key: str | None = found["quote"]
    if not key or key.endswith("`") or found["open"] or found["closed"].endswith("]"):
        return ""
    return key


def _after_flag(reader: _Reader, name: re.Match[str]) -> Span | None:
    """Of `--token x`."""
    found = _FLAG.match(reader.text, name.end()) if _is_flag(reader.text, name.start()) else None
    value = reader.value(found) if found else None
    if value is None:
        return None
    kind = _kind(name)
    meant = secret_in_quotes(value.text) if value.quoted else secret_bare(value.text, kind == "password")
    return Span(value.start, value.end, kind) if meant else None


def _is_flag(text: str, at: int) -> bool:
    """Whether the name that goes on at `at` is an option of a command: `--db-password`."""
    before = text[max(0, at - _FLAG_LENGTH) : at]
    stem = before.rstrip(_NAME_CHARACTERS)
    lead = before[len(stem) :]
    if stem.endswith("\\") and lead[:1] in ("n", "r", "t"):  # a break in JSON
        stem, lead = f"{stem} ", lead[1:]
    return lead.startswith("--") or (lead == "-" and stem.endswith((" ", "`")))


def _ends_a_string(text: str, found: re.Match[str]) -> bool:
    """Whether the quote behind the sign is no opening one: `{"password: ": null, …}` is JSON. Behind a name in the
    same quotes it is."""
    opening: str = found["open"] or ""
    if not opening.endswith('"') or not _closes(text, found.end()):
        return False
    return found.re is _FLAG or found["sign"] is None or found["quote"] != opening


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
