"""The systemd user unit as text. Pure. docs/operations.md, "Under systemd"."""

from swarmmemd.install.mark import mark_of

NAME = "swarmmemd.service"
EXAMPLE = "%h/.local/bin/swarmmemd run --supervisor systemd"
"""What the example in `systemd/` starts: the place where pipx and uv put the command."""

_HEAD = """\
# swarmmemd as a user service. How it is installed: docs/operations.md.
# The program sets the modes of its own state (folders 0700, files 0600). UMask= is left out on purpose:
# memory files keep the umask of the account, so that the workers and people can go on editing them.

[Unit]
Description=Durable, readable memory for agent swarms
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={start}
ExecReload=/bin/kill -HUP $MAINPID
Environment=PYTHONUNBUFFERED=1
Restart=on-failure
RestartSec=5
# Wrong usage, another daemon holds the lock, permission, configuration: a restart mends none of them.
RestartPreventExitStatus=2 75 77 78
# The first start over a large memory reads all of it.
TimeoutStartSec=300
# The daemon says that it is alive each time its loop comes round, once a second at least.
WatchdogSec=90
TimeoutStopSec=30
KillMode=mixed
Nice=5
OOMScoreAdjust=200
SyslogIdentifier=swarmmemd
"""
_HARDENING = """
# What works in a user unit without namespaces. The daemon speaks to no network: files, a socket to systemd, and, where
# api.enabled is set, the loopback addresses that it binds.
NoNewPrivileges=yes
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
"""
_TAIL = """
[Install]
WantedBy=default.target
"""

NAMESPACES = """\
# Opt-in, beside the unit: ~/.config/systemd/user/swarmmemd.service.d/namespaces.conf. The home is read-only but for
# the folders that swarmmemd writes; change them if yours are elsewhere. It needs unprivileged user namespaces, which
# some systems (Ubuntu 24.04) switch off: then the unit ends with 217 or 226. docs/operations.md.
[Service]
PrivateUsers=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths=-%h/.hermes/profiles
ReadWritePaths=-%h/.openclaw/workspace/memory
ReadWritePaths=-%h/.local/state/swarmmemd
# With namespaces some versions hide the runtime folder, and with it the socket on which the daemon says "ready".
BindPaths=-%t/systemd/notify
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
CapabilityBoundingSet=
"""
"""The drop-in for what works only with a user namespace."""


def unit(start: str, hardened: bool = True) -> str:
    """The unit that runs `start`, a line in systemd's own quoting; `hardened` false leaves the sandbox out."""
    return _HEAD.format(start=start) + (_HARDENING if hardened else "") + _TAIL


def marked_unit(argv: tuple[str, ...], hardened: bool = True) -> str:
    """The unit as it is installed: it runs `argv`, and says in its first line who wrote it."""
    body = unit(words(argv), hardened)
    return f"# {mark_of(body)}\n{body}"


def words(argv: tuple[str, ...]) -> str:
    """`argv` as one line of `ExecStart=`: quoted where needed, specifiers and variables as plain text. The program
    itself is no place for variables, so a dollar there stands for itself."""
    program, *rest = argv
    return " ".join((_word(program), *(_word(one).replace("$", "$$") for one in rest)))


def _word(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"' if any(sign in text for sign in " \t'\";\\") or not text else plain


def argv_of(text: str) -> tuple[str, ...]:
    """What a unit that the installer wrote runs; nothing where there is no `ExecStart=`."""
    import shlex

    line = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "ExecStart=")
    try:
        found = shlex.split(line.removeprefix("ExecStart="))
    except ValueError:
        return ()
    program, rest = found[:1], found[1:]
    return tuple(one.replace("%%", "%") for one in (*program, *(one.replace("$$", "$") for one in rest)))
