"""SUMMARY.md of one mission: made, kept true in place, brought together. docs/contracts.md, SUMMARY.md.

The file belongs to several writers. Ours is what we rendered for an event of the mission; every other byte is
somebody else's and stays. So the text is taken apart into lines that keep their ends, and only lines of ours
are ever left out. Pure: values in, text out.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from swarmmemd.model import MissionId, Status, iso
from swarmmemd.render.markdown import bullet, one_line
from swarmmemd.render.sections import (
    BLANKS,
    Block,
    Part,
    bare,
    blank,
    blocks_of,
    ended,
    eol_of,
    find,
    is_item,
    join,
    lines_of,
    parse,
    regions_of,
    title_of,
)

STATE = "Current state"
OBJECTIVE = "Objective"
DECISIONS = "Decisions"
FILES = "Files touched"
CHECKPOINTS = "Checkpoints"
BLOCKERS = "Blockers"
NEXT = "Next action"
SECTIONS = (STATE, OBJECTIVE, DECISIONS, FILES, CHECKPOINTS, BLOCKERS, NEXT)

PLACEHOLDER = "- None yet."
_TEMPLATE = frozenset({PLACEHOLDER, "- ...", "..."})
_PLACEHOLDERS = {OBJECTIVE: _TEMPLATE | {"<mission objective>"}}
_LISTS = frozenset({DECISIONS, FILES, CHECKPOINTS, BLOCKERS})
STATE_KEYS = ("Status", "Current assignment", "Last updated")

# Its number changes with every event: it is known by its shape, lest each earlier number stay as a foreign
# line.
_MORE_STARTS = "- …"
_MORE = re.compile(r"- … and [0-9]+ more in events\.jsonl")
Ours = Callable[[str, str], bool]
"""(section title, rendered bullet or paragraph): we rendered exactly this for an event of this mission."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known to be true of one mission. The texts are raw. docs/contracts.md, SUMMARY.md."""

    mission: MissionId
    title: str
    status: Status
    assignment: str | None
    updated: int
    objective: str = ""
    """Filled in once."""
    decisions: tuple[str, ...] = ()
    """Oldest first."""
    files: tuple[str, ...] = ()
    files_more: int = 0
    checkpoints: tuple[str, ...] = ()
    """Newest last, each `<ISO>: <STATE> — <result>`."""
    checkpoints_more: int = 0
    blockers: tuple[str, ...] = ()
    """The open ones."""
    next_action: str | None = None
    """Of the newest checkpoint. None: there is no checkpoint. Empty: the newest one names none."""


def is_whole(text: str) -> bool:
    """It has its H1. A file without it is being written. docs/contracts.md, SUMMARY.md."""
    for line in lines_of(text.removeprefix("\ufeff")):
        if not blank(line):
            return line.startswith("# ")
    return False


def sections(text: str) -> tuple[str, ...]:
    """The titles of the H2 sections in order; those in fences and comments are none."""
    return tuple(part.title for part in parse(text) if part.title is not None)


def bodies(text: str) -> dict[str, str]:
    """The text of each H2 section by its title, without the heading; of two with one title the first."""
    found: dict[str, str] = {}
    for part in parse(text):
        if part.title is not None:
            found.setdefault(part.title, "".join(part.lines[1:]).strip())
    return found


def bullets_of(summary: Summary) -> list[tuple[str, str]]:
    """(section, line) of all that is ours by being remembered. docs/contracts.md, SUMMARY.md.

    The three lines of Current state are not among them: those are ours by their names.
    """
    return [(title, line) for title in SECTIONS[1:] for line in _wanted(title, summary)]


def lines_of_section(title: str, texts: Sequence[str], more: int = 0) -> list[str]:
    """These texts as lines of ours in the section `title`, each once. `more`: so many are not among them."""
    if title in _LISTS:
        return _bullets(sorted(texts) if title == FILES else texts, more)
    return [line for text in texts if (line := one_line(text))]


