"""The service as an agent of launchd. docs/operations.md, "Under launchd".

launchd answers late and by numbers: it still unloads when `bootout` has returned, and 5 means five things. So
each step is looked at afterwards, and the cause is named.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from swarmmemd.durable import make_root
from swarmmemd.errors import NoManagerError, ServiceError
from swarmmemd.install import agent
from swarmmemd.install.supervised import Done, Supervised, call, tool

_ABSENT = (113, 3)
"""What `print` and `bootout` answer for a service that is not there."""
_NO_SESSION = 125
_UNLOADED_WITHIN = 30.0
_BUSY = (5, 37)
"""bootstrap: an error that can pass, such as an unload that is still going on."""


class Launchd:
    """The agent in the login session of this user."""

    kind = "launchd"

    def __init__(self, home: Path, sleep: Callable[[float], None] = time.sleep) -> None:
        self.path = home / "Library/LaunchAgents" / agent.NAME
        self._home = home
        self._sleep = sleep
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{agent.LABEL}"

    def text(self, argv: tuple[str, ...], hardened: bool) -> str:
        """The agent, marked. launchd has no sandbox to leave out."""
        return agent.marked_agent(argv, str(self._home))

    def argv(self, text: str) -> tuple[str, ...]:
        """What an agent runs."""
        return agent.argv_of(text)

    def look(self) -> Supervised:
        """How it stands now."""
        told = self._print()
        pid = _pid(told)
        return Supervised(
            manager=self.kind,
            loaded=told is not None,
            enabled=told is not None and not self._disabled(),
            active="active" if pid else "inactive",
            pid=pid,
            restarts=max((_number(told.get("runs")) or 1) - 1, 0) if told else None,
            last_exit=_number(told.get("last exit code")) if told else None,
            path=(told or {}).get("path", str(self.path) if self.path.exists() else ""),
        )

    def _print(self) -> dict[str, str] | None:
        """What launchd tells of the agent, by name; None where it is not loaded."""
        done = self._ctl("print", self._target)
        if done.code == _NO_SESSION:
            raise self._no_session()
        if done.code != 0:
            return None
        # By the indentation: blocks further in tell of other things by the same names.
        return dict(re.findall(r"^(?:\t| {1,4})(\w[\w ]*?) = (.*?)\s*$", done.out, re.MULTILINE))

    def clear(self, force: bool) -> Callable[[], None]:
        """Nothing wins over the agent's own file."""
        return lambda: None

    def left(self) -> list[Path]:
        """Nothing: launchd has no drop-ins."""
        return []

    def inside(self) -> bool:
        """Whether this process is part of the service itself."""
        return os.environ.get("XPC_SERVICE_NAME") == agent.LABEL

    def commands(self) -> list[str]:
        """What `activate` does."""
        return [f"launchctl enable {self._target}", f"launchctl bootstrap {self._domain} {self.path}"]

    def activate(self, changed: bool, patience: float) -> None:
        """Enables and bootstraps it, after the old one is gone where the text is another one."""
        make_root(self._home / "Library/Logs")
        # First of all: an earlier `bootout` can have left an override that makes every bootstrap fail.
        done = self._ctl("enable", self._target)
        if done.code == _NO_SESSION:
            raise self._no_session()
        told = self._print()
        if told is not None and changed:
            self._unload()
            told = None
        if told is None:
            self._bootstrap(patience)
        elif _pid(told) == 0:
            self._must("kickstart", self._target)

    def deactivate(self) -> None:
        """Unloads it and waits until it is gone."""
        if self._print() is not None:
            self._unload()

    def forget(self) -> None:
        """Nothing of it is left in launchd."""

    def resume(self, before: Supervised, patience: float) -> None:
        """Loads it as it was; to load it is to start it."""
        if not before.loaded or not self.path.exists():
            return
        self.activate(changed=True, patience=patience)
        if before.active != "active":
            self.stop()

    def start(self, patience: float) -> None:
        """Starts it; loads it first where it is not loaded."""
        self.activate(changed=False, patience=patience)

    def stop(self) -> None:
        """Ends it by SIGTERM: it exits 0, which launchd leaves alone until the next login."""
        pid = _pid(self._print())
        if pid == 0:
            return
        self._must("kill", "SIGTERM", self._target)
        self._wait(lambda: _pid(self._print()) != pid, "The daemon does not end")

    def restart(self, patience: float) -> None:
        """Stops and starts it; one that does not end is killed."""
        if self._print() is None:
            self.activate(changed=False, patience=patience)
            return
        with contextlib.suppress(ServiceError):
            self.stop()
        self._must("kickstart", "-k", self._target)

    def why(self) -> tuple[str, str]:
        """Why it does not run, as far as launchd tells."""
        code = self.look().last_exit
        what = "it does not run" if code is None else f"it ended with {code}"
        return what, f"See: swarmmemd service logs, and {self._home / agent.CRASH_LOG}"

    def _bootstrap(self, patience: float) -> None:
        end, pause = time.monotonic() + patience, 0.1
        while True:
            done = self._ctl("bootstrap", self._domain, str(self.path))
            if done.code == 0 or self._print() is not None:
                return
            if done.code == _NO_SESSION:
                raise self._no_session()
            if done.code not in _BUSY or time.monotonic() + pause > end:
                raise ServiceError(f"launchd does not load the agent: {self._cause(done)}", self._mend())
            self._sleep(pause)
            pause = min(pause * 2, 5.0)

    def _unload(self) -> None:
        done = self._ctl("bootout", self._target)
        if done.code == _NO_SESSION:
            raise self._no_session()
        self._wait(lambda: self._print() is None, "launchd does not unload the agent")

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        end, pause = time.monotonic() + _UNLOADED_WITHIN, 0.05
        while not condition():
            if time.monotonic() > end:
                raise ServiceError(f"{otherwise} within {_UNLOADED_WITHIN:.0f} s", self._mend())
            self._sleep(pause)
            pause = min(pause * 2, 1.0)

    def _cause(self, done: Done) -> str:
        """What stands behind the number."""
        if self._disabled():
            return "it is disabled, and enabling it had no effect"
        if self._away():
            return f"the home {self._home} lies on another volume than /Users"
        return f"{done.said} (code {done.code})"

    def _mend(self) -> str:
        return f"Look at it with: launchctl print {self._target}; plutil {self.path}"

    def _away(self) -> bool:
        users = Path("/Users")
        return users.is_dir() and users.stat().st_dev != self._home.stat().st_dev

    def _disabled(self) -> bool:
        listed = self._ctl("print-disabled", self._domain).out
        return re.search(rf'"{re.escape(agent.LABEL)}" => (true|disabled)', listed) is not None

    def _no_session(self) -> NoManagerError:
        return NoManagerError(
            "This account has no login session of its own at this Mac (over SSH or sudo there is none)",
            "Log in at the screen as this user and run it there, or run it in the foreground: swarmmemd run",
        )

    def _must(self, *arguments: str) -> None:
        done = self._ctl(*arguments)
        if done.code == _NO_SESSION:
            raise self._no_session()
        if done.code in _ABSENT:
            raise ServiceError("The service is not installed", "Install it: swarmmemd service install")
        if done.code != 0:
            raise ServiceError(f"launchctl {' '.join(arguments)}: {done.said}", self._mend())

    def _ctl(self, *arguments: str) -> Done:
        return call([tool("launchctl", "Run it in the foreground instead: swarmmemd run"), *arguments])


def _pid(told: dict[str, str] | None) -> int:
    """The running process; 0 for none."""
    return _number((told or {}).get("pid")) or 0


def _number(text: str | None) -> int | None:
    found = re.match(r"-?\d+", text or "")
    return int(found[0]) if found else None
