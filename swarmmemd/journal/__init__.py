"""The journal: every event with a sequence number, each worker's state, and what is not applied yet.

It is the record; the memory files are its readable form. The only caller of SQLite: `writer` is the daemon's
side, `follower` everybody else's, `schema` what both must agree on, `values` what goes in and out.
docs/architecture.md, "Journal".
"""

from swarmmemd.journal.follower import Filter, Follower
from swarmmemd.journal.values import (
    Change,
    FileMark,
    KeptHandoff,
    Placing,
    Recorded,
    Rendered,
    numbered,
)
from swarmmemd.journal.writer import Journal

__all__ = [
    "Change",
    "FileMark",
    "Filter",
    "Follower",
    "Journal",
    "KeptHandoff",
    "Placing",
    "Recorded",
    "Rendered",
    "numbered",
]
