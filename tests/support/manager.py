"""A live systemd user manager with an account of its own, on a machine that was not booted with systemd.

`user-manager` beside this file does the work; it needs root and says in one line where the kernel refuses it.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import put_file, until

_SCRIPT = Path(__file__).with_name("user-manager")
_ROOT = Path(__file__).parents[2]
_REFUSED = 77
SWARMMEMD = str(Path(sys.prefix) / "bin" / "swarmmemd")
_QUICK = "[Service]\nRestartSec=100ms\nWatchdogSec=5\nNice=0\n"


class UserManager:
    """The manager, its user, and the user's home."""

    def __init__(self) -> None:
        self.user = f"swarmmemd-test-{os.getpid()}"
        self.home = Path("/home") / self.user
        self.drop_ins = self.home / ".config/systemd/user/swarmmemd.service.d"
        self.unit = self.home / ".local/share/systemd/user/swarmmemd.service"
        self.state = self.home / ".local/state/swarmmemd"
        self.profiles = self.home / ".hermes/profiles"

    def up(self) -> None:
        """Starts it; skips the test, with the reason, where this host cannot run one."""
        readable = sorted({sys.base_prefix, sys.prefix, str(_ROOT)})
        outer = [one for one in readable if not any(Path(one).parent.is_relative_to(o) for o in readable)]
        done = subprocess.run([_SCRIPT, self.user, "up", *outer], capture_output=True, text=True, check=False)
        if done.returncode == _REFUSED:
            reason = done.stdout.strip().splitlines()[-1]
            assert not os.environ.get("NEED_USER_MANAGER"), reason
            # Something that is not installed, unlike something that the kernel refuses, is a failure in CI.
            missing = reason.startswith("no user manager: no ")
            assert not (missing and os.environ.get("SWARMMEMD_CI")), reason
            pytest.skip(reason)
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self) -> None:
        """Ends the manager and all of its services, as a shutdown does; the home stays."""
        subprocess.run([_SCRIPT, self.user, "stop"], check=True)

    def down(self) -> None:
        """Ends it and takes the account away."""
        subprocess.run([_SCRIPT, self.user, "down"], check=True)

    def run(
        self, *command: str, code: int | None = 0, seconds: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command as the user, within reach of the manager. `code` None takes any exit code."""
        done = subprocess.run(
            [_SCRIPT, self.user, "do", *command], capture_output=True, text=True, timeout=seconds, check=False
        )
        assert code is None or done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
        return done

    def journald(self) -> None:
        """Starts a real journald, which the services of this manager talk to from then on."""
        subprocess.run([_SCRIPT, self.user, "journald"], check=True)

    def journal(self) -> list[dict[str, Any]]:
        """What journald has of the daemon."""
        asked = [str(_SCRIPT), self.user, "journal", "SYSLOG_IDENTIFIER=swarmmemd", "--output=json"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def swarmmemd(self, *arguments: str, code: int | None = 0) -> "subprocess.CompletedProcess[str]":
        """Runs swarmmemd as the user."""
        return self.run(SWARMMEMD, *arguments, code=code)

    def asked(self, *arguments: str, code: int | None = 0) -> dict[str, Any]:
        """What a command prints with `--json`."""
        found: dict[str, Any] = json.loads(self.swarmmemd(*arguments, "--json", code=code).stdout)
        return found

    def show(self, name: str) -> str:
        """A property of the service, from systemd itself."""
        return self.run(
            "systemctl", "--user", "show", "swarmmemd.service", f"-p{name}", "--value"
        ).stdout.strip()

    def pid(self) -> int:
        """Its main process. Never 0: to signal that would hit the tests themselves."""
        found = int(self.show("MainPID"))
        assert found > 0
        return found

    def replaced(self, pid: int) -> None:
        """Waits until the manager has put another daemon in the place of this one, and that is ready."""

        def up() -> bool:
            told = self.run("systemctl", "--user", "show", "swarmmemd.service", "-pMainPID,SubState").stdout
            return f"MainPID={pid}\n" not in told and "SubState=running" in told

        until(up, f"another daemon than process {pid}")

    def put(self, path: Path, content: str) -> None:
        """Puts a file into the user's home, owned by the user."""
        put_file(path, content.encode())
        entry = pwd.getpwnam(self.user)
        for one in (path, *path.parents):
            if one.is_relative_to(self.home) and one != self.home:
                os.chown(one, entry.pw_uid, entry.pw_gid)

    def write(self, worker: str, content: object) -> None:
        """Puts a worker's `runtime.json` in place."""
        self.put(self.profiles / worker / "runtime.json", json.dumps(content))

    def quick(self, more: str = "") -> None:
        """A drop-in by which the manager waits less."""
        self.put(self.drop_ins / "quick.conf", _QUICK + more)

    def lines(self, worker: str, mission: str) -> list[dict[str, Any]]:
        """The events of a worker's mission, from the file."""
        path = self.profiles / worker / "memory/missions" / mission / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def recorded(self, worker: str, mission: str, summary: str) -> None:
        """Waits until an event with this summary stands in the file."""
        until(
            lambda: any(one["summary"] == summary for one in self.lines(worker, mission)),
            f"{summary!r} in the memory of {worker}",
        )

    def clean(self) -> None:
        """As if nothing had ever been installed."""
        self.run("systemctl", "--user", "stop", "swarmmemd.service", code=None)
        for folder in (".local", ".config", ".hermes", ".openclaw", "hermes-workspace"):
            shutil.rmtree(self.home / folder, ignore_errors=True)
        self.run("systemctl", "--user", "daemon-reload")
        self.run("systemctl", "--user", "reset-failed", code=None)
