"""Installing and uninstalling: all of it or nothing. docs/operations.md, "What the installer does"."""

import contextlib
import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, make_root, replace
from swarmmemd.errors import NoManagerError, ServiceError
from swarmmemd.install.health import Health
from swarmmemd.install.mark import Origin, origin_of
from swarmmemd.install.supervised import Manager


class Outcome(msgspec.Struct, frozen=True):
    """What was done: `installed`, `updated`, `unchanged`, `removed` or `not installed`, and where."""

    action: str
    path: Path


class Plan(msgspec.Struct, frozen=True):
    """What an install would do: the text that is to stand there, and what stands there."""

    text: str
    old: str | None

    @property
    def action(self) -> str:
        """In a word."""
        return "installed" if self.old is None else "unchanged" if self.old == self.text else "updated"

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
    return Plan(manager.text(argv, hardened), _read(manager.path))


def install(manager: Manager, wanted: Plan, force: bool, patience: float, health: Health) -> Outcome:
    """Puts the definition in place and starts the service; where it does not become healthy, what was there
    before is put back. Twice changes nothing. Raises `ServiceError`."""
    before = manager.look()
    manager.clear(force)
    origin = origin_of(wanted.old) if wanted.old is not None else Origin.OURS
    if wanted.action == "updated" and origin is not Origin.OURS and not force:
        raise EditedError(manager.path, origin, wanted.difference(manager.path))
    if before.loaded and wanted.old is None and before.manager == "launchd" and not force:
        raise ServiceError(
            "The agent is loaded, but its file is gone: there would be nothing to go back to",
            "If the new one is to take its place anyway: swarmmemd service install --force",
        )
    changed = wanted.action != "unchanged"
    if not changed and before.active == "active" and before.enabled and not before.outdated:
        return Outcome("unchanged", manager.path)
    try:
        if changed:
            _write(manager.path, wanted.text)
        begin(health, partial(manager.activate, changed or before.outdated), patience)
    except ServiceError as error:
        if changed:
            _put_back(manager, wanted.old, before.active == "active", patience)
            error.mend = f"{error.mend} What was there before is in place again.".strip()
        raise
    return Outcome("started" if not changed else wanted.action, manager.path)


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
    """Stops the service and takes its definition away; memory and state stay. Twice is once."""
    there = manager.path.exists()
    try:
        loaded = manager.look().loaded
    except NoManagerError:
        if there:
            raise
        loaded = False
    if not there and not loaded:
        return Outcome("not installed", manager.path)
    manager.deactivate()
    if there:
        _remove(manager.path)
    manager.forget()
    return Outcome("removed", manager.path)


def _put_back(manager: Manager, old: str | None, was_active: bool, patience: float) -> None:
    """As it was. What cannot be undone is not allowed to hide why the install failed."""
    with contextlib.suppress(ServiceError):
        manager.deactivate()
    if old is None:
        _remove(manager.path)
        with contextlib.suppress(ServiceError):
            manager.forget()
        return
    _write(manager.path, old)
    if was_active:
        with contextlib.suppress(ServiceError):
            manager.activate(True, patience)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    make_root(path.parent)
    with Directory.root(path.parent) as folder:
        replace(folder, path.name, text.encode(), permissions=0o644)


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), Directory.root(path.parent) as folder:
        folder.unlink(path.name)
