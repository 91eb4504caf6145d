"""Texts to words, and how well a text answers a query. Pure; docs/search.md, "Words" and "Rank".

Both sides go through the same `fold`, so what counts as equal is decided in one place. The query is literal: no
character of it means anything but itself.
"""

import re
import unicodedata
from functools import cache, lru_cache

import msgspec

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul: particles are written together
    "\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Scripts in which a word is found inside of a run of characters."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff"  # the scripts of India, whose vowels are marks
)
"""Marks that belong to the word around them, though they are no letters."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ASCII = bytes(range(0x80))


# Compiled on first use: a search in plain ASCII needs none of them, and they take longer than it does.
@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")


@cache
def _part() -> re.Pattern[str]:
    return re.compile(rf"[^\W_{_UNSPACED}]|[{_MARKS}]")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(r"[\u0300-\u036f]")


@cache
def _accents() -> re.Pattern[str]:
    return re.compile(r"(?<![\u0400-\u052f])[\u0300-\u036f]+|(?<=\u0435)\u0308")


@cache
def odd() -> re.Pattern[bytes]:
    """UTF-8 of characters that folding can make a Latin letter, digit, kana, Han or Hangul of. Not among them: dashes,
    other alphabets, and what is Han, kana or Hangul already."""
    return re.compile(
        rb"[\xc2-\xcd\xe0\xe1\xef-\xf4]|\xe2[^\x80]|\xe3(?:[^\x81-\x83]|\x82[\x99\x9a\x9f]|\x83\xbf)|\xea[^\xb0-\xbf]"
    )


def as_it_is(word: str) -> bool:
    """Whether the word stands in a text as it is, but for the case, wherever there is nothing odd."""
    if word.isascii():
        return True
    return re.fullmatch("[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]+", word) is not None


def fold(text: str) -> str:
    """`text` as it counts in a search: case, accents, width of characters and the kind of white space do not.

    Accents are dropped from every letter but Cyrillic ones, where they make another letter; the dots of ё are.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    apart = unicodedata.normalize("NFKD", text.casefold()).casefold()
    if _mark().search(apart):
        apart = _accents().sub("", apart)
    return " ".join(unicodedata.normalize("NFC", apart).split())


def words(folded: str) -> list[str]:
    """The words of a folded text, in order: runs of letters and digits. `_` and punctuation part them, and so does
    the border between a script with blanks and one without."""
    return (_ASCII_WORD if folded.isascii() else _word()).findall(folded)


@lru_cache(maxsize=4096)
def is_unspaced(word: str) -> bool:
    """Whether the word is of a script in which words are not parted by blanks."""
    return not word.isascii() and _unspaced().match(word) is not None


class Match(msgspec.Struct, frozen=True, order=True, gc=False):
    """How well a text answers a query; the greater, the better."""

    phrase: bool
    count: int
    """Distinct words of the query that the text holds."""

    @property
    def score(self) -> int:
        """Both as one number: 100 for the whole phrase, and 1 for each word, 99 at most."""
        return 100 * self.phrase + min(self.count, 99)


