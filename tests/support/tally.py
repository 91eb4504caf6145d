"""Counts that the suite says at its end. They travel in the reports of the tests, so it does not matter which process
has run them."""

from collections import Counter

import pytest

_PREFIX = "tally:"


class Tally:
    """What one test has counted."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    def add(self, what: str, count: int) -> None:
        """So many more of it."""
        self._node.user_properties.append((f"{_PREFIX}{what}", count))


def summed(reporter: pytest.TerminalReporter) -> Counter[str]:
    """What all tests have counted, in the order in which it was first counted."""
    found: Counter[str] = Counter()
    for reports in reporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, count in report.user_properties:
                    if str(name).startswith(_PREFIX):
                        found[str(name).removeprefix(_PREFIX)] += int(count)
    return found
