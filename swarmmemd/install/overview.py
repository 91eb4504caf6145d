"""How the service stands: three proofs side by side, since each alone has been wrong. docs/operations.md.

The manager may say "not installed" while a daemon runs, the lock may be held by a daemon that no manager knows,
and a file that is there may not be what the manager has read.
"""

from pathlib import Path

import msgspec

import swarmmemd
from swarmmemd.errors import ServiceError
from swarmmemd.install.mark import Origin, origin_of
from swarmmemd.install.supervised import Manager, Supervised
from swarmmemd.standing import Standing


class Definition(msgspec.Struct, frozen=True):
    """The file: `current`, `outdated` (what would be installed now differs), `edited`, `foreign` or `missing`."""

    path: str
    state: str
    argv: tuple[str, ...] = ()


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the manager, the file and the daemon say."""

    supervisor: Supervised | None
    unasked: str = ""
    """Why the manager could not be asked."""
    definition: Definition
    installed_version: str = swarmmemd.__version__
    """That of the command that is asked now."""
    standing: Standing

    @property
    def by_service(self) -> bool:
        """The daemon that holds the lock is the one that the manager has started."""
        holder = self.standing.holder
        return self.supervisor is not None and holder is not None and holder.pid == self.supervisor.pid

    @property
    def elsewhere(self) -> int | None:
        """The process of a service that runs, but not with the state folder that is looked at."""
        if self.supervisor is None or self.standing.holder is not None or self.standing.unseen:
            return None
        return self.supervisor.pid or None if self.supervisor.active == "active" else None


def overview(manager: Manager, argv: tuple[str, ...] | None, standing: Standing) -> Overview:
    """The three together. `argv` is what an install would run now; None where it would be refused."""
    supervised, unasked = None, ""
    try:
        supervised = manager.look()
    except ServiceError as error:
        unasked = str(error)
    return Overview(
        supervisor=supervised, unasked=unasked, definition=definition(manager, argv), standing=standing
    )


def definition(manager: Manager, argv: tuple[str, ...] | None) -> Definition:
    """The file as it is, held against what an install would write."""
    path = Path(manager.path)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return Definition(str(path), "missing")
    except OSError:
        return Definition(str(path), "foreign")
    runs = manager.argv(text)
    origin = origin_of(text)
    if origin is not Origin.OURS:
        return Definition(str(path), "edited" if origin is Origin.EDITED else "foreign", runs)
    wanted = {manager.text(argv, hardened) for hardened in (True, False)} if argv else {text}
    return Definition(str(path), "current" if text in wanted else "outdated", runs)
