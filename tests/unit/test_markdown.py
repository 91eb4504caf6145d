"""One line of Markdown from any text. docs/contracts.md, SUMMARY.md."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.cut import shortened
from swarmmemd.render import markdown
from swarmmemd.render.markdown import bullet, one_line

HARD = st.text(st.sampled_from("\\#>-+*=_|:<!`~[]1.) \t\n\r\v\f\x1c\x1b\x85\u2028\ud800aStus…"), max_size=30)
TEXTS = st.one_of(st.text(max_size=60), HARD, st.text(st.characters(), max_size=60))


@pytest.mark.parametrize(
    "brk", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029", "\t"]
)
def test_every_kind_of_line_break_is_a_blank(brk: str) -> None:
    assert one_line(f" a{brk}{brk} b{brk}") == "a b"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# head", "\\# head"),
        ("#12 fixed", "\\#12 fixed"),
        ("> quote", "\\> quote"),
        ("- Status: complete", "\\- Status: complete"),
        ("* x", "\\* x"),
        ("+ x", "\\+ x"),
        ("-", "\\-"),
        ("1. x", "1\\. x"),
        ("12) x", "12\\) x"),
        ("```sh", "\\```sh"),
        ("~~~", "\\~~~"),
        ("===", "\\==="),
        ("---", "\\---"),
        ("* * *", "\\* * *"),
        ("| a | b |", "\\| a | b |"),
        ("--- | ---", "\\--- | ---"),
        ("<!-- x", "\\<!-- x"),
        ("<script>", "\\<script>"),
        ("[a]: b", "\\[a]: b"),
        ("Status: complete", "Status\\: complete"),
        ("last updated: now", "last updated\\: now"),
        ("a --> b", "a --\\> b"),
    ],
)
def test_a_meaningful_beginning_is_escaped(text: str, line: str) -> None:
    assert one_line(text) == line
    assert one_line(line) == line


@pytest.mark.parametrize(
    "text",
    ["plain", "-5 degrees", "*bold* x", "1.5 m", "a # b", "a | b", "a - b", "x <!-- y", "Status quo", "..."],
)
def test_what_means_nothing_is_left_alone(text: str) -> None:
    assert one_line(text) == text


def test_controls_and_terminal_sequences_go() -> None:
    assert one_line("\x1b[31mred\x1b[0m \x00\x07x\x7f\x9b \x1b]0;title\x07y\x1b") == "red x y"
    assert one_line("a\u202eb\u061c\u200e\u200f\ufeff") == "ab"


def test_lone_surrogates_pass() -> None:
    assert one_line("a\udcff b") == "a\udcff b"


def test_overlong_is_cut_and_says_its_length() -> None:
    line = one_line("x" * 12345)
    assert line == "x" * 2000 + "… [cut, 12345 characters]"
    assert one_line(line) == line
    assert one_line("x" * 2000) == "x" * 2000


def test_a_bullet() -> None:
    assert bullet("# a\nb") == "- \\# a b"


@given(TEXTS, st.integers(0, 40))
def test_idempotent_and_one_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert one_line(line, limit) == line
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


@given(
    st.one_of(TEXTS, st.text(st.sampled_from("abSC-> .:/'(\\"), max_size=12)), st.sampled_from([5, 20, 2000])
)
def test_what_is_plain_at_a_glance_is_what_the_patterns_leave_as_it_is(text: str, limit: int) -> None:
    if len(text) <= limit and markdown._is_plain(text):
        assert shortened(markdown._escape(markdown._fold(text)), limit) == text