class Query(msgspec.Struct, frozen=True):
    """A query, taken apart. `words` are distinct, in order of first use; `last` is the one that may be a beginning."""

    phrase: str
    sequence: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The distinct words."""
        return tuple(dict.fromkeys(self.sequence))

    @property
    def last(self) -> str:
        """The last word; empty where there is none."""
        return self.sequence[-1] if self.sequence else ""


def parse_query(text: str) -> Query:
    """Any text is a query. One without a letter or digit has no words, and finds nothing."""
    phrase = fold(text.encode("utf-8", "replace").decode())
    return Query(phrase, tuple(words(phrase)))


class Matcher:
    """Tells how well texts answer one query."""

    def __init__(self, query: Query) -> None:
        self._phrase = query.phrase
        self._words = tuple((word, is_unspaced(word), word == query.last) for word in query.words)
        self._needles = query.words
        self._bytes = tuple(word.encode() for word in query.words if as_it_is(word))
        self._as_it_is = len(self._bytes) == len(self._needles)
        self._begins = query.phrase != "" and is_part(query.phrase[0])

    def could(self, folded: str) -> bool:
        """Whether a folded text can hold a word of the query; quick."""
        return any(needle in folded for needle in self._needles)

    def lines(self, data: bytes) -> "set[int] | None":
        """The numbers, from 0, of the lines that can hold a word of the query; None where each has to be folded."""
        if not self._as_it_is:
            return None
        lower, starts = data.lower(), set[int]()
        for needle in self._bytes:
            at = lower.find(needle)
            while at >= 0:
                starts.add(at)
                at = lower.find(b"\n", at)
                at = lower.find(needle, at) if at >= 0 else -1
        if not data.isascii() and odd().search(data.translate(None, _ASCII)):
            starts.update(found.start() for found in odd().finditer(data))
        return _numbers(data, sorted(starts))

    @property
    def full(self) -> Match:
        """The best answer that there can be."""
        return Match(True, len(self._needles))

    def best(self, text: str) -> Match:
        """How well a text that is not folded can answer at most; quick."""
        if not (text.isascii() or (self._as_it_is and not odd().search(text.encode()))):
            return self.full
        lower = text.lower()
        count = sum(needle in lower for needle in self._needles)
        return Match(count == len(self._needles), count)

    def match(self, folded: str) -> Match | None:
        """How well a folded text answers; None if it holds no word of the query."""
        count = 0
        for word, inside, last in self._words:
            if word in folded and (inside or _stands(folded, word, ended=not last)):
                count += 1
        if not count:
            return None
        if not self._begins:
            return Match(self._phrase in folded, count)
        return Match(_stands(folded, self._phrase, ended=False), count)

    def inside(self, word: str) -> int:
        """Where in a word that matches the piece that was asked for begins."""
        found = [word.find(one) for one, inside, _ in self._words if inside and one in word]
        return min(found, default=0)


@cache
def is_part(character: str) -> bool:
    """Whether the character is part of a word that blanks or signs part from others."""
    if character.isascii():
        return character.isalnum()
    return _part().fullmatch(character) is not None


def _stands(folded: str, piece: str, ended: bool) -> bool:
    """Whether `piece` stands there, not begun in the midst of a word, nor, with `ended`, ended in one."""
    at = folded.find(piece)
    while at >= 0:
        end = at + len(piece)
        begun = at == 0 or not is_part(folded[at - 1])
        if begun and not (ended and end < len(folded) and is_part(folded[end])):
            return True
        at = folded.find(piece, at + 1)
    return False


def _numbers(data: bytes, places: list[int]) -> set[int]:
    """The numbers of the lines in which these places are."""
    numbers: set[int] = set()
    number = before = 0
    for place in places:
        number += data.count(b"\n", before, place)
        before = place
        numbers.add(number)
    return numbers


WIDTH = 240
"""Characters of a snippet at most."""
_BEFORE = 60
_MAPPED = 50_000
"""Characters in which a word is looked for one by one."""


def snippet(text: str, query: Query) -> str:
    """The piece of `text` around the first word that was found, on one line; `…` where it is cut."""
    row = " ".join(text.split())
    if len(row) <= WIDTH:
        return row
    start = max(0, min(_first(row, query) - _BEFORE, len(row) - WIDTH))
    end = start + WIDTH
    left, right = "…" * (start > 0), "…" * (end < len(row))
    return f"{left}{row[start + len(left) : end - len(right)].strip()}{right}"


def around(text: str, query: Query, width: int) -> str:
    """At most `width` characters of a long text, those around the first word that is found."""
    if len(text) <= width:
        return text
    row = " ".join(text.split())
    start = max(0, _first(row, query) - width // 2)
    return row[start : start + width]


def _first(row: str, query: Query) -> int:
    """Where in `row` the first word of the query stands."""
    matcher, start = Matcher(query), 0
    for chunk in row.split(" "):
        if matcher.match(chunk.lower() if chunk.isascii() else fold(chunk)):
            return start + _inside_chunk(chunk[:_MAPPED], matcher)
        start += len(chunk) + 1
    return 0


def _inside_chunk(chunk: str, matcher: Matcher) -> int:
    """Where in a chunk without blanks the first word stands; 0 where folding has moved everything about."""
    pieces = [fold(character) for character in chunk]
    places = [place for place, piece in enumerate(pieces) for _ in piece]
    folded = "".join(pieces)
    for found in (_ASCII_WORD if folded.isascii() else _word()).finditer(folded):
        if matcher.match(found[0]):
            return places[found.start() + matcher.inside(found[0])]
    return 0
