"""A label as the form shows it is read without the pattern for all its decorations: what comes out is the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.checkpoint import lines

_LABELS = ("STATE", "FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION", "DECISIONS")
_REST = st.one_of(
    st.sampled_from(["", " ", ":", "=", ": x", " x", "**", " **x**", "| x |", "\u200b x", "```", " = x"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20),
)


@given(word=st.sampled_from(_LABELS), rest=_REST)
def test_the_short_way_gives_what_the_long_way_gives(word: str, rest: str) -> None:
    line = f"{word}:{rest}"
    short = lines.label(line)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines, "_AS_ASKED", re.compile(r"(?!)"))
        assert lines.label(line) == short
