"""Search of the memory files as they are now. docs/search.md.

What a search finds is defined by `scan`, which reads every file. The index may only be quicker.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from swarmmemd.config import Config
from swarmmemd.durable import Directory
from swarmmemd.errors import Exit, UsageError
from swarmmemd.layout import SEARCH
from swarmmemd.model import EventType, MissionId, WorkerId, iso, mission_id, worker_id
from swarmmemd.recall.lines import About, Document, Kind, Line, beginning_of
from swarmmemd.recall.tree import LIMIT, MemoryPath, Walk, read, walk_of
from swarmmemd.recall.troubles import Trouble, code_of
from swarmmemd.recall.words import WIDTH, Match, Matcher, Query, around, fold, parse_query, snippet
from swarmmemd.text import one_row, utf8

if TYPE_CHECKING:
    from swarmmemd.redact import Redactor

Files = Iterable[tuple[MemoryPath, Directory]]
Wants = Callable[[Document, int], bool]

_AROUND = 20_000
"""Characters of a long line, around the first word, that are looked through for secrets before it is cut."""


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for, and where. `since` is ms; `context` is how many lines around each hit are wanted."""

    text: str
    worker: str | None = None
    mission: str | None = None
    type: str | None = None
    since: int | None = None
    scope: str = "worker"
    limit: int = 10
    context: int = 0


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was found. Its texts are harmless on a terminal; `at` is ms."""

    path: str
    line: int
    score: int
    snippet: str
    worker: WorkerId | None
    mission: MissionId | None
    type: EventType | None
    at: int
    context: tuple[tuple[int, str], ...] = ()


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The hits, the best first; the folders that were searched; and what could not be read."""

    hits: tuple[Hit, ...]
    looked: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    query: Query


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines count beside their words."""

    mission: MissionId | None
    type: str | None
    since: int | None

    def holds(self, at: int, mission: str | None, type: str | None) -> bool:
        """Whether such a line counts."""
        return (
            (self.mission is None or mission == self.mission)
            and (self.type is None or type == self.type)
            and (self.since is None or at >= self.since)
        )


class Ranked(NamedTuple):
    """A line that answers the query. Ordered: the best first, then the newest, then by place."""

    worse: tuple[bool, int, int]
    path: str
    number: int
    line: Line
    match: Match
    file: MemoryPath
    document: Document | None


def ranked(match: Match, line: Line, file: MemoryPath, document: Document | None) -> Ranked:
    """The line in its rank."""
    key = (not match.phrase, -match.count, -line.at)
    return Ranked(key, file.path, line.number, line, match, file, document)


def wanted(query: SearchQuery) -> tuple[WorkerId | None, Wanted]:
    """The ids of the query, checked. Raises `UsageError`."""
    worker = worker_id(query.worker) if query.worker is not None else None
    if query.worker is not None and worker is None:
        raise UsageError(f"{query.worker!r} is no worker id", "Letters, digits, - and _, at most 64.")
    mission = mission_id(query.mission) if query.mission is not None else None
    if query.mission is not None and mission is None:
        raise UsageError(f"{query.mission!r} is no mission id", "Letters, digits and _.:- , at most 128.")
    if not query.text.strip():
        raise UsageError("There is nothing to search for", 'Give a word: swarmmemd search "parser"')
    return worker, Wanted(mission=mission, type=query.type, since=query.since)


def has_index(config: Config) -> bool:
    """Whether there is an index; who may not look into the state folder searches without."""
    try:
        return (config.state_dir / SEARCH).exists()
    except OSError:
        return False


def scan(config: Config, query: SearchQuery) -> Results:
    """Searches by reading every file. Raises `UsageError`."""
    worker, filters = wanted(query)
    words = parse_query(query.text)
    walk = walk_of(config, worker, query.scope)
    found = best_of(walk, walk, Matcher(words), filters, query.limit) if words.sequence else []
    return results(found, config, query, words, walk)


class _Best:
    """The best lines so far, at most `limit`. Most of many hits are not among the best, and what says so is told by
    a glance: then they are neither decoded nor folded."""

    def __init__(self, limit: int, matcher: Matcher) -> None:
        self._limit, self._matcher = limit, matcher
        self.found: list[Ranked] = []

    def add(self, one: Ranked) -> None:
        """Takes a line, and drops the worst where there are too many."""
        insort(self.found, one)
        del self.found[self._limit :]

    def wants(self, document: Document, number: int) -> bool:
        """Whether that line could be among the best; 0: whether any line of the file could."""
        if len(self.found) < self._limit:
            return True
        (no_phrase, fewer, older), *_ = self.found[-1]
        best = document.best(number, self._matcher) if number else self._matcher.full
        if (not best.phrase, -best.count) != (no_phrase, fewer):
            return (not best.phrase, -best.count) < (no_phrase, fewer)
        return (document.at(number) if number else document.newest) >= -older


def best_of(files: Files, walk: Walk, matcher: Matcher, filters: Wanted, limit: int) -> list[Ranked]:
    """The best lines of these files of a walk, in their order."""
    best = _Best(limit, matcher)
    for one in scanned(files, walk, matcher, filters, best.wants):
        best.add(one)
    return best.found


def scanned(
    files: Files, walk: Walk, matcher: Matcher, filters: Wanted, wants: Wants = lambda *_: True
) -> Iterator[Ranked]:
    """Every line of these files of a walk that answers and is wanted, in no order."""
    for file, folder in files:
        try:
            found = read(file, folder)
        except OSError as error:
            walk.trouble(file.path, error)
            continue
        if found is None:
            continue
        document, signature = found
        if signature.size > LIMIT:
            walk.troubles.append(Trouble(f"{file.path}: only its first {LIMIT} bytes were searched"))
        if wants(document, 0):
            yield from _answers(file, document, matcher, filters, wants)


def _answers(
    file: MemoryPath, document: Document, matcher: Matcher, filters: Wanted, wants: Wants
) -> Iterator[Ranked]:
    """The lines of one file that answer and are wanted."""
    for number in document.candidates(matcher):
        if not wants(document, number):
            continue
        line = document.line(number)
        if not filters.holds(line.at, line.mission, line.type):
            continue
        match = matcher.match(fold(line.text))
        if match is not None and not is_copy(document, line, match, matcher):
            yield ranked(match, line, file, document)


def is_copy(document: Document, line: Line, match: Match, matcher: Matcher) -> bool:
    """Whether another writer's record only says again what a record of ours in the file says, which is found as
    well. docs/contracts.md, "Beside another writer"."""
    worker, row = document.about.worker, document.rows[line.number - 1]
    if worker is None or not is_record_of_others(row, document.about):
        return False
    from swarmmemd.foreign import Foreign, same
    from swarmmemd.record import decode

    other = decode(row.encode(), worker)
    if not isinstance(other, Foreign) or not other.text.strip():
        return False
    beginning = beginning_of(other.text)
    return any(
        event.mission == other.mission
        and same(event, other)
        and (ours := matcher.match(fold(document.line(number).text))) is not None
        and ours >= match
        for number, event in document.said.get(beginning, ())
    )


def is_record_of_others(row: str, about: About) -> bool:
    """Whether the line can be a record that another writer left among ours."""
    return about.kind is Kind.RECORDS and row.startswith("{") and '"id":"ev_' not in row


def results(found: Iterable[Ranked], config: Config, query: SearchQuery, words: Query, walk: Walk) -> Results:
    """What is shown of the lines that were found."""
    shown = _Shown(config, query, words)
    return Results(
        hits=tuple(map(shown.hit, found)),
        looked=tuple(str(area.path) for area in walk.areas),
        troubles=tuple(walk.troubles),
        query=words,
    )


def shown(text: str, found: Results) -> dict[str, Any]:
    """The answer to the query `text` as the object that is printed or sent. docs/commands.md, "search"."""
    well = code_of(found.hits, found.troubles) <= Exit.NOTHING
    return {"ok": well, "query": utf8(text), "results": [_object(hit) for hit in found.hits]}


def _object(hit: Hit) -> dict[str, Any]:
    object: dict[str, Any] = {
        "path": utf8(hit.path),
        "line": hit.line,
        "score": hit.score,
        "snippet": hit.snippet,
        "workerId": hit.worker,
        "missionId": hit.mission,
        "at": iso(hit.at),
        "type": hit.type.value if hit.type else None,
    }
    if hit.context:
        object["context"] = [{"line": number, "text": text} for number, text in hit.context]
    return object


class _Shown:
    """Makes hits: texts without secrets, on one line, harmless. The rules are loaded when a text needs them."""

    def __init__(self, config: Config, query: SearchQuery, words: Query) -> None:
        self._config, self._query, self._words = config, query, words

    @cached_property
    def _redactor(self) -> "Redactor":
        from swarmmemd.redact import Redactor

        return Redactor(self._config.redact.patterns, self._config.redact.allow)

    def _safe(self, text: str) -> str:
        from swarmmemd.recall.suspicion import could_hold_secret  # patterns that only a hit needs

        if not (self._config.redact.patterns or could_hold_secret(text)):
            return text
        return self._redactor.redact(text).text

    def hit(self, one: Ranked) -> Hit:
        """What is shown of one line. It is redacted before it is cut: half a token is not recognised."""
        text = self._safe(around(one.line.text, self._words, _AROUND))
        return Hit(
            path=one.path,
            line=one.number,
            score=one.match.score,
            snippet=one_row(snippet(text, self._words), 8 * WIDTH),
            worker=one.file.about.worker,
            mission=one.line.mission,
            type=one.line.type,
            at=one.line.at,
            context=self._context(one),
        )

    def _context(self, one: Ranked) -> tuple[tuple[int, str], ...]:
        """The lines around it, the hit itself left out."""
        document, count = one.document, self._query.context
        if not count or document is None:
            return ()
        first, last = max(one.number - count, 1), min(one.number + count, len(document))
        texts = {n: document.line(n).text[:_AROUND] for n in range(first, last + 1) if n != one.number}
        return tuple((number, one_row(self._safe(text), 400)) for number, text in texts.items())
