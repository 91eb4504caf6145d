"""One worker's memory files, brought up to date with the journal. Repeating it changes nothing.

Order within one worker: episodes, then `SUMMARY.md`, then `events.jsonl`, so that who sees the line sees the
rest. Each file is written once a turn. What stands in the way of one file stops only the events that belong
into it. docs/architecture.md, "Apply".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from swarmmemd import layout
from swarmmemd.durable import (
    Appending,
    Directory,
    Held,
    Mark,
    Moved,
    Refused,
    Version,
    hold,
    replace,
    version_at,
)
from swarmmemd.fold import blocker_lines, checkpoint_lines, decisions_of, files_of, next_action_of, status
from swarmmemd.foreign import Foreign, same
from swarmmemd.journal import FileMark, Journal, Recorded, Rendered
from swarmmemd.layout import Place
from swarmmemd.memory.appends import Missing, missing_entries, missing_lines
from swarmmemd.model import Event, MissionId, WorkerId, utc_day
from swarmmemd.record import decode, encode
from swarmmemd.render.episode import episode_entry, episode_header
from swarmmemd.render.summary import FILES, Summary, bullets_of, is_whole, merge, rescue
from swarmmemd.seam import seam
from swarmmemd.state import MissionState, WorkerState

_K = TypeVar("_K")

_SUMMARY_LIMIT = 16 * 1024 * 1024
_LOOK_BACK = 64 * 1024
"""Bytes before the known position in which another writer's line can still be the twin of a new event."""
_MERGES = 5
_HEADLESS = 2.0
"""Seconds after which a `SUMMARY.md` without its H1 is no longer taken for one that is being written."""


class Obstacle(msgspec.Struct, frozen=True):
    """What stands in the way of one file, and after how many seconds it is worth trying again.

    `refused`: something stands there that is never written through, a link or a device.
    """

    path: str
    reason: str
    retry: float
    refused: bool = False
    expected: bool = False
    """Another writer is at it: no fault, and gone in a moment."""


_Plan = Callable[[bytes, int, Sequence[Event], Appending], Missing]
"""(what follows the known position, that position, the events, the file) -> what is missing."""


class _Obstructed(Exception):
    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle


class Memory:
    """The memory trees below one profiles root."""

    def __init__(self, profiles_root: Path, journal: Journal, settle: float) -> None:
        self._root = profiles_root
        self._journal = journal
        self._settle = settle
        self._sizes: dict[tuple[WorkerId, str], tuple[int, float]] = {}
        self._shared: dict[tuple[WorkerId, str], bool] = {}
        self._versions: dict[tuple[WorkerId, MissionId], Version | None] = {}
        self._replaced: list[tuple[float, WorkerId, MissionId, Held]] = []

    def apply(self, state: WorkerState, now: float) -> list[Obstacle]:
        """Applies what the journal holds for the worker and its files do not. `now` is monotonic, seconds.

        Raises FileNotFoundError where the profile itself is gone: nothing is ever made in its place.
        """
        waiting = self._journal.waiting(state.worker)
        missions = self._journal.not_shown(state.worker)
        if not waiting and not missions:
            return []
        with Directory.root(layout.profile(self._root, state.worker)) as profile:
            return _Apply(self, profile, state, now).run(waiting, missions)

    def reshow(
        self, state: WorkerState, mission: MissionId, now: float, others: Sequence[bytes] = ()
    ) -> list[Obstacle]:
        """Makes `SUMMARY.md` true again after somebody else wrote it; `others` are versions that our own
        replacing has hidden."""
        known = state.missions.get(mission)
        if known is None:
            return []
        with Directory.root(layout.profile(self._root, state.worker)) as profile:
            return _Apply(self, profile, state, now).show([known], others)

    def rescued(self, now: float) -> Iterator[tuple[WorkerId, MissionId, bytes]]:
        """What was written into replaced versions of `SUMMARY.md` by writers that had them open."""
        kept = []
        for until, worker, mission, held in self._replaced:
            data = held.reread()
            if data is not None:
                yield worker, mission, data
            if now < until:
                kept.append((until, worker, mission, held))
            else:
                held.close()
        self._replaced = kept

    def next_rescue(self) -> float | None:
        """When `rescued` should be asked again, monotonic; None if nothing is watched."""
        return min((until for until, *_ in self._replaced), default=None)

    def replaced_by_others(self, worker: WorkerId, mission: MissionId) -> bool:
        """Whether the mission's `SUMMARY.md` is another one than we left: a stat, for the sweep."""
        known = self._versions.get((worker, mission))
        try:
            place = layout.summary(mission)
            with (
                Directory.root(layout.profile(self._root, worker)) as profile,
                profile.descend(place.folders) as folder,
            ):
                found = version_at(folder, place.name)
        except OSError:
            return False
        return found is not None and found != known

    def close(self) -> None:
        """Lets go of what is held open."""
        for *_, held in self._replaced:
            held.close()
        self._replaced = []


