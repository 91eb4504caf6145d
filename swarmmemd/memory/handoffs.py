"""A worker's own copies of its handoffs: the one that counts stands in `handoffs/` and with the mission.

docs/contracts.md, "Handoffs".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, hold, replace
from swarmmemd.handoff import sha256
from swarmmemd.journal import Journal
from swarmmemd.layout import Place
from swarmmemd.memory.obstacles import Obstacle, Obstructed
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.redact import Redactor
from swarmmemd.state import MissionState

LIMIT = 4 * 1024 * 1024


class LocalHandoffs:
    """Mirrors of the handoffs that count. With `redactor`, the local copies are redacted too."""

    def __init__(self, journal: Journal, redactor: Redactor | None) -> None:
        self._journal = journal
        self._redactor = redactor
        self._stands: dict[tuple[WorkerId, MissionId], str] = {}

    def show(self, profile: Directory, worker: WorkerId, mission: MissionState) -> None:
        """Makes both copies the version that counts. Raises `Obstructed` or OSError."""
        kept = mission.handoff
        if kept is None or self._stands.get((worker, mission.mission)) == kept.sha256:
            return
        version = self._journal.handoff(worker, kept.sha256)
        if version is None:
            # Without a journal the text comes back with the next look at the file itself.
            return
        text = version.text
        if self._redactor is not None:
            text = self._redactor.redact_file(text)
        self._put(profile, worker, layout.handoff(mission.mission), text, source=True)
        self._put(profile, worker, layout.mission_handoff(mission.mission), text, source=False)
        self._stands[worker, mission.mission] = kept.sha256

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
                if held.data.strip() and not self._journal.knows_handoff(worker, sha256(held.data)):
                    if source:
                        raise Obstructed(
                            Obstacle(place.shown, "a new handoff stands there", 0.5, expected=True)
                        )
                    return
            replace(folder, place.name, text, version)
