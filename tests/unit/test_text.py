"""Others' texts on a terminal and in a log line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.text import harmless, harmless_json, on_one_line, one_row

ESCAPES = [
    ("\x1b[31mred", "\\x1b[31mred"),
    ("a\x00b", "a\\x00b"),
    ("a\x7fb", "a\\x7fb"),
    ("a\x9bb", "a\\x9bb"),
    ("a\u2028b", "a\\u2028b"),
    ("a\u202eb", "a\\u202eb"),
    ("a\u2066b", "a\\u2066b"),
    ("a\ud83eb", "a\\ud83eb"),
    ("a\rb", "a\\x0db"),
    *((f"a{sign}b", f"a\\u{ord(sign):04x}b") for sign in "\u061c\u200e\u200f"),
]


@pytest.mark.parametrize(("text", "shown"), ESCAPES)
def test_what_steers_a_terminal_is_shown(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize("text", ["", "plain", "a\nb\tc", "侦察员 — é", "🧱"])
def test_plain_text_line_breaks_and_tabs_stay(text: str) -> None:
    assert harmless(text) == text


@given(st.text())
def test_harmless_text_steers_nothing_and_stays_as_it_is(text: str) -> None:
    shown = harmless(text)
    assert "\x1b" not in shown
    assert all(character >= " " or character in "\n\t" for character in shown)
    assert harmless(shown) == shown
    shown.encode()


@given(st.text())
def test_harmless_json_says_the_same_and_steers_nothing(text: str) -> None:
    shown = harmless_json(json.dumps({"a": [text]}, ensure_ascii=False, indent=2))
    assert json.loads(shown) == {"a": [text]}
    assert harmless(shown) == shown


@given(st.text())
def test_a_name_with_a_break_stays_one_line(text: str) -> None:
    assert len(on_one_line(text).splitlines()) <= 1


@given(st.text(), st.integers(0, 40))
def test_a_row_is_one_line_and_not_too_wide(text: str, width: int) -> None:
    row = one_row(text, width)
    assert len(row.splitlines()) <= 1
    assert len(row) <= max(width, 1)


def test_a_row_that_is_cut_says_so() -> None:
    assert one_row("a  b\nc", 5) == "a b c"
    assert one_row("a  b\nc", 4) == "a b…"
    assert one_row("a  b\nc", 3) == "a…"
