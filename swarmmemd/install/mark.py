"""The mark in an installed file: that the installer wrote it, and a digest that tells whether somebody edited it.

docs/operations.md, "Who may edit the definition".
"""

import hashlib
import re
from enum import Enum

FORMAT = 1
_MARK = re.compile(r"swarmmemd service install, format (\d+), sha256 ([0-9a-f]{64})")


class Origin(Enum):
    """Whose text a definition is."""

    OURS = "ours"
    EDITED = "edited by hand"
    FOREIGN = "not made by swarmmemd service install"


def mark_of(body: str) -> str:
    """The mark for a file whose other lines are `body`; it goes into a comment on a line of its own."""
    return f"swarmmemd service install, format {FORMAT}, sha256 {hashlib.sha256(body.encode()).hexdigest()}"


def origin_of(text: str) -> Origin:
    """Whose text it is: the digest is that of all lines but the one with the mark."""
    lines = text.splitlines(keepends=True)
    marked = [(number, found) for number, line in enumerate(lines) if (found := _MARK.search(line))]
    if not marked:
        return Origin.FOREIGN
    number, found = marked[0]
    body = "".join(lines[:number] + lines[number + 1 :])
    return Origin.OURS if mark_of(body).endswith(found[2]) else Origin.EDITED
