"""The system call that exchanges two names, which Python does not offer: renameat2 on Linux, renameatx_np on macOS."""

import ctypes
import errno
import os
import sys

_NAMES = {"linux": "renameat2", "darwin": "renameatx_np"}
_EXCHANGE = 2
"""RENAME_EXCHANGE, and RENAME_SWAP: the same number on both."""
_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})

_call = getattr(ctypes.CDLL(None, use_errno=True), _NAMES.get(sys.platform, ""), None)


def exchange(directory: int, one: str, other: str) -> bool:
    """Exchanges two names in the folder of this descriptor, at once. False where system or file system cannot.

    Raises OSError for any other failure.
    """
    if _call is None:
        return False
    if _call(directory, os.fsencode(one), directory, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), other)
