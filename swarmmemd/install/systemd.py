"""The service under the user manager of systemd. docs/operations.md, "Under systemd"."""

import os
import pwd
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from swarmmemd.durable import Directory
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

    def clear(self, force: bool) -> Callable[[], None]:
        """An older unit in the config folder would win over ours: it is refused, or set aside."""
        if not os.path.lexists(self.shadow):
            return lambda: None
        if not force:
            raise ServiceError(
                f"{self.shadow} would win over {self.path}",
                "Look at it, then set it aside: swarmmemd service install --force (drop-ins stay)",
            )
        saved = f"{self.shadow.name}.saved"
        self._rename(self.shadow.name, saved)
        return partial(self._rename, saved, self.shadow.name)

    def _rename(self, name: str, other: str) -> None:
        try:
            with Directory.root(self.shadow.parent) as folder:
                folder.rename(name, other)
        except OSError as error:
            raise ServiceError(
                f"{self.shadow.parent / name}: {error.strerror}", "Look at that folder."
            ) from error

    def left(self) -> list[Path]:
        """The drop-ins, and the mark by which the user's manager goes on after the last logout."""
        found = (self.shadow.with_name(f"{unit.NAME}.d"), _linger_mark())
        return [path for path in found if path.exists()]

    def inside(self) -> bool:
        """Whether this process is part of the service itself."""
        try:
            return f"/{unit.NAME}" in Path("/proc/self/cgroup").read_text()
        except OSError:
            return False

    def commands(self) -> list[str]:
        """What `activate` does."""
        verbs = (
            "daemon-reload",
            f"enable --force {unit.NAME}",
            f"reset-failed {unit.NAME}",
            f"restart {unit.NAME}",
        )
        return [f"systemctl --user {verb}" for verb in verbs]

    def activate(self, changed: bool, patience: float) -> None:
        """Reloads, enables, and starts it, or restarts it where the text is another one."""
        self._must("daemon-reload")
        found = self.look()
        if not found.loaded:
            raise ServiceError(
                f"systemd does not load {self.path}: {self._load_state()}",
                "systemd looks into the home of the account: is HOME another one here? Else look at it with:"
                f" systemd-analyze --user verify {self.path}",
            )
        self._enable()
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

    def resume(self, before: Supervised, patience: float) -> None:
        """Reloads, and makes it enabled and active as it was."""
        self._must("daemon-reload")
        if before.loaded and before.enabled:
            self._enable()
        if before.active == "active":
            self._begin("start", patience)

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
        return (
            f"it ended with {found.last_exit} ({found.result})",
            "See: swarmmemd service logs, and swarmmemd doctor",
        )

    def _begin(self, verb: str, patience: float) -> None:
        self._ctl("reset-failed", unit.NAME)
        done = self._ctl(verb, unit.NAME, patience=patience)
        if done.code != 0:
            what, mend = self.why() if done.code != 124 else (done.said, "See: swarmmemd service logs")
            raise ServiceError(f"The service does not start: {what}", mend)

    def _enable(self) -> None:
        """By force: a link of an older unit may stand where ours has to be."""
        self._must("enable", "--force", unit.NAME)

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
    return _linger_mark().exists()


def _linger_mark() -> Path:
    return Path("/var/lib/systemd/linger", _user())


def enable_linger() -> list[str]:
    """The command that keeps the user's manager up. It names the user: in a shell of `su` nobody's session, or
    another one's, would be meant."""
    return ["loginctl", "enable-linger", _user()]


def linger() -> None:
    """Keeps the user's manager up without a login, and waits until it is up. Twice is once. Raises `ServiceError`."""
    if lingers():
        return
    name, *words = enable_linger()
    done = call([tool(name, _FOREGROUND), *words])
    if done.code != 0 or not lingers():
        said = done.said if done.code else "it had no effect"
        raise ServiceError(
            f"{' '.join(enable_linger())}: {said}",
            f"Nothing was changed. Ask an administrator to run it: sudo {' '.join(enable_linger())}. Or install"
            " without --linger.",
        )
    end = time.monotonic() + _ASKED_WITHIN
    while not (_folder() / "systemd/private").exists() and time.monotonic() < end:
        time.sleep(0.05)


def _folder() -> Path:
    """Where the manager of this user has its sockets."""
    return Path(f"/run/user/{os.getuid()}")


def _runtime() -> dict[str, str]:
    """That folder for a shell that was not told of it, or of another user's: both happen with `su`."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if not _folder().is_dir() or (given and not _of_another(Path(given))):
        return {}
    return {"XDG_RUNTIME_DIR": str(_folder())}


def _of_another(folder: Path) -> bool:
    try:
        return folder.stat().st_uid != os.getuid()
    except PermissionError:
        return True
    except OSError:
        return False


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
