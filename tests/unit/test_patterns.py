"""Regular expressions of the user's that could run for ever. docs/redaction.md, "Your own"."""

import re

import pytest

from swarmmemd.config.patterns import can_run_for_ever


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a*)*b",
        r"(?:a+)*?b",
        r"(a|ab)*c",
        r"(a|a)+$",
        r"(?:\w+\s?)+:",
        r"x(?:y(?:[a-z]+-?){5,})+",
        r"(?=(a+)+b)a",
        r"(?:\d+){40}x",
        r"(?:a?){64}b",
        r"(?i:(.*)*)=",
        r"((?:ab|a.)+)+x",
    ],
)
def test_what_can_run_for_ever_is_known(pattern: str) -> None:
    assert can_run_for_ever(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"ACME-[0-9]{6}",
        r"\w+",
        r".+=.+",
        r"(?s).*",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        r"(?:[A-Z]++-)+\d",
        r"(?:(?>[a-z]+)-)+x",
        r"(?:foo|bar)+x",
        r"(?:a|b|[0-9])+x",
        r"(?:https?|ftp)://\S+",
        r"(a)?b(?(1)c+|d+)",
        r"[a-f0-9]{32,}(?![a-f0-9])",
        r"(?:[A-Z]{4}-){3}[A-Z]{4}",
    ],
)
def test_what_cannot_is_not_refused(pattern: str) -> None:
    assert not can_run_for_ever(pattern)


def test_what_is_no_pattern_is_an_error() -> None:
    with pytest.raises(re.error):
        can_run_for_ever("(")
