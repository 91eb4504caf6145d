"""A worker's own copies of its handoffs: the one that counts stands in `handoffs/` and with the mission.

docs/contracts.md, "Handoffs".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, hold
from swarmmemd.journal import Journal, KeptHandoff
from swarmmemd.layout import Place
from swarmmemd.memory.obstacles import Obstacle, Obstructed, put
from swarmmemd.memory.versions import Versions
from swarmmemd.model import WorkerId
from swarmmemd.state import MissionState

LIMIT = 4 * 1024 * 1024


class LocalHandoffs:
    """Mirrors of the handoffs that count. `redacted`: the local copies are redacted too."""

    def __init__(self, journal: Journal, versions: Versions, redacted: bool) -> None:
        self._journal = journal
        self._versions = versions
        self._redacted = redacted
        self._stands: dict[tuple[WorkerId, Place], str] = {}

    def redact(self, redacted: bool) -> None:
        """Says anew whether the local copies are redacted; those that stand are looked at again."""
        self._redacted = redacted
        self._stands.clear()

    def show(self, profile: Directory, worker: WorkerId, mission: MissionState, place: Place) -> None:
        """Makes the copy at this place the version that counts. Raises `Obstructed` or OSError."""
        kept = mission.handoff
        if kept is None or self._stands.get((worker, place)) == kept.sha256:
            return
        version = self._journal.handoff(worker, kept.sha256)
        if version is None:
            # Without a journal the text comes back with the next look at the file itself.
            return
        text = self._versions.safe(version.text) if self._redacted else version.text
        self._put(profile, worker, place, version, text)
        self._stands[worker, place] = kept.sha256

    def _put(
        self, profile: Directory, worker: WorkerId, place: Place, version: KeptHandoff, text: bytes
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
            with self._versions.noted(worker, version, text):
                put(folder, place, text, held.version if held else None)
