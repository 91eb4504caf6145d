"""Handoff files: whose they are, for which mission, whether they can be used; and ours, rendered. Pure.

Workers write them by the specification's template, the control plane by another one under the same name.
docs/contracts.md, "Handoffs".
"""

import re
from collections.abc import Container
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from swarmmemd.model import MissionId, WorkerId, iso, mission_id, parse_iso, worker_id

if TYPE_CHECKING:
    from swarmmemd.state import MissionState

_HEADING = re.compile(r"#\s+(?:handoff|session snapshot)\s*(.*)", re.IGNORECASE)
_DASH = re.compile(r"\s+[—–-]{1,2}\s+")
_NAMES_FOLLOW = re.compile(r"(?:[—–-]{1,2}|:)(?:\s+|$)")
_ORNAMENT = "`*\"' "
_FIELD = re.compile(r"(Generated|Mission):\s*(\S.*)")
_FILLER = re.compile(r"(?:\.{3}|…|<[^<>\n]*>|-\s*\.{3})?")
_SCANNED = 40
"""Lines after the heading in which its fields stand."""

_RENDERED = re.compile(r"<!-- rendered by swarmmemd from recorded events, ([0-9a-f]{16}) -->\s*\Z")
"""Ends a handoff of ours with a digest of what stands above it: so it is known wherever it turns up, without a
journal too, and is somebody else's as soon as he has changed it."""


class Template(StrEnum):
    """By which template a handoff is written."""

    FULL = "full"
    GENERATED = "generated"
    NONE = "none"


class Author(StrEnum):
    """Whose a handoff is. A later one in this list never replaces an earlier one of the same mission."""

    WORKER = "worker"
    CONTROL_PLANE = "control-plane"
    DAEMON = "daemon"
    NOBODY = "refused"
    """It cannot be used. It is kept, so that what is put in its place destroys nothing."""


_RANKS = {Author.WORKER: 4, Author.CONTROL_PLANE: 2, Author.DAEMON: 1, Author.NOBODY: 0}
OWN = 3
"""From this rank on a handoff is the worker's own."""


def rank(author: Author, local: bool) -> int:
    """How much a handoff counts in its mission: the worker's own, the control plane's, ours. The worker's own in
    the shared folder counts less than one in its own."""
    return OWN if author is Author.WORKER and not local else _RANKS[author]


def is_local(path: str) -> bool:
    """Whether the path of a version lies in the worker's own folder."""
    return path.startswith("memory/")


def mirror(mission: MissionId) -> str:
    """Where in the worker's own folder the handoff that counts stands."""
    return f"memory/handoffs/{mission}.md"


class Handoff(msgspec.Struct, frozen=True, kw_only=True):
    """What a handoff file says of itself. `refused` says why it cannot be used; None if it can."""

    template: Template
    author: Author
    worker: WorkerId | None = None
    mission: MissionId | None = None
    generated: int | None = None
    next_action: str | None = None
    refused: str | None = None


def sha256(text: bytes) -> str:
    """The digest by which a version of a handoff is known."""
    import hashlib  # who only asks for the mission does not pay for it

    return hashlib.sha256(text).hexdigest()


