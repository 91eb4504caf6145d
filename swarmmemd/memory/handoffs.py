"""A worker's own copies of its handoffs: the one that counts stands in `handoffs/` and with the mission.

docs/contracts.md, "Handoffs".
"""

from collections.abc import Sequence

from swarmmemd import layout
from swarmmemd.durable import Directory, hold, replace, sweep_temporaries
from swarmmemd.handoff import sha256
from swarmmemd.journal import Journal, KeptHandoff
from swarmmemd.layout import Place
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.obstacles import Obstacle, Obstructed
from swarmmemd.model import EventId, MissionId, WorkerId
from swarmmemd.redact import Redactor
from swarmmemd.state import MissionState

LIMIT = 4 * 1024 * 1024


class LocalHandoffs:
    """Mirrors of the handoffs that count. With `redactor`, the local copies are redacted too."""

    def __init__(self, journal: Journal, redactor: Redactor | None, auditor: Auditor) -> None:
        self._journal = journal
        self._auditor = auditor
        self._redactor = redactor
        self._stands: dict[tuple[WorkerId, MissionId], str] = {}

    def show(
        self,
        profile: Directory,
        worker: WorkerId,
        mission: MissionState,
        events: Sequence[EventId] = (),
    ) -> None:
        """Makes both copies the version that counts; `events` brought it. Raises `Obstructed` or OSError."""
        kept = mission.handoff
        if kept is None or self._stands.get((worker, mission.mission)) == kept.sha256:
            return
        version = self._journal.handoff(worker, kept.sha256)
        if version is None:
            # Without a journal the text comes back with the next look at the file itself.
            return
        text = local_text(version, self._redactor)
        place = layout.mission_handoff(mission.mission)
        self._put(profile, worker, layout.handoff(mission.mission), text, events, source=True)
        self._put(profile, worker, place, text, events, source=False)
        self._stands[worker, mission.mission] = kept.sha256

    def _put(
        self,
        profile: Directory,
        worker: WorkerId,
        place: Place,
        text: bytes,
        events: Sequence[EventId],
        source: bool,
    ) -> None:
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
            sweep_temporaries(folder)
            replace(folder, place.name, text, version)
            self._auditor.replaced(f"{folder.shown}/{place.name}", text, events)


def local_text(version: KeptHandoff, redactor: Redactor | None) -> bytes:
    """What the worker's own copies of the version hold: with a redactor, the text without its secrets."""
    if redactor is None:
        return version.text
    return redactor.redact(version.text.decode("utf-8", "replace")).text.encode()
