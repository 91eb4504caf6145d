"""What this process may do with the roots. The daemon asks it of itself: under macOS, with another user or in a
sandbox, its rights are others than those of the shell in which somebody wonders. docs/operations.md.
"""

import os
from pathlib import Path

from swarmmemd.config import Config

_WANTED = {"state_dir": os.W_OK, "profiles_root": os.W_OK, "shared_root": os.W_OK, "workspace_root": os.R_OK}


def roots(config: Config) -> dict[str, Path]:
    """The roots by key, in the order in which they are opened."""
    return {key: getattr(config, key) for key in _WANTED}


def refusal(key: str, path: Path) -> str | None:
    """Why a root cannot be used as it must be; None where it can, or is not there. On macOS the look may wait
    until somebody has answered a question on the screen."""
    try:
        next(path.iterdir(), None)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{key} {path}: {error.strerror}"
    wanted = _WANTED[key]
    if os.access(path, wanted | os.X_OK):
        return None
    return f"{key} {path}: cannot be {'written' if wanted == os.W_OK else 'read'}"


def refused(config: Config) -> tuple[str, ...]:
    """A line for each root that cannot be used."""
    found = (refusal(key, path) for key, path in roots(config).items())
    return tuple(line for line in found if line is not None)