def fresh(summary: Summary) -> str:
    """The file as first made, by the specification's template. docs/contracts.md, SUMMARY.md."""
    title = one_line(summary.title)
    head = f"# Mission {summary.mission}" + (f" — {title}" if title else "")
    parts = ["".join(_new_section(name, summary, "\n")) for name in SECTIONS]
    return "\n".join([head + "\n", *parts])


def merge(text: str, summary: Summary, ours: Ours) -> str:
    """`text` with the owned parts made true; all else is kept. docs/contracts.md, SUMMARY.md. Idempotent."""
    if blank(text):
        return fresh(summary)
    eol, parts = eol_of(text), parse(text)
    for title in SECTIONS:
        part = find(parts, title)
        if part is None:
            _insert(parts, _place(parts, title), _new_section(title, summary, eol), eol)
        else:
            part.lines = _update(title, part, summary, ours, eol, part is parts[-1])
    return join(parts)


def rescue(text: str, other: str, ours: Ours) -> str:
    """`text` with what stands in `other` and is neither ours nor in `text`. docs/contracts.md, SUMMARY.md.

    `other` is what somebody wrote while we did. Nothing is removed; what is there is not written again.
    """
    eol, parts, theirs = eol_of(text), parse(text), parse(other)
    _rescue_part(parts[0], theirs[0], "", ours, eol, len(parts) == 1)
    for title in SECTIONS:
        if (their := find(theirs, title)) is not None:
            _rescue_known(parts, their, title, ours, eol)
    _rescue_unknown(parts, theirs, ours, eol)
    return join(parts)


# --- putting together ---------------------------------------------------------------------------------------


def _place(parts: list[Part], title: str) -> int:
    """Where a missing section goes: after the one before it in the specification's order."""
    for earlier in reversed(SECTIONS[: SECTIONS.index(title)]):
        if (part := find(parts, earlier)) is not None:
            return next(at for at, one in enumerate(parts) if one is part) + 1
    return 1


def _insert(parts: list[Part], at: int, lines: list[str], eol: str) -> None:
    before = parts[at - 1]
    before.lines = ended(before.lines, eol)
    if before.lines and not blank(before.lines[-1]):
        before.lines.append(eol)
    before.regions += [0] * (len(before.lines) - len(before.regions))
    new = [*lines, eol] if at < len(parts) else list(lines)
    parts.insert(at, Part(title_of(lines[0]), new, [0] * len(new)))


def _new_section(title: str, summary: Summary, eol: str) -> list[str]:
    body = _standing(summary) if title == STATE else _wanted(title, summary) or [PLACEHOLDER]
    return [line + eol for line in (f"## {title}", "", *body)]


def _standing(summary: Summary) -> list[str]:
    return [f"- {key}: {value}" for key, value in _values(summary).items()]


def _values(summary: Summary) -> dict[str, str]:
    assignment = one_line(summary.assignment or "") or "none"
    return dict(zip(STATE_KEYS, (summary.status.value, assignment, iso(summary.updated)), strict=True))


def _wanted(title: str, summary: Summary) -> list[str]:
    """The lines of ours in the section `title`; none if there is nothing to say."""
    texts, more = _said(title, summary)
    return lines_of_section(title, texts, more)


def _said(title: str, summary: Summary) -> tuple[Sequence[str], int]:
    """What the summary says in the section, and how many more there are."""
    if title in (OBJECTIVE, NEXT):
        return (summary.objective if title == OBJECTIVE else summary.next_action or "",), 0
    if title == FILES:
        return summary.files, summary.files_more
    if title == CHECKPOINTS:
        return summary.checkpoints, summary.checkpoints_more
    return summary.decisions if title == DECISIONS else summary.blockers, 0


def _bullets(values: Sequence[str], more: int = 0) -> list[str]:
    if not values and more <= 0:
        return []
    lines = dict.fromkeys([line for line in map(bullet, values) if line != "- "])
    return [*lines, f"- … and {more} more in events.jsonl"] if more > 0 else list(lines)


