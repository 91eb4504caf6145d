"""`events.jsonl` made right: every line that is due stands there once, in the order of recording, or another writer
has said the same. Pure. docs/contracts.md, "Verify and rebuild".
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, islice

import msgspec

from swarmmemd.foreign import Foreign, gist, said_digest, same
from swarmmemd.mending.values import Due, Fault, Mended, Need, counted, is_damaged
from swarmmemd.model import Event, EventType, MissionId, WorkerId
from swarmmemd.record import decode, encode

_ID = re.compile(rb'"id": ?"(ev_[0-9a-f]{30})"')
_MOST_COMPARED = 500
_TELLING = 32
"""Bytes of a line from which on its beginning tells whose it is: what comes before is the time, and other writers
begin with the time as well."""


class Owner(msgspec.Struct, frozen=True):
    """Where an event that the journal knows belongs, and its line."""

    worker: WorkerId
    mission: MissionId | None
    line: bytes


Whose = Callable[[str], Owner | None]
"""Asks the journal for the event of this id."""


def mend_lines(data: bytes, worker: WorkerId, mission: MissionId, due: Sequence[Due], whose: Whose) -> Mended:
    """What is wrong with our lines in the mission's file, and the file made right."""
    return _Lines(data, worker, mission, due, whose).mended()


