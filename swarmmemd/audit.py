"""The audit log as a chain of lines: each holds the hash of the one before it, so none can be changed, cut out or
exchanged unseen. Pure. docs/contracts.md, "Audit log".
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from swarmmemd.model import iso

_ROTATED = re.compile(r"audit-(\d{12})\.jsonl")
_encoder = msgspec.json.Encoder()


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was written. `at` is ms. `size` and `sha256` are the whole file's; where the file grows,
    `appended` is the number of bytes that were added and `sha256` that of these bytes alone."""

    at: int
    path: str
    size: int
    sha256: str
    appended: int | None = None
    events: tuple[str, ...] = ()


class Head(msgspec.Struct, frozen=True):
    """The newest line of a chain: its number, from 1, and its hash. 0 for a chain without a line."""

    number: int = 0
    hash: str = ""


class Damage(msgspec.Struct, frozen=True):
    """What is wrong with the chain: in which file, at which line (from 1)."""

    name: str
    line: int
    what: str


def digest(data: bytes) -> str:
    """The SHA-256 of a file, of a part of it, or of a line with its line break."""
    return hashlib.sha256(data).hexdigest()


def link(head: Head, written: Written) -> tuple[bytes, Head]:
    """The line that comes after `head`, with its line break, and the head that it makes."""
    line: dict[str, Any] = {
        "n": head.number + 1,
        "at": iso(written.at),
        "path": written.path.encode("utf-8", "replace").decode(),
        "bytes": written.size,
        "sha256": written.sha256,
    }
    if written.appended is not None:
        line["appended"] = written.appended
    line |= {"events": written.events, "before": head.hash}
    data = _encoder.encode(line) + b"\n"
    return data, Head(head.number + 1, digest(data))


def head_of(data: bytes) -> Head:
    """The head that the last whole line of a file makes; none where that is no line of an audit log."""
    line = data[: data.rfind(b"\n") + 1].rsplit(b"\n", 2)[-2:-1]
    number = _number_and_before(line[0])[0] if line else None
    return Head(number, digest(line[0] + b"\n")) if line and number is not None else Head()


def rotated(last: int) -> str:
    """The name of a file that was full; `last` is the number of its last line."""
    return f"audit-{last:012d}.jsonl"


def names(found: Iterable[str], current: str) -> list[str]:
    """The files of the log among these names, in the order of their lines; the one that grows is the last."""
    return [*sorted(name for name in found if _ROTATED.fullmatch(name)), current]


def damages(
    files: Iterable[tuple[str, bytes]],
    head: Head,
    waiting: Sequence[bytes],
    newest: Callable[[], Head],
) -> list[Damage]:
    """What is wrong with the log. `head` and `waiting`, lines that need not be in it yet, are what the journal said
    before the files were read; `newest`, its head after that: the log is written on while it is read."""
    chain = _Chain(head, len(waiting))
    found: list[Damage] = []
    name, at = "audit.jsonl", 0
    for name, data in files:
        at = 0
        for at, line in enumerate(data.splitlines(keepends=True), 1):
            found += (Damage(name, where or at, what) for where, what in chain.follow(line, at))
    found += (Damage(name, max(at, 1), what) for what in chain.end(waiting, newest()))
    return found


class _Chain:
    """Goes along the lines, and says what does not fit."""

    def __init__(self, wanted: Head, waiting: int) -> None:
        self._wanted = wanted
        self._settled = wanted.number - waiting
        self._head = Head()

    def follow(self, line: bytes, at: int) -> Iterator[tuple[int, str]]:
        number, before = _number_and_before(line)
        if number is None:
            yield at, "this is no line of the audit log, or a broken one"
            return
        expected = self._head.number + 1
        if number > expected:
            lines = (
                f"line {expected} is" if number == expected + 1 else f"lines {expected} to {number - 1} are"
            )
            yield at, f"{lines} missing before this one"
        elif number < expected:
            yield at, f"line {number} stands after line {expected - 1}"
        elif before != self._head.hash:
            # Which of the two was changed can be told for the newest line only.
            yield (
                max(at - 1, 1),
                f"line {number - 1} is not the one that was written, or line {number} is not",
            )
        self._head = Head(number, digest(line))
        if number == self._wanted.number and self._head.hash != self._wanted.hash:
            yield at, f"line {number} is not the one that was written"

    def end(self, waiting: Sequence[bytes], newest: Head) -> Iterator[str]:
        if self._head.number < self._settled:
            yield f"lines {self._head.number + 1} to {self._settled} were cut off"
            return
        if self._head.number > newest.number:
            yield f"the journal knows no line {self._head.number}: its newest is {newest.number}"
        for line in waiting:
            number, before = _number_and_before(line)
            if number == self._head.number + 1 and before != self._head.hash:
                yield f"line {self._head.number} is not the one that was written"


def _number_and_before(line: bytes) -> tuple[int | None, str]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None, ""
    if not isinstance(found, dict) or not line.endswith((b"}\n", b"}")):
        return None, ""
    number, before = found.get("n"), found.get("before")
    known = isinstance(number, int) and not isinstance(number, bool) and isinstance(before, str)
    return (number, before) if known else (None, "")  # type: ignore[return-value]
