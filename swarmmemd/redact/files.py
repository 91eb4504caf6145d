"""Whole files without their secrets: a text, and a file of JSON records. Pure. docs/contracts.md, "Shared memory"."""

from collections.abc import Sequence

from swarmmemd.redact.redactor import Redactor, rules_in_json
from swarmmemd.redact.rules import Rule

_BEGINS = (b"{", b"[", b'"')
"""What JSON begins with that can hold a text."""


def safe_text(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a text: the same for the same text, so that a copy of it is known again."""
    return redactor.redact_file(data)


def safe_lines(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a file of records, one a line: each line stays JSON. Lines that are no records are one
    text as far as they stand together: a secret may stretch over them."""
    parts, between = list[bytes](), list[bytes]()
    rules = rules_in_json(data.decode("utf-8", "replace"))
    for line in data.splitlines(keepends=True):
        record = _safe_record(redactor, line, rules)
        if record is None:
            between.append(line)
            continue
        parts += [_safe_between(redactor, between), record]
        between.clear()
    return b"".join((*parts, _safe_between(redactor, between)))


def _safe_record(redactor: Redactor, line: bytes, rules: Sequence[Rule]) -> bytes | None:
    """A record is decoded before it is redacted: an escape could hide where a secret begins. None for no record."""
    if not line.strip().startswith(_BEGINS):
        return None
    try:
        found = redactor.redact_json(line.decode("utf-8", "replace"), rules)
    except (ValueError, RecursionError):
        return None
    return found.text.encode("utf-8", "replace") + b"\n" if found.counts else line


def _safe_between(redactor: Redactor, lines: Sequence[bytes]) -> bytes:
    data = b"".join(lines)
    found = redactor.redact(data.decode("utf-8", "replace")) if data.strip() else None
    return found.text.encode("utf-8", "replace") if found and found.counts else data
