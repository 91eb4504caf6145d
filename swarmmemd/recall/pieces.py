"""An open file in pieces of whole lines, with a digest of what was read: however long it is, little of it is held."""

import os
from collections.abc import Iterator
from hashlib import blake2b

_BLOCK = 128 * 1024
"""Bytes that are read at once, and by and large those of a piece."""
_LEAST = 40
"""Lines of a piece that is not the last one: a handoff says in so many of them which mission it is of."""
_MOST = 4 * 1024 * 1024
"""Bytes of a piece. A file of which one would be longer is not given further."""


class TooLongError(Exception):
    """The lines of the file are too long to be held."""


class Pieces:
    """The first `size` bytes of a file, once through. `place` is how many of them were passed; they have `digest`."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size = descriptor, size
        self._hash = blake2b(digest_size=16)
        self.place = 0

    @property
    def digest(self) -> bytes:
        """Of all that was passed."""
        return self._hash.digest()

    @property
    def whole(self) -> bool:
        """Whether all of it was passed."""
        return self.place == self._size

    def skip(self, count: int) -> None:
        """Passes over so many bytes: they only go into the digest."""
        end = self.place + count
        while self.place < end and (block := self._read(self.place, end)):
            self._pass(block)

    def __iter__(self) -> Iterator[bytes]:
        """What was not passed yet, one piece at least; only the last one can end without a line break. Less where the
        file has become shorter. Raises `TooLongError`."""
        held = b""
        while True:
            held += (block := self._read(self.place + len(held), self._size))
            last = not block or self.place + len(held) == self._size
            if not last and held.count(b"\n") < _LEAST:
                if len(held) > _MOST:
                    raise TooLongError
                continue
            piece = held if last else held[: held.rindex(b"\n") + 1]
            held = held[len(piece) :]
            self._pass(piece)
            yield piece
            if last:
                return

    def _read(self, start: int, end: int) -> bytes:
        return os.pread(self._descriptor, min(_BLOCK, end - start), start)

    def _pass(self, data: bytes) -> None:
        self._hash.update(data)
        self.place += len(data)
