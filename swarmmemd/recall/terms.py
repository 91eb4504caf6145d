"""Words as the index holds them, and questions to it. Pure; docs/search.md, "Index".

A word of a script without blanks is kept as its overlapping pairs of characters and its last character, so that any
piece of it is a phrase of pairs. Each question finds every line that `Matcher` would count, and for a phrase some more.
"""

from itertools import combinations

from swarmmemd.recall.words import Query, is_unspaced, words

LONGEST = 1000
"""Characters of a word that the index can hold."""
_COMBINED = 4
"""Distinct words up to which every combination of them is asked for."""


def terms(folded: str) -> str | None:
    """The terms of a folded text, parted by blanks; None where the index cannot hold them."""
    found: list[str] = []
    for word in words(folded):
        if is_unspaced(word):
            found += _pairs(word)
            found.append(word[-1])
        elif len(word) > LONGEST:
            return None
        else:
            found.append(word)
    return " ".join(found)


def _pairs(word: str) -> list[str]:
    return [word[place : place + 2] for place in range(len(word) - 1)]


def one_word(word: str, query: Query) -> str:
    """The lines that hold this word of the query."""
    if is_unspaced(word):
        return f'"{" ".join(_pairs(word))}"' if len(word) > 1 else f'"{word}" *'
    return f'"{word}" *' if word == query.last else f'"{word}"'


def whole_phrase(query: Query) -> str:
    """The lines that can hold the whole query as a phrase."""
    *before, last = query.sequence
    found: list[str] = []
    for word in before:
        found += [*_pairs(word), word[-1]] if is_unspaced(word) else [word]
    if is_unspaced(last) and len(last) > 1:
        return f'"{" ".join([*found, *_pairs(last)])}"'
    return f'"{" ".join([*found, last])}" *'


def at_least(count: int, query: Query) -> str | None:
    """The lines that hold at least so many distinct words; None where there are too many combinations to ask."""
    if len(query.words) > _COMBINED:
        return None
    asked = [one_word(word, query) for word in query.words]
    return " OR ".join(f"({' AND '.join(some)})" for some in combinations(asked, count))


def askable(query: Query) -> bool:
    """Whether the index can answer at all."""
    return 0 < len(query.words) <= 100 and all(len(word) <= LONGEST for word in query.words)
