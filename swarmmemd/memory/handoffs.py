"""A worker's own copies of its handoffs: the one that counts stands in `handoffs/` and with the mission.

docs/contracts.md, "Handoffs".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, hold
from swarmmemd.handoff import sha256
from swarmmemd.journal import Journal
from swarmmemd.layout import Place
from swarmmemd.memory.obstacles import Obstacle, Obstructed, put
from swarmmemd.model import WorkerId
from swarmmemd.redact import Redactor
from swarmmemd.state import MissionState

LIMIT = 4 * 1024 * 1024


class LocalHandoffs:
    """Mirrors of the handoffs that count. With `redactor`, the local copies are redacted too."""

    def __init__(self, journal: Journal, redactor: Redactor | None) -> None:
        self._journal = journal
        self._redactor = redactor
        self._stands: dict[tuple[WorkerId, Place], str] = {}

    def show(self, profile: Directory, worker: WorkerId, mission: MissionState, place: Place) -> None:
        """Makes the copy at this place the version that counts. Raises `Obstructed` or OSError."""
        kept = mission.handoff
        if kept is None or self._stands.get((worker, place)) == kept.sha256:
            return
        version = self._journal.handoff(worker, kept.sha256)
        if version is None:
            # Without a journal the text comes back with the next look at the file itself.
            return
        text = version.text
        if self._redactor is not None:
            text = self._redactor.redact(text.decode("utf-8", "replace")).text.encode()
        self._put(profile, worker, place, text, source=place == layout.handoff(mission.mission))
        self._stands[worker, place] = kept.sha256

    def _put(self, profile: Directory, worker: WorkerId, place: Place, text: bytes, source: bool) -> None:
        """Replaces a version that is known. A text that nobody has looked at yet is somebody's: where it is a
        source it becomes a version first; elsewhere it stays."""
        with profile.descend(place.folders, create=True) as folder:
            held = hold(folder, place.name, LIMIT)
            version = held.version if held else None
            if held is not None:
                held.close()
                if held.data == text:
                    return
                if held.data.strip() and self._journal.handoff(worker, sha256(held.data)) is None:
                    if source:
                        raise Obstructed(
                            Obstacle(place.shown, "a new handoff stands there", 0.5, expected=True)
                        )
                    return
            put(folder, place, text, version)
