"""Where `~`, the platform's folders and the roots are, and which roots may not lie where. Pure.

`real` resolves symlinks and is passed in. docs/configuration.md, "Home and folders" and "Refused".
"""

import os.path
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from swarmmemd.config.keys import BY_NAME
from swarmmemd.config.shape import Account
from swarmmemd.config.values import problem, shown
from swarmmemd.model import worker_id

Real = Callable[[str], str]

_FOLDERS = {
    "linux": {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"},
    "darwin": {
        "XDG_CONFIG_HOME": "Library/Application Support",
        "XDG_STATE_HOME": "Library/Application Support",
    },
}
"""As platformdirs has them (a test compares). It reads the process's own HOME, which inside a worker is the
wrong one, so it cannot be asked."""

_WRONG = (".openclaw/profiles", ".ocplatform/workspace")


class Home(NamedTuple):
    """The home that `~` means and the folders of the platform."""

    home: Path
    config: Path
    state: Path


def profiles_of(hermes_home: str) -> str:
    """The folder of profiles that a `HERMES_HOME` means, which may itself be a profile or its home."""
    path = PurePosixPath(hermes_home)
    if _is_profile(path):
        return str(path.parent)
    if path.name == "home" and _is_profile(path.parent):
        return str(path.parent.parent)
    return str(path / "profiles")


def shared_of(memory_root: str) -> str:
    """The shared memory that a `HERMES_SWARM_MEMORY_ROOT` means."""
    return str(PurePosixPath(memory_root) / "memory")


HERMES: dict[str, Callable[[str], str]] = {
    "HERMES_HOME": profiles_of,
    "HERMES_SWARM_MEMORY_ROOT": shared_of,
}


def _is_profile(path: PurePosixPath) -> bool:
    return path.parent.name == "profiles" and worker_id(path.name) is not None


def find_home(flags: Mapping[str, object], environ: Mapping[str, str], account: Account, real: Real) -> Home:
    """HOME and XDG, or the account's home where HOME lies inside a profile.

    Workers run with `HOME=<profile>/home`; what they write must reach the daemon of their operator.
    """
    given = environ.get("HOME", "")
    trees = _profile_trees(flags, environ, real)
    inside = given.startswith("/") and _within_profile(given, trees, real)
    home = account.home if inside or not given.startswith("/") else Path(given)

    def folder(variable: str) -> Path:
        # A folder that the operator moved is inherited by the worker; one inside a profile is the worker's.
        moved = environ.get(variable, "")
        usable = moved.startswith("/") and not (inside and _within_profile(moved, trees, real))
        names = _FOLDERS.get(account.platform, _FOLDERS["linux"])
        return (Path(moved) if usable else home / names[variable]) / "swarmmemd"

    return Home(home, folder("XDG_CONFIG_HOME"), folder("XDG_STATE_HOME"))


def _profile_trees(flags: Mapping[str, object], environ: Mapping[str, str], real: Real) -> frozenset[str]:
    """Folders whose children are profiles, as far as they are known before the file is read."""
    known = [str(flags.get("profiles_root") or ""), environ.get(BY_NAME["profiles_root"].variable, "")]
    if hermes := environ.get("HERMES_HOME"):
        known.append(profiles_of(hermes))
    absolute = [os.path.normpath(path) for path in known if path.startswith("/") and "\0" not in path]
    return frozenset(absolute) | frozenset(real(path) for path in absolute)


def _within_profile(text: str, trees: frozenset[str], real: Real) -> bool:
    if "\0" in text:
        return False
    return any(_profile_path(PurePosixPath(path), trees) for path in (os.path.normpath(text), real(text)))


def _profile_path(path: PurePosixPath, trees: frozenset[str]) -> bool:
    """The path is a profile, lies inside one, or is `home` of the default profile (the Hermes home itself).

    `<x>/profiles/<id>` alone proves nothing: some sites keep people's homes in such folders. So `<x>` must be
    a known Hermes home or be called `.hermes`, or the profile's own `home` must follow.
    """
    steps = (path, *path.parents)
    homes = {str(PurePosixPath(tree).parent) for tree in trees}
    return any(
        str(step.parent) in trees
        or (step.parent.name == "profiles" and step.parent.parent.name == ".hermes")
        or (step.name == "home" and (_is_profile(step.parent) or _is_hermes(step.parent, homes)))
        for step in steps
    )


def _is_hermes(path: PurePosixPath, homes: set[str]) -> bool:
    return path.name == ".hermes" or str(path) in homes


class Root(NamedTuple):
    """A root that is valid by itself."""

    key: str
    path: Path
    where: str


class Ground(NamedTuple):
    """What roots are judged against."""

    homes: tuple[Path, ...]
    platform: str
    real: Real

    def fold(self, path: str) -> PurePosixPath:
        """The path for comparison: most macOS volumes take names of any case and composition as the same."""
        if self.platform == "darwin":
            path = unicodedata.normalize("NFC", path).casefold()
        return PurePosixPath(path)

    def forms(self, path: Path) -> tuple[PurePosixPath, PurePosixPath]:
        """As written and with symlinks resolved."""
        return self.fold(os.path.normpath(path)), self.fold(self.real(str(path)))

    def inside(self, path: Path, other: Path) -> bool:
        """The path is the other one or lies inside it, as written or once resolved."""
        return any(a.is_relative_to(b) for a, b in zip(self.forms(path), self.forms(other), strict=True))


def misplaced(roots: Mapping[str, Root], ground: Ground) -> list[str]:
    """A line for each root that lies where it may not."""
    written = [root for key, root in roots.items() if BY_NAME[key].written]
    return [*_nested(written, ground), *_in_runtime(written, roots, ground), *_wrong(roots, ground)]


def _nested(written: list[Root], ground: Ground) -> list[str]:
    found = []
    for place, first in enumerate(written):
        for second in written[place + 1 :]:
            if ground.inside(second.path, first.path):
                found.append(_refuse(second, f"{first.key} {shown(first.path)}", ground, first.path))
            elif ground.inside(first.path, second.path):
                found.append(_refuse(first, f"{second.key} {shown(second.path)}", ground, second.path))
    return found


def _in_runtime(written: list[Root], roots: Mapping[str, Root], ground: Ground) -> list[str]:
    if "workspace_root" not in roots:
        return []
    runtime = roots["workspace_root"].path / ".runtime"
    inside = [root for root in written if ground.inside(root.path, runtime)]
    return [_refuse(root, f"{shown(runtime)}, which is only read", ground, runtime) for root in inside]


def _wrong(roots: Mapping[str, Root], ground: Ground) -> list[str]:
    found = []
    for root in roots.values():
        for name in _WRONG:
            # The home is resolved, the wrong folder is not: it may be a link to the right one.
            spots = {ground.fold(os.path.normpath(home / name)) for home in ground.homes}
            spots |= {ground.fold(ground.real(str(home))) / ground.fold(name) for home in ground.homes}
            if any(form.is_relative_to(spot) for form in ground.forms(root.path) for spot in spots):
                found.append(_refuse(root, f"~/{name}, which is no place for swarm memory", ground))
    return found


def _refuse(root: Root, what: str, ground: Ground, other: Path | None = None) -> str:
    resolved = ground.real(str(root.path))
    through = "" if resolved == os.path.normpath(root.path) else f" (it resolves to {shown(resolved)})"
    same = other is not None and ground.inside(other, root.path)
    verb = "is the same folder as" if same else "lies inside"
    what = f"{shown(root.path)}{through} {verb} {what}"
    return problem(root.key, root.where, what, "choose a folder outside it")


def memory_notice(workspace: Path, shared: Path, ground: Ground) -> str | None:
    """What to say where `<workspace_root>/memory` exists and nobody chose a `shared_root`."""
    memory = workspace / "memory"
    if ground.real(str(memory)) == ground.real(str(shared)):
        return None
    return (
        f"shared_root is not set and {memory} exists: newer hermes-workspace keeps its shared memory there; "
        f"set shared_root to it, or to {shared} (used now) to end this notice"
    )
