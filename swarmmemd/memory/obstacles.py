"""What stands in the way of a memory file, and files that another program is still writing.

docs/architecture.md, "Apply".
"""

import msgspec

from swarmmemd.durable import Directory, Moved, Refused, Version, replace
from swarmmemd.layout import Place
from swarmmemd.model import WorkerId


class Obstacle(msgspec.Struct, frozen=True):
    """What stands in the way of one file, and after how many seconds it is worth trying again.

    `refused`: something stands there that is never written through, a link or a device.
    """

    path: str
    reason: str
    retry: float
    refused: bool = False
    expected: bool = False
    """Another writer is at it: no fault, and gone in a moment."""


_REFUSED_RETRY = 60.0
_FAILED_RETRY = 1.0
_MOVED_RETRY = 0.5


def obstacle(error: OSError, where: str) -> Obstacle:
    """What `error` says stands in the way; `where` if it names no file itself."""
    path, reason = str(error.filename or where), error.strerror or str(error)
    if isinstance(error, Refused):
        return Obstacle(path, reason, _REFUSED_RETRY, refused=True)
    return Obstacle(path, reason, _FAILED_RETRY)


class Obstructed(Exception):
    """A file that cannot be brought up to date now."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.reason)
        self.obstacle = obstacle


def put(folder: Directory, place: Place, data: bytes, expected: Version | None) -> None:
    """Puts `data` in the place of the version that was read. Where somebody was quicker, his version stands there
    afterwards and `Obstructed` is raised. Raises OSError too."""
    try:
        replace(folder, place.name, data, expected)
    except Moved as moved:
        if moved.data is not None:
            replace(folder, place.name, moved.data)
        raise Obstructed(
            Obstacle(place.shown, "another writer is at it", _MOVED_RETRY, expected=True)
        ) from None


class Stillness:
    """Which unfinished files were seen, how they stood (their size, say), and since when."""

    def __init__(self) -> None:
        self._seen: dict[tuple[WorkerId, str], tuple[object, float]] = {}

    def wait(self, worker: WorkerId, path: str, mark: object, now: float, period: float) -> None:
        """Returns once the file has stood like this (`mark`) for `period` seconds; until then raises `Obstructed`."""
        self.check(worker, path, mark, now, period)
        self.forget(worker, path)

    def check(self, worker: WorkerId, path: str, mark: object, now: float, period: float) -> None:
        """The same, and goes on to know how long it stands: until `forget`."""
        seen = self._seen.get((worker, path))
        if seen is None or seen[0] != mark:
            seen = self._seen[worker, path] = (mark, now)
        rest = seen[1] + period - now
        if rest > 0:
            raise Obstructed(Obstacle(path, "another writer is at it", rest, expected=True))

    def forget(self, worker: WorkerId, path: str) -> None:
        """The file is what it should be."""
        self._seen.pop((worker, path), None)

    def forget_all(self, worker: WorkerId) -> None:
        """The worker is retired."""
        for key in [key for key in self._seen if key[0] == worker]:
            del self._seen[key]
