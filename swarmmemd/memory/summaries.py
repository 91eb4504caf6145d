"""`SUMMARY.md`, kept true beside people and programs that write it too: compare-and-swap, and rescue.

A writer that had the file open while it was replaced writes into the version that is gone. So that version
stays open for a moment, and what comes into it is brought over. docs/architecture.md, "SUMMARY.md".
"""

from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

from swarmmemd import layout
from swarmmemd.durable import (
    Directory,
    Held,
    Moved,
    Version,
    hold,
    replace,
    stands,
    sweep_temporaries,
    versions_below,
)
from swarmmemd.fold import (
    FILES_SHOWN,
    blocker_lines,
    checkpoint_lines,
    decisions_of,
    files_of,
    next_action_of,
    status,
)
from swarmmemd.journal import Journal, Rendered
from swarmmemd.layout import Place
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.held import OfMissions
from swarmmemd.memory.obstacles import Obstacle, Obstructed, Stillness
from swarmmemd.model import Event, EventId, MissionId, WorkerId
from swarmmemd.render.summary import (
    BLOCKERS,
    CHECKPOINTS,
    DECISIONS,
    FILES,
    NEXT,
    Summary,
    is_whole,
    lines_of_section,
    merge,
    rescue,
)
from swarmmemd.seam import seam
from swarmmemd.state import MissionState

SUMMARY_LIMIT = 16 * 1024 * 1024
_MERGES = 5
_HEADLESS = 2.0
"""Seconds after which a `SUMMARY.md` without its H1 is no longer taken for one that is being written."""
_YOUNG = 0.05
"""Seconds that a version of somebody else's must have stood before it is merged."""
_PATIENCE = 0.5
"""Seconds after which one who writes without a pause is no longer waited for."""
_HELD_AT_ONCE = 128
"""Descriptors spent on replaced versions, at most."""
_HELD_FOR = 0.5
"""Seconds, or the settle time where that is longer, for which a replaced version stays open."""


