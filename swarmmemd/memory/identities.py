"""IDENTITY.md, SOUL.md and MEMORY.md: made from the roster where they are missing, never overwritten.

docs/contracts.md, "Identity files".
"""

from swarmmemd import layout
from swarmmemd.durable import Directory, Moved, Version, hold, replace
from swarmmemd.observation import RosterWorker
from swarmmemd.render import identity

_LIMIT = 1 << 20
_TEXTS = {"IDENTITY.md": identity.identity, "SOUL.md": identity.soul, "MEMORY.md": identity.memory}


NAMES = tuple(_TEXTS)


def introduce(profile: Directory, worker: RosterWorker, name: str) -> None:
    """Makes the file if it is missing, and fills in what a program left unset in IDENTITY.md. Raises OSError."""
    place = layout.identity_file(name)
    with profile.descend(place.folders, create=True) as folder:
        held = hold(folder, name, _LIMIT)
        if held is not None:
            held.close()
        before = held.data.decode("utf-8", "surrogateescape") if held else None
        after = _TEXTS[name](worker) if before is None else _filled_in(name, before, worker)
        if after != before:
            _replace(folder, name, after, held.version if held else None)


def _filled_in(name: str, text: str, worker: RosterWorker) -> str:
    return identity.filled_in(text, worker) if name == "IDENTITY.md" else text


def _replace(folder: Directory, name: str, text: str, expected: Version | None) -> None:
    try:
        replace(folder, name, text.encode("utf-8", "surrogateescape"), expected)
    except Moved:
        return  # somebody writes it now: it is theirs