def read_handoff(text: str, worker: WorkerId, missions: Container[MissionId] = ()) -> Handoff:
    """What `text`, found as a handoff of `worker`, is. Free text without a heading is the worker's own. A heading
    that names but one of `missions`, the worker's, names no other worker."""
    lines = text.removeprefix("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    heading = _HEADING.fullmatch(first.strip())
    if not first:
        return Handoff(template=Template.NONE, author=Author.WORKER, refused="empty")
    if heading is None:
        return Handoff(template=Template.NONE, author=_author(Template.NONE, text))
    names = _names(heading[1].strip())
    if len(names) == 1 and names[0] in missions:
        names = [worker, names[0]]
    if heading[1] and not (names and worker_id(names[0])) and not _NAMES_FOLLOW.fullmatch(heading[1]):
        return _with_title(text, lines)
    return _with_names(text, lines, names, worker)


def named_mission(lines: list[str]) -> MissionId | None:
    """The mission that a handoff names in its heading or below it; None where it names none."""
    first = next((line for line in lines[:_SCANNED] if line.strip()), "")
    heading = _HEADING.fullmatch(first.removeprefix("\ufeff").strip())
    if heading is None:
        return None
    names = _names(heading[1].strip())
    return mission_id(names[1] if len(names) > 1 else _fields(lines).get("Mission"))


def _names(rest: str) -> list[str]:
    """The worker and the mission that a heading names behind its first dash, or a colon, without ornament."""
    follow = _NAMES_FOLLOW.match(rest)
    parts = _DASH.split(rest[follow.end() :]) if follow else []
    return [name for part in parts if (name := part.strip(_ORNAMENT))]


def _sections(text: str) -> dict[str, str]:
    from swarmmemd.render.summary import bodies  # who only asks for the mission does not pay for it

    return bodies(text)


def _with_title(text: str, lines: list[str]) -> Handoff:
    """`# Handoff notes`: free text under a title of the worker's own choice."""
    return Handoff(
        template=Template.NONE,
        author=_author(Template.NONE, text),
        mission=mission_id(_fields(lines).get("Mission")),
        refused="the form is not filled in" if _is_form(_sections(text)) else None,
    )


def _with_names(text: str, lines: list[str], names: list[str], worker: WorkerId) -> Handoff:
    fields = _fields(lines)
    sections = _sections(text)
    template = Template.FULL if len(names) > 1 or "Mission" not in fields else Template.GENERATED
    wanted = "Next exact action" if template is Template.FULL else "Next action"
    named_mission = names[1] if len(names) > 1 else fields.get("Mission")
    found = Handoff(
        template=template,
        author=_author(template, text),
        worker=worker_id(names[0]) if names else None,
        mission=mission_id(named_mission),
        generated=parse_iso(fields.get("Generated")),
        next_action=sections.get(wanted) or None,
    )
    return msgspec.structs.replace(found, refused=_refusal(found, names, named_mission, sections, worker))


def _refusal(
    found: Handoff, names: list[str], mission: str | None, sections: dict[str, str], worker: WorkerId
) -> str | None:
    """Why the file is not used: nothing of it is mirrored, and it keeps no place of a handoff."""
    if names and names[0].casefold() != worker.casefold():
        return f"it is a handoff of {names[0][:80]}"
    if _is_form(sections):
        return "the form is not filled in"
    if mission is not None and found.mission is None:
        return f"{mission[:80]!r} is no mission id"
    if found.next_action is None:
        return "it is cut off: it has no next action"
    return None


def _is_form(sections: dict[str, str]) -> bool:
    return bool(sections) and all(_FILLER.fullmatch(body.strip()) for body in sections.values())


def _author(template: Template, text: str) -> Author:
    mark = _RENDERED.search(text)
    if mark is not None and mark[1] == sha256(text[: mark.start()].encode("utf-8", "replace"))[:16]:
        return Author.DAEMON
    return Author.CONTROL_PLANE if template is Template.GENERATED else Author.WORKER


def _fields(lines: list[str]) -> dict[str, str]:
    """`Generated:` and `Mission:` above the first section."""
    found: dict[str, str] = {}
    for line in lines[:_SCANNED]:
        if line.startswith("## "):
            break
        if match := _FIELD.fullmatch(line.strip()):
            found.setdefault(match[1], match[2].strip())
    return found


def render_handoff(worker: WorkerId, mission: "MissionState", at: int) -> str:
    """A handoff by the specification's template, of what is known of the mission. `at` is ms."""
    from swarmmemd.render.markdown import one_line

    done = [line for line in mission.checkpoints if ": DONE — " in line[:40]]
    open_ = [line for line in mission.checkpoints if line not in done]
    sections = {
        "Current state": one_line(
            mission.checkpoints[-1] if mission.checkpoints else "Nothing was reported yet."
        ),
        "Objective": one_line(mission.objective) or "Not known.",
        "Completed": _bullets(done),
        "In progress": _bullets(open_[-1:]),
        "Files touched": _bullets(sorted(mission.files)),
        "Commands run": _bullets(mission.commands),
        "Blockers": _bullets(mission.blockers),
        "Next exact action": one_line(mission.next_action or "") or "Not known: see the last checkpoint.",
        "Resume prompt": (
            "When this worker restarts, load this handoff, inspect runtime.json, then continue from "
            '"Next exact action".'
        ),
    }
    head = f"# Handoff — {worker} — {mission.mission}\n\nGenerated: {iso(at)}\n"
    body = "".join(f"\n## {title}\n\n{text}\n" for title, text in sections.items())
    text = f"{head}{body}\n"
    return f"{text}<!-- rendered by swarmmemd from recorded events, {sha256(text.encode())[:16]} -->\n"


def _bullets(texts: list[str] | tuple[str, ...]) -> str:
    from swarmmemd.render.markdown import bullet

    return "\n".join(map(bullet, texts)) or "- none"
