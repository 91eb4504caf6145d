"""The skill that tells a worker how to use its memory. docs/commands.md, "skill"."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

from swarmmemd.durable import Directory, Moved, hold, replace
from swarmmemd.errors import StorageError, system_error

NAME = "swarm-memory"
FILE = "SKILL.md"
_LIMIT = 1024 * 1024
_MARK = re.compile(r"\n<!-- installed by swarmmemd, ([0-9a-f]{16}) -->\n\Z")


def skill() -> str:
    """The text of the skill."""
    return (files(__name__) / NAME / FILE).read_text("utf-8")


def install(folder: Path, force: bool) -> str:
    """Puts the skill into a folder of skills. Gives `installed`, `replaced`, `up to date`, or `kept`: somebody has
    changed it, and it stays unless `force` is given. Raises `StorageError`. Follows no link below the folder."""
    text = skill()
    data = f"{text}\n<!-- installed by swarmmemd, {_digest(text)} -->\n".encode()
    try:
        with (
            Directory.root(folder.parent) as parent,
            parent.descend((folder.name, NAME), create=True) as place,
        ):
            held = hold(place, FILE, _LIMIT)
            if held is not None:
                held.close()
                if held.data == data:
                    return "up to date"
                if not (force or _is_ours(held.data)):
                    return "kept"
            replace(place, FILE, data, held.version if held else None)
    except Moved as error:
        raise StorageError(f"{folder}: somebody else writes there", "Try again.") from error
    except OSError as error:
        raise system_error(error.filename or folder, error, "Name a folder of skills with --dir.") from error
    return "replaced" if held is not None else "installed"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_ours(data: bytes) -> bool:
    """Whether nobody has changed it since an earlier version was installed."""
    text = data.decode("utf-8", "replace")
    mark = _MARK.search(text)
    return mark is not None and mark[1] == _digest(text[: mark.start()])
