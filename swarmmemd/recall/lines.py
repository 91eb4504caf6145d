"""A memory file to its lines: the text of each, and when, for which mission and by which event. Pure.

A line of JSON is searched by its values, any other by itself. docs/search.md, "Lines".
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from swarmmemd.handoff import read_handoff
from swarmmemd.model import EventType, MissionId, Unreadable, WorkerId, mission_id, parse_iso
from swarmmemd.recall.words import fold
from swarmmemd.sources.document import json_object

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_ENTRY = re.compile(r"## (\d{2}:\d{2}) UTC — ([a-z-]+)\s*")
_MISSION = re.compile(r"- Mission: (\S+)\s*")
_TYPES = frozenset(EventType)
_DASHES = ("—".encode(), b"-")


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


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line, counted from 1. `at` is ms: of the event it tells of, else when the file was written."""

    number: int
    text: str
    at: int
    mission: MissionId | None
    type: EventType | None


class _Entry(msgspec.Struct, frozen=True):
    """From which line on what holds, in an episode or a handoff."""

    first: int
    at: int
    mission: MissionId | None
    type: EventType | None


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
    return About(kind=kind, name=name, worker=worker, mission=mission, written=max(written, 0))


class Document:
    """The content of one memory file. Bytes that are no UTF-8 are read as U+FFFD."""

    def __init__(self, data: bytes, about: About) -> None:
        self.about = about
        self._data = data

    @cached_property
    def rows(self) -> list[str]:
        """The lines as they stand there, without their line breaks."""
        rows = self._data.decode("utf-8", "replace").split("\n")
        return rows[:-1] if rows[-1] == "" else rows

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, number: int) -> Line:
        """The line of that number."""
        row = self.rows[number - 1]
        if self.about.kind is Kind.RECORDS:
            return record_line(number, row, self.about)
        entry = self._entry(number)
        return Line(number=number, text=row, at=entry.at, mission=entry.mission, type=entry.type)

    def candidates(self, could: Callable[[str], bool]) -> Iterator[Line]:
        """The lines whose text can be one for which `could` holds; `could` is asked of folded texts."""
        if self._cannot(could):
            return
        records = self.about.kind is Kind.RECORDS
        for number, row in enumerate(self.rows, 1):
            # An escape can stand for any letter: such a line is looked at decoded.
            if (records and "\\u" in row) or could(row.lower() if row.isascii() else fold(row)):
                yield self.line(number)

    def _cannot(self, could: Callable[[str], bool]) -> bool:
        """Whether one look at the whole file rules it out. A dash, which headings have, is no letter."""
        plain = self._data.replace(*_DASHES)
        escaped = self.about.kind is Kind.RECORDS and b"\\u" in plain
        return not escaped and plain.isascii() and not could(plain.decode().lower())

    def _entry(self, number: int) -> _Entry:
        return self._entries[bisect_right(self._entries, number, key=lambda entry: entry.first) - 1]

    @cached_property
    def _entries(self) -> list[_Entry]:
        about = self.about
        if about.kind is Kind.EPISODE:
            return _episode_entries(self.rows, about)
        mission = about.mission
        if about.kind is Kind.HANDOFF and about.worker is not None:
            mission = read_handoff("\n".join(self.rows), about.worker).mission or mission
        return [_Entry(0, about.written, mission, None)]


def record_line(number: int, row: str, about: About) -> Line:
    """A line of a file of records: its values, the summary first, each once. A line that is no JSON object is
    searched as it stands there."""
    found = json_object(row.encode()) if row.startswith("{") else Unreadable("no object")
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


def _episode_entries(rows: list[str], about: About) -> list[_Entry]:
    day = about.name.removesuffix(".md")
    begin = parse_iso(day)
    entries = [_Entry(0, about.written if begin is None else begin, None, None)]
    for number, row in enumerate(rows, 1):
        if heading := _ENTRY.fullmatch(row):
            at = parse_iso(f"{day}T{heading[1]}")
            type = EventType(heading[2]) if heading[2] in _TYPES else None
            entries.append(_Entry(number, entries[0].at if at is None else at, None, type))
        elif (found := _MISSION.fullmatch(row)) and entries[-1].mission is None and entries[-1].first:
            entries[-1] = msgspec.structs.replace(entries[-1], mission=mission_id(found[1]))
    return entries
