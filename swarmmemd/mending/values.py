"""What the menders take and give. Pure."""

from enum import StrEnum

import msgspec

from swarmmemd.model import Event


class Need(StrEnum):
    """Whether an event has to be in a file."""

    DUE = "due"
    MAY = "may"
    """It may be there and need not: it is not applied yet, or was read back from another writer's line."""


class Due(msgspec.Struct, frozen=True):
    """An event that belongs into a file. `ordered`: it has its place in the order of recording there."""

    event: Event
    need: Need = Need.DUE
    ordered: bool = True


class Fault(msgspec.Struct, frozen=True):
    """What is wrong, and at which line (from 1). `mendable`: the mender has made it right."""

    line: int
    what: str
    mendable: bool = True


class Mended(msgspec.Struct, frozen=True):
    """The file made right, what was wrong with our part, and what is worth knowing of the rest."""

    data: bytes
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()


def shared_ends(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their beginnings and their ends: all but an edit in one place."""
    most = min(len(one), len(other))
    if one == other:
        return most
    start = _common(one, other, most)
    end = _common(one[::-1], other[::-1], most - start)
    return start + end


def _common(one: bytes, other: bytes, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def is_damaged(found: bytes, ours: bytes) -> bool:
    """Whether `found` is most of `ours`, edited in one place or cut off, or no text at all."""
    cut = ours.startswith(found) and len(found) * 3 >= len(ours)
    return cut or b"\0" in found or shared_ends(found, ours) * 3 >= max(len(found), len(ours)) * 2


def says_nothing_new(found: bytes, ours: bytes) -> bool:
    """Whether `found` is made of lines of `ours`, the last one perhaps cut off: nobody wrote anything there."""
    lines, known = found.splitlines(), set(ours.splitlines())
    *whole, last = lines or [b""]
    return known.issuperset(whole) and any(line.startswith(last) for line in known)


def counted(number: int, one: str, several: str) -> str:
    """`1 event is`, `3 events are`."""
    return f"{number} {one if number == 1 else several}"
