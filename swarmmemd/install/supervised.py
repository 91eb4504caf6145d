"""What a service manager says of the service, and what is asked of one. systemd and launchd answer alike."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from swarmmemd.errors import NoManagerError

_PATIENCE = 60.0
"""Seconds for a call of a manager's tool that has nothing to wait for."""


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """The service as its manager sees it. None where a manager does not say it."""

    manager: str
    loaded: bool = False
    enabled: bool = False
    active: str = "inactive"
    """`active`, `starting`, `stopping`, `failed` or `inactive`."""
    pid: int = 0
    restarts: int | None = None
    last_exit: int | None = None
    result: str = ""
    since: str = ""
    path: str = ""
    drop_ins: tuple[str, ...] = ()
    outdated: bool = False
    """The manager has read another text than the one that is in the file now."""
    text: str = ""
    """What the daemon has told the manager about itself."""
    stays: bool | None = None
    """Whether it goes on after the last logout."""
    gave_up: bool = False
    """The manager starts it no more: it failed too often."""


class Manager(Protocol):
    """systemd or launchd. Methods raise `ServiceError` with the cause."""

    kind: str
    path: Path
    """Where the definition is."""

    def text(self, argv: tuple[str, ...], hardened: bool) -> str:
        """The definition, marked."""

    def argv(self, text: str) -> tuple[str, ...]:
        """What a definition runs."""

    def look(self) -> Supervised:
        """How it stands now."""

    def clear(self, force: bool) -> Callable[[], None]:
        """Refuses where another definition would win over ours; with `force` it is set aside. What it gives puts
        that back."""

    def left(self) -> list[Path]:
        """What a person has put beside the definition, which no uninstall takes away."""

    def inside(self) -> bool:
        """Whether this process is part of the service itself."""

    def commands(self) -> list[str]:
        """What `activate` does, as a person would type it."""

    def activate(self, changed: bool, patience: float) -> None:
        """Loads the definition, sees that it starts with the login, and starts it."""

    def deactivate(self) -> None:
        """Stops and unloads it; nothing where it is not there."""

    def forget(self) -> None:
        """The definition's file is gone: drops what is left of it in the manager."""

    def resume(self, before: Supervised, patience: float) -> None:
        """Loads what stands there now, and makes it enabled and active as it was before."""

    def start(self, patience: float) -> None:
        """Starts it, also after the manager gave up."""

    def stop(self) -> None:
        """Stops it until the next start or login."""

    def restart(self, patience: float) -> None:
        """Stops and starts it."""

    def why(self) -> tuple[str, str]:
        """Why it does not run, and how to mend it, as far as the manager knows."""


class Done(msgspec.Struct, frozen=True):
    """How a tool ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Its complaint in one line."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[0] if lines else f"exit code {self.code}"


def tool(name: str, otherwise: str) -> str:
    """The absolute path of a manager's tool. Raises `NoManagerError`, with `otherwise` as the way out."""
    import shutil  # who only asks whether there is a service does not pay for it

    found = shutil.which(name)
    if found is None:
        raise NoManagerError(f"There is no {name} here, so there is no service manager to use", otherwise)
    return found


def call(argv: list[str], more: Mapping[str, str] | None = None, patience: float = _PATIENCE) -> Done:
    """Runs a tool to its end. One that does not come back within `patience` seconds counts as failed (124)."""
    import subprocess  # the same

    environment = {**os.environ, "LC_ALL": "C", **(more or {})}
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Done(124, "", f"{argv[0]} did not come back within {patience:.0f} s")
    except OSError as error:
        return Done(126, "", f"{argv[0]}: {error.strerror}")
    return Done(done.returncode, done.stdout, done.stderr)