class Summaries:
    """Keeps the `SUMMARY.md` of all workers' missions."""

    def __init__(
        self,
        journal: Journal,
        stillness: Stillness,
        settle: float,
        wall: Callable[[], float],
        auditor: Auditor,
    ) -> None:
        self._wall = wall
        self._auditor = auditor
        self._journal = journal
        self._stillness = stillness
        self.settle = settle
        self._versions: OfMissions[Version] = OfMissions()
        self._paths: OfMissions[str] = OfMissions()
        self._young_since: OfMissions[float] = OfMissions()
        self._unmerged: dict[tuple[WorkerId, MissionId], list[bytes]] = {}
        self._replaced: list[tuple[float, WorkerId, MissionId, Held]] = []

    def show(
        self,
        profile: Directory,
        worker: WorkerId,
        mission: MissionState,
        others: Sequence[bytes],
        now: float,
        events: Sequence[EventId] = (),
    ) -> None:
        """Makes the file show the mission. `others` are versions whose foreign text is brought over; `events` are
        those that make it another. The new version is durable, and its name once the folder was made sure of.

        Raises `Obstructed` or OSError.
        """
        place, key = layout.summary(mission.mission), (worker, mission.mission)
        # What was read once out of a replaced version is nowhere else: it is kept until it stands in the file.
        unmerged = self._unmerged.setdefault(key, [])
        unmerged += others
        with profile.descend(place.folders, create=True) as folder:
            if self._versions.get(*key) is None:
                sweep_temporaries(folder)
            for _ in range(_MERGES):
                if self._merged(folder, place, worker, mission, unmerged, now, events):
                    del self._unmerged[key]
                    return
        raise Obstructed(Obstacle(place.shown, "others keep writing it", 0.05, expected=True))

    def rescued(self, now: float) -> Iterator[tuple[WorkerId, MissionId, bytes]]:
        """What was written into replaced versions by writers that had them open."""
        held_on = []
        for until, worker, mission, held in self._replaced:
            data = held.reread()
            if data is not None:
                yield worker, mission, data
            if now < until:
                held_on.append((until, worker, mission, held))
            else:
                held.close()
        self._replaced = held_on

    def next_rescue(self) -> float | None:
        """When `rescued` should be asked again, monotonic; None if nothing is held."""
        return min((until for until, *_ in self._replaced), default=None)

    def replaced_by_others(self, profiles_root: Path, worker: WorkerId, mission: MissionId) -> bool:
        """Whether the file is another one than we left, or lacks what was rescued: a stat, for the sweep."""
        if self._unmerged and self._unmerged.get((worker, mission)):
            return True
        known = self._versions.get(worker, mission)
        if known is not None and stands(self._path(profiles_root, worker, mission), known):
            return False
        profile, place = layout.profile(profiles_root, worker), layout.summary(mission)
        found = versions_below(profile, place.folders, (place.name,))
        return found not in (None, (None,), (known,))

    def _path(self, profiles_root: Path, worker: WorkerId, mission: MissionId) -> str:
        """Where the file is. It is asked of every worker all the time, so it is made once."""
        path = self._paths.get(worker, mission)
        if path is None:
            path = str(layout.summary(mission).below(layout.profile(profiles_root, worker)))
            self._paths.put(worker, mission, path)
        return path

    def let_go(self, worker: WorkerId, kept: Container[MissionId]) -> None:
        """The worker's other missions rest."""
        self._versions.keep(worker, kept)
        self._paths.keep(worker, kept)
        self._young_since.keep(worker, kept)

    def forget(self, worker: WorkerId) -> None:
        """The worker is retired."""
        self._versions.forget(worker)
        self._paths.forget(worker)
        self._young_since.forget(worker)

    def close(self) -> None:
        """Lets go of what is held open."""
        for *_, held in self._replaced:
            held.close()
        self._replaced = []

    def _merged(
        self,
        folder: Directory,
        place: Place,
        worker: WorkerId,
        mission: MissionState,
        unmerged: list[bytes],
        now: float,
        events: Sequence[EventId],
    ) -> bool:
        """Merges once. Says whether it stands; versions that were hidden meanwhile are added to `unmerged`."""
        held = hold(folder, place.name, SUMMARY_LIMIT)
        stays_open = False
        try:
            text = _text(held.data) if held else ""
            if held is not None:
                self._wait_for_writer(worker, mission.mission, place, held, text, now)
            new = self._rendered(worker, mission, text, unmerged)
            if held is not None and new == text:
                self._versions.put(worker, mission.mission, held.version)
                return True
            hidden = self._replaced_by(folder, place, worker, mission.mission, new, held, events)
            if hidden is None:
                return False
            if held is not None:
                if (changed := held.reread()) is not None:
                    hidden.append(changed)
                self._keep_open(held, worker, mission.mission, now)
                stays_open = True
        finally:
            if held is not None and not stays_open:
                held.close()
        unmerged += hidden
        return not hidden

    def _keep_open(self, held: Held, worker: WorkerId, mission: MissionId, now: float) -> None:
        """For a moment: a writer that had it open may still write into it."""
        self._replaced.append((now + max(self.settle, _HELD_FOR), worker, mission, held))
        while len(self._replaced) > _HELD_AT_ONCE:
            self._replaced.pop(0)[3].close()

    def _replaced_by(
        self,
        folder: Directory,
        place: Place,
        worker: WorkerId,
        mission: MissionId,
        new: str,
        held: Held | None,
        events: Sequence[EventId],
    ) -> list[bytes] | None:
        """Puts the new text in the place of the held version. Gives what somebody had put there meanwhile; None
        where nothing was replaced, since somebody was quicker."""
        expected = held.version if held else None
        try:
            version = replace(folder, place.name, _bytes(new), expected, sure=False)
            self._versions.put(worker, mission, version)
            self._auditor.replaced(f"{folder.shown}/{place.name}", _bytes(new), events)
        except Moved as moved:
            return None if moved.data is None else [moved.data]
        seam.call("turn", f"applied {place.name}")
        return []

    def _wait_for_writer(
        self, worker: WorkerId, mission: MissionId, place: Place, held: Held, text: str, now: float
    ) -> None:
        """A version of somebody else's that is just being written is not taken for what he wanted to write."""
        if not is_whole(text):
            self._stillness.wait(worker, place.shown, len(held.data), now, _HEADLESS)
        age = self._wall() - held.version.mtime_ns / 1e9
        foreign = held.version != self._versions.get(worker, mission)
        if not foreign or not 0 <= age < _YOUNG:
            self._young_since.drop(worker, mission)
            return
        since = self._young_since.get(worker, mission)
        if since is None:
            since = now
            self._young_since.put(worker, mission, since)
        if now - since < _PATIENCE:
            raise Obstructed(Obstacle(place.shown, "another writer is at it", _YOUNG, expected=True))

    def _rendered(self, worker: WorkerId, mission: MissionState, text: str, others: Sequence[bytes]) -> str:
        def ours(section: str, line: str) -> bool:
            return self._journal.is_ours(worker, mission.mission, section, line)

        for other in others:
            text = rescue(text, _text(other), ours) if text else _text(other)
        shown = len(mission.files)
        files = (
            self._journal.count_rendered(worker, mission.mission, FILES) if shown >= FILES_SHOWN else shown
        )
        return merge(text, summary_of(mission, files - shown), ours)


def summary_of(mission: MissionState, files_more: int = 0) -> Summary:
    """What `SUMMARY.md` shows of the mission."""
    return Summary(
        mission=mission.mission,
        title=mission.title,
        status=status(mission),
        assignment=mission.assignment,
        updated=mission.updated,
        objective=mission.objective,
        decisions=mission.decisions,
        files=mission.files,
        files_more=max(files_more, 0),
        checkpoints=mission.checkpoints,
        checkpoints_more=mission.checkpoint_count - len(mission.checkpoints),
        blockers=mission.blockers,
        next_action=mission.next_action,
    )


def rendered_by(event: Event) -> tuple[Rendered, ...]:
    """The lines of `SUMMARY.md` that the event makes ours: whatever stands there in these words, we wrote."""
    if event.mission is None:
        return ()
    next_action = next_action_of(event)
    said = (
        (DECISIONS, decisions_of(event)),
        (FILES, files_of(event)),
        (CHECKPOINTS, checkpoint_lines(event)),
        (BLOCKERS, blocker_lines(event)),
        (NEXT, (next_action,) if next_action else ()),
    )
    return tuple(
        [
            Rendered(event.mission, section, line)
            for section, texts in said
            if texts
            for line in lines_of_section(section, texts)
        ]
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
