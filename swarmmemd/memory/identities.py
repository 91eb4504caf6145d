"""IDENTITY.md, SOUL.md and MEMORY.md: made from the roster where they are missing, never overwritten.

docs/contracts.md, "Identity files".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, Moved, Version, hold, replace, sweep_temporaries
from swarmmemd.memory.audit import Auditor
from swarmmemd.memory.obstacles import put
from swarmmemd.model import EventId
from swarmmemd.observation import RosterWorker
from swarmmemd.render import identity
from swarmmemd.render.lesson import with_lesson

_LIMIT = 1 << 20
TEXTS = {"IDENTITY.md": identity.identity, "SOUL.md": identity.soul, "MEMORY.md": identity.memory}
"""Name of each file to what makes its text from the roster's entry."""


NAMES = tuple(TEXTS)


def introduce(profile: Directory, worker: RosterWorker, auditor: Auditor, name: str) -> None:
    """Makes the file if it is missing, and fills in what a program left unset in IDENTITY.md. Raises OSError."""
    place = layout.identity_file(name)
    with profile.descend(place.folders, create=True) as folder:
        held = hold(folder, name, _LIMIT)
        if held is not None:
            held.close()
        before = held.data.decode("utf-8", "surrogateescape") if held else None
        after = TEXTS[name](worker) if before is None else _filled_in(name, before, worker)
        if after != before:
            data = after.encode("utf-8", "surrogateescape")
            _replace(folder, name, data, held.version if held else None, auditor)


def promote(profile: Directory, worker: RosterWorker, lesson: str, event: EventId, auditor: Auditor) -> bool:
    """Puts a lesson into `MEMORY.md`, which is made where it is missing. Says whether it was not there yet.

    Raises `Obstructed` where somebody else writes the file at that moment, and OSError.
    """
    place = layout.identity_file("MEMORY.md")
    with profile.descend(place.folders, create=True) as folder:
        held = hold(folder, place.name, _LIMIT)
        if held is not None:
            held.close()
        before = held.data.decode("utf-8", "surrogateescape") if held else identity.memory(worker)
        after = with_lesson(before, lesson, event)
        if held is not None and after == before:
            return False
        data = after.encode("utf-8", "surrogateescape")
        put(folder, place, data, held.version if held else None)
        auditor.replaced(f"{folder.shown}/{place.name}", data, (event,))
        return True


def _filled_in(name: str, text: str, worker: RosterWorker) -> str:
    return identity.filled_in(text, worker) if name == "IDENTITY.md" else text


def _replace(folder: Directory, name: str, data: bytes, expected: Version | None, auditor: Auditor) -> None:
    sweep_temporaries(folder)
    try:
        replace(folder, name, data, expected)
    except Moved:
        return  # somebody writes it now: it is theirs
    auditor.replaced(f"{folder.shown}/{name}", data)
