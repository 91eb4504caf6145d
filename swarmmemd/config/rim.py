"""The system's side of the configuration: the file, the password database. docs/configuration.md."""

import os
import pwd
import sys
from pathlib import Path

from swarmmemd.config.keys import LIMIT
from swarmmemd.config.shape import Account


def account() -> Account:
    """The account that runs this process. One without an entry in the password database has its HOME."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = os.environ.get("HOME", "")
    return Account(
        Path(home if home.startswith("/") else "/"), "darwin" if sys.platform == "darwin" else "linux"
    )


def read_file(path: Path) -> bytes | None:
    """The bytes of the file, one more than allowed at most; None where there is no file."""
    try:
        with path.open("rb") as file:
            return file.read(LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
