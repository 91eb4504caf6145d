"""`SUMMARY.md` made right: what a merge would change is what is wrong, and what stands in a wrong place or twice. Pure.

docs/contracts.md, "Verify and rebuild".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from swarmmemd.mending.values import Fault, Mended, is_damaged
from swarmmemd.render.markdown import one_line
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
    is_h1,
    join,
    lines_of,
    parse,
)
from swarmmemd.render.summary import (
    OBJECTIVE,
    PLACEHOLDER,
    SECTIONS,
    STATE,
    STATE_KEYS,
    Ours,
    Summary,
    bodies,
    bullets_of,
    fresh,
    merge,
)

_OURS = {title.casefold(): title for title in SECTIONS}
_HEAD = re.compile(r"# Mission (\S+)")
_STANDING = re.compile(
    r"- (Status): [a-z]+|- (Current assignment): \S+|- (Last updated): \d{4}-\d\d-\d\dT[\d:.]+Z"
)
"""A bullet of Current state with such a value as we give it."""


def mission_named(data: bytes) -> str | None:
    """The mission that the first H1 of the file names."""
    found = next((line for line in _text(data).splitlines() if line.startswith("# ")), "")
    match = _HEAD.match(found)
    return match[1] if match else None


def mend_summary(
    data: bytes, summary: Summary, ours: Ours, other: Summary | None = None, others: Ours | None = None
) -> Mended:
    """What is wrong with our part of the file, and the file made right. `other` is the mission that its H1 names,
    where that is another one; `others` says which lines we rendered for that."""
    text = _text(data)

    def known(section: str, line: str) -> bool:
        return ours(section, line) or (others is not None and others(section, line))

    right = _of_this_mission(_without_cut(text, summary), summary, other)
    right = _in_order(merge(_Places(right, summary, known).put_right(), summary, known))
    if _says(text, summary) == _says(right, summary):
        return Mended(data, notes=tuple(_reworded(text, summary)))
    right = _as_new(right, summary)
    if not text.strip():
        return Mended(_bytes(right), (Fault(1, "it is missing" if not data else "it is empty"),))
    return Mended(_bytes(right), tuple(_faults(text, right)))


def _without_cut(text: str, summary: Summary) -> str:
    """The text without a last line that is only the beginning of one of ours: the file was cut off there."""
    last = text[text.rfind("\n") + 1 :]
    wanted = {*fresh(summary).splitlines(), *(line for _, line in bullets_of(summary))}
    cut = last.strip() and last not in wanted and any(line.startswith(last) for line in wanted)
    return text[: len(text) - len(last)] if cut else text


def _of_this_mission(text: str, summary: Summary, other: Summary | None) -> str:
    """The text under this mission's H1, and without the objective of the other one that its H1 names."""
    objective = one_line(other.objective) if other else ""
    lines = text.splitlines(keepends=True)
    inside = headed = False
    for at, line in enumerate(lines):
        one = line.rstrip("\r\n")
        if line.startswith("# ") and not headed:
            headed = True
            named = mission_named(_bytes(line)) or summary.mission
            if named != summary.mission and (other or is_damaged(_bytes(one), _bytes(_h1(summary)))):
                lines[at] = line.replace(one, _h1(summary))
        inside = (one.startswith("## ") and one[3:].strip() == OBJECTIVE) or (
            inside and not one.startswith("## ")
        )
        if inside and objective and one == objective:
            lines[at] = line.replace(one, PLACEHOLDER)
    right = "".join(lines)
    return right if headed or not text.strip() else f"{_h1(summary)}\n\n{right.lstrip(BLANKS)}"


def _h1(summary: Summary) -> str:
    return fresh(summary).partition("\n")[0]