class _Lines:
    def __init__(
        self, data: bytes, worker: WorkerId, mission: MissionId, due: Sequence[Due], whose: Whose
    ) -> None:
        self._worker, self._mission, self._whose = worker, mission, whose
        self._due = due
        self._records = [encode(one.event)[:-1] for one in due]
        self._raw = data.split(b"\n")
        self._torn = len(self._raw) - 1
        """The index of what stands behind the last line break; empty in a whole file."""
        self._own: dict[int, int] = {}
        """Index of a line to the event that stands there."""
        self._drop: set[int] = set()
        self._faults: list[Fault] = []
        self._notes: list[Fault] = []

    def mended(self) -> Mended:
        self._find()
        absent = [n for n in self._absent() if self._due[n].need is Need.DUE]
        absent = self._alike(self._bind(self._changed(absent)))
        self._judge_others()
        order = self._in_order()
        after = self._places(absent, order)
        data = self._put_together(order, after)
        return Mended(data, tuple(sorted(self._faults, key=lambda fault: fault.line)), tuple(self._notes))

    def _find(self) -> None:
        """Our exact lines. The first one counts."""
        numbers = {record: number for number, record in enumerate(self._records)}
        seen: set[int] = set()
        for at, line in enumerate(self._raw):
            number = numbers.get(line)
            if number is None or (at == self._torn and not line):
                continue
            if number in seen:
                self._drop.add(at)
                self._fault(at, f"{self._named(number)} stands here once more")
            elif at == self._torn:
                self._own[at] = number
                self._fault(at, f"the line break after {self._named(number)} is missing")
            else:
                self._own[at] = number
            seen.add(number)

    def _absent(self) -> list[int]:
        found = set(self._own.values())
        return [number for number in range(len(self._due)) if number not in found]

    def _others(self) -> list[int]:
        """The lines that are nobody's yet."""
        return [
            at for at, line in enumerate(self._raw) if line and at not in self._own and at not in self._drop
        ]

    def _changed(self, absent: list[int]) -> list[int]:
        """Lines with the id of an absent event, or with all but the id. Gives what is still absent."""
        by_id = {self._due[number].event.id.encode(): number for number in absent}
        by_body = {_body(self._records[number]): number for number in absent}

        def told(at: int, left: Mapping[int, None]) -> int | None:
            ids = [by_id[id] for id in _ID.findall(self._raw[at]) if id in by_id]
            return ids[-1] if ids else by_body.get(_body(self._raw[at]))

        return self._put_right(absent, told)

    def _alike(self, absent: list[int]) -> list[int]:
        """Lines that are most of an absent one, and a torn end that is its beginning. Gives what is still absent."""

        begun: dict[bytes, list[int]] = {}
        for number in absent:
            begun.setdefault(self._records[number][:_TELLING], []).append(number)

        def alike(at: int, left: Mapping[int, None]) -> int | None:
            line = self._raw[at]
            for number in begun.get(line[:_TELLING], ()):
                if number in left and self._records[number].startswith(line):
                    return number
            id = _last_id(line)
            known = self._whose(id) if id else None
            if at == self._torn or b"ev_" not in line or (known and known.line.rstrip(b"\n") == line):
                return None
            some = islice(left, _MOST_COMPARED)
            return next((number for number in some if is_damaged(line, self._records[number])), None)

        return self._put_right(absent, alike)

    def _put_right(
        self, absent: list[int], which: Callable[[int, Mapping[int, None]], int | None]
    ) -> list[int]:
        """Lines that are ours and were edited or cut: they are put right where they stand."""
        left = dict.fromkeys(absent)
        for at in self._others() if left else ():
            number = which(at, left)
            if number in left:
                del left[number]
                self._own[at] = number
                self._fault(at, f"{self._named(number)} was changed or cut off")
        return list(left)

    def _bind(self, absent: list[int]) -> list[int]:
        """Another writer's lines that say what an absent event says, one for each. Gives what is still absent."""
        if not absent:
            return absent
        told: dict[object, list[tuple[int, Foreign]]] = {}
        for at in self._others():
            foreign = at != self._torn and not _last_id(self._raw[at])
            said = decode(self._raw[at], self._worker) if foreign else None
            if isinstance(said, Foreign) and said.mission == self._mission:
                told.setdefault(_key_of_foreign(said), []).append((at, said))
        left = []
        for number in absent:
            event = self._due[number].event
            lines = told.get(_key(event), [])
            twin = next((one for one in lines if same(event, one[1])), None)
            if twin is None:
                left.append(number)
            else:
                lines.remove(twin)
        return left

    def _judge_others(self) -> None:
        """Lines that look like ours and are not due here; and the torn end of another writer."""
        others = self._others()
        foreign = [at for at in others if at != self._torn and not _last_id(self._raw[at])]
        if foreign:
            self._note(foreign[0], f"{counted(len(foreign), 'line', 'lines')} of other writers")
        present = {self._due[number].event.id for number in self._own.values()}
        for at in others:
            line = self._raw[at]
            if at == self._torn:
                waits = any(
                    one.need is Need.MAY and record.startswith(line)
                    for one, record in zip(self._due, self._records, strict=True)
                )
                self._note(
                    at, "a line is just being written" if waits else "the end is torn, by another writer"
                )
            elif id := _last_id(line):
                self._judge_own(at, line, id, id in present)

    def _judge_own(self, at: int, line: bytes, id: str, again: bool) -> None:
        known = self._whose(id)
        here = known is not None and (known.worker, known.mission) == (self._worker, self._mission)
        if known is None:
            if isinstance(found := decode(line, self._worker), Event) and found.mission == self._mission:
                self._fault(at, f"the journal does not know {id}", mendable=False)
        elif known.line.rstrip(b"\n") == line and not here:
            self._drop.add(at)
            place = known.mission or "no mission"
            self._fault(at, f"{id} does not belong here, but to {known.worker}, {place}")
        elif here and again and known.line.rstrip(b"\n") != line:
            self._drop.add(at)
            self._fault(at, f"{id} stands here once more, changed")

    def _in_order(self) -> dict[int, int]:
        """Index of each line of ours to the event that should stand there."""
        order = dict(zip(sorted(self._own), sorted(self._own.values()), strict=True))
        wrong = next((at for at in sorted(self._own) if self._own[at] != order[at]), None)
        if wrong is not None:
            self._fault(wrong, f"{self._named(self._own[wrong])} stands here out of its order")
        return order

    def _places(self, absent: Sequence[int], order: dict[int, int]) -> dict[int, list[int]]:
        """After which line (-1: before all) the absent events go."""
        spots = sorted((number, at) for at, number in order.items())
        numbers = [number for number, _ in spots]
        last = list(accumulate((at for _, at in spots), max))
        first = min((at for _, at in spots), default=self._torn)
        places: dict[int, list[int]] = {}
        for number in absent:
            before = bisect_left(numbers, number)
            places.setdefault(last[before - 1] if before else first - 1, []).append(number)
        for at, gone in places.items():
            more = f", and {len(gone) - 1} more" if gone[1:] else ""
            self._fault(at + 1, f"{self._named(gone[0])} is missing here{more}")
        return places

    def _put_together(self, order: dict[int, int], places: dict[int, list[int]]) -> bytes:
        parts = [self._line(number) for number in places.get(-1, ())]
        for at, line in enumerate(self._raw):
            if at in order:
                parts.append(self._line(order[at]))
            elif at not in self._drop:
                parts.append(line if at == self._torn else line + b"\n")
            parts += [self._line(number) for number in places.get(at, ())]
        return b"".join(parts)

    def _line(self, number: int) -> bytes:
        return self._records[number] + b"\n"

    def _named(self, number: int) -> str:
        event = self._due[number].event
        return f"{event.type.value} {event.id}"

    def _fault(self, at: int, what: str, mendable: bool = True) -> None:
        self._faults.append(Fault(at + 1, what, mendable))

    def _note(self, at: int, what: str) -> None:
        self._notes.append(Fault(at + 1, what))


def _last_id(line: bytes) -> str:
    ids = _ID.findall(line)
    return ids[-1].decode() if ids else ""


def _body(line: bytes) -> bytes:
    """The line without its id, which is the last key."""
    cut = line.rfind(b',"id":')
    return line[:cut] if cut >= 0 else line.removesuffix(b"}")


def _key(event: Event) -> object:
    if event.type in (EventType.CHECKPOINT, EventType.BLOCKED):
        return gist(event)
    return (event.type, event.assignment) if event.type is EventType.DISPATCH else event.type


def _key_of_foreign(line: Foreign) -> object:
    if line.state is not None:
        return said_digest(line.state, line.text)
    return (line.type, line.assignment) if line.type is EventType.DISPATCH else line.type
