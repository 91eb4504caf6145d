"""The service under the user manager of systemd. docs/operations.md, "Under systemd"."""

import os
import pwd
from pathlib import Path

from swarmmemd.durable import Directory, replace
from swarmmemd.errors import NoManagerError, ServiceError
from swarmmemd.install import unit
from swarmmemd.install.supervised import Done, Supervised, call, tool

_PROPERTIES = (
    *("LoadState", "UnitFileState", "ActiveState", "MainPID", "NRestarts", "Result", "ExecMainStatus"),
    *("ActiveEnterTimestamp", "FragmentPath", "DropInPaths", "NeedDaemonReload", "StatusText"),
)
_ACTIVE = {"active": "active", "reloading": "active", "activating": "starting", "deactivating": "stopping"}
_FOREGROUND = "Run it in the foreground instead: swarmmemd run"
_REFUSED = {
    200: ("its working directory is missing", ""),
    203: ("its program cannot be executed", "Install it again: swarmmemd service install"),
    209: ("its output file cannot be opened", "Look at the drop-ins: systemctl --user cat swarmmemd"),
    217: ("this system has no user namespaces", "Remove the drop-in namespaces.conf."),
    218: ("this system refuses to drop capabilities", "Remove the drop-in namespaces.conf."),
    226: ("this system refuses the namespaces", "Remove the drop-in namespaces.conf."),
    228: ("the kernel refuses the system call filter", "swarmmemd service install --no-hardening"),
}
"""What systemd's own exit codes mean, and the mend."""
_ASKED_WITHIN = 15.0
"""Seconds within which systemd has to say how the service stands: `status` waits for it."""
_LIMIT = 5
"""As `StartLimitBurst=`: so many restarts, and systemd gives up."""