class _Places:
    """Our lines that stand there twice, below no heading of ours, or in another order: put where they belong."""

    def __init__(self, text: str, summary: Summary, ours: Ours) -> None:
        self._eol, self._parts = eol_of(text), parse(text)
        self._mission = summary.mission
        self._wanted = _wanted(summary)
        self._ours = ours

    def put_right(self) -> str:
        """The text made right."""
        self._one_head()
        self._one_section_each()
        self._heading_changed()
        self._heading_lost()
        for part in self._parts:
            self._each_line_once(part)
        return join(self._parts)

    def _is_ours(self, title: str, line: str) -> bool:
        """Whether we rendered the line into this section."""
        if title == STATE:
            return _STANDING.fullmatch(line) is not None
        return line in self._wanted[title] or self._ours(title, line)

    def _one_head(self) -> None:
        """Of our H1 the first."""
        seen: set[str] = set()
        for part in self._parts:
            again = []
            for at, line in _plain(part):
                named = _HEAD.match(line)
                if named and named[1] == self._mission:
                    again += [at] if line in seen else []
                    seen.add(line)
            _take_out(part, again)
        self._parts = parse(join(self._parts))

    def _one_section_each(self) -> None:
        """Of two sections with the same title of ours the fuller one. What is ours leaves the other, and with nothing
        left in it that leaves, too."""
        for title in SECTIONS:
            same = [part for part in self._parts if _known_title(part) == title]
            fullest = max(
                same, key=lambda part: (len(self._mine(title, part)), len(part.lines)), default=None
            )
            for part in same:
                if part is not fullest:
                    _take_out(part, self._mine(title, part))
                    if all(blank(line) for line in part.lines[1:]):
                        part.lines, part.regions = [], []
            self._parts = [part for part in self._parts if part.lines or part is self._parts[0]]

    def _mine(self, title: str, part: Part) -> list[int]:
        return [at for at, line in _plain(part) if line == PLACEHOLDER or self._is_ours(title, line)]

    def _heading_changed(self) -> None:
        """A section stands where one of ours is missing, and holds just that, or nearly has its title."""
        for title in self._missing():
            at = self._place(title)
            part = self._parts[at] if at < len(self._parts) else None
            if part is None or part.title is None or _known_title(part):
                continue
            filled = [line for _, line in _plain(part)][1:]
            mine = bool(filled) and all(self._is_ours(title, line) for line in filled)
            if mine or is_damaged(_bytes(part.title), title.encode()):
                part.lines[0] = part.lines[0].replace(bare(part.lines[0]), f"## {title}")
                part.title = title

    def _heading_lost(self) -> None:
        """The lines of a section that is missing stand in the one before."""
        for title in self._missing():
            place = self._place(title)
            before = self._parts[place - 1]
            at = self._first_of(title, before)
            if at is not None:
                head = [f"## {title}{self._eol}", self._eol]
                new = Part(title, head + before.lines[at:], [0, 0, *before.regions[at:]])
                before.lines, before.regions = before.lines[:at], before.regions[:at]
                _take_out(before, _blanks_at_end(before)[1:])
                self._parts.insert(place, new)

    def _first_of(self, title: str, before: Part) -> int | None:
        """The first line in the section before that belongs into this one."""
        own = _known_title(before)
        lines = list(_plain(before))
        for at, line in lines[1:]:
            if self._is_ours(title, line) and not (own and self._is_ours(own, line)):
                return at
        nothing_to_say = len(lines) > 2 and lines[-1][1] == PLACEHOLDER and not self._wanted[title]
        return lines[-1][0] if nothing_to_say else None

    def _missing(self) -> list[str]:
        return [title for title in SECTIONS if find(self._parts, title) is None]

    def _place(self, title: str) -> int:
        """The index at which the section belongs: after the one before it in our order."""
        for earlier in reversed(SECTIONS[: SECTIONS.index(title)]):
            if (part := find(self._parts, earlier)) is not None:
                return next(at for at, one in enumerate(self._parts) if one is part) + 1
        return 1

    def _each_line_once(self, part: Part) -> None:
        """Of each line of ours the first; of the three of Current state the first of each name."""
        title = _known_title(part)
        seen: set[str] = set()
        again = []
        for at, line in self._of_nobody_else(title, part) if title else ():
            key = (_state_key(line) or line) if title == STATE else line
            if key in seen and (line == PLACEHOLDER or self._is_ours(title, line)):
                again.append(at)
            seen.add(key)
        _take_out(part, again)

    def _of_nobody_else(self, title: str, part: Part) -> Iterator[tuple[int, str]]:
        """The lines of a section that are not part of what somebody wrote: to a merge, too, a paragraph or a bullet
        with somebody's words in it is his."""
        theirs: set[int] = set()
        for block in blocks_of(part) if title != STATE else ():
            lines = [line for line in block.lines if not blank(line)]
            if not all(line == PLACEHOLDER or self._is_ours(title, line) for line in lines):
                theirs.update(range(block.start, block.end))
        return ((at, line) for at, line in _plain(part) if at not in theirs)


def _known_title(part: Part) -> str:
    """The title in our own spelling; empty for a section that is not ours."""
    return _OURS.get((part.title or "").casefold(), "")


def _state_key(line: str) -> str | None:
    """Which of the three bullets of Current state the line is, whatever it says."""
    return next((key for key in STATE_KEYS if line.startswith(f"- {key}:")), None)


def _plain(part: Part) -> Iterator[tuple[int, str]]:
    """The lines with something in them, outside of fences and comments."""
    for at, line in enumerate(part.lines):
        if not part.regions[at] and not blank(line):
            yield at, bare(line)


def _blanks_at_end(part: Part) -> list[int]:
    filled = max((at for at, line in enumerate(part.lines) if not blank(line)), default=-1)
    return list(range(filled + 1, len(part.lines)))


def _take_out(part: Part, gone: Sequence[int]) -> None:
    away = set(gone)
    left = [at for at in range(len(part.lines)) if at not in away]
    part.lines, part.regions = [part.lines[at] for at in left], [part.regions[at] for at in left]


