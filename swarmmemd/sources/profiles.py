"""Which profiles are workers: the folders of `profiles_root`. docs/contracts.md, "Workers"."""

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from swarmmemd.layout import RUNTIME
from swarmmemd.model import Unreadable, WorkerId, worker_id


class Profiles(msgspec.Struct, frozen=True):
    """What stands in the profiles root. `folders` are those that could be a worker's; `skipped` are names of
    folders that hold a `runtime.json` and are no worker ids."""

    workers: frozenset[WorkerId]
    folders: frozenset[WorkerId]
    skipped: tuple[str, ...]


def list_profiles(
    root: Path, roster: Collection[WorkerId], include: Collection[str], exclude: Collection[str]
) -> Profiles | Unreadable:
    """The profiles in a root; one that cannot be listed says nothing."""
    try:
        return profiles_in(root, roster, include, exclude)
    except OSError as error:
        return Unreadable((error.strerror or str(error)).lower())


def profiles_in(
    root: Path, roster: Collection[WorkerId], include: Collection[str], exclude: Collection[str]
) -> Profiles:
    """Lists the root. A worker is a folder with a valid id that holds a `runtime.json` or that the roster names;
    the globs narrow this. Other profiles are private. Raises OSError where the root cannot be listed."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".") and _is_folder(entry)]
    ids = {name: worker_id(name) for name in names}
    valid = [id for id in ids.values() if id is not None and _wanted(id, include, exclude)]
    place = os.fspath(root)
    workers = frozenset(id for id in valid if id in roster or _has_runtime(place, id))
    skipped = tuple(name for name, id in ids.items() if id is None and _has_runtime(place, name))
    return Profiles(workers, frozenset(valid), skipped)


def _has_runtime(root: str, name: str) -> bool:
    """Whether there is a `runtime.json`, as far as we may look: a profile that is closed to us is private."""
    try:
        os.stat(f"{root}/{name}/{RUNTIME}")  # noqa: PTH116 - a path object costs more than the stat
    except OSError:
        return False
    return True


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _wanted(id: WorkerId, include: Collection[str], exclude: Collection[str]) -> bool:
    included = not include or any(fnmatchcase(id, glob) for glob in include)
    return included and not any(fnmatchcase(id, glob) for glob in exclude)
