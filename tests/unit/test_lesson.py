"""A lesson among what others wrote: only its own line is new, and it comes once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.render.lesson import with_lesson

_EVENT = "ev_1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "## Lessons learned\n\n- Dry first (ev_1)\n"),
        ("# M", "# M\n\n## Lessons learned\n\n- Dry first (ev_1)\n"),
        ("# M\n\n## Lessons learned\n", "# M\n\n## Lessons learned\n\n- Dry first (ev_1)\n"),
        ("## Lessons learned\n\n- None yet.\n\n## B\n", "## Lessons learned\n\n- Dry first (ev_1)\n\n## B\n"),
        ("## Lessons learned\n\n- ...\n", "## Lessons learned\n\n- Dry first (ev_1)\n"),
        (
            "## Lessons learned\r\n\r\n- a\r\n\r\n## B\r\n",
            "## Lessons learned\r\n\r\n- a\r\n- Dry first (ev_1)\r\n\r\n## B\r\n",
        ),
        (
            "```\n## Lessons learned\n# x\n```\n",
            "```\n## Lessons learned\n# x\n```\n\n## Lessons learned\n\n- Dry first (ev_1)\n",
        ),
        (
            "## Lessons learned\n\n```sh\n# a comment\n```\n\n\n\n## B\n",
            "## Lessons learned\n\n```sh\n# a comment\n```\n- Dry first (ev_1)\n\n\n\n## B\n",
        ),
        ("## LESSONS LEARNED\n\n- a\n", "## LESSONS LEARNED\n\n- a\n- Dry first (ev_1)\n"),
    ],
)
def test_where_it_stands(before: str, after: str) -> None:
    assert with_lesson(before, "Dry first", _EVENT) == after


@given(st.text(st.sampled_from("#ab \n-*Lesonlard().:"), max_size=80), st.text(max_size=30))
def test_twice_is_once_and_every_line_stays(text: str, lesson: str) -> None:
    once = with_lesson(text, lesson, _EVENT)
    assert with_lesson(once, "other", _EVENT) == once
    kept = [line for line in text.split("\n") if line.strip() and "one yet" not in line]
    lines = once.split("\n")
    assert [line for line in lines if line in kept][: len(kept)] == kept or set(kept) <= set(lines)
