"""A memory file to its lines: the text of each, and when, for which mission and by which event. Pure.

A line of JSON is searched by its values, any other by itself. docs/search.md, "Lines".
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

import msgspec

from swarmmemd.model import Event, EventType, MissionId, Unreadable, WorkerId, mission_id, parse_iso
from swarmmemd.recall.words import Match, Matcher, fold
from swarmmemd.sources.document import json_object

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_ENTRY = re.compile(r"## (\d{2}:\d{2}) UTC — ([a-z-]+)\s*")
_MISSION = re.compile(r"- Mission: (\S+)\s*")
_LAST = 253_402_300_799_999
_DAY_LONG = 86_400_000
_TYPES = frozenset(EventType)


class Kind(StrEnum):
    """What a memory file is, by its path."""

    RECORDS = "records"
    EPISODE = "episode"
    HANDOFF = "handoff"
    PAGE = "page"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file without its content. `mission` is the one in its path; `written` is its mtime, ms."""

    kind: Kind
    name: str
    worker: WorkerId | None
    mission: MissionId | None
    written: int

    @property
    def only_grows(self) -> bool:
        """Whether what is appended leaves the lines before it as they are, as far as they say when they were."""
        return self.kind is Kind.RECORDS or (self.kind is Kind.EPISODE and _begin(self.name) is not None)


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line, counted from 1. `at` is ms: of the event it tells of, else when the file was written."""

    number: int
    text: str
    at: int
    mission: MissionId | None
    type: EventType | None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an episode, with its heading."""

    at: int
    mission: MissionId | None
    type: EventType | None
    text: str


class Mark(msgspec.Struct, frozen=True, gc=False):
    """What holds for all lines of a file, or of an entry of an episode."""

    at: int
    mission: MissionId | None
    type: EventType | None


class Before(msgspec.Struct, frozen=True):
    """What a piece of a file has to know of that which stands before it: how many lines, the number of the heading
    below which it begins (0: of none), and what holds there. `mark` is None where the file begins."""

    lines: int = 0
    heading: int = 0
    mark: Mark | None = None


_NOTHING = Before()


