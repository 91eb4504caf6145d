"""Installing and uninstalling: all of it or nothing. docs/operations.md, "What the installer does"."""

import contextlib
import difflib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, make_root, replace
from swarmmemd.errors import NoManagerError, ServiceError, SwarmmemdError
from swarmmemd.install.health import Health
from swarmmemd.install.mark import Origin, origin_of
from swarmmemd.install.supervised import Manager, Supervised

SAVED = ".saved"
"""Ends the name under which somebody else's text is kept that an install or an uninstall has taken away."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: `installed`, `updated`, `started`, `unchanged`, `removed` or `not installed`, and where."""

    action: str
    path: Path
    saved: Path | None = None
    """Where a definition is kept that was not ours as it was."""
    other: str = ""
    """A service of that name which is not ours, and stays."""


class Plan(msgspec.Struct, frozen=True):
    """What an install would do: the text that is to stand there, and what stands there."""

    text: str
    old: str | None
    link: bool = False
    """What stands there is a link to a file of somebody's."""

    @property
    def action(self) -> str:
        """In a word."""
        if self.old is None:
            return "installed"
        return "unchanged" if self.old == self.text and not self.link else "updated"

    @property
    def origin(self) -> Origin:
        """Whose text it is that stands there."""
        return Origin.FOREIGN if self.link else Origin.OURS if self.old is None else origin_of(self.old)

    def difference(self, path: Path) -> str:
        """From what stands there to what is to stand there, as a diff."""
        lines = difflib.unified_diff(
            (self.old or "").splitlines(), self.text.splitlines(), str(path), "service install", lineterm=""
        )
        return "\n".join(lines)


class EditedError(ServiceError):
    """The definition was written or edited by somebody else; `difference` shows what would change."""

    def __init__(self, path: Path, origin: Origin, difference: str) -> None:
        super().__init__(
            f"{path} is {origin.value}",
            "Keep your changes in a drop-in, and replace the file with: swarmmemd service install --force",
        )
        self.difference = difference


def plan(manager: Manager, argv: tuple[str, ...], hardened: bool) -> Plan:
    """What an install would do. Raises `ServiceError` where the file cannot be read."""
    return Plan(manager.text(argv, hardened), _read(manager.path), manager.path.is_symlink())


def install(manager: Manager, wanted: Plan, force: bool, patience: float, health: Health) -> Outcome:
    """Puts the definition in place and starts the service; where it does not become healthy, what was there
    before is put back. Twice changes nothing. Raises `ServiceError`."""
    before = manager.look()
    if wanted.action == "updated" and wanted.origin is not Origin.OURS and not force:
        raise EditedError(manager.path, wanted.origin, wanted.difference(manager.path))
    if before.loaded and wanted.old is None and before.manager == "launchd" and not force:
        raise ServiceError(
            "The agent is loaded, but its file is gone: there would be nothing to go back to",
            "If the new one is to take its place anyway: swarmmemd service install --force",
        )
    take_back = manager.clear(force)
    changed = wanted.action != "unchanged"
    if not changed and before.active == "active" and before.enabled and not before.outdated:
        return Outcome(action="unchanged", path=manager.path)
    try:
        saved = _save(manager.path, wanted.old) if changed and wanted.origin is not Origin.OURS else None
        if changed:
            _write(manager.path, wanted.text)
        begin(health, partial(manager.activate, changed or before.outdated), patience)
    except BaseException as error:  # also where a person has waited long enough
        if changed:
            left = _put_back(manager, wanted.old, take_back, before, patience)
            if isinstance(error, SwarmmemdError):
                error.mend = f"{error.mend}\n  {left}".strip()
        raise
    return Outcome(action=wanted.action if changed else "started", path=manager.path, saved=saved)


def begin(health: Health, start: Callable[[float], None], patience: float) -> None:
    """Calls `start` and waits until the daemon is up. Raises `ServiceError`, with the daemon's own reason where
    it has left one."""
    try:
        start(patience)
    except NoManagerError:
        raise
    except ServiceError as error:
        raise health.reason() or error from None
    health.wait(patience)


def uninstall(manager: Manager) -> Outcome:
    """Stops the service and takes its definition away; memory and state stay, and so does a service of that name
    that is not ours. Twice is once."""
    text, link = _read(manager.path), manager.path.is_symlink()
    try:
        found = manager.look()
    except NoManagerError:
        if text is not None or link:
            raise
        return Outcome(action="not installed", path=manager.path)
    # A service whose file is gone has no path, and can be running all the same.
    ours = found.path in ("", str(manager.path))
    other = "" if ours else found.path
    if text is None and not link and not (ours and (found.loaded or found.pid)):
        return Outcome(action="not installed", path=manager.path, other=other)
    if ours:
        manager.deactivate()
    edited = text is not None and not link and origin_of(text) is not Origin.OURS
    saved = _save(manager.path, text) if edited else None
    _remove(manager.path)
    manager.forget()
    return Outcome(action="removed", path=manager.path, saved=saved, other=other)


def _put_back(
    manager: Manager, old: str | None, take_back: Callable[[], None], before: Supervised, patience: float
) -> str:
    """As it was, and how far that went. What cannot be undone must not hide why the install failed."""
    with contextlib.suppress(ServiceError):
        manager.deactivate()
    try:
        if old is None:
            _remove(manager.path)
        else:
            _write(manager.path, old)
        take_back()
        manager.forget()
        manager.resume(before, patience)
    except (ServiceError, OSError) as error:
        return f"What was there before could not be put back: {error}"
    return "What was there before is in place again." if before.loaded or old else "Nothing of it is left."


def _read(path: Path) -> str | None:
    with _named(path):
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None


def _save(path: Path, text: str | None) -> Path | None:
    """Keeps the text beside its place."""
    if text is None:
        return None
    saved = path.with_name(path.name + SAVED)
    _write(saved, text)
    return saved


def _write(path: Path, text: str) -> None:
    with _named(path):
        make_root(path.parent)
        with Directory.root(path.parent) as folder:
            replace(folder, path.name, text.encode(), permissions=0o644)


def _remove(path: Path) -> None:
    with _named(path), contextlib.suppress(FileNotFoundError), Directory.root(path.parent) as folder:
        folder.unlink(path.name)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """What the system refuses, with the path of the definition: below it is a name in an open folder."""
    try:
        yield
    except OSError as error:
        raise ServiceError(
            f"{path}: {error.strerror}",
            "Check what stands there, and the owner and permissions of its folder.",
        ) from error
