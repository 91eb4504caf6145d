"""An episode file made right: every entry that is due stands there once, in the order of recording. Pure.

docs/contracts.md, "Verify and rebuild".
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

import msgspec

from swarmmemd.mending.values import Due, Fault, Mended, Need, counted, is_damaged
from swarmmemd.model import WorkerId
from swarmmemd.render.episode import episode_entry, episode_header

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"# Episodes — \S+ — \d{4}-\d\d-\d\d\s*")
_BULLET = re.compile(r"- ")
_UTF8 = ("utf-8", "surrogateescape")
_HEAD, _SUMMARY = 0, 4
"""The lines of an entry that tell it from others."""
_AROUND = 4
_FIELD = re.compile(r"## |- (?:Mission|Assignment|Summary|Result|Next action): ")


class _Spot(msgspec.Struct):
    """Lines of the file that are one entry: `number` is its event, `keep` what somebody put among them."""

    start: int
    end: int
    number: int
    keep: tuple[str, ...] = ()


def mend_entries(
    data: bytes, worker: WorkerId, day: str, due: Sequence[Due], elsewhere: Sequence[Due] = ()
) -> Mended:
    """What is wrong with our entries of the day, and the file made right. `elsewhere` are events of the day or the
    worker that the file's heading names, where that is another one: their entries were put here by mistake."""
    return _Entries(data, worker, day, due, elsewhere).mended()