def _update(title: str, part: Part, summary: Summary, ours: Ours, eol: str, last: bool) -> list[str]:
    """The lines of a section that is there, made true."""
    if title == STATE:
        return _update_state(part, _values(summary), eol, last)
    wanted = _wanted(title, summary)
    if title == OBJECTIVE:
        return _update_objective(part, wanted, eol, last)
    if title == NEXT and summary.next_action is None:
        return part.lines
    return _update_owned(title, part, wanted, ours, eol, last)


def _update_state(part: Part, values: dict[str, str], eol: str, last: bool) -> list[str]:
    lines, missing = list(part.lines), []
    for key, value in values.items():
        at = _key_at(part, key)
        if at is None:
            missing.append(f"- {key}: {value}{eol}")
        else:
            lines[at] = _with_value(lines[at], key, value)
    return _put_first(lines, missing, eol, last) if missing else lines


def _key_at(part: Part, key: str) -> int | None:
    begin = f"- {key}:"
    spots = (at for at, line in enumerate(part.lines) if line.startswith(begin) and not part.regions[at])
    return next(spots, None)


def _with_value(line: str, key: str, value: str) -> str:
    """The bullet with its new value; blanks and a comment after the value are somebody's and stay."""
    begin = len(f"- {key}:")
    told = line[begin:].rstrip(BLANKS)
    rest = line[begin + len(told) :]
    if told.endswith("-->") and (comment := told.find("<!--")) >= 0:
        end = len(told[:comment].rstrip(BLANKS))
        told, rest = told[:end], told[end:] + rest
    return f"- {key}: {value}{rest}"


def _put_first(lines: list[str], group: list[str], eol: str, last: bool) -> list[str]:
    """`group` as the first thing below the heading; blank lines that are there are used, not added to."""
    head, rest = ended(lines[:1], eol), lines[1:]
    joins = bool(rest) and is_item(group[-1]) and is_item(rest[0])
    if rest and blank(rest[0]):
        head, rest = head + ended(rest[:1], eol), rest[1:]
        joins = bool(rest) and is_item(group[-1]) and is_item(rest[0])
    elif not joins:
        head = [*head, eol]
    apart = (not last if not rest else not blank(rest[0])) and not joins
    return [*head, *group, *([eol] if apart else []), *rest]


def _update_objective(part: Part, wanted: list[str], eol: str, last: bool) -> list[str]:
    """Filled in once: whatever stands there and is no placeholder stays."""
    blocks = blocks_of(part)
    if not wanted or len(blocks) > 1:
        return part.lines
    if not blocks:
        return _put_first(part.lines, [wanted[0] + eol], eol, last)
    if not _is_placeholder(OBJECTIVE, blocks[0]):
        return part.lines
    at = blocks[0].start
    end = part.lines[at][len(blocks[0].lines[0]) :]
    return [*part.lines[:at], wanted[0] + end, *part.lines[at + 1 :]]


def _is_placeholder(title: str, block: Block) -> bool:
    known = _PLACEHOLDERS.get(title, _TEMPLATE)
    return block.plain and len(block.lines) == 1 and block.lines[0].rstrip(BLANKS) in known


def _is_ours(title: str, block: Block, ours: Ours) -> bool:
    """We rendered exactly this. A bullet on which somebody hung a further line is theirs."""
    if not block.plain or len(block.lines) != 1:
        return False
    line = block.lines[0]
    more = (
        title in (FILES, CHECKPOINTS) and line.startswith(_MORE_STARTS) and _MORE.fullmatch(line) is not None
    )
    return more or _is_placeholder(title, block) or ours(title, line)


def _update_owned(title: str, part: Part, wanted: list[str], ours: Ours, eol: str, last: bool) -> list[str]:
    """A section with lines of ours: those are replaced as a group, the others stay as they are."""
    if _is_as_new(part, wanted or [PLACEHOLDER], eol):
        return part.lines
    blocks, known = blocks_of(part), set(wanted)
    mine = [
        one for one in blocks if _is_ours(title, one, lambda name, line: line in known or ours(name, line))
    ]
    mine_at = {one.start for one in mine}
    foreign = [one for one in blocks if one.start not in mine_at]
    # A foreign bullet that begins with the same words says it already.
    said = {one.lines[0].rstrip(BLANKS) for one in foreign if one.plain}
    group = [line for line in wanted if line not in said]
    if not group and not foreign:
        group = [PLACEHOLDER]
    if _stands(title, mine, foreign, group):
        return part.lines
    return _regroup(title, part, mine_at, foreign, [line + eol for line in group], eol, last)


