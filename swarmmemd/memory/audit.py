"""The audit log: what was written is noted, and the committed lines are appended to the file.

docs/contracts.md, "Audit log".
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from swarmmemd.audit import Head, Written, digest, head_of, names, rotated
from swarmmemd.durable import Appending, Directory, Mark
from swarmmemd.journal import Journal
from swarmmemd.journal.audits import AuditState
from swarmmemd.layout import AUDIT
from swarmmemd.memory.appends import missing_lines

ROTATED_AT = 8 * 1024 * 1024
"""Bytes from which on the next line begins a new file."""
_LONGEST_LINE = 16 * 1024 * 1024


class Auditor:
    """Notes each file that was written; the journal commits it with "applied". `wall` is seconds."""

    def __init__(self, journal: Journal, wall: Callable[[], float]) -> None:
        self._journal = journal
        self._wall = wall

    def replaced(self, path: str, data: bytes, events: Iterable[str] = ()) -> None:
        """The whole file is `data` now."""
        self._note(path, len(data), data, None, events)

    def appended(self, path: str, data: bytes, size: int, events: Iterable[str]) -> None:
        """`data` was added to the file, which has `size` bytes now. Without data the events stood there."""
        self._note(path, size, data, len(data), events)

    def _note(self, path: str, size: int, data: bytes, appended: int | None, events: Iterable[str]) -> None:
        written = Written(
            at=int(self._wall() * 1000),
            path=path,
            size=size,
            sha256=digest(data),
            appended=appended,
            events=tuple(events),
        )
        self._journal.settle(written=[written])


class AuditLog:
    """The files `audit.jsonl` and, where that was full, `audit-<last number>.jsonl`."""

    def __init__(self, state: Directory, journal: Journal, rotated_at: int = ROTATED_AT) -> None:
        self._state = state
        self._journal = journal
        self._rotated_at = rotated_at
        self.trouble: str | None = None
        if journal.audit().head == Head():
            journal.adopt_audit(self._head())
        self.append()

    def append(self) -> None:
        """Appends what is committed and not in the file yet. A disk that refuses it is a `trouble`: the lines stay
        in the journal until it does not."""
        try:
            self._append(self._journal.audit())
        except OSError as error:
            self.trouble = f"{error.filename or AUDIT}: {error.strerror or error}"
        else:
            self.trouble = None

    def _append(self, known: AuditState) -> None:
        if not known.waiting:
            return
        lines = [line for _, line in known.waiting]
        self._rotate(known.mark, known.waiting[0][0] - 1)
        with Appending(self._state, AUDIT, permissions=0o600) as file:
            now = file.mark()
            same = (known.mark.device, known.mark.inode) == (now.device, now.inode)
            start = known.mark.size if same and now.size >= known.mark.size else 0
            tail = file.read(start)
            found = missing_lines(tail, lines, lambda record, others: None)
            if found.stands:
                file.write_again(start, tail)
            file.append(found.data)
            self._journal.audited(known.waiting[-1][0], file.mark())

    def _rotate(self, known: Mark, last: int) -> None:
        """Puts the full file aside, once all that is in it is known to be: so no line can be written twice."""
        if known.size < self._rotated_at:
            return
        with suppress(FileNotFoundError), Appending(self._state, AUDIT, create=False) as file:
            if file.mark() == known:
                self._state.rename(AUDIT, rotated(last))

    def _head(self) -> Head:
        """Where the file ends: a new journal goes on with its chain."""
        for name in reversed(names(self._state.names(), AUDIT)):
            with suppress(FileNotFoundError):
                found = head_of(_end(self._state, name))
                if found != Head():
                    return found
        return Head()


def _end(state: Directory, name: str) -> bytes:
    with Appending(state, name, create=False) as file:
        size = file.mark().size
        return file.read(max(size - _LONGEST_LINE, 0))
