"""An episode file made right: every entry that is due stands there once, in the order of recording. Pure.

docs/contracts.md, "Verify and rebuild".
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

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
_AROUND = 8
_KIND = re.compile(r"## |- (?:Mission|Assignment|Summary|Result|Next action): ")


class _Spot(msgspec.Struct):
    """Lines of the file that are one entry: `number` is its event, `keep` what somebody put among them."""

    start: int
    end: int
    number: int
    keep: tuple[str, ...] = ()


class _Piece(msgspec.Struct, frozen=True):
    """A line of somebody, or something of ours: the heading, an entry."""

    text: str
    ours: bool = False


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
        self._raw = _LINE.findall(data.decode(*_UTF8))
        self._lines = [_ended(line) for line in self._raw]
        """Each with our line end: the one that stands there is compared at the end."""
        self._header = episode_header(worker, day)
        self._due = due
        self._entries = [episode_entry(one.event) for one in due]
        self._awaited = [e for e, one in zip(self._entries, due, strict=True) if one.need is Need.MAY]
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
        self._find_remnants()
        self._spots.sort(key=lambda spot: spot.start)
        self._judge_line_ends()
        order = self._in_order()
        places = self._places(absent, order)
        pieces = self._headed(self._put_together(order, places))
        if not self._faults:
            return Mended("".join(self._raw).encode(*_UTF8))
        data = _spaced(pieces).encode(*_UTF8)
        return Mended(data, tuple(sorted(self._faults, key=lambda fault: fault.line)))

    def _anew(self) -> Mended:
        wanted = [e for e, one in zip(self._entries, self._due, strict=True) if one.need is Need.DUE]
        text = self._header + "\n".join(wanted)
        if not wanted:
            return Mended("".join(self._raw).encode(*_UTF8))
        what = f"{counted(len(wanted), 'entry is', 'entries are')} missing"
        return Mended(text.encode(*_UTF8), (Fault(1, what),))

    # What is there

    def _find(self) -> None:
        """Our whole entries, the longest first: a short one can be the beginning of a longer one."""
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
        """What is left of the entry: where most of its lines stand, else its beginning."""
        entry = self._entries[number].splitlines(keepends=True)
        wanted = [line for line in entry if line.strip()]
        beginning: _Spot | None = None
        hits = (at for one in (_HEAD, _SUMMARY) for at in self._stands.get(entry[one], ()))
        for hit in (at for at in hits if not self._used[at]):
            there = self._chunk(hit, len(entry) + _AROUND)
            if spot := self._begun(number, wanted, there) or self._edited(number, wanted, there):
                if len(there) * 2 > len(wanted):
                    return spot
                beginning = beginning or spot
        return beginning or self._cut(number)

    def _chunk(self, hit: int, most: int) -> list[int]:
        """The lines with something in them round one, from a heading to the next, that are nobody's yet."""
        start = end = hit
        while start > max(hit - most, 0) and not self._used[start - 1] and not self._heads(start):
            start -= 1
        while (
            end < min(hit + most, len(self._lines))
            and not self._used[end]
            and not (end > hit and self._heads(end))
        ):
            end += 1
        return [at for at in range(start, end) if self._lines[at].strip()]

    def _heads(self, at: int) -> bool:
        return self._lines[at].startswith(("# ", "## "))

    def _is_theirs(self, there: list[int], wanted: list[str]) -> bool:
        """The other writer's entry of the same minute."""
        told = [self._lines[at] for at in there]
        heads = (at for at in there if self._lines[at] == wanted[0])
        return told != wanted and any(map(self._told_by_others, heads))

    def _told_by_others(self, head: int) -> bool:
        """The other writer leaves no blank line below the heading."""
        below = self._lines[head + 1 : head + 2]
        return bool(below) and _BULLET.match(below[0]) is not None

    def _begun(self, number: int, wanted: list[str], there: list[int]) -> _Spot | None:
        """The beginning of the entry, and nothing else."""
        told = [self._lines[at] for at in there]
        *whole, last = told
        begun = whole == wanted[: len(whole)] and "".join(wanted[len(whole) : len(told)]).startswith(
            last.rstrip()
        )
        if not begun or self._is_theirs(there, wanted):
            return None
        return _Spot(there[0], there[-1] + 1, number)

    def _edited(self, number: int, wanted: list[str], there: list[int]) -> _Spot | None:
        """Most of the entry, with lines that were changed, lost, doubled or moved."""
        told = [self._lines[at] for at in there]
        found = set(told) & set(wanted)
        telling = {wanted[0], wanted[_SUMMARY - 1]}
        if self._is_theirs(there, wanted) or len(found) * 2 <= len(wanted) or not found & telling:
            return None
        lost = [line for line in wanted if line not in found]
        changed = [line not in found and _is_changed(line, lost) for line in told]
        first, last = _narrowest(told, found)
        first -= first > 0 and changed[first - 1]
        last += last + 1 < len(told) and changed[last + 1]
        keep = [at for at in range(first, last + 1) if told[at] not in found and not changed[at]]
        return _Spot(there[first], there[last] + 1, number, tuple(told[at] for at in keep))

    def _cut(self, number: int) -> _Spot | None:
        """The end of the file, cut off within the heading."""
        last = len(self._lines) - 1
        rest = self._lines[last].encode(*_UTF8)
        begun = rest.startswith(b"##") and self._entries[number].encode(*_UTF8).startswith(rest.rstrip())
        return _Spot(last, last + 1, number) if begun and not self._used[last] else None

    def _find_remnants(self) -> None:
        """Lines of an entry that stand above or below it once more, a second heading of the file, and beginnings of
        entries that are whole elsewhere."""
        for spot in self._spots:
            entry = self._entries[spot.number].splitlines(keepends=True)
            for at in self._unused(spot.start - 1, spot.end):
                if self._lines[at].strip() and self._lines[at] in entry:
                    self._remnant(at, at + 1)
        for at in self._unused(*self._misplaced_headings()):
            self._remnant(at, at + 1)
        whole: dict[str, list[list[str]]] = {}
        for number in {spot.number for spot in self._spots}:
            lines = self._entries[number].splitlines(keepends=True)
            whole.setdefault(lines[_HEAD], []).append([line for line in lines if line.strip()])
        for head, entries in whole.items():
            for hit in self._unused(*self._stands[head]) if head in self._stands else ():
                there = self._chunk(hit, max(map(len, entries)) + _AROUND)
                told = [self._lines[at] for at in there]
                begun = any(told == wanted[: len(told)] for wanted in entries)
                if begun and not self._told_by_others(hit) and not self._waits(there[0]):
                    self._remnant(there[0], there[-1] + 1)

    def _misplaced_headings(self) -> list[int]:
        """All headings but the first, and that one, too, where an entry of ours stands above it: the file gets its
        heading at its beginning."""
        headings = self._stands.get(self._header[:-1], [])
        lead = next((at for at, line in enumerate(self._lines) if line.strip() and at not in self._gone), -1)
        begins_with_entry = any(spot.start <= lead < spot.end for spot in self._spots)
        return headings if begins_with_entry else headings[1:]

    def _unused(self, *lines: int) -> list[int]:
        return [at for at in lines if 0 <= at < len(self._lines) and not self._used[at]]

    def _waits(self, start: int) -> bool:
        """Whether the end of the file from this line on is an entry that is just being written."""
        left = len(self._lines) - start
        if all(entry.count("\n") < left for entry in self._awaited):
            return False
        rest = "".join(self._lines[start:])
        return any(entry.startswith(rest) for entry in self._awaited)

    def _remnant(self, start: int, end: int) -> None:
        self._use(start, end)
        self._gone.update(range(start, end))
        self._fault(start, f"{self._lines[start].strip()[:120]!r} stands here once more")

    def _judge_line_ends(self) -> None:
        ours = [at for spot in self._spots for at in range(spot.start, spot.end)]
        other = [at for at in sorted(ours) if self._raw[at].endswith("\r\n")]
        if other:
            self._fault(
                other[0], f"{counted(len(other), 'line has another line end', 'lines have other line ends')}"
            )

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

    def _put_together(self, order: dict[int, int], places: dict[int, list[int]]) -> list[_Piece]:
        spots = {spot.start: (at, spot) for at, spot in enumerate(self._spots)}
        pieces: list[_Piece] = []
        at = 0
        while at < len(self._lines):
            if at in spots:
                index, spot = spots[at]
                if index == 0:
                    pieces += self._ours(places.get(-1, ()))
                pieces += self._ours([order[at]])
                if spot.keep:
                    pieces += map(_Piece, ("\n", *spot.keep))
                pieces += self._ours(places.get(index, ()))
                at = spot.end
                continue
            if at not in self._gone:
                pieces.append(_Piece(self._raw[at]))
            at += 1
        if not self._spots:
            if pieces and not pieces[-1].text.endswith("\n"):
                pieces[-1] = _Piece(pieces[-1].text + "\n")
            pieces += self._ours(places.get(0, ()))
        return pieces

    def _ours(self, numbers: Sequence[int]) -> list[_Piece]:
        return [_Piece(self._entries[number], ours=True) for number in numbers]

    def _headed(self, pieces: list[_Piece]) -> list[_Piece]:
        """With our heading, where the file begins with an entry of ours or with a heading that was ours."""
        lead = next((at for at, piece in enumerate(pieces) if piece.text.strip()), None)
        header = _Piece(self._header.rstrip("\n") + "\n", ours=True)
        if lead is None:
            return pieces
        first = _ended(pieces[lead].text)
        known = first == header.text or _HEADING.fullmatch(first)
        if pieces[lead].ours:
            self._fault(0, "the heading is missing")
            return [header, *pieces[lead:]]
        if not known and not is_damaged(first.rstrip().encode(*_UTF8), header.text.rstrip().encode()):
            return pieces
        if not any(piece.ours for piece in pieces):
            return pieces
        if first != header.text:
            self._fault(0, "the heading was changed")
        return [*pieces[:lead], header, *pieces[lead + 1 :]]

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


