"""The seal of the index: how its file looked when its keeper had written all of it. docs/search.md, "Index".

SQLite does not notice each kind of damage: of a file that was cut or written over it can read some rows and miss
others.
"""

import os

import msgspec

from swarmmemd.config import Config
from swarmmemd.durable import Directory, private_directory, read_file, replace
from swarmmemd.layout import SEAL, SEARCH
from swarmmemd.sources.file import Signature, signature

_LIMIT = 1000


def seal(config: Config) -> None:
    """Seals the index as it is now. Raises OSError."""
    with private_directory(config.state_dir) as state:
        found = os.stat(SEARCH, dir_fd=state.descriptor, follow_symlinks=False)
        replace(state, SEAL, msgspec.json.encode(signature(found)), permissions=0o600)


def sealed(config: Config) -> Signature | None:
    """The seal, if the index is as it was sealed. Another seal is another state of it."""
    try:
        with Directory.root(config.state_dir) as state:
            found = signature(os.stat(SEARCH, dir_fd=state.descriptor, follow_symlinks=False))
            kept = msgspec.json.decode(read_file(state, SEAL, _LIMIT) or b"", type=Signature)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found == kept else None
