"""Texts without their secrets, and which handoff a text is, whatever was redacted in it.

docs/contracts.md, "Handoffs" and "Shared memory".
"""

from collections.abc import Iterator
from contextlib import contextmanager

from swarmmemd.handoff import sha256
from swarmmemd.journal import Journal, KeptHandoff
from swarmmemd.model import WorkerId
from swarmmemd.redact import Redactor


class Versions:
    """The handoffs in the journal, seen through a redactor. `redactor` may be exchanged: then other forms of known
    texts stand in the files for a while."""

    def __init__(self, journal: Journal, redactor: Redactor) -> None:
        self._journal = journal
        self.redactor = redactor

    def redacted(self, text: str) -> str:
        """The text without its secrets."""
        return self.redactor.redact(text).text

    def safe(self, data: bytes) -> bytes:
        """The same of bytes: the same for the same text, so that a copy of it is known again."""
        return self.redactor.redact_file(data)

    def known(self, worker: WorkerId, data: bytes) -> KeptHandoff | None:
        """The version that the text is, whole or redacted, also in the way it was redacted before."""
        known = self._journal.handoff(worker, sha256(data))
        return known or self._journal.handoff(worker, sha256(self.safe(data)))

    @contextmanager
    def noted(self, worker: WorkerId, version: KeptHandoff, text: bytes) -> Iterator[None]:
        """While `text`, a form of the version, is put in place: it is known before it can stand anywhere, and the
        form that stands there now is known until it does not."""
        digest = sha256(text)
        if digest in (version.sha256, version.redacted):
            yield
            return
        self._journal.note_redacted(worker, version.sha256, digest)
        try:
            yield
        except BaseException:
            self._journal.note_redacted(worker, version.sha256, version.redacted)
            raise
