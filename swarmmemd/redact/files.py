"""Whole files without their secrets: a text, and a file of JSON records. Pure. docs/contracts.md, "Shared memory"."""

from swarmmemd.redact.redactor import Redactor


def safe_text(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a text: the same for the same text, so that a copy of it is known again."""
    return redactor.redact_file(data)


def safe_lines(redactor: Redactor, data: bytes) -> bytes:
    """The redacted form of a file of records, one a line: each line stays JSON."""
    return b"".join(_safe_line(redactor, line) for line in data.splitlines(keepends=True))


def _safe_line(redactor: Redactor, line: bytes) -> bytes:
    """A record is decoded before it is redacted: an escape could hide where a secret begins."""
    if not line.strip():
        return line
    try:
        found = redactor.redact_json(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return safe_text(redactor, line)
    return found.text.encode("utf-8", "replace") + b"\n" if found.counts else line
