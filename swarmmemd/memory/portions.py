"""The redacted form of a long file of records, made a portion a turn: no worker waits for another one's archive.

docs/architecture.md, "Handoffs and the shared folder".
"""

from collections.abc import Iterator

import msgspec

from swarmmemd.layout import Place
from swarmmemd.memory.obstacles import Obstacle, Obstructed
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import PORTION, safe_lines, safe_portions


class Unfinished(Obstructed):
    """The form is not whole yet."""


class _Begun(msgspec.Struct):
    """Of what a form is made, by whom, what there is of it, and what makes the rest."""

    data: bytes
    redactor: Redactor
    rest: Iterator[bytes]
    parts: list[bytes] = []


class Portions:
    """The forms that are not whole yet, by the place where they will stand."""

    def __init__(self) -> None:
        self._begun: dict[Place, _Begun] = {}

    def form(self, place: Place, data: bytes, redactor: Redactor, at_once: bool) -> bytes:
        """The redacted form of `data`. Where it is long and need not be there at once, one more portion of it is made;
        raises `Unfinished` until it is whole. Other data, or another redactor, begin anew."""
        if at_once or len(data) <= PORTION:
            self.drop(place)
            return safe_lines(redactor, data)
        begun = self._begun.get(place)
        if begun is None or begun.redactor is not redactor or begun.data != data:
            begun = self._begun[place] = _Begun(data, redactor, safe_portions(redactor, data))
        part = next(begun.rest, None)
        if part is not None:
            begun.parts.append(part)
            raise Unfinished(Obstacle(place.shown, "it is being redacted", 0.0, expected=True))
        self.drop(place)
        return b"".join(begun.parts)

    def drop(self, place: Place) -> None:
        """The form is not wanted any more."""
        self._begun.pop(place, None)
