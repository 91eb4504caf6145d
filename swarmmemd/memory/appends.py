"""What is missing at the end of a file that only grows: idempotent append. Pure.

A crash can leave any prefix of what was to be appended, and other programs append to the same files. So
what follows the last known position is read, and only what is not there is added.
docs/architecture.md, "Idempotent append".
"""

from collections.abc import Callable, Sequence

import msgspec


class Missing(msgspec.Struct, frozen=True):
    """What to append. `torn` bytes at the end are another writer's unfinished line: wait until it has stood
    still, then end it with the line break that `data` begins with. `stands`: something of ours is there already, and
    nobody knows whether the disk has it."""

    data: bytes
    torn: int = 0
    stands: bool = False


Twin = Callable[[bytes, Sequence[bytes]], bytes | None]
"""(record, lines that are not ours) -> the line that says what the record says, or None."""


def missing_lines(tail: bytes, records: Sequence[bytes], twin: Twin) -> Missing:
    """What to append to a file of lines so that each of `records` (with line breaks) stands there once.

    `tail` is what follows the last known position, which is at the beginning of a line.
    """
    *whole, torn = tail.split(b"\n")
    ours = {record[:-1] for record in records}
    there = set(whole) & ours
    foreign = [line for line in whole if line and line not in ours]
    absent: list[bytes] = []
    for record in records:
        if record[:-1] in there:
            continue
        said = twin(record, foreign)
        if said is None:
            absent.append(record)
        elif said in foreign:
            foreign.remove(said)  # it can also stand before the tail; then it is not among these
    return _finish(torn, absent, bool(there))


def missing_entries(tail: bytes, records: Sequence[bytes], header: bytes, start_of_file: bool) -> Missing:
    """What to append to an episode file so that each entry stands there once, a blank line between two.

    `tail` is what follows the last known position; where that is the beginning, a new file gets `header`.
    """
    absent, at = [], 0
    for record in records:
        found = _entry_at(tail, record, at)
        if found < 0:
            absent.append(record)
        else:
            at = found + len(record)
    whole = (header if start_of_file else b"\n") + b"\n".join(absent)
    if absent and len(absent) == len(records) and whole.startswith(tail):
        return Missing(whole[len(tail) :], stands=bool(tail))
    stands = len(absent) < len(records)
    if not absent:
        return Missing(b"", stands=stands)
    begun = _begun(tail, absent[0])
    if begun:
        rest = (absent[0] + b"".join(b"\n" + entry for entry in absent[1:]))[begun:]
        return Missing(rest, stands=True)
    torn = len(tail) - (tail.rfind(b"\n") + 1)
    data = b"".join(b"\n" + entry for entry in absent)
    apart = b"\n" + data if torn else data.removeprefix(b"\n") if tail.endswith(b"\n\n") else data
    return Missing(apart, torn, stands)


def _entry_at(tail: bytes, record: bytes, start: int) -> int:
    """Where the entry begins a line at or after `start`; -1 for nowhere."""
    at = tail.find(record, start)
    while at > 0 and tail[at - 1 : at] != b"\n":
        at = tail.find(record, at + 1)
    return at


def _begun(tail: bytes, entry: bytes) -> int:
    """How much of `entry` stands at the end of `tail` already, from a line's beginning on."""
    at = len(tail)
    while (at := tail.rfind(b"\n", 0, at)) >= -1:
        rest = tail[at + 1 :]
        if len(rest) >= len(entry):
            return 0
        if rest and entry.startswith(rest):
            return len(rest)
        if at < 0:
            return 0
    return 0


def _finish(torn: bytes, absent: Sequence[bytes], stands: bool) -> Missing:
    data = b"".join(absent)
    if not data:
        return Missing(b"", stands=stands)
    if torn and absent[0].startswith(torn):
        return Missing(data[len(torn) :], stands=True)
    return Missing(b"\n" + data if torn else data, len(torn), stands)
