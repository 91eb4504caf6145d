"""What the commands print: one place, so that no text of others reaches a terminal raw."""

import json
import re
from pathlib import Path

import pytest

import swarmmemd.cli
from swarmmemd.cli.output import say, say_json, say_line

HOSTILE = "memory/handoffs/\x1b]0;owned\x07\nbackup\u202e\u200f.md"


def test_a_name_is_one_line_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    say_line(f"== {HOSTILE}", err=True)
    told = capsys.readouterr().err
    assert told == "== memory/handoffs/\\x1b]0;owned\\x07\\x0abackup\\u202e\\u200f.md\n"


def test_a_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\n\tb\x9bc")
    assert capsys.readouterr().out == "a\n\tb\\x9bc\n"


@pytest.mark.parametrize("compact", [False, True])
def test_json_says_the_same(compact: bool, capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"path": HOSTILE, "é": "\x9b\x7f"}, compact=compact)
    told = capsys.readouterr().out
    assert told.rstrip("\n").isprintable()
    assert "é" in told
    assert json.loads(told) == {"path": HOSTILE, "é": "\x9b\x7f"}


def test_nothing_else_prints() -> None:
    folder = Path(swarmmemd.cli.__file__).parent
    prints = [
        path.name
        for path in sorted(folder.glob("*.py"))
        if re.search(r"click\.s?echo\(|(?<!_)\bprint\(|print_exc\(", path.read_text())
    ]
    assert prints == ["output.py", "status.py"], "status: the table of rich"