class _Entries:
    def __init__(
        self, data: bytes, worker: WorkerId, day: str, due: Sequence[Due], elsewhere: Sequence[Due]
    ) -> None:
        self._lines = _LINE.findall(data.decode(*_UTF8))
        self._header = episode_header(worker, day)
        self._due = due
        self._entries = [episode_entry(one.event) for one in due]
        self._foreign = {episode_entry(one.event) for one in elsewhere}
        self._spots: list[_Spot] = []
        self._used = [False] * len(self._lines)
        self._stands: dict[str, list[int]] = {}
        """Where each text of a line stands."""
        for at, line in enumerate(self._lines):
            self._stands.setdefault(line, []).append(at)
        self._gone: set[int] = set()
        self._faults: list[Fault] = []

    def mended(self) -> Mended:
        if not any(line.strip() for line in self._lines):
            return self._anew()
        self._find()
        self._find_misplaced()
        present = {spot.number for spot in self._spots}
        absent = [
            number for number, one in enumerate(self._due) if number not in present and one.need is Need.DUE
        ]
        absent = self._damaged(absent)
        self._spots.sort(key=lambda spot: spot.start)
        order = self._in_order()
        places = self._places(absent, order)
        text = self._headed(self._put_together(order, places))
        data = text.encode(*_UTF8)
        return Mended(data, tuple(sorted(self._faults, key=lambda fault: fault.line)))

    def _anew(self) -> Mended:
        wanted = [e for e, one in zip(self._entries, self._due, strict=True) if one.need is Need.DUE]
        text = self._header + "\n".join(wanted)
        if not wanted:
            return Mended("".join(self._lines).encode(*_UTF8))
        what = f"{counted(len(wanted), 'entry is', 'entries are')} missing"
        return Mended(text.encode(*_UTF8), (Fault(1, what),))

    # What is there

    def _find(self) -> None:
        """Our exact entries, the longest first: a short one can be the beginning of a longer one."""
        numbers: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            numbers.setdefault(entry, []).append(number)
        for entry in sorted(numbers, key=len, reverse=True):
            for start in self._occurrences(entry):
                length = entry.count("\n")
                self._use(start, start + length)
                if numbers[entry]:
                    self._spots.append(_Spot(start, start + length, numbers[entry].pop(0)))
                else:
                    self._remove(start, start + length)
                    self._fault(start, f"the entry {_title(entry)} stands here once more")

    def _occurrences(self, entry: str) -> list[int]:
        lines = entry.splitlines(keepends=True)
        return [
            at
            for at in self._stands.get(lines[0], ())
            if self._lines[at : at + len(lines)] == lines and not any(self._used[at : at + len(lines)])
        ]

    def _find_misplaced(self) -> None:
        for entry in self._foreign:
            for start in self._occurrences(entry):
                end = start + entry.count("\n")
                self._use(start, end)
                self._remove(start, end)
                self._fault(start, f"the entry {_title(entry)} does not belong here")

    def _damaged(self, absent: list[int]) -> list[int]:
        """Entries that were edited or cut. Gives the numbers of what is not there at all."""
        left = []
        for number in absent:
            spot = self._remains(number)
            if spot is None:
                left.append(number)
                continue
            self._use(spot.start, spot.end)
            self._spots.append(spot)
            self._fault(spot.start, f"the entry {_title(self._entries[number])} was changed or cut off")
        return left

    def _remains(self, number: int) -> _Spot | None:
        """What is left of the entry: where most of its lines stand, or the end of the file where it was cut off."""
        entry = self._entries[number].splitlines(keepends=True)
        for telling in (entry[_HEAD], entry[_SUMMARY]):
            for hit in self._stands.get(telling, ()):
                if not self._used[hit]:
                    start, end = self._free(hit, len(entry) + _AROUND)
                    if spot := self._edited(number, entry, self._lines[start:end], start):
                        return spot
        return self._cut(number, len(entry))

    def _free(self, hit: int, most: int) -> tuple[int, int]:
        """The lines round one that are nobody's yet."""
        start = end = hit
        while start > max(hit - most, 0) and not self._used[start - 1]:
            start -= 1
        while end < min(hit + most, len(self._lines)) and not self._used[end]:
            end += 1
        return start, end

    def _cut(self, number: int, length: int) -> _Spot | None:
        count = len(self._lines)
        for at in range(max(count - length, 0), count):
            rest = "".join(self._lines[at:])
            if rest.strip() and not any(self._used[at:]) and self._entries[number].startswith(rest):
                return _Spot(at, count, number)
        return None

    def _edited(self, number: int, entry: list[str], lines: list[str], start: int) -> _Spot | None:
        if any(line == entry[_HEAD] and _BULLET.match(after) for line, after in pairwise(lines)):
            return None  # the other writer's entry of the same minute: it has no blank line there
        blocks = [
            block
            for block in SequenceMatcher(None, lines, entry, autojunk=False).get_matching_blocks()
            if block.size
        ]
        matched = {entry[block.b + n] for block in blocks for n in range(block.size)} - {"\n"}
        wanted = [line for line in entry if line != "\n"]
        if len(matched) * 2 <= len(wanted) or not matched & {entry[_HEAD], entry[_SUMMARY]}:
            return None
        first, last = blocks[0], blocks[-1]
        begin = max(first.a - first.b, 0)
        end = min(last.a + last.size + len(entry) - last.b - last.size, len(lines))
        while end > last.a + last.size and not _FIELD.match(lines[end - 1]):
            end -= 1
        while begin < first.a and not _FIELD.match(lines[begin]):
            begin += 1
        keep = tuple(
            line for line in lines[begin:end] if line.strip() and line not in entry and not _FIELD.match(line)
        )
        return _Spot(start + begin, start + end, number, keep)

    # What should be there

    def _in_order(self) -> dict[int, int]:
        """Start of each entry of ours to the event that should stand there."""
        ordered = [spot for spot in self._spots if self._due[spot.number].ordered]
        rest = {spot.start: spot.number for spot in self._spots if not self._due[spot.number].ordered}
        wanted = sorted(spot.number for spot in ordered)
        for spot, number in zip(ordered, wanted, strict=True):
            if self._entries[spot.number] != self._entries[number]:
                self._fault(spot.start, f"the entry {_title(self._entries[spot.number])} is out of its order")
                break
        return rest | {spot.start: number for spot, number in zip(ordered, wanted, strict=True)}

    def _places(self, absent: Sequence[int], order: dict[int, int]) -> dict[int, list[int]]:
        """After the spot with which index (-1: before all) the absent entries go."""
        spots = sorted((order[spot.start], at) for at, spot in enumerate(self._spots))
        numbers = [number for number, _ in spots]
        last = list(accumulate((at for _, at in spots), max))
        places: dict[int, list[int]] = {}
        for number in absent:
            before = bisect_left(numbers, number)
            places.setdefault(last[before - 1] if before else -1 if spots else 0, []).append(number)
        for at, gone in places.items():
            line = 0 if at < 0 else self._spots[at].end if self._spots else len(self._lines)
            more = f", and {len(gone) - 1} more" if gone[1:] else ""
            self._fault(line, f"the entry {_title(self._entries[gone[0]])} is missing here{more}")
        return places

    def _put_together(self, order: dict[int, int], places: dict[int, list[int]]) -> str:
        spots = {spot.start: (at, spot) for at, spot in enumerate(self._spots)}
        parts: list[str] = []
        at = 0
        while at < len(self._lines):
            if at in spots:
                index, spot = spots[at]
                if index == 0:
                    parts += [self._entries[number] + "\n" for number in places.get(-1, ())]
                parts.append(self._entries[order[at]])
                if spot.keep:
                    parts += ["\n", *spot.keep]
                parts += ["\n" + self._entries[number] for number in places.get(index, ())]
                at = spot.end
                continue
            if at not in self._gone:
                parts.append(self._lines[at])
            at += 1
        if not self._spots:
            parts.append("" if not parts or parts[-1].endswith("\n") else "\n")
            parts += ["\n" + self._entries[number] for number in places.get(0, ())]
        return "".join(parts)

    def _headed(self, text: str) -> str:
        """With our heading, where the file begins with an entry of ours or with a heading that was ours."""
        if text.startswith(self._header.rstrip("\n")) or not self._spots:
            return text
        first = self._lines[0]
        if _HEADING.fullmatch(first) or is_damaged(
            first.rstrip().encode(*_UTF8), self._header.rstrip().encode()
        ):
            self._fault(0, "the heading was changed")
            return self._header.rstrip("\n") + "\n" + text.partition("\n")[2]
        lead = next(at for at, line in enumerate(self._lines) if line.strip())
        if self._used[lead]:
            self._fault(0, "the heading is missing")
            return self._header + text.lstrip("\n")
        return text

    def _use(self, start: int, end: int) -> None:
        self._used[start:end] = [True] * (end - start)

    def _remove(self, start: int, end: int) -> None:
        """The lines, with the blank one that parts them from what is before."""
        self._gone.update(range(start, end))
        if start and not self._lines[start - 1].strip():
            self._gone.add(start - 1)

    def _fault(self, at: int, what: str) -> None:
        self._faults.append(Fault(at + 1, what))


def heading_of(data: bytes) -> str:
    """The first line of an episode file, to see whose and of which day it says to be."""
    return data.split(b"\n", 1)[0].decode("utf-8", "replace")


def _title(entry: str) -> str:
    return repr(entry.partition("\n")[0].removeprefix("## "))
