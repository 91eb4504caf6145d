"""Word to systemd: ready, alive, stopping. Nothing where nobody listens. docs/operations.md, "The watchdog"."""

import os
import socket

_SUPERVISOR = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})


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


def unsupervised() -> dict[str, str]:
    """The environment for a process that has nothing to say to the supervisor."""
    return {name: value for name, value in os.environ.items() if name not in _SUPERVISOR}


def watchdog_interval() -> float | None:
    """Seconds after which the supervisor ends a process that says nothing; None where it does not."""
    allowed, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    return int(allowed) / 1e6 if allowed.isdigit() and pid in (None, str(os.getpid())) else None