def _in_order(text: str) -> str:
    """The three bullets of Current state, with what hangs on them, in their order at the places where they stand."""
    parts = parse(text)
    state = find(parts, STATE)
    if state is None:
        return text
    spots: dict[str, Block] = {}
    for block in blocks_of(state):
        if block.plain and (key := _state_key(block.lines[0])):
            spots.setdefault(key, block)
    there = sorted(spots.values(), key=lambda block: block.start)
    wanted = [spots[key] for key in STATE_KEYS if key in spots]
    lines, at = [], 0
    for one, other in zip(there, wanted, strict=True):
        lines += [*state.lines[at : one.start], *ended(state.lines[other.start : other.end], eol_of(text))]
        at = one.end
    state.lines = lines + state.lines[at:] if wanted != there else state.lines
    return join(parts)


def _wanted(summary: Summary) -> dict[str, set[str]]:
    """What we have to say in each section."""
    wanted: dict[str, set[str]] = {title: set() for title in SECTIONS}
    for title, line in bullets_of(summary):
        wanted[title].add(line)
    return wanted


def _as_new(text: str, summary: Summary) -> str:
    """As it is when first made, where nothing else stands in it: the blank lines are those of the template."""
    eol = eol_of(text)
    head, rest = next((line for line in lines_of(text) if is_h1(line)), ""), fresh(summary).partition("\n")[2]
    new = (bare(head) + "\n" + rest).replace("\n", eol)
    said = [[bare(line) for line in lines_of(one) if not blank(line)] for one in (text, new)]
    one, other = ([line for line in lines if line != PLACEHOLDER] for lines in said)
    return new if one == other else text


def _says(text: str, summary: Summary) -> list[tuple[str, list[str], list[str]]]:
    """Each section as what counts of it: our lines in their order, and all others in any. Where others put theirs
    among ours is their affair, and so are blank lines, and a placeholder that they took away."""
    wanted = _wanted(summary)
    found = []
    for part in parse(text):
        title = _known_title(part)
        ours: list[str] = []
        others: list[str] = []
        told = False
        for line in (line.rstrip() for line in part.lines):
            again, told = told, told or line == PLACEHOLDER
            if line and (line != PLACEHOLDER or again):
                mine = title and (line in wanted[title] or (title == STATE and _state_key(line)))
                (ours if mine or _HEAD.match(line) else others).append(line)
        found.append((title, ours, sorted(others)))
    return found


def _faults(text: str, right: str) -> list[Fault]:
    """One for each place that would be changed, with the section in which it is."""
    old, new = text.splitlines(), right.splitlines()
    places = SequenceMatcher(None, _told_apart(old), _told_apart(new), autojunk=False).get_opcodes()
    before, after = set(old), set(new)
    found: list[Fault] = []
    moved: list[Fault] = []
    for tag, start, end, new_start, new_end in places:
        wanted = next((line for line in new[new_start:new_end] if line.strip()), "")
        there = next((line for line in old[start:end] if line.strip()), "")
        if tag != "equal" and (wanted or there):
            section = _section(new, new_start) if tag == "insert" else _section(old, start)
            what = f"lacks {wanted[:120]!r}" if wanted else f"still has {there[:120]!r}"
            only_moved = (wanted in before) if wanted else (there in after)
            (moved if only_moved else found).append(Fault(start + 1, f"{section} {what}"))
    return found or moved or [Fault(1, "its blank lines differ")]


def _told_apart(lines: list[str]) -> list[tuple[str, str, int]]:
    """Each line with its section, and the how-manieth of its words it is there: texts of many equal lines are compared
    as fast as others."""
    seen: Counter[tuple[str, str]] = Counter()
    section = ""
    found = []
    for line in lines:
        section = line if line.startswith(("# ", "## ")) else section
        seen[section, line] += 1
        found.append((section, line, seen[section, line]))
    return found


def _reworded(text: str, summary: Summary) -> Iterator[Fault]:
    """What is filled once, and says something else than is recorded: that is everybody's right."""
    lines = text.splitlines()
    head = next((at for at, line in enumerate(lines) if line.startswith("# ")), 0)
    if lines and lines[head] != _h1(summary):
        yield Fault(head + 1, "the title is in somebody's words")
    objective = one_line(summary.objective)
    at = next((at for at, line in enumerate(lines) if line.casefold() == f"## {OBJECTIVE}".casefold()), None)
    if at is not None and objective and objective not in bodies(text).get(lines[at][3:], ""):
        yield Fault(at + 1, "the objective is in somebody's words")


def _section(lines: list[str], at: int) -> str:
    heads = (line for line in reversed(lines[: at + 1]) if line.startswith(("# ", "## ")))
    return next(heads, "the beginning").lstrip("# ")[:60]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