def _is_changed(line: str, lost: Sequence[str]) -> bool:
    """Whether the line is one of the lost ones with another value, or most of one."""
    kind = _KIND.match(line)
    return any(
        (kind and one.startswith(kind[0])) or is_damaged(line.encode(*_UTF8), one.encode(*_UTF8))
        for one in lost
    )


def _narrowest(told: Sequence[str], found: set[str]) -> tuple[int, int]:
    """The first and last index of the fewest lines in which all that was found stands."""
    seen: dict[str, int] = {}
    spans = []
    for at, line in enumerate(told):
        if line in found:
            seen[line] = at
        if len(seen) == len(found):
            spans.append((at - min(seen.values()), min(seen.values()), at))
    _, first, last = min(spans)
    return first, last


def _ended(line: str) -> str:
    return line[:-2] + "\n" if line.endswith("\r\n") else line


def _spaced(pieces: Sequence[_Piece]) -> str:
    """The text, with one blank line between what is ours and what of ours comes next."""
    parts: list[str] = []
    blanks: list[str] = []
    before: _Piece | None = None
    for piece in pieces:
        if not piece.text.strip():
            blanks.append(piece.text)
            continue
        if before is not None and before.ours and piece.ours:
            blanks = ["\n"]
        elif before is not None and (before.ours or piece.ours):
            blanks = blanks or ["\n"]
        parts += [*blanks, piece.text]
        before, blanks = piece, []
    return "".join(parts if before is None or before.ours else parts + blanks)


def _title(entry: str) -> str:
    return repr(entry.partition("\n")[0].removeprefix("## "))
