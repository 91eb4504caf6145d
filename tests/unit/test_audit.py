"""The chain of the audit log: every line that is changed, cut, doubled or exchanged is named."""

import json
from collections.abc import Callable

import pytest

from swarmmemd.audit import Damage, Head, Written, damages, digest, head_of, link, names, rotated

_NAME = "audit.jsonl"


def chain(count: int, head: Head | None = None) -> tuple[list[bytes], Head]:
    lines, head = [], head or Head()
    for number in range(count):
        written = Written(at=number, path=f"/m/{number}", size=number, sha256="00", events=("ev_1",))
        line, head = link(head, written)
        lines.append(line)
    return lines, head


def found(
    lines: list[bytes], head: Head, waiting: tuple[bytes, ...] = (), newest: Head | None = None
) -> list[Damage]:
    return damages([(_NAME, b"".join(lines))], head, waiting, lambda: newest or head)


def test_a_line_says_what_was_written_and_what_was_before() -> None:
    first, head = link(Head(), Written(at=0, path="/m/a", size=7, sha256="ab", appended=3, events=("ev_1",)))
    assert json.loads(first) == {
        "n": 1,
        "at": "1970-01-01T00:00:00.000Z",
        "path": "/m/a",
        "bytes": 7,
        "sha256": "ab",
        "appended": 3,
        "events": ["ev_1"],
        "before": "",
    }
    second, _ = link(head, Written(at=0, path="/m/b", size=1, sha256="cd"))
    assert json.loads(second)["before"] == digest(first)
    assert "appended" not in json.loads(second)


def test_a_whole_log_has_no_damage() -> None:
    lines, head = chain(9)
    assert found(lines, head) == []
    assert found([], Head()) == []
    files = [("audit-000000000004.jsonl", b"".join(lines[:4])), (_NAME, b"".join(lines[4:]))]
    assert damages(files, head, (), lambda: head) == []


def test_lines_that_wait_need_not_be_in_the_file_and_may() -> None:
    lines, head = chain(9)
    waiting = tuple(lines[6:])
    for there in (6, 7, 9):
        assert found(lines[:there], head, waiting) == []
    assert found(lines[:5], head, waiting) == [Damage(_NAME, 5, "lines 6 to 6 were cut off")]


def test_a_log_that_was_written_on_since_is_whole() -> None:
    lines, head = chain(4)
    more, newest = chain(3, head)
    assert found(lines + more, head, newest=newest) == []


def test_lines_that_fit_the_chain_and_that_the_journal_does_not_know_are_found() -> None:
    lines, head = chain(4)
    forged, _ = chain(2, head)
    assert found(lines + forged, head) == [
        Damage(_NAME, 6, "the journal knows no line 6: its newest is 4"),
    ]
    assert found(lines[:3] + forged, head, tuple(lines[3:]))


_CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "edited": lambda lines: [*lines[:3], lines[3].replace(b"/m/3", b"/m/9"), *lines[4:]],
    "the newest edited": lambda lines: [*lines[:-1], lines[-1].replace(b"/m/8", b"/m/9")],
    "the first edited": lambda lines: [lines[0].replace(b"/m/0", b"/m/9"), *lines[1:]],
    "exchanged": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "one removed": lambda lines: [*lines[:3], *lines[4:]],
    "the first removed": lambda lines: lines[1:],
    "cut": lambda lines: lines[:-2],
    "cut in the middle of a line": lambda lines: [*lines[:-1], lines[-1][:20]],
    "its last line break cut": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "emptied": lambda lines: [],
    "doubled": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "one foreign": lambda lines: [*lines[:3], b"hello\n", *lines[3:]],
    "filled with NULs": lambda lines: [*lines[:3], bytes(len(lines[3]) - 1) + b"\n", *lines[4:]],
}


@pytest.mark.parametrize("change", _CHANGES)
def test_each_change_is_found(change: str) -> None:
    lines, head = chain(9)
    assert found(_CHANGES[change](lines), head)


def test_a_file_of_an_earlier_time_that_is_gone_is_found() -> None:
    lines, head = chain(9)
    assert [one.what for one in found(lines[4:], head)] == ["lines 1 to 4 are missing before this one"]


def test_a_new_journal_goes_on_where_the_file_ends() -> None:
    lines, head = chain(5)
    assert head_of(b"".join(lines)) == head
    assert head_of(b"".join(lines) + b'{"n":6') == head
    assert head_of(b"") == Head()
    assert head_of(b"no line of it\n") == Head()


def test_the_files_are_read_in_the_order_of_their_lines() -> None:
    there = ["journal.db", rotated(200), rotated(31), "audit-x.jsonl", "audit.jsonl"]
    assert names(there, _NAME) == ["audit-000000000031.jsonl", "audit-000000000200.jsonl", _NAME]