def _is_as_new(part: Part, group: list[str], eol: str) -> bool:
    """Nothing but our lines stands there, as they should be: most sections, with most events."""
    body = [eol, *[line + eol for line in group]]
    if any(part.regions) or part.lines[1 : len(body) + 1] != body:
        return False
    return part.lines[len(body) + 1 :] in ([], [eol])


def _stands(title: str, mine: list[Block], foreign: list[Block], group: list[str]) -> bool:
    """Our lines are already what they should be, and where."""
    if [one.lines[0] for one in mine] != group:
        return False
    if not mine or not foreign:
        return True
    return mine[-1].start < foreign[0].start if title == NEXT else foreign[-1].start < mine[0].start


def _regroup(
    title: str, part: Part, mine_at: set[int], foreign: list[Block], group: list[str], eol: str, last: bool
) -> list[str]:
    if title == NEXT:
        rest = _without_paragraphs(part.lines, mine_at, bool(foreign))
        return _put_first(rest, group, eol, last) if group else rest
    rest = [line for at, line in enumerate(part.lines) if at not in mine_at]
    follows_item = bool(foreign) and foreign[-1].plain and is_item(foreign[-1].lines[0])
    return _put_last(rest, group, follows_item, eol, last) if group else rest


def _without_paragraphs(lines: list[str], mine_at: set[int], foreign: bool) -> list[str]:
    """`lines` without our paragraphs, each with one blank line below it if somebody's text stays."""
    gone = set(mine_at)
    for at in mine_at:
        if foreign and at + 1 < len(lines) and blank(lines[at + 1]):
            gone.add(at + 1)
    return [line for at, line in enumerate(lines) if at not in gone]


def _put_last(rest: list[str], group: list[str], follows_item: bool, eol: str, last: bool) -> list[str]:
    """`group` after all that is there, before the blank lines at the end of the section."""
    filled = len(rest)
    while blank(rest[filled - 1]):
        filled -= 1
    head, tail = ended(rest[:filled], eol), rest[filled:]
    if not follows_item:
        head, tail = [*head, *(ended(tail[:1], eol) or [eol])], tail[1:]
    if not tail and not last:
        tail = [eol]
    return [*head, *group, *tail]


# --- bringing two versions together -------------------------------------------------------------------------


def _rescue_known(parts: list[Part], their: Part, title: str, ours: Ours, eol: str) -> None:
    part = find(parts, title)
    if part is None:
        if not any(_is_news(title, one, set(), ours) for one in _their_blocks(title, their)):
            return
        _insert(parts, _place(parts, title), [f"## {title}{eol}"], eol)
        part = find(parts, title)
        assert part is not None
    _rescue_part(part, their, title, ours, eol, part is parts[-1])


def _their_blocks(title: str, their: Part) -> Iterator[Block]:
    """The blocks of a section; of the three bullets that are ours by name only what somebody hung on them."""
    begins = tuple(f"- {key}:" for key in STATE_KEYS)
    for block in blocks_of(their):
        if title != STATE or not block.plain or not block.lines[0].startswith(begins):
            yield block
        elif len(block.lines) > 1:
            yield Block(block.start + 1, block.end, block.lines[1:], True)


def _is_news(title: str, block: Block, there: set[str], ours: Ours) -> bool:
    """Somebody else's, and at least one of its lines is not there."""
    if title in SECTIONS and _is_ours(title, block, ours):
        return False
    return any(line not in there for line in block.lines if not blank(line))


