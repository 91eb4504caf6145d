"""How the daemon stands, from outside: who holds the lock, the figures it wrote, why it ended the last time.

docs/commands.md, "status". Liveness is the lock; everything else is what somebody wrote down.
"""

from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.errors import SwarmmemdError
from swarmmemd.instance import Holder, is_running
from swarmmemd.layout import LAST_EXIT, STATUS

OLD = 90.0
"""Seconds after which the daemon's figures are old: it writes them at least every 30."""


class LastExit(msgspec.Struct, frozen=True):
    """Why the daemon could not run the last time."""

    exit: int
    reason: str
    mend: str = ""


class Standing(msgspec.Struct, frozen=True):
    """The three together."""

    holder: Holder | None
    figures: dict[str, Any]
    last_exit: LastExit | None
    unseen: str = ""
    """Why none of it can be told: the state directory is closed to whoever asks."""

    @property
    def running(self) -> bool:
        """It holds the lock, and its watches are up."""
        return self.holder is not None and self.figures.get("pid") == self.holder.pid and self._says_so

    @property
    def _says_so(self) -> bool:
        return self.figures.get("running") is True


def seen(state_dir: Path) -> Standing:
    """As `standing`, for who has more to tell than that: what cannot be looked at is said in `unseen`."""
    try:
        return standing(state_dir)
    except SwarmmemdError as error:
        return Standing(None, {}, None, str(error))


def standing(state_dir: Path) -> Standing:
    """How the daemon with this state directory stands. Raises `StorageError` or `DeniedError` where that cannot be
    looked at."""
    return Standing(is_running(state_dir), _figures(state_dir), _last_exit(state_dir))


def _figures(state_dir: Path) -> dict[str, Any]:
    """What the daemon wrote last; nothing where that is missing or torn."""
    try:
        found = msgspec.json.decode((state_dir / STATUS).read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _last_exit(state_dir: Path) -> LastExit | None:
    try:
        return msgspec.json.decode((state_dir / LAST_EXIT).read_bytes(), type=LastExit)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