def moment(mtime_ns: int) -> int:
    """The time of a file in ms; one that no calendar has, which anybody can set, is the nearest that it has."""
    return min(max(mtime_ns // 1_000_000, 0), _LAST)


def about(
    folders: tuple[str, ...], name: str, worker: WorkerId | None, written: int, shared: bool = False
) -> About:
    """What the path of a file says. `folders` are those below the worker's `memory/` or below the shared root."""
    mission = None
    kind = Kind.RECORDS if name.endswith(".jsonl") else Kind.PAGE
    if shared and folders[:2] == ("swarm", "missions") and len(folders) > 2:
        mission = mission_id(folders[2])
    elif not shared and folders[:1] == ("missions",) and len(folders) > 1:
        mission = mission_id(folders[1])
    elif folders[:1] == ("episodes",) and _DAY.fullmatch(name):
        kind = Kind.EPISODE
    elif folders[:1] in (("handoffs",), ("session-snapshots",)) and kind is Kind.PAGE:
        kind = Kind.HANDOFF
        if not shared and folders == ("handoffs",) and name != "latest.md":
            mission = mission_id(name.removesuffix(".md"))
    return About(kind=kind, name=name, worker=worker, mission=mission, written=written)


@cache
def _escape() -> re.Pattern[bytes]:
    """Where a character is written by its number. `in` takes twice as long: the `u` is what it looks for, and that is
    in every other word."""
    return re.compile(rb"\\u")


_BEGINNING = 60
"""Characters in which a copy must agree with what it copies, whatever else makes the two the same event."""


def beginning_of(text: str) -> str:
    """By what records that say the same are found."""
    return fold(text)[:_BEGINNING]


def _begin(name: str) -> int | None:
    """When the day begins of which an episode has its name."""
    return parse_iso(name.removesuffix(".md"))


class Document:
    """The content of one memory file, or of a piece of it: whole lines. Bytes that are no UTF-8 are read as U+FFFD."""

    def __init__(self, data: bytes, about: About, before: Before = _NOTHING) -> None:
        self.about = about
        self.data = data
        self._before = before
        self._marks: dict[int, Mark] = {}
        self._times: dict[int, int] = {}

    @cached_property
    def rows(self) -> list[str]:
        """The lines as they stand there, without their line breaks."""
        rows = self.data.decode("utf-8", "replace").split("\n")
        return rows[:-1] if rows[-1] == "" else rows

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def said(self) -> Mapping[str, list[tuple[int, Event]]]:
        """Our own records in the file with their line numbers, by the beginning of what they say: looked through
        once, however many lines of others are compared with them."""
        from swarmmemd.record import decode

        found: dict[str, list[tuple[int, Event]]] = {}
        worker = self.about.worker
        for number, row in enumerate(self.rows, 1):
            if (
                worker is not None
                and '"ev_' in row
                and isinstance(event := decode(row.encode(), worker), Event)
            ):
                found.setdefault(beginning_of(event.summary), []).append((number, event))
        return found

    @cached_property
    def _lengths(self) -> list[int]:
        return [len(row) for row in self.data.split(b"\n")]

    def length(self, number: int) -> int:
        """Bytes of the line without its line break."""
        return self._lengths[number - 1]

    @property
    def after(self) -> Before:
        """What the next piece of the file has to know."""
        first = self._firsts[-1]
        return Before(
            lines=self._before.lines + len(self),
            heading=self._before.lines + first if first else self._before.heading,
            mark=self._mark(len(self._firsts) - 1),
        )

    @property
    def late(self) -> MissionId | None:
        """The mission of the entry in the midst of which the piece begins, where only this piece names it."""
        if self._before.mark is None or self._before.mark.mission is not None:
            return None
        return self._mark(0).mission

    @staticmethod
    def _record_at(row: str) -> object:
        found = json_object(row.encode(), as_written=True) if row.startswith("{") else None
        return found.get("at") if isinstance(found, dict) else None

    def line(self, number: int) -> Line:
        """The line of that number."""
        row = self.rows[number - 1]
        if self.about.kind is Kind.RECORDS:
            return record_line(number, row, self.about)
        mark = self._holding(number)
        return Line(number=number, text=row, at=mark.at, mission=mark.mission, type=mark.type)

    @property
    def newest(self) -> int:
        """No line of the file has a later time; known without a look at them."""
        if self.about.kind is Kind.RECORDS:
            return _LAST
        return self._begin + _DAY_LONG if self.about.kind is Kind.EPISODE else self.about.written

    def at(self, number: int) -> int:
        """When the line of that number was: what `line` says, quicker."""
        if self.about.kind is Kind.RECORDS:
            at = parse_iso(self._record_at(self.rows[number - 1]))
            return self.about.written if at is None else at
        return self._at(bisect_right(self._firsts, number) - 1)

    def best(self, number: int, matcher: Matcher) -> Match:
        """How well the line of that number can answer at most; quick."""
        row = self.rows[number - 1]
        if self.about.kind is Kind.RECORDS and "\\u" in row:
            return matcher.full
        return matcher.best(row)

    def candidates(self, matcher: Matcher) -> Iterator[int]:
        """The numbers of the lines that can hold a word of the query. The last one first: what is appended is newer."""
        numbers = matcher.lines(self.data)
        records = self.about.kind is Kind.RECORDS
        if numbers is not None:
            if records and _escape().search(self.data):
                # An escape can stand for any letter: such a line is looked at decoded.
                numbers |= {number for number, row in enumerate(self.rows) if "\\u" in row}
            yield from (number + 1 for number in sorted(numbers, reverse=True) if number < len(self))
            return
        for number in range(len(self), 0, -1):
            row = self.rows[number - 1]
            if (records and "\\u" in row) or matcher.could(row.lower() if row.isascii() else fold(row)):
                yield number

    @property
    def entries(self) -> list[Entry]:
        """The entries of an episode file, in the order in which they stand there."""
        return [self._told(place) for place in range(1, len(self._firsts))]

    def _told(self, place: int) -> Entry:
        mark, (first, end) = self._mark(place), self._span(place)
        text = "\n".join(self.rows[first - 1 : end]).strip()
        return Entry(at=mark.at, mission=mark.mission, type=mark.type, text=text)

    @cached_property
    def _firsts(self) -> list[int]:
        """The lines from which on something else holds: before the first, and each heading of an episode."""
        if self.about.kind is not Kind.EPISODE:
            return [0]
        rows = enumerate(self.rows, 1)
        return [0, *(number for number, row in rows if row.startswith("## ") and _ENTRY.fullmatch(row))]

    def _span(self, place: int) -> tuple[int, int]:
        """The first and the last line of a piece."""
        last = place + 1 == len(self._firsts)
        return self._firsts[place], len(self) if last else self._firsts[place + 1] - 1

    def _holding(self, number: int) -> Mark:
        """What holds in the line of that number."""
        return self._mark(bisect_right(self._firsts, number) - 1)

    def _mark(self, place: int) -> Mark:
        """What holds in a piece; found out when it is asked, since few of them are."""
        if place not in self._marks:
            self._marks[place] = self._found_mark(place)
        return self._marks[place]

    def _found_mark(self, place: int) -> Mark:
        if place == 0 and self._before.mark is not None:
            return self._mark_from_before(self._before.mark)
        return self._mark_of_entry(place) if self.about.kind is Kind.EPISODE else self._mark_of_file()

    @cached_property
    def _begin(self) -> int:
        """When the day of an episode begins."""
        begin = _begin(self.about.name)
        return self.about.written if begin is None else begin

    def _heading(self, place: int) -> re.Match[str] | None:
        first = self._firsts[place]
        return _ENTRY.fullmatch(self.rows[first - 1]) if first else None

    def _at(self, place: int) -> int:
        """When it was that a piece tells of."""
        if self.about.kind is not Kind.EPISODE:
            return self.about.written
        if place == 0:
            return self._before.mark.at if self._before.mark else self._begin
        if place not in self._times:
            heading = self._heading(place)
            at = parse_iso(f"{self.about.name.removesuffix('.md')}T{heading[1]}") if heading else None
            self._times[place] = self._begin if at is None else at
        return self._times[place]

    def _mark_of_file(self) -> Mark:
        mission = self.about.mission
        if self.about.kind is Kind.HANDOFF:
            from swarmmemd.handoff import named_mission  # brings the templates with it

            mission = named_mission(self.rows) or mission
        return Mark(self._at(0), mission, None)

    def _mark_from_before(self, mark: Mark) -> Mark:
        if mark.mission is not None or not self._before.heading:
            return mark
        return msgspec.structs.replace(mark, mission=self._named(*self._span(0)))

    def _mark_of_entry(self, place: int) -> Mark:
        heading = self._heading(place)
        if heading is None:
            return Mark(self._at(place), None, None)
        return Mark(
            self._at(place),
            self._named(*self._span(place)),
            EventType(heading[2]) if heading[2] in _TYPES else None,
        )

    def _named(self, first: int, last: int) -> MissionId | None:
        """The mission that is named between two lines, the first one left out."""
        named = (_MISSION.fullmatch(row) for row in self.rows[first:last])
        missions = (mission_id(found[1]) for found in named if found)
        return next((mission for mission in missions if mission is not None), None)


def record_line(number: int, row: str, about: About) -> Line:
    """A line of a file of records: its values, the summary first, each once. A line that is no JSON object is
    searched as it stands there."""
    found = json_object(row.encode(), as_written=True) if row.startswith("{") else Unreadable("no object")
    if isinstance(found, Unreadable):
        return Line(number=number, text=row, at=about.written, mission=about.mission, type=None)
    values: dict[str, None] = {}
    _collect(found.pop("summary", None), values)
    _collect(found.pop("event", None), values)
    _collect(found, values)
    at = parse_iso(found.get("at"))
    type = found.get("type")
    return Line(
        number=number,
        text=" · ".join(values),
        at=about.written if at is None else at,
        mission=mission_id(found.get("missionId")) or about.mission,
        type=EventType(type) if isinstance(type, str) and type in _TYPES else None,
    )


def _collect(value: Any, into: dict[str, None]) -> None:
    """Every text and number in a JSON value, in order."""
    ahead = [value]
    while ahead:
        value = ahead.pop()
        if isinstance(value, str):
            into.setdefault(value)
        elif isinstance(value, dict):
            ahead.extend(reversed(value.values()))
        elif isinstance(value, list):
            ahead.extend(reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            into.setdefault(str(value))
