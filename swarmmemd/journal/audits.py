"""The audit log's side of the journal: lines are chained and committed together with what was applied, and stay
until they stand in the file. docs/contracts.md, "Audit log".
"""

import sqlite3

import msgspec

from swarmmemd.audit import Head, Written, link
from swarmmemd.durable import Mark


class AuditState(msgspec.Struct, frozen=True):
    """The head of the chain, the lines that may not be in the file yet, and how far the file is known."""

    head: Head
    waiting: tuple[tuple[int, bytes], ...]
    mark: Mark


class AuditRows:
    """What waits to be committed. All is written within the transaction of the journal that calls `write`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._new: list[Written] = []
        self._adopted: Head | None = None
        self._appended: tuple[int, Mark] | None = None

    @property
    def waiting(self) -> bool:
        """Whether there are lines that are not committed."""
        return bool(self._new)

    @property
    def unmarked(self) -> bool:
        """Whether lines stand in the file and are still kept: nothing is lost where that is not committed."""
        return self._appended is not None

    def note(self, written: list[Written]) -> None:
        """These files were written."""
        self._new += written

    def adopt(self, head: Head) -> None:
        """The chain goes on from here: the journal is new, and the file is not."""
        self._adopted = head

    def appended(self, last: int, mark: Mark) -> None:
        """The lines up to this number stand in the file. Committed with what comes next."""
        self._appended = (last, mark)

    def write(self) -> None:
        """Chains the new lines and forgets those that stand in the file."""
        if not (self._new or self._adopted or self._appended):
            return
        head, mark = _head_and_mark(self._db)
        head = self._adopted or head
        for written in self._new:
            line, head = link(head, written)
            self._db.execute("INSERT INTO audit VALUES (?, ?)", (head.number, line))
        if self._appended is not None:
            last, mark = self._appended
            self._db.execute("DELETE FROM audit WHERE number <= ?", (last,))
        row = (head.number, head.hash, mark.device, mark.inode, mark.size)
        self._db.execute("INSERT OR REPLACE INTO audit_head VALUES (1, ?, ?, ?, ?, ?)", row)

    def committed(self) -> None:
        """What was written is durable."""
        self._new, self._adopted, self._appended = [], None, None


def audit_state(connection: sqlite3.Connection) -> AuditState:
    """What the journal knows of the audit log."""
    lines = connection.execute("SELECT number, line FROM audit ORDER BY number").fetchall()
    head, mark = _head_and_mark(connection)
    return AuditState(head, tuple((number, bytes(line)) for number, line in lines), mark)


def _head_and_mark(connection: sqlite3.Connection) -> tuple[Head, Mark]:
    row = connection.execute("SELECT number, hash, device, inode, size FROM audit_head").fetchone()
    number, hash, device, inode, size = row or (0, "", 0, 0, 0)
    return Head(number, hash), Mark(device, inode, size)
