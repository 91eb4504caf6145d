"""Texts to words, and how well a text answers a query. Pure; docs/search.md, "Words" and "Rank".

Both sides go through the same `fold`, so what counts as equal is decided in one place. The query is literal: no
character of it means anything but itself.
"""

import re
import unicodedata
from functools import lru_cache

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
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_ACCENTS = re.compile(r"(?<![\u0400-\u052f])[\u0300-\u036f]+|(?<=\u0435)\u0308")


def fold(text: str) -> str:
    """`text` as it counts in a search: case, accents, width of characters and the kind of white space do not.

    Accents are dropped from every letter but Cyrillic ones, where they make another letter; the dots of ё are.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    apart = unicodedata.normalize("NFKD", text.casefold()).casefold()
    return " ".join(unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).split())


def words(folded: str) -> list[str]:
    """The words of a folded text, in order: runs of letters and digits. `_` and punctuation part them, and so does
    the border between a script with blanks and one without."""
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


@lru_cache(maxsize=4096)
def is_unspaced(word: str) -> bool:
    """Whether the word is of a script in which words are not parted by blanks."""
    return not word.isascii() and re.match(f"[{_UNSPACED}]", word) is not None


class Match(msgspec.Struct, frozen=True, order=True):
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
        self._last = query.last
        self._whole = frozenset(word for word in query.words if not is_unspaced(word))
        self._inside = tuple(word for word in query.words if is_unspaced(word))
        self._needles = tuple(query.words)
        first = words(query.phrase[:1])
        self._begins = bool(first) and not is_unspaced(first[0])

    def could(self, folded: str) -> bool:
        """Whether a folded text can hold a word of the query; quick."""
        return any(needle in folded for needle in self._needles)

    def match(self, folded: str) -> Match | None:
        """How well a folded text answers; None if it holds no word of the query."""
        if not self.could(folded):
            return None
        found = set(words(folded))
        count = len(self._whole & found) + sum(word in folded for word in self._inside)
        if self._last in self._whole and self._last not in found:
            count += any(word.startswith(self._last) for word in found)
        return Match(self._holds_phrase(folded), count) if count else None

    def _holds_phrase(self, folded: str) -> bool:
        """Whether the phrase stands there, not begun in the midst of a word."""
        at = folded.find(self._phrase)
        while at > 0 and self._begins and _inside_word(folded, at):
            at = folded.find(self._phrase, at + 1)
        return at >= 0


def _inside_word(folded: str, at: int) -> bool:
    """Whether the characters around the position belong to one word."""
    around = folded[at - 1 : at + 1]
    return words(around) == [around]


WIDTH = 240
"""Characters of a snippet at most."""
_BEFORE = 60


def snippet(text: str, query: Query) -> str:
    """The piece of `text` around the first word that was found, on one line; `…` where it is cut."""
    row = " ".join(text.split())
    if len(row) <= WIDTH:
        return row
    start = max(0, min(_first(row, query) - _BEFORE, len(row) - WIDTH))
    end = start + WIDTH
    left, right = "…" * (start > 0), "…" * (end < len(row))
    return f"{left}{row[start + len(left) : end - len(right)].strip()}{right}"


def _first(row: str, query: Query) -> int:
    """Where in `row` the first word of the query stands; 0 where folding has moved everything about."""
    pieces = [" " if character == " " else fold(character) for character in row]
    places = [place for place, piece in enumerate(pieces) for _ in piece]
    folded = "".join(pieces)
    matcher = Matcher(query)
    for found in (_ASCII_WORD if folded.isascii() else _WORD).finditer(folded):
        if matcher.match(found[0]):
            inside = [found[0].find(word) for word in query.words if is_unspaced(word) and word in found[0]]
            return places[found.start() + min(inside, default=0)]
    return 0
