"""The files that only grow: `events.jsonl` and the episodes. Each is appended to once a turn.

docs/architecture.md, "Idempotent append"; docs/contracts.md, "Beside another writer".
"""

from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack

from swarmmemd import layout
from swarmmemd.durable import Appending, Directory, Mark
from swarmmemd.foreign import Foreign, same
from swarmmemd.journal import FileMark, Journal, Recorded
from swarmmemd.layout import Place
from swarmmemd.memory.appends import Missing, missing_entries, missing_lines
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.held import OfMissions
from swarmmemd.memory.obstacles import Stillness
from swarmmemd.model import Event, MissionId, WorkerId
from swarmmemd.record import decode
from swarmmemd.render.episode import episode_entry, episode_header
from swarmmemd.seam import seam

_LOOK_BACK = 64 * 1024
"""Bytes before the known position in which another writer's line can still be the twin of a new event."""

Finish = Callable[[], None]
"""Makes what was written durable, and notes it."""
_Plan = Callable[[bytes, int, Sequence[Recorded], Appending], Missing]
"""(what follows the known position, that position, the new records, the file) -> what is missing."""


def _nothing() -> None:
    """There was nothing to write."""


class GrowingFiles:
    """Appends events to the files of all workers. `settle` is how long, in seconds, a foreign line may take."""

    def __init__(self, journal: Journal, stillness: Stillness, settle: float, auditor: Auditor) -> None:
        self._journal = journal
        self._auditor = auditor
        self._stillness = stillness
        self.settle = settle
        self._shared: OfMissions[bool] = OfMissions()

    def episode(
        self,
        profile: Directory,
        worker: WorkerId,
        day: str,
        records: Sequence[Recorded],
        now: float,
        opened: ExitStack,
    ) -> Finish:
        """Makes the day's file hold these events; it stays open in `opened`. They are durable, and count, once what
        is returned was called. Both raise `Obstructed` or OSError."""
        header = episode_header(worker, day).encode()

        def missing(tail: bytes, start: int, new: Sequence[Recorded], file: Appending) -> Missing:
            return missing_entries(
                tail, [episode_entry(record.event).encode() for record in new], header, start == 0
            )

        return self._append(profile, worker, layout.episode(day), records, missing, now, opened)

    def events(
        self,
        profile: Directory,
        worker: WorkerId,
        mission: MissionId,
        records: Sequence[Recorded],
        now: float,
    ) -> None:
        """Makes the mission's `events.jsonl` hold these events, in a line of ours or in another writer's that
        says the same. Raises `Obstructed` or OSError."""

        def missing(tail: bytes, start: int, new: Sequence[Recorded], file: Appending) -> Missing:
            lines = [record.line for record in new]
            events = {record.line: record.event for record in new}
            before = self._lines_before(worker, mission, start, tail, file)
            twins = _Twins(worker, events, before)
            return missing_lines(tail, lines, twins)

        with ExitStack() as opened:
            self._append(profile, worker, layout.events(mission), records, missing, now, opened)()

    def let_go(self, worker: WorkerId, kept: Container[MissionId]) -> None:
        """The worker's other missions rest."""
        self._shared.keep(worker, kept)

    def forget(self, worker: WorkerId) -> None:
        """The worker is retired."""
        self._shared.forget(worker)

    def _lines_before(
        self, worker: WorkerId, mission: MissionId, start: int, tail: bytes, file: Appending
    ) -> list[bytes]:
        """Other writers' lines before the known position, where there are other writers."""
        if self._shared.get(worker, mission) is False and not _has_foreign(tail):
            return []
        begin = max(0, start - _LOOK_BACK)
        lines = file.read(begin, start - begin).split(b"\n")[1 if begin else 0 :]
        self._shared.put(worker, mission, any(map(_is_foreign, lines)) or _has_foreign(tail))
        return [line for line in lines if _is_foreign(line)]

    def _append(
        self,
        profile: Directory,
        worker: WorkerId,
        place: Place,
        records: Sequence[Recorded],
        missing: _Plan,
        now: float,
        opened: ExitStack,
    ) -> Finish:
        known = self._journal.mark(worker, place.shown)
        new = [record for record in records if known is None or record.seq > known.seq]
        if not new:
            return _nothing
        folder = opened.enter_context(profile.descend(place.folders, create=True, sure=False))
        file = opened.enter_context(Appending(folder, place.name))
        start = _start(known, file.mark())
        tail = file.read(start)
        found = missing(tail, start, new, file)
        if found.torn:
            self._stillness.wait(worker, place.shown, start + len(tail), now, self.settle)
        if found.stands:
            file.write_again(start, tail)
        file.write(found.data)

        def finish() -> None:
            file.finish()
            seam.call("turn", f"applied {place.name}")
            now_at = file.mark()
            mark = _position(now_at, start, tail, found.data)
            path, ids = f"{folder.shown}/{place.name}", [record.event.id for record in new]
            self._auditor.appended(path, found.data, now_at.size, ids)
            self._journal.settle(marks=[FileMark(worker, place.shown, mark, new[-1].seq)])

        return finish


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