class Systemd:
    """The user unit. The file lies in the home's data folder: one in the config folder could not be masked."""

    kind = "systemd"

    def __init__(self, home: Path) -> None:
        self.path = home / ".local/share/systemd/user" / unit.NAME
        self.shadow = home / ".config/systemd/user" / unit.NAME
        """Where an older copy would win over ours."""

    def text(self, argv: tuple[str, ...], hardened: bool) -> str:
        """The unit, marked."""
        return unit.marked_unit(argv, hardened)

    def argv(self, text: str) -> tuple[str, ...]:
        """What a unit runs."""
        return unit.argv_of(text)

    def look(self) -> Supervised:
        """How it stands now. Raises `NoManagerError` where no user manager answers."""
        done = self._ctl("show", unit.NAME, f"--property={','.join(_PROPERTIES)}", patience=_ASKED_WITHIN)
        if done.code != 0:
            raise self._no_bus(done)
        told = dict(line.partition("=")[::2] for line in done.out.splitlines())
        failed = told.get("ActiveState") == "failed"
        restarts = int(told.get("NRestarts") or 0)
        return Supervised(
            manager=self.kind,
            loaded=told.get("LoadState") == "loaded",
            enabled=told.get("UnitFileState") == "enabled",
            active="failed" if failed else _ACTIVE.get(told.get("ActiveState", ""), "inactive"),
            pid=int(told.get("MainPID") or 0),
            restarts=restarts,
            last_exit=int(told.get("ExecMainStatus") or 0),
            result=told.get("Result", ""),
            since=told.get("ActiveEnterTimestamp", ""),
            path=told.get("FragmentPath", ""),
            drop_ins=tuple(told.get("DropInPaths", "").split()),
            outdated=told.get("NeedDaemonReload") == "yes",
            text=told.get("StatusText", ""),
            stays=lingers(),
            # Its `Result` stays `exit-code` then; the number of restarts tells.
            gave_up=failed and (restarts >= _LIMIT - 1 or told.get("Result") == "start-limit-hit"),
        )

    def clear(self, force: bool) -> None:
        """An older unit in the config folder would win over ours: it is refused, or set aside."""
        if not self.shadow.exists():
            return
        if not force:
            raise ServiceError(
                f"{self.shadow} would win over {self.path}",
                "Look at it, then set it aside: swarmmemd service install --force (drop-ins stay)",
            )
        with Directory.root(self.shadow.parent) as folder:
            replace(folder, f"{self.shadow.name}.saved", self.shadow.read_bytes(), permissions=0o644)
            folder.unlink(self.shadow.name)

    def inside(self) -> bool:
        """Whether this process is part of the service itself."""
        try:
            return f"/{unit.NAME}" in Path("/proc/self/cgroup").read_text()
        except OSError:
            return False

    def commands(self) -> list[str]:
        """What `activate` does."""
        verbs = ("daemon-reload", f"enable {unit.NAME}", f"reset-failed {unit.NAME}", f"restart {unit.NAME}")
        return [f"systemctl --user {verb}" for verb in verbs]

    def activate(self, changed: bool, patience: float) -> None:
        """Reloads, enables, and starts it, or restarts it where the text is another one."""
        self._must("daemon-reload")
        found = self.look()
        if not found.loaded:
            raise ServiceError(
                f"systemd does not load {self.path}: {self._load_state()}",
                "Look at it with: systemd-analyze --user verify " + str(self.path),
            )
        self._must("enable", unit.NAME)
        self._begin("restart" if changed else "start", patience)

    def deactivate(self) -> None:
        """Stops and disables it."""
        # systemctl answers 5 and 1 where there is no such unit.
        self._ctl("stop", unit.NAME)
        self._ctl("disable", unit.NAME)

    def forget(self) -> None:
        """Lets systemd see that the file is gone."""
        self._ctl("daemon-reload")
        self._ctl("reset-failed", unit.NAME)

    def start(self, patience: float) -> None:
        """Starts it; a start limit that was hit is reset."""
        self._begin("start", patience)

    def stop(self) -> None:
        """Stops it."""
        self._must("stop", unit.NAME)

    def restart(self, patience: float) -> None:
        """Stops and starts it."""
        self._begin("restart", patience)

    def why(self) -> tuple[str, str]:
        """Why it does not run: systemd's own exit codes, else the daemon's."""
        found = self.look()
        if found.last_exit in _REFUSED:
            return _REFUSED[found.last_exit]
        if found.result == "watchdog":
            return "it made no progress and was ended by the watchdog", "swarmmemd doctor"
        return f"it ended with {found.last_exit} ({found.result})", "See: swarmmemd service logs"

    def _begin(self, verb: str, patience: float) -> None:
        self._ctl("reset-failed", unit.NAME)
        done = self._ctl(verb, unit.NAME, patience=patience)
        if done.code != 0:
            what, mend = self.why() if done.code != 124 else (done.said, "See: swarmmemd service logs")
            raise ServiceError(f"The service does not start: {what}", mend)

    def _must(self, *arguments: str) -> None:
        done = self._ctl(*arguments)
        if done.code != 0:
            raise ServiceError(f"systemctl --user {' '.join(arguments)}: {done.said}", "swarmmemd doctor")

    def _load_state(self) -> str:
        return self._ctl("show", unit.NAME, "--property=LoadState,LoadError", "--value").out.strip()

    def _ctl(self, *arguments: str, patience: float = 120.0) -> Done:
        return call([tool("systemctl", _FOREGROUND), "--user", *arguments], _runtime(), patience)

    def _no_bus(self, done: Done) -> NoManagerError:
        return NoManagerError(
            f"systemd's manager of this user does not answer: {done.said}",
            f"Log in as {_user()} directly, not with su or sudo; or keep the manager up without a login:"
            f" loginctl enable-linger {_user()}. Without systemd: swarmmemd run",
        )


def lingers() -> bool:
    """Whether the user's manager goes on after the last logout."""
    return Path("/var/lib/systemd/linger", _user()).exists()


def linger() -> None:
    """Keeps the user's manager up without a login. Raises `ServiceError`."""
    done = call([tool("loginctl", _FOREGROUND), "enable-linger"])
    if done.code != 0:
        raise ServiceError(f"loginctl enable-linger: {done.said}", "Ask an administrator to run it for you.")


def _runtime() -> dict[str, str]:
    """Where the manager's socket is, for a shell that was not told: after `su` the variable is missing."""
    folder = Path(f"/run/user/{os.getuid()}")
    given = os.environ.get("XDG_RUNTIME_DIR")
    return {} if given or not folder.is_dir() else {"XDG_RUNTIME_DIR": str(folder)}


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
