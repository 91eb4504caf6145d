"""The socket: bound to loopback or to a path, and under which names it may be called. docs/api.md, "Where"."""

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory
from swarmmemd.errors import StorageError

_BACKLOG = 512


class Address(msgspec.Struct, frozen=True):
    """Where it listens: the address of the panel (of no use for a Unix socket), and the values of `Host` that are
    its own."""

    shown: str
    hosts: frozenset[bytes]
    cookie: str = "swarmmemd"
    """The name of the panel's cookie. Cookies know no ports: two servers would take each other's away."""


def listen(where: str, may_remove: bool) -> tuple[socket.socket, Address]:
    """A listening socket at `api.listen`. `may_remove`: a socket file that nobody listens on may be taken away, which
    only who holds the instance lock, or knows that nobody does, can decide. Raises `StorageError`."""
    try:
        if where.startswith("unix:"):
            return _unix(Path(where.removeprefix("unix:")), may_remove)
        return _tcp(where)
    except OSError as error:
        mend = "Another program listens there. Choose another address: api.listen"
        if error.errno != errno.EADDRINUSE:
            mend = "Check api.listen."
        raise StorageError(f"{where}: {(error.strerror or str(error)).lower()}", mend) from error


def _tcp(where: str) -> tuple[socket.socket, Address]:
    host, _, port = where.rpartition(":")
    six = host.startswith("[")
    name = "127.0.0.1" if host == "localhost" else host.strip("[]")
    found = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Not a second listener, only one at once again: connections that were closed hold the port for a minute.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((name, int(port)))
        found.listen(_BACKLOG)
    except OSError:
        found.close()
        raise
    bound = found.getsockname()[1]
    own = f"[{name}]" if six else name
    return found, Address(
        f"http://{own}:{bound}", hosts((own, "127.0.0.1", "localhost", "[::1]"), bound), f"swarmmemd-{bound}"
    )


def hosts(names: tuple[str, ...], port: int | None) -> frozenset[bytes]:
    """The values of `Host`: with the port, and without it where it is the default one or there is none."""
    with_port = {f"{name}:{port}" for name in names} if port else set()
    return frozenset(text.encode() for text in with_port | (set(names) if port in (None, 80) else set()))


def _unix(path: Path, may_remove: bool) -> tuple[socket.socket, Address]:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            found.bind(str(path))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not may_remove or not _is_stale(path):
                raise
            remove(path)
            found.bind(str(path))
        path.chmod(0o600)  # nobody can connect before `listen`
        found.listen(_BACKLOG)
    except OSError:
        found.close()
        raise
    return found, Address(f"unix:{path}", hosts(("127.0.0.1", "localhost", "[::1]"), None))


def _is_stale(path: Path) -> bool:
    """Whether a socket stands there that nobody listens on."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.settimeout(1.0)
        try:
            tried.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def remove(path: Path) -> None:
    """Takes the socket's file away, if it is one."""
    with contextlib.suppress(OSError), Directory.root(path.parent) as folder:
        if stat.S_ISSOCK(os.stat(path.name, dir_fd=folder.descriptor, follow_symlinks=False).st_mode):
            folder.unlink(path.name)
