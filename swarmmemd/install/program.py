"""Which executable the service runs, whether it can, and with which flags. docs/operations.md, "Which program"."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from swarmmemd.config import Account, Loaded, load
from swarmmemd.errors import ConfigError, ServiceError
from swarmmemd.install.supervised import call

SERVICE_PATH = "/usr/local/bin:/usr/bin:/bin"
_SCRIPT = "swarmmemd"
_PASSING = frozenset({".cache", "Caches", "archive-v0", "builds-v0", "environments-v2"})
"""Folders of caches: what lies in one is gone after the next cleaning. uvx and pipx run work in such."""
_PROTECTED = ("Documents", "Desktop", "Downloads", "Library/Mobile Documents", "Library/CloudStorage")
"""Below the home: macOS keeps services out of these."""
_ROOTS = ("profiles_root", "workspace_root", "shared_root", "state_dir")


class Program(msgspec.Struct, frozen=True):
    """What the service runs, and what to say about it."""

    argv: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        """The executable."""
        return Path(self.argv[0])


def find_program(
    kind: str, home: Path, loaded: Loaded, account: Account, prefix: str = sys.prefix
) -> Program:
    """The console script of this environment, checked, with the flags that give it this configuration.

    Raises `ServiceError` where the environment is no place for a service.
    """
    script = _script(home, Path(prefix))
    _refuse(script, Path(prefix), home, kind)
    flags, left = _flags(loaded, home, account)
    return Program((str(script), "run", "--supervisor", kind, *flags), (*_warnings(Path(prefix)), *left))


def check(script: Path, home: Path) -> str:
    """Runs `--version` as the manager would, with nothing of this shell's environment. Raises `ServiceError`."""
    said = version_of(script, home)
    if isinstance(said, ServiceError):
        raise said
    return said


def version_of(script: Path, home: Path) -> str | ServiceError:
    """The version that an executable says it has, or why it does not run."""
    # `env -i`, since `call` adds to our environment.
    environment = ["/usr/bin/env", "-i", f"PATH={SERVICE_PATH}", f"HOME={home}"]
    done = call([*environment, str(script), "--version"], patience=60.0)
    words = done.out.split()
    if done.code == 0 and len(words) == 2 and words[0] == _SCRIPT:
        return words[1]
    return ServiceError(
        f"{script} does not run by itself: {done.said}", "Install swarmmemd again, with pipx or uv tool."
    )


def _script(home: Path, prefix: Path) -> Path:
    """The shim of pipx or uv where it leads to this environment: it survives an upgrade. Else the environment's
    own script, as it is: a resolved link would be the base interpreter, which does not know the package."""
    own, shim = prefix / "bin" / _SCRIPT, home / ".local/bin" / _SCRIPT
    if not os.access(own, os.X_OK):
        raise ServiceError(
            f"{own} is not there: this interpreter has no swarmmemd of its own",
            "Install it into an environment: pipx install swarmmemd, or uv tool install swarmmemd",
        )
    try:
        return shim if shim.samefile(own) else own
    except OSError:
        return own


def _refuse(script: Path, prefix: Path, home: Path, kind: str) -> None:
    if _PASSING & {*script.parts, *prefix.parts}:
        raise ServiceError(
            f"{prefix} lies in a cache and will be cleaned away",
            "Install it for good: uv tool install swarmmemd, or pipx install swarmmemd",
        )
    for folder in _PROTECTED if kind == "launchd" else ():
        if any(path.is_relative_to(home / folder) for path in (script, prefix)):
            raise ServiceError(
                f"macOS lets no service start from {home / folder}, and {prefix} lies there",
                "Install it elsewhere: pipx install swarmmemd",
            )


def _warnings(prefix: Path) -> list[str]:
    found = []
    if (prefix.parent / "pyproject.toml").exists():
        found.append(f"{prefix} belongs to a checkout: if that is moved or removed, the service ends")
    if "Cellar" in Path(sys.base_prefix).parts:
        found.append(
            f"{sys.base_prefix} is a version of Homebrew: after its upgrade run service install again"
        )
    return found


def _flags(loaded: Loaded, home: Path, account: Account) -> tuple[list[str], list[str]]:
    """Flags for the roots that the service would not find by itself, and a line for each other value that it
    will not have: the service knows nothing of this shell's environment."""
    flags: list[str] = []
    without = _by_itself({}, home, account)
    if loaded.file is not None and (without is None or without.file != loaded.file):
        flags = ["--config", str(loaded.file)]
        without = _by_itself({"config": str(loaded.file)}, home, account)
    found = {one.key: one.value for one in without.settings} if without is not None else {}
    left = []
    for one in loaded.settings:
        if found.get(one.key) == one.value:
            continue
        if one.key in _ROOTS:
            flags += [f"--{one.key.replace('_', '-')}", str(one.value)]
        elif found:
            left.append(
                f"{one.key} comes from {one.origin}, which the service does not see: put it into the file"
            )
    return flags, left


def _by_itself(flags: dict[str, object], home: Path, account: Account) -> Loaded | None:
    """The configuration as the service finds it; None where it finds one that cannot be used."""
    quiet: Callable[[Path], bool] = lambda _: False  # noqa: E731 - no notices are wanted
    try:
        return load(flags, {"HOME": str(home)}, account, is_dir=quiet)
    except ConfigError:
        return None
