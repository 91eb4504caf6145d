"""Recorded texts put together for a reader that is an agent: fenced, with source and age, within a budget. Pure.

docs/resume.md, "Form" and "Budget".
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from swarmmemd.model import iso
from swarmmemd.recall.ages import age
from swarmmemd.text import harmless, one_row

_TICKS = re.compile("`+")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded text. `units` are its lines or entries; `left_out` of them were dropped, from the beginning or,
    where `keeps_beginning`, from the end. `spare`: parts with a lower number are cut first; 0 is never cut."""

    kind: str
    title: str
    source: str
    at: int | None
    units: tuple[str, ...]
    by: str | None = None
    keeps_beginning: bool = False
    spare: int = 0
    left_out: int = 0

    @property
    def text(self) -> str:
        """What is left of it."""
        return "\n".join(self.units).rstrip("\n")


def fenced(text: str) -> str:
    """`text` in a fence that nothing in it can close."""
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{ticks}text\n{text}\n{ticks}"


def written_out(head: str, parts: Sequence[Part], now: int) -> str:
    """The briefing as it is shown."""
    gone = [part.title for part in parts if not part.units]
    sections = [_section(part, now) for part in parts if part.units]
    rest = [f"Altogether left out: {', '.join(gone)}."] if gone else []
    return "\n\n".join([head, *sections, *rest]) + "\n"


def _section(part: Part, now: int) -> str:
    facts = [one_row(part.source, 400)]
    if part.by:
        facts.append(f"by {part.by}")
    if part.at is not None:
        facts.append(f"{iso(part.at)[:19]}Z, {age(part.at, now)}")
    where = "last" if part.keeps_beginning else "oldest"
    cut = f" The {where} {part.left_out} lines or entries are left out." if part.left_out else ""
    return f"## {part.title}\n\nRecorded data from {'; '.join(facts)}.{cut}\n\n{fenced(part.text)}"


def within(head: str, parts: Sequence[Part], limit: int, now: int) -> list[Part]:
    """The parts, cut at ends of lines until the whole has at most `limit` characters, as far as that can be. What can
    be spared goes first, the oldest of it first; a part of which nothing is left goes altogether."""
    kept = list(parts)
    for spare in sorted({part.spare for part in kept if part.spare}):
        for place, part in enumerate(kept):
            while (
                part.spare == spare
                and part.units
                and (excess := len(written_out(head, kept, now)) - limit) > 0
            ):
                part = kept[place] = _shorter(part, excess)
    return kept


def _shorter(part: Part, excess: int) -> Part:
    """The part without so many characters, by whole units."""
    units, dropped, gone = list(part.units), 0, 0
    while units and dropped < excess:
        dropped += 1 + len(units.pop(-1 if part.keeps_beginning else 0))
        gone += 1
    return msgspec.structs.replace(part, units=tuple(units), left_out=part.left_out + gone)


def safe(part: Part, redact: Callable[[str], str]) -> Part:
    """The part without secrets and without anything that would do something to a terminal. It is redacted whole: a
    secret can go over several lines."""
    if len(part.units) > 1 and not any("\n" in unit for unit in part.units):
        return msgspec.structs.replace(part, units=tuple(harmless(redact(part.text)).split("\n")))
    return msgspec.structs.replace(part, units=tuple(harmless(redact(unit)) for unit in part.units))
