"""What this process may do with the roots. The daemon asks it of itself: under macOS, with another user or in a
sandbox, its rights are others than those of the shell in which somebody wonders. docs/operations.md.
"""

import os
from collections.abc import Iterator

from swarmmemd.config import Config


def refused(config: Config) -> tuple[str, ...]:
    """A line for each root that cannot be used as it must be; what is not there is not refused."""
    return tuple(_refused(config))


def _refused(config: Config) -> Iterator[str]:
    roots = {
        "profiles_root": os.W_OK,
        "shared_root": os.W_OK,
        "state_dir": os.W_OK,
        "workspace_root": os.R_OK,
    }
    for key, wanted in roots.items():
        path = getattr(config, key)
        try:
            next(path.iterdir(), None)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield f"{key} {path}: {error.strerror}"
            continue
        if not os.access(path, wanted | os.X_OK):
            yield f"{key} {path}: cannot be {'written' if wanted == os.W_OK else 'read'}"
