"""`SUMMARY.md` made right: what a merge would change is what is wrong. Pure.

docs/contracts.md, "Verify and rebuild".
"""

import re
from difflib import SequenceMatcher

from swarmmemd.mending.values import Fault, Mended
from swarmmemd.render.markdown import one_line
from swarmmemd.render.summary import (
    OBJECTIVE,
    PLACEHOLDER,
    SECTIONS,
    Ours,
    Summary,
    bodies,
    bullets_of,
    fresh,
    merge,
)

_OURS = frozenset(title.casefold() for title in SECTIONS)
_HEAD = re.compile(r"# Mission (\S+)")


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
    right = _without_cut(text, summary)
    if text.strip() and not any(line.startswith("# ") for line in text.splitlines()):
        right = f"{_h1(summary)}\n\n{right}"
    if other is not None:
        right = _of_this_mission(right, summary, other)

    def known(section: str, line: str) -> bool:
        return ours(section, line) or (others is not None and others(section, line))

    right = merge(right, summary, known)
    if right == text or _says(text, summary) == _says(right, summary):
        return Mended(data)
    if not text.strip():
        return Mended(_bytes(right), (Fault(1, "it is missing" if not data else "it is empty"),))
    return Mended(_bytes(right), tuple(_faults(text, right)))


def _without_cut(text: str, summary: Summary) -> str:
    """The text without a last line that is only the beginning of one of ours: the file was cut off there."""
    last = text[text.rfind("\n") + 1 :]
    wanted = {*fresh(summary).splitlines(), *(line for _, line in bullets_of(summary))}
    cut = last.strip() and last not in wanted and any(line.startswith(last) for line in wanted)
    return text[: len(text) - len(last)] if cut else text


def _of_this_mission(text: str, summary: Summary, other: Summary) -> str:
    """The text under this mission's H1 and without the other one's objective."""
    objective = one_line(other.objective)
    lines = text.splitlines(keepends=True)
    inside = False
    for at, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        if line.startswith("# ") and mission_named(line.encode("utf-8", "replace")) == other.mission:
            lines[at] = line.replace(bare, _h1(summary))
        inside = (bare.startswith("## ") and bare[3:].strip() == OBJECTIVE) or (
            inside and not bare.startswith("## ")
        )
        if inside and objective and bare == objective:
            lines[at] = line.replace(bare, PLACEHOLDER)
    return "".join(lines)


def _h1(summary: Summary) -> str:
    return fresh(summary).partition("\n")[0]


def _says(text: str, summary: Summary) -> dict[str, tuple[list[str], list[str]]]:
    """Each section as what counts of it: our lines in their order, and all others in any. Where others put theirs
    among ours is their affair, and so is a placeholder that they took away."""
    wanted = set(bullets_of(summary))
    head = next((line for line in text.splitlines() if line.startswith("# ")), "")
    found: dict[str, tuple[list[str], list[str]]] = {"": ([head], [])}
    for title, body in bodies(text).items():
        ours, others = found.setdefault(title.casefold(), ([], []))
        for line in (line.rstrip() for line in body.splitlines()):
            if line and line != PLACEHOLDER:
                (ours if (title, line) in wanted else others).append(line)
        others.sort()
    return {title: said for title, said in found.items() if any(said) or title in _OURS}


def _faults(text: str, right: str) -> list[Fault]:
    """One for each place that would be changed, with the section in which it is."""
    old, new = text.splitlines(), right.splitlines()
    found = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        section = _section(new, new_start) if tag == "insert" else _section(old, start)
        wanted = next((line for line in new[new_start:new_end] if line.strip()), "")
        there = next((line for line in old[start:end] if line.strip()), "")
        what = f"lacks {wanted[:120]!r}" if wanted else f"still has {there[:120]!r}"
        if wanted or there:
            found.append(Fault(start + 1, f"{section} {what}"))
    return found or [Fault(1, "its blank lines differ")]


def _section(lines: list[str], at: int) -> str:
    heads = (line for line in reversed(lines[: at + 1]) if line.startswith(("# ", "## ")))
    return next(heads, "the beginning").lstrip("# ")[:60]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
