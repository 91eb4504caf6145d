"""Word to systemd: ready, stopping. Nothing where nobody listens. docs/operations.md."""

import os
import socket


def notify(*pairs: str) -> bool:
    """Sends `KEY=value` pairs to the supervisor's socket; False where there is none."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto("\n".join(pairs).encode(), "\0" + path[1:] if path[0] == "@" else path)
    except OSError:
        return False
    return True