def _rescue_part(part: Part, their: Part, title: str, ours: Ours, eol: str, last: bool) -> None:
    """Adds to `part` the blocks of `their` that are news. A block that grew is continued where it stands."""
    there = {bare(line) for line in part.lines}
    blocks = blocks_of(part)
    begun = {one.lines[0]: one for one in reversed(blocks)}
    longer: dict[int, list[str]] = {}
    added: list[list[str]] = []
    for block in _their_blocks(title, their):
        if not _is_news(title, block, there, ours):
            continue
        there.update(block.lines)
        stem = begun.get(block.lines[0])
        if stem is not None and block.lines[: len(stem.lines)] == stem.lines and stem.end not in longer:
            longer[stem.end] = [line + eol for line in block.lines[len(stem.lines) :]]
        else:
            added.append([line + eol for line in block.lines])
    if longer or added:
        at = _foreign_end(part, blocks, title, ours)
        part.lines = _with_news(part.lines, at, longer, added, eol, last)
        part.regions = regions_of(part.lines)


def _foreign_end(part: Part, blocks: list[Block], title: str, ours: Ours) -> int:
    """Where news goes: after what is not ours; with nothing there, before ours or below the heading."""
    listed = title in _LISTS
    foreign = [one for one in blocks if not listed or not _is_ours(title, one, ours)]
    if foreign:
        return foreign[-1].end
    if blocks:
        return blocks[0].start
    filled = len(part.lines)
    while filled and blank(part.lines[filled - 1]):
        filled -= 1
    return filled


def _with_news(
    lines: list[str], at: int, longer: dict[int, list[str]], added: list[list[str]], eol: str, last: bool
) -> list[str]:
    result: list[str] = []
    for index in range(len(lines) + 1):
        if index in longer:
            result = ended(result, eol) + longer[index]
        if index == at and added:
            result = ended(result, eol) + _spaced(result, added, lines[at:], eol, last)
        result += lines[index : index + 1]
    return result


def _spaced(before: list[str], added: list[list[str]], after: list[str], eol: str, last: bool) -> list[str]:
    """The blocks `added` with blank lines where two that meet are not both bullets."""
    result: list[str] = []
    previous = next((line for line in reversed(before) if line[:1] not in (" ", "\t")), "")
    for block in added:
        meets = before[-1:] if not result else result[-1:]
        bulleted = is_item(previous) and is_item(block[0])
        if meets and not blank(meets[0]) and not bulleted:
            result.append(eol)
        result += block
        previous = block[0]
    joins = bool(after) and (blank(after[0]) or (is_item(previous) and is_item(after[0])))
    return result if joins or (not after and last) else [*result, eol]


def _rescue_unknown(parts: list[Part], theirs: list[Part], ours: Ours, eol: str) -> None:
    """Sections that the specification does not know: equal ones first, then by title, the rest at the end."""
    mine, rest = _unknown(parts), []
    whole: dict[tuple[str, ...], list[Part]] = {}
    for part in mine:
        whole.setdefault(_content(part), []).append(part)
    taken: set[int] = set()
    for their in _unknown(theirs):
        same = whole.get(_content(their))
        if same:
            taken.add(id(same.pop() if len(same) > 1 else same[0]))
        else:
            rest.append(their)
    free: dict[str, list[Part]] = {}
    for part in reversed(mine):
        if id(part) not in taken:
            free.setdefault(bare(part.lines[0]), []).append(part)
    for their in rest:
        _rescue_section(parts, their, free.get(bare(their.lines[0]), []), ours, eol)


def _rescue_section(parts: list[Part], their: Part, free: list[Part], ours: Ours, eol: str) -> None:
    if free:
        part = free.pop()
        _rescue_part(part, their, "", ours, eol, part is parts[-1])
    else:
        _insert(parts, len(parts), [line + eol for line in _content(their)], eol)


def _unknown(parts: list[Part]) -> list[Part]:
    known = [id(part) for title in SECTIONS if (part := find(parts, title)) is not None]
    return [part for part in parts[1:] if id(part) not in known]


def _content(part: Part) -> tuple[str, ...]:
    """Its lines without their ends and without the blank ones at its end."""
    lines = [bare(line) for line in part.lines]
    while lines and blank(lines[-1]):
        lines.pop()
    return tuple(lines)
