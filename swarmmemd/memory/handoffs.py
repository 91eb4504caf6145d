"""A worker's own copies of its handoffs: the one that counts stands in `handoffs/` and with the mission.

docs/contracts.md, "Handoffs".
"""

from collections.abc import Sequence

from swarmmemd import layout
from swarmmemd.durable import Directory, hold, sweep_temporaries
from swarmmemd.journal import Journal, KeptHandoff
from swarmmemd.layout import Place
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.obstacles import Obstacle, Obstructed, put
from swarmmemd.memory.versions import Versions
from swarmmemd.model import EventId, WorkerId
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import safe_text
from swarmmemd.state import MissionState

LIMIT = 4 * 1024 * 1024


class LocalHandoffs:
    """Mirrors of the handoffs that count. `redacted`: the local copies are redacted too."""

    def __init__(self, journal: Journal, versions: Versions, redacted: bool, auditor: Auditor) -> None:
        self._journal = journal
        self._auditor = auditor
        self._versions = versions
        self._redacted = redacted
        self._stands: dict[tuple[WorkerId, Place], str] = {}

    def redact(self, redacted: bool) -> None:
        """Says anew whether the local copies are redacted; those that stand are looked at again."""
        self._redacted = redacted
        self._stands.clear()

    def show(
        self,
        profile: Directory,
        worker: WorkerId,
        mission: MissionState,
        place: Place,
        events: Sequence[EventId] = (),
    ) -> None:
        """Makes the copy at this place the version that counts; `events` brought it. Raises `Obstructed` or OSError."""
        kept = mission.handoff
        if kept is None or self._stands.get((worker, place)) == kept.sha256:
            return
        version = self._journal.handoff(worker, kept.sha256)
        if version is None:
            # Without a journal the text comes back with the next look at the file itself.
            return
        text = local_text(version, self._versions.redactor if self._redacted else None)
        self._put(profile, worker, place, version, text, events)
        self._stands[worker, place] = kept.sha256

    def _put(
        self,
        profile: Directory,
        worker: WorkerId,
        place: Place,
        version: KeptHandoff,
        text: bytes,
        events: Sequence[EventId],
    ) -> None:
        """Replaces a version that is known. A text that nobody has looked at yet is somebody's: where it is a
        source it becomes a version first; elsewhere it stays."""
        with profile.descend(place.folders, create=True) as folder:
            held = hold(folder, place.name, LIMIT)
            if held is not None:
                held.close()
                if held.data == text:
                    return
                if held.data.strip() and self._versions.known(worker, held.data) is None:
                    if place.name == layout.HANDOFF:
                        return
                    raise Obstructed(Obstacle(place.shown, "a new handoff stands there", 0.5, expected=True))
            sweep_temporaries(folder)
            with self._versions.noted(worker, version, text):
                put(folder, place, text, held.version if held else None)
            self._auditor.replaced(f"{folder.shown}/{place.name}", text, events)


def local_text(version: KeptHandoff, redactor: Redactor | None) -> bytes:
    """What the worker's own copies of the version hold: with a redactor, the text without its secrets."""
    return version.text if redactor is None else safe_text(redactor, version.text)
