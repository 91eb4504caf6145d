"""Whole files without their secrets: a text, and a file of JSON records. Pure. docs/contracts.md, "Shared memory"."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from swarmmemd.redact.redactor import Redactor, rules_in_json
from swarmmemd.redact.rules import Rule

PORTION = 512 * 1024
"""Bytes of a file of records that are looked through at once, and what is left of the line."""

_RECORD = re.compile(
    rb"""(?:\A|(?<=[\r\n])) [^\S\r\n]* (?: \{[^\S\r\n]*["}] | \[[^\S\r\n]*[\[\]{"0-9tfnNI-] | " )
         [^\r\n]* (?:\r?\n|\r)?""",
    re.VERBOSE,
)
"""A line that begins as JSON does that can hold a text."""

_TEXTS = {dict, list, str}
_LINES = msgspec.json.Decoder()


def safe_text(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a text: the same for the same text, so that a copy of it is known again."""
    return redactor.redact_file(data)


def safe_lines(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a file of records, one a line: each line stays JSON. Lines that are no records are one
    text as far as they stand together: a secret may stretch over them."""
    return b"".join(safe_portions(redactor, data))


def safe_portions(redactor: Redactor, data: bytes) -> Iterator[bytes]:
    """The same, a portion of the file at a time."""
    between = _Between(redactor)
    for portion in _portions(data):
        text = portion.decode("utf-8", "replace")
        rules = rules_in_json(text)
        if not redactor.may_hold(text, rules) and _are_records(portion):
            yield between.taken() + portion
        else:
            yield b"".join(_safe_parts(redactor, portion, rules, between))
    yield between.taken()


def _portions(data: bytes) -> Iterator[bytes]:
    """Whole lines, some more than `PORTION` bytes of them."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at + PORTION) + 1 or len(data)
        yield data[at:end]
        at = end


class _Between:
    """What stands behind the last record, and the rules that may find something in it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._parts: list[bytes] = []
        self._rules: dict[Rule, None] = {}

    def add(self, lines: bytes, rules: Sequence[Rule]) -> None:
        """More of it."""
        if lines:
            self._parts.append(lines)
            self._rules.update(dict.fromkeys(rules))

    def taken(self) -> bytes:
        """All of it without its secrets; then there is none."""
        data, rules = b"".join(self._parts), tuple(self._rules)
        self._parts.clear()
        self._rules.clear()
        found = self._redactor.redact_by(rules, data.decode("utf-8", "replace")) if data.strip() else None
        return found.text.encode("utf-8", "replace") if found and found.counts else data


def _safe_parts(
    redactor: Redactor, portion: bytes, rules: Sequence[Rule], between: _Between
) -> Iterator[bytes]:
    """Record by record. What stands behind the last one stays in `between`: it may go on."""
    at = 0
    for line in _RECORD.finditer(portion):
        record = _safe_record(redactor, line[0], rules)
        if record is not None:
            between.add(portion[at : line.start()], rules)
            yield between.taken() + record
            at = line.end()
    between.add(portion[at:], rules)


def _safe_record(redactor: Redactor, line: bytes, rules: Sequence[Rule]) -> bytes | None:
    """A record is decoded before it is redacted: an escape could hide where a secret begins. None for no record."""
    text = line.decode("utf-8", "replace")
    if not redactor.may_hold(text, rules) and _are_records(line):
        return line
    try:
        found = redactor.redact_json(text, rules)
    except (ValueError, RecursionError):
        return None
    return found.text.encode("utf-8", "replace") + b"\n" if found.counts else line


def _are_records(lines: bytes) -> bool:
    """Whether it is certain that each line, but for empty ones, is a record."""
    if b"\r" in lines or not _RECORD.match(lines):
        return False
    try:
        return {type(one) for one in _LINES.decode_lines(lines)} <= _TEXTS
    except (msgspec.DecodeError, RecursionError):
        return False
