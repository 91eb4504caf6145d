"""IDENTITY.md, SOUL.md and MEMORY.md: made from the roster where they are missing, never overwritten.

docs/contracts.md, "Identity files".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, Moved, Version, hold, replace, sweep_temporaries
from swarmmemd.memory.audit import Auditor
from swarmmemd.observation import RosterWorker
from swarmmemd.render import identity

_LIMIT = 1 << 20
TEXTS = {"IDENTITY.md": identity.identity, "SOUL.md": identity.soul, "MEMORY.md": identity.memory}
"""Name of each file to what makes its text from the roster's entry."""


def introduce(profile: Directory, worker: RosterWorker, auditor: Auditor) -> None:
    """Makes what is missing, and fills in what a program left unset in IDENTITY.md. Raises OSError."""
    for name, text in TEXTS.items():
        place = layout.identity_file(name)
        with profile.descend(place.folders, create=True) as folder:
            held = hold(folder, name, _LIMIT)
            if held is not None:
                held.close()
            before = held.data.decode("utf-8", "surrogateescape") if held else None
            after = text(worker) if before is None else _filled_in(name, before, worker)
            if after != before:
                data = after.encode("utf-8", "surrogateescape")
                _replace(folder, name, data, held.version if held else None, auditor)


def _filled_in(name: str, text: str, worker: RosterWorker) -> str:
    return identity.filled_in(text, worker) if name == "IDENTITY.md" else text


def _replace(folder: Directory, name: str, data: bytes, expected: Version | None, auditor: Auditor) -> None:
    sweep_temporaries(folder)
    try:
        replace(folder, name, data, expected)
    except Moved:
        return  # somebody writes it now: it is theirs
    auditor.replaced(f"{folder.shown}/{name}", data)
