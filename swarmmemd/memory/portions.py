"""The redacted forms of the parts of one archive, a portion a turn: no worker waits for another one's archive.

docs/architecture.md, "Handoffs and the shared folder".
"""

from collections.abc import Callable, Iterator

import msgspec

from swarmmemd.durable import Version
from swarmmemd.layout import Place
from swarmmemd.memory.obstacles import Obstacle, Obstructed
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import PORTION, safe_lines, safe_portions

_AGAIN = 10.0
"""Seconds until a form is begun anew whose file has changed: who keeps writing it keeps nobody busy."""


class Unfinished(Obstructed):
    """The form is not whole yet."""


class _Source(msgspec.Struct, frozen=True):
    """Of what a form is made, and by whom."""

    version: Version | None
    redactor: Redactor


class _Begun(msgspec.Struct):
    """A form that is not whole yet: what there is of it, and what makes the rest."""

    source: _Source
    rest: Iterator[bytes]
    parts: list[bytes] = []


class Portions:
    """The long files of records of one archive: of which a form was begun, and which stand there."""

    def __init__(self) -> None:
        self._begun: dict[Place, _Begun] = {}
        self._standing: dict[Place, _Source] = {}

    def form(
        self, place: Place, version: Version | None, redactor: Redactor, read: Callable[[], bytes | None]
    ) -> bytes | None:
        """The redacted form of the file that `read` gives; None where there is no file, or its form was given before.
        Where it is long, one more portion is made; raises `Unfinished` until the form is whole. Of another version,
        or with another redactor, it is begun anew, after a while."""
        source = _Source(version, redactor)
        if self._standing.get(place) == source:
            return None
        begun = self._begun.get(place)
        if begun is not None and begun.source != source:
            del self._begun[place]
            raise Unfinished(Obstacle(place.shown, "it has changed meanwhile", _AGAIN, expected=True))
        if begun is None:
            data = read()
            if data is None or len(data) <= PORTION:
                return self._given(place, source, data and safe_lines(redactor, data))
            begun = self._begun[place] = _Begun(source, safe_portions(redactor, data))
        part = next(begun.rest, None)
        if part is not None:
            begun.parts.append(part)
            raise Unfinished(Obstacle(place.shown, "it is being redacted", 0.0, expected=True))
        return self._given(place, source, b"".join(begun.parts))

    def _given(self, place: Place, source: _Source, form: bytes | None) -> bytes | None:
        self._begun.pop(place, None)
        self._standing[place] = source
        return form
