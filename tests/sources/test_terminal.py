"""Terminal streams as plain lines. docs/contracts.md, "Transcripts"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.checkpoint import parse
from swarmmemd.sources.terminal import plain, plain_lines, unbroken


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain\ttext é 完成 🎉", "plain\ttext é 完成 🎉"),
        ("STATE: DONE\r", "STATE: DONE"),
        ("STATE: DONE\r\r", "STATE: DONE"),
        (" 10%\r 50%\r100%\r", "100%"),
        ("busy\r\x1b[K\r", ""),
        ("busy\r\x1b[KSTATE: DONE\x1b[K", "STATE: DONE"),
        ("old text\x1b[2K\x1b[1A\x1b[2K\x1b[Gnew", "new"),
        ("\x1b[1;32mSTATE:\x1b[0m \x1b[38;5;10mDONE\x1b[39m", "STATE: DONE"),
        ("\x1b[38:2::1:2:3mRESULT\x1b[m: ok", "RESULT: ok"),
        ("two\x1b[1Cwords", "two words"),
        ("\x1b]0;title of a window\x07text", "text"),
        ("\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\ text", "link text"),
        ("\x1bP+q544e\x1b\\text", "text"),
        ("\x1bPtmux;\x1b\x1b]52;c;Zm9v\x07\x1b\x1b\\\x1b\\text", "text"),
        ("\x1b_Gf=24;AAAA\x1b\\text\x1bkscreen title\x1b\\", "text"),
        ("\x1b(B\x1b)0\x1b=\x1b>\x1b7\x1b8\x1bMtext\x1b", "text"),
        ("\x1b]0;never ended", ""),
        ("\x1b]0;cut off\x1b[31mred", "red"),
        ("\x9b31mred\x9b0m", "red"),
        ("S\bST\bTA\bA", "STA"),
        ("_\bR_\be_\bd", "Red"),
        ("xy\b \b\b \bz", "z"),
        ("\b\b\ba", "a"),
        ("a\x00b\x07c\x7fd\x0e\x0f\x85e\u2028f", "abcd e f"),
        ("\x1b[?2004h$ \x1b[?2004l", "$ "),
    ],
)
def test_a_line_is_what_the_screen_shows(line: str, shown: str) -> None:
    assert plain(line) == shown


TMUX = (
    b"\x1b[?2004h\x1b]0;worker@host: ~/repo\x07\x1b[01;32mworker@host\x1b[00m:\x1b[01;34m~/repo\x1b[00m$ agent\r\n"
    b"\x1b[?2004l\r\x1b[?25l\x1b[36m\xe2\xa0\x8b\x1b[39m thinking\r\x1b[2K\x1b[36m\xe2\xa0\x99\x1b[39m thinking\r"
    b"\x1b[2K\x1b[?25h\x1b[1m\xe2\x97\x8f Report\x1b[22m\r\n\r\n"
    b"\x1b[1mSTATE:\x1b[22m \x1b[32mDONE\x1b[39m\x1b[K\r\n"
    b"\x1b[1mFILES_CHANGED:\x1b[22m src/\x1b]8;;file:///src/a.py\x1b\\a.py\x1b]8;;\x1b\\\x1b[K\r\n"
    b"COMMANDS_RUN:\x1b[1Cpytest\x1b[1C-q\r\n"
    b"\x1b[1mRESULT:\x1b[22m Gr\xc3\xb6\xc3\x9fe gepr\xc3\xbcft \xe2\x9c\x94\r\n"
    b"BLOCKER: none\r\n"
    b"NEXT_ACTION: \x1b[3mWrite the change log\x1b[23m\x1b(B\x1b[m\r\n\r\n"
    b"\x1b[?2004h\x1b]0;worker@host: ~/repo\x07\x1b[01;32mworker@host\x1b[00m:\x1b[01;34m~/repo\x1b[00m$ \r\n"
)
"""What `tmux pipe-pane` writes of a shell in which an agent runs."""


def test_a_piped_pane_gives_its_checkpoint() -> None:
    lines = plain_lines(TMUX)
    assert lines[0] == "worker@host:~/repo$ agent"
    assert lines[1] == "● Report"
    (found,) = parse("\n".join(lines))
    assert (found.state, found.result, found.files_changed, found.commands_run, found.next_action) == (
        "DONE",
        "Größe geprüft ✔",
        "src/a.py",
        "pytest -q",
        "Write the change log",
    )


@given(st.binary(max_size=300))
def test_any_bytes_give_a_line_for_each_line_feed_and_no_controls(data: bytes) -> None:
    lines = plain_lines(data)
    assert len(lines) == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    joined = "\n".join(lines)
    assert joined.splitlines() == joined.split("\n")[: len(joined.splitlines())]
    assert all(character == "\t" or character >= " " for line in lines for character in line)


@given(
    st.lists(
        st.sampled_from([b"\x1b", b"[", b"]", b"P", b"0", b";", b"m", b"\x07", b"\\", b"\n", b"a"]),
        max_size=40,
    )
)
def test_lines_do_not_depend_on_where_a_stream_is_cut(parts: list[bytes]) -> None:
    data = b"".join(parts)
    cuts = [n + 1 for n, byte in enumerate(data) if byte == 10]
    assert all(plain_lines(data[:cut]) + plain_lines(data[cut:]) == plain_lines(data) for cut in cuts)


@pytest.mark.parametrize("sign", ["é", "完", "🎉", "\x1b[31m", "\x1b[38;5;1m", "\x1b(B", "\x1b]0;t\x1b\\"])
def test_half_a_sign_at_the_end_is_left(sign: str) -> None:
    data = sign.encode()
    for cut in range(1, len(data)):
        assert unbroken(b"text\n" + data[:cut]) == b"text\n"
    assert unbroken(b"text" + data) == b"text" + data
