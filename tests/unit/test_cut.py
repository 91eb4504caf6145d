"""Shortened texts: cut at no place inside a secret, and said so. docs/redaction.md, "Shortened texts"."""

import pytest

from swarmmemd.cut import beginning, shortened
from swarmmemd.redact import Redactor
from tests.support.secrets import Positive, positives

REDACTOR = Redactor()
FILLER = "The parser was merged and the tests are green. " * 4
BY_ROW = {row: [one for one in positives() if one.row == row][::9] for row in range(1, 39)}


def left_of(secret: str, text: str) -> str | None:
    """A piece of the secret that would help somebody and stands in the text."""
    size = min(len(secret), max(len(secret) // 2, 7), 20)
    pieces = (secret[at : at + size] for at in range(len(secret) - size + 1))
    return next((piece for piece in pieces if piece in text), None)


@pytest.mark.parametrize("row", BY_ROW)
def test_no_piece_of_a_secret_outlives_the_cut(row: int) -> None:
    assert BY_ROW[row]
    for one in BY_ROW[row]:
        text = f"{FILLER}{one.text} and so on. {FILLER}"
        begin = text.index(one.secret, len(FILLER))
        end = begin + len(one.secret)
        for limit in sorted(
            {*range(begin, end, max(len(one.secret) // 3, 1)), end - 1, end, end + 1, end + 9}
        ):
            check(one, text, limit)


def check(one: Positive, text: str, limit: int) -> None:
    found = shortened(text, limit)
    safe = REDACTOR.redact(found).text
    assert left_of(one.secret, safe) is None, (one, limit, safe[len(FILLER) :])
    assert len(found.partition("… [cut")[0]) <= limit
    assert REDACTOR.redact(f"- {found}").text == f"- {safe}"


def test_a_short_text_stays_and_a_cut_one_is_not_cut_again() -> None:
    assert shortened("abc", 3) == "abc"
    once = shortened("word " * 100, 50)
    assert once == "word " * 9 + "word… [cut, 500 characters]"
    assert shortened(once, 50) == once
    assert shortened(f"2026: {once}", 50).endswith("[cut, 500 characters]")


def test_a_word_is_whole_or_absent_so_that_the_user_s_patterns_find_it() -> None:
    assert beginning("the badge ACME-123456 is lost", 17) == "the badge"
    assert beginning("x" * 5000, 2000) == "x" * 2000


def test_a_key_keeps_its_header_or_goes() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + ("Ab1/" * 16 + "\n") * 60 + "-----END PRIVATE KEY-----"
    safe = REDACTOR.redact(shortened(f"words\n{key}\nmore", 2000)).text
    assert "Ab1/" not in safe


def test_the_end_of_a_key_goes_with_its_footer() -> None:
    """Its beginning is not there: the lines are known by the footer alone, and that is cut off."""
    lines = ("Ab1/" * 16 + "\n") * 20 + "-----END PRIVATE KEY-----\n"
    assert "Ab1/" not in REDACTOR.redact(shortened(lines + "words " * 9, 700)).text


@pytest.mark.parametrize(
    "piece", ["pw=hunter27x1\n", "a", "-----BEGIN PRIVATE KEY-----\n", "Ab1/" * 16 + "\n"]
)
def test_a_long_text_of_many_finds_is_cut_too(piece: str) -> None:
    assert len(beginning(piece * (4_000_000 // len(piece)), 60_000)) <= 60_000
