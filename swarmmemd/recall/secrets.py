"""Secrets that stand in the shared memory, whoever wrote them. docs/redaction.md, "Secrets that are there already"."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, read_file
from swarmmemd.redact import Redactor

_LIMIT = 256 * 1024 * 1024


class Place(msgspec.Struct, frozen=True):
    """Where a secret stands, from line 1, and of which kind it is. `trouble`: the file could not be looked at."""

    path: Path
    line: int
    kind: str
    trouble: str = ""


def secrets_in(root: Path, redactor: Redactor) -> Iterator[Place]:
    """Every place in the files below `root`. Links are not followed."""
    closed: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=closed.append):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                with Directory.root(path.parent) as here:
                    data = read_file(here, name, _LIMIT) or b""
            except OSError as error:
                yield Place(path, 1, "", error.strerror or str(error))
                continue
            if b"\0" not in data[:8192]:
                found = _in_records if name.endswith(".jsonl") else _in_text
                yield from (Place(path, line, kind) for line, kind in found(data, redactor))
    for refusal in closed:
        if not isinstance(refusal, FileNotFoundError):
            yield Place(Path(refusal.filename or root), 1, "", refusal.strerror or str(refusal))


def _in_text(data: bytes, redactor: Redactor) -> Iterator[tuple[int, str]]:
    text = data.decode("utf-8", "replace")
    for start, kind in redactor.places(text):
        yield text.count("\n", 0, start) + 1, kind


def _in_records(data: bytes, redactor: Redactor) -> Iterator[tuple[int, str]]:
    """A record is decoded first: an escape could hide where a secret begins."""
    for at, line in enumerate(data.splitlines(), 1):
        try:
            _, counts = redactor.redact_value(msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError):
            counts = redactor.redact(line.decode("utf-8", "replace")).counts
        yield from ((at, kind) for kind in counts)
