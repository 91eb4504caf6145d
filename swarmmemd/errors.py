"""Every error that a person can meet, with its exit code and the way to mend it. Imports nothing of ours.

An expected error is shown in one or two lines, without a traceback: what, where, how to mend. Anything
that is no `SwarmmemdError` is a bug and exits 70. Exit codes are those of sysexits; docs/commands.md.
"""

import errno
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    NOTHING = 1
    USAGE = 2
    NOT_RUNNING = 3
    NEEDS_DAEMON = 69
    BUG = 70
    IO = 74
    LOCKED = 75
    PERMISSION = 77
    CONFIG = 78


class SwarmmemdError(Exception):
    """What went wrong, and how to mend it."""

    code = Exit.IO
    mend = ""
    permanent = False
    """Trying again cannot help until a person has mended it: a supervisor must not restart into it."""

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(what)
        self.mend = mend or type(self).mend


class ConfigError(SwarmmemdError):
    """The configuration cannot be used; `problems` holds a line for each fault found."""

    code = Exit.CONFIG
    permanent = True

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class HeldError(SwarmmemdError):
    """Another daemon holds the lock."""

    code = Exit.LOCKED
    permanent = True


class JournalError(SwarmmemdError):
    """The journal is damaged, or newer than this program. Never a reason to begin from empty."""

    permanent = True


class StorageError(SwarmmemdError):
    """A file or folder of swarmmemd's own cannot be read or written."""


class NoJournalError(StorageError):
    """There is no journal yet, or nothing in it: the daemon makes it."""


class DeniedError(StorageError):
    """The system refuses access to a file or folder: a person has to give the right."""

    code = Exit.PERMISSION
    mend = "Check its owner and permissions."
    permanent = True


_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP})


def system_error(where: object, error: OSError, mend: str = "") -> StorageError:
    """What a person is told where the system refused something. `DeniedError` where trying again mends nothing: a
    matter of rights, a file system without writing, or something that is no folder."""
    kind = DeniedError if error.errno in _DENIED else StorageError
    return kind(f"{where}: {error.strerror or error}", mend or "Check the disk and the permissions.")


class NotRunningError(SwarmmemdError):
    """The command needs a running daemon and there is none."""

    code = Exit.NEEDS_DAEMON


class ServiceError(SwarmmemdError):
    """The service cannot be installed, started or asked; what was there before is in place again."""

    code = Exit.NOTHING


class NoManagerError(ServiceError):
    """There is no service manager that this account can talk to."""

    code = Exit.NEEDS_DAEMON


class UsageError(SwarmmemdError):
    """The command was called in a way that means nothing."""

    code = Exit.USAGE
    permanent = True