class _Apply:
    """One pass over one worker's files."""

    def __init__(self, memory: Memory, profile: Directory, state: WorkerState, now: float) -> None:
        self._memory = memory
        self._journal = memory._journal
        self._profile = profile
        self._state = state
        self._worker = state.worker
        self._now = now
        self._obstacles: list[Obstacle] = []

    def run(self, waiting: Sequence[Recorded], missions: Sequence[MissionId]) -> list[Obstacle]:
        stuck: set[int] = set()
        for day, records in _grouped((utc_day(record.event.at), record) for record in waiting).items():
            if not self._tried(partial(self._episode, day, records)):
                stuck.update(record.seq for record in records)
        by_mission = _grouped((r.event.mission, r) for r in waiting if r.event.mission is not None)
        order = dict.fromkeys((*by_mission, *missions))
        hidden = {m for m in order if m in self._state.missions and not self._shown(self._state.missions[m])}
        applied = [r.seq for r in waiting if r.event.mission is None and r.seq not in stuck]
        for mission, records in by_mission.items():
            if mission in hidden or any(record.seq in stuck for record in records):
                continue
            if self._tried(partial(self._events, mission, records)):
                applied += [record.seq for record in records]
        self._journal.settle(applied=applied)
        return self._obstacles

    def show(self, missions: Sequence[MissionState], others: Sequence[bytes] = ()) -> list[Obstacle]:
        for mission in missions:
            self._shown(mission, others)
        return self._obstacles

    def _shown(self, mission: MissionState, others: Sequence[bytes] = ()) -> bool:
        return self._tried(partial(self._summary, mission, others))

    def _tried(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except _Obstructed as stopped:
            self._obstacles.append(stopped.obstacle)
        except Refused as error:
            self._obstacles.append(
                Obstacle(str(error.filename), error.strerror or "refused", 60.0, refused=True)
            )
        except OSError as error:
            if self._profile.removed():
                raise FileNotFoundError(self._profile.shown) from error
            self._obstacles.append(Obstacle(self._profile.shown, error.strerror or str(error), 1.0))
        else:
            return True
        return False

    # Files that only grow

    def _episode(self, day: str, records: Sequence[Recorded]) -> None:
        header = episode_header(self._worker, day).encode()

        def missing(tail: bytes, start: int, new: Sequence[Event], file: Appending) -> Missing:
            return missing_entries(tail, [episode_entry(event).encode() for event in new], header, start == 0)

        self._append(layout.episode(day), records, missing)

    def _events(self, mission: MissionId, records: Sequence[Recorded]) -> None:
        def missing(tail: bytes, start: int, new: Sequence[Event], file: Appending) -> Missing:
            lines = [encode(event) for event in new]
            before = self._lines_before(mission, start, tail, file)
            twins = _Twins(self._worker, dict(zip(lines, new, strict=True)), before)
            return missing_lines(tail, lines, twins)

        self._append(layout.events(mission), records, missing)

    def _lines_before(self, mission: MissionId, start: int, tail: bytes, file: Appending) -> list[bytes]:
        """Other writers' lines before the known position, where there are other writers."""
        key = (self._worker, f"missions/{mission}")
        if not self._memory._shared.get(key, True) and not _has_foreign(tail):
            return []
        begin = max(0, start - _LOOK_BACK)
        lines = file.read(begin, start - begin).split(b"\n")[1 if begin else 0 :]
        self._memory._shared[key] = any(map(_is_foreign, lines)) or _has_foreign(tail)
        return [line for line in lines if _is_foreign(line)]

    def _append(self, place: Place, records: Sequence[Recorded], missing: _Plan) -> None:
        path = "/".join((*place.folders, place.name))
        known = self._journal.mark(self._worker, path)
        new = [record for record in records if known is None or record.seq > known.seq]
        if not new:
            return
        with (
            self._profile.descend(place.folders, create=True) as folder,
            Appending(folder, place.name) as file,
        ):
            start = _start(known, file.mark())
            tail = file.read(start)
            found = missing(tail, start, [record.event for record in new], file)
            if found.torn:
                self._wait_until_still(path, start + len(tail))
            file.append(found.data)
            seam.call("turn", f"applied {place.name}")
            mark = _position(file.mark(), start, tail, found.data)
        self._journal.settle(marks=[FileMark(self._worker, path, mark, new[-1].seq)])

    def _wait_until_still(self, path: str, size: int, period: float | None = None) -> None:
        """Another writer's unfinished line or file: only what has stood still for a while is left over."""
        period = self._memory._settle if period is None else period
        key = (self._worker, path)
        seen = self._memory._sizes.get(key)
        if seen is None or seen[0] != size:
            seen = self._memory._sizes[key] = (size, self._now)
        rest = seen[1] + period - self._now
        if rest > 0:
            raise _Obstructed(Obstacle(path, "another writer is at it", rest, expected=True))
        del self._memory._sizes[key]

    # SUMMARY.md

    def _summary(self, mission: MissionState, others: Sequence[bytes]) -> None:
        place = layout.summary(mission.mission)
        with self._profile.descend(place.folders, create=True) as folder:
            for _ in range(_MERGES):
                hidden = self._merged(folder, place, mission, others)
                if hidden is None:
                    self._journal.settle(shown=[(self._worker, mission.mission)])
                    return
                others = hidden
        raise _Obstructed(
            Obstacle("/".join((*place.folders, place.name)), "others keep writing it", 0.05, expected=True)
        )

    def _merged(
        self, folder: Directory, place: Place, mission: MissionState, others: Sequence[bytes]
    ) -> Sequence[bytes] | None:
        """Merges once. None when it stands; else the versions that have to be merged in at the next try."""
        held = hold(folder, place.name, _SUMMARY_LIMIT)
        text = _text(held.data) if held else ""
        if held is not None and not is_whole(text):
            self._close_and_wait(held, place)
        new = self._rendered(mission, text, others)
        if held is not None and new == text:
            self._memory._versions[self._worker, mission.mission] = held.version
            held.close()
            return None
        try:
            written = replace(folder, place.name, _bytes(new), held.version if held else None)
        except Moved:
            if held:
                held.close()
            return others
        except BaseException:
            if held:
                held.close()
            raise
        self._memory._versions[self._worker, mission.mission] = written
        seam.call("turn", f"applied {place.name}")
        return self._looked_after(mission.mission, held)

    def _close_and_wait(self, held: Held, place: Place) -> None:
        size = len(held.data)
        path = "/".join((*place.folders, place.name))
        try:
            self._wait_until_still(path, size, _HEADLESS)
        except _Obstructed:
            held.close()
            raise

    def _looked_after(self, mission: MissionId, held: Held | None) -> Sequence[bytes] | None:
        """Reads the replaced version once more, and keeps it open for a writer that is still at it."""
        if held is None:
            return None
        changed = held.reread()
        until = self._now + max(self._memory._settle, 0.2)
        self._memory._replaced.append((until, self._worker, mission, held))
        return None if changed is None else [changed]

    def _rendered(self, mission: MissionState, text: str, others: Sequence[bytes]) -> str:
        def ours(section: str, line: str) -> bool:
            return self._journal.is_ours(self._worker, mission.mission, section, line)

        for other in others:
            text = rescue(text, _text(other), ours) if text else _text(other)
        shown = len(mission.files)
        files = self._journal.count_rendered(self._worker, mission.mission, FILES) if shown >= 200 else shown
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
    step = MissionState(
        mission=event.mission,
        decisions=decisions_of(event),
        files=files_of(event),
        checkpoints=checkpoint_lines(event),
        blockers=blocker_lines(event),
        next_action=next_action_of(event),
    )
    return tuple(Rendered(event.mission, section, line) for section, line in bullets_of(summary_of(step)))


def _grouped(keyed: Iterable[tuple[_K, Recorded]]) -> dict[_K, list[Recorded]]:
    groups: dict[_K, list[Recorded]] = {}
    for key, record in keyed:
        groups.setdefault(key, []).append(record)
    return groups


class _Twins:
    """Finds another writer's line that says what one of our records says. A line is the twin of one record."""

    def __init__(self, worker: WorkerId, events: dict[bytes, Event], before: list[bytes]) -> None:
        self._worker = worker
        self._events = events
        self._before = before
        self._said: dict[bytes, Event | Foreign | None] = {}

    def __call__(self, record: bytes, lines: Sequence[bytes]) -> bytes | None:
        event = self._events[record]
        for line in self._before:
            if self._tells(event, line):
                self._before.remove(line)
                return line
        return next((line for line in lines if self._tells(event, line)), None)

    def _tells(self, event: Event, line: bytes) -> bool:
        if line not in self._said:
            self._said[line] = decode(line, self._worker)
        said = self._said[line]
        return isinstance(said, Foreign) and said.mission == event.mission and same(event, said)


def _is_foreign(line: bytes) -> bool:
    return bool(line) and b'"id":"ev_' not in line


def _has_foreign(tail: bytes) -> bool:
    return any(map(_is_foreign, tail.split(b"\n")))


def _start(known: FileMark | None, now: Mark) -> int:
    """From where on the file has to be read: after what is known, or all of it where it is another file."""
    if known is None or now.size < known.mark.size:
        return 0
    same_file = (known.mark.device, known.mark.inode) == (now.device, now.inode)
    return known.mark.size if same_file else 0


def _position(now: Mark, start: int, tail: bytes, data: bytes) -> Mark:
    """Where the next look begins: behind our data, or, if somebody wrote between, where this one began."""
    end = start + len(tail) + len(data)
    if now.size != end:
        return Mark(now.device, now.inode, start)
    torn = 0 if data else len(tail) - (tail.rfind(b"\n") + 1)
    return Mark(now.device, now.inode, end - torn)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
