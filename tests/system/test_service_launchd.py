"""`swarmmemd service` for launchd, driven against a launchctl that models its states and its errors."""

import contextlib
import io
import json
import os
import plistlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from swarmmemd.cli.main import run
from tests.support.daemon import Home, answered, until

_FAKE = Path(__file__).parents[1] / "support" / "launchctl.py"
_SCRIPT = str(Path(sys.prefix) / "bin" / "swarmmemd")


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Mac:
    """A home whose launchd is the fake one."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.folder = home.root / "launchd"
        self.folder.mkdir()
        fake = self.folder / "launchctl"
        fake.write_text(f"#!{sys.executable} -IS\n{_FAKE.read_text()}")
        fake.chmod(0o755)
        self.plist = home.root / "Library/LaunchAgents/com.swarmmemd.agent.plist"
        self.state = home.root / ".local/state/swarmmemd"

    def plan(self, **state: object) -> None:
        """What launchd is like from now on."""
        (self.folder / "state.json").write_text(json.dumps({**self.now(), **state}))

    def now(self) -> dict[str, Any]:
        """What launchd is like."""
        path = self.folder / "state.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def calls(self) -> list[str]:
        """The verbs that changed something, in order."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [line.split()[0] for line in lines if not line.startswith("print")]

    def service(self, *words: str, code: int | None = 0, **more: str) -> "Said":
        """Runs a command of `swarmmemd service`, here, with the environment that a shell would have."""
        path = f"{self.folder}:{more.pop('PATH', os.environ['PATH'])}"
        environment = {**self.home.environment(), "PATH": path, "FAKE_LAUNCHD": str(self.folder), **more}
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, environment, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            ended = run(["service", words[0], "--supervisor", "launchd", *words[1:]])
        said = Said(ended, out.getvalue(), err.getvalue())
        assert code is None or said.returncode == code, said
        return said

    def end(self) -> None:
        """Kills what launchd has started."""
        pids = self.folder / "pids"
        for pid in [int(line) for line in pids.read_text().split()] if pids.exists() else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: not _lives(pid), "a process to end")  # type: ignore[misc]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def mac(home: Home) -> Iterator[Mac]:
    if not Path("/proc/self/stat").exists():
        pytest.skip("the fake launchctl looks into /proc")
    mac = Mac(home)
    yield mac
    mac.end()


def test_installed_used_and_uninstalled(mac: Mac) -> None:
    assert mac.service("install").stdout.startswith("installed")
    assert mac.calls() == ["enable", "bootstrap"], "enabled first, and no kickstart -k after bootstrap"
    pid = mac.now()["pid"]
    told = json.loads(mac.service("status", "--json").stdout)
    assert told["daemon"]["by_service"]
    assert told["definition"]["state"] == "current"
    mac.home.write("w1", answered("m1", "The fence is red"))
    until(lambda: mac.home.status_of("w1", "m1") == "complete", "the memory")

    assert mac.service("install").stdout.startswith("unchanged")
    assert mac.now()["pid"] == pid

    mac.service("stop")
    assert mac.service("status", code=3).stdout
    mac.service("start")
    mac.service("restart")
    assert mac.now()["pid"] != pid

    assert mac.service("uninstall").stdout.startswith("removed")
    assert not mac.plist.exists()
    assert mac.now()["loaded"] is None
    assert mac.service("uninstall").stdout.startswith("not installed")
    assert mac.home.status_of("w1", "m1") == "complete"


def test_an_unload_that_goes_on_is_waited_for_and_bootstrap_tried_again(mac: Mac) -> None:
    mac.service("install")
    mac.plan(teardown=2, errors=[5, 37])
    other = mac.home.root / "elsewhere"
    assert mac.service("install", "--workspace-root", str(other)).stdout.startswith("updated")
    assert mac.calls()[2:] == ["enable", "bootout", "bootstrap", "bootstrap", "bootstrap"]
    assert str(other) in plistlib.loads(mac.plist.read_bytes())["ProgramArguments"]
    assert mac.service("status").returncode == 0


def test_a_disabled_override_is_taken_away(mac: Mac) -> None:
    mac.plan(disabled=True)
    mac.service("install")
    assert mac.now()["disabled"] is False


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ({"stuck": True, "disabled": True}, "it is disabled"),
        ({"errors": [5] * 99}, "Input/output error (code 5)"),
        ({"errors": [134] * 9}, "code 134"),
    ],
)
def test_a_bootstrap_that_never_works_names_the_cause_and_leaves_nothing(
    mac: Mac, state: dict[str, object], cause: str
) -> None:
    mac.plan(**state)
    assert cause in mac.service("install", "--wait", "0.5", code=1).stderr
    assert not mac.plist.exists()
    assert not mac.now()["loaded"]


def test_without_a_login_session_the_cause_is_named_and_nothing_written(mac: Mac) -> None:
    mac.plan(session=False)
    refused = mac.service("install", code=69)
    assert "SSH" in refused.stderr
    assert "125" not in refused.stderr
    assert not mac.plist.exists()
    assert "cannot be asked" in mac.service("status", code=3).stdout


def test_what_can_never_run_is_told_at_once_and_not_left_to_loop(mac: Mac) -> None:
    mac.state.mkdir(parents=True)
    (mac.state / "journal.db").write_bytes(b"no database" * 100)
    refused = mac.service("install", code=1)
    assert "journal.db" in refused.stderr
    assert not mac.plist.exists()
    assert not mac.now()["loaded"]
    assert len((mac.folder / "pids").read_text().split()) == 1


def test_an_update_that_fails_puts_back_the_old_agent(mac: Mac) -> None:
    mac.service("install")
    old = mac.plist.read_bytes()
    broken = mac.home.root / "broken"
    broken.mkdir()
    (broken / "journal.db").write_bytes(b"no database" * 100)
    assert "in place again" in mac.service("install", "--state-dir", str(broken), code=1).stderr
    assert mac.plist.read_bytes() == old
    until(lambda: mac.service("status", code=None).returncode == 0, "the old daemon")


def test_a_loaded_agent_without_a_file_is_the_only_copy(mac: Mac) -> None:
    mac.service("install")
    mac.plist.unlink()
    assert "nothing to go back to" in mac.service("install", code=1).stderr
    assert mac.now()["loaded"]
    assert mac.service("install", "--force").stdout.startswith("installed")


def test_a_plist_edited_by_hand_is_kept(mac: Mac) -> None:
    mac.service("install")
    edited = mac.plist.read_text().replace("<integer>5</integer>", "<integer>7</integer>")
    mac.plist.write_text(edited)
    assert "-\t<integer>7</integer>" in mac.service("install", code=1).stderr
    assert mac.plist.read_text() == edited


def test_nothing_of_the_shell_goes_into_the_plist(mac: Mac) -> None:
    one = mac.service("install", "--print").stdout
    other = mac.service(
        "install", "--print", PATH="/odd/bin:/usr/bin:/bin", LANG="de_DE", SECRET="s3cr3t"
    ).stdout
    assert one == other
    assert "s3cr3t" not in one
    arguments = plistlib.loads(one.encode())["ProgramArguments"]
    assert arguments[0] == _SCRIPT


def test_under_sudo_and_inside_the_service_it_is_refused(mac: Mac) -> None:
    if os.geteuid() == 0:
        assert "sudo" in mac.service("install", code=77, SUDO_USER="ann").stderr
    inside = {"XPC_SERVICE_NAME": "com.swarmmemd.agent"}
    assert "inside the service" in mac.service("install", code=1, **inside).stderr
    assert "inside the service" in mac.service("uninstall", code=1, **inside).stderr
    assert not mac.plist.exists()


def test_a_daemon_of_somebody_else_is_not_taken_for_the_agent_s(mac: Mac) -> None:
    foreign = subprocess.Popen(
        mac.home.arguments("--state-dir", str(mac.state), "run"),
        env=mac.home.environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: mac.service("status", code=None).returncode == 0, "the other daemon")
        refused = mac.service("install", code=1)
        assert f"process {foreign.pid}" in refused.stderr
        assert not mac.plist.exists()
        assert not mac.now()["loaded"]
    finally:
        foreign.kill()
        foreign.wait()


def test_an_update_that_fails_leaves_a_stopped_agent_stopped(mac: Mac) -> None:
    mac.service("install")
    mac.service("stop")
    old = mac.plist.read_bytes()
    mac.plan(errors=[134])
    mac.service("install", "--workspace-root", str(mac.home.root / "elsewhere"), code=1)
    assert mac.plist.read_bytes() == old
    assert mac.now()["loaded"]
    assert mac.service("status", code=3).stdout


def test_who_waits_no_longer_leaves_nothing_half_done(mac: Mac) -> None:
    with patch("swarmmemd.install.health.Health.wait", side_effect=KeyboardInterrupt):
        mac.service("install", code=130)
    assert not mac.plist.exists()
    assert not mac.now()["loaded"]


def test_lingering_is_no_thing_of_launchd(mac: Mac) -> None:
    assert "systemd" in mac.service("install", "--linger", code=2).stderr
    assert not mac.plist.exists()


def test_what_the_system_refuses_is_named_by_its_place(mac: Mac) -> None:
    mac.plist.mkdir(parents=True)
    assert f"{mac.plist}: Is a directory" in mac.service("install", code=1).stderr
    assert mac.plist.is_dir()
    assert not (mac.folder / "calls").exists(), "launchd was not asked for anything"


def test_a_restart_lets_the_daemon_finish_and_ends_one_that_hangs(mac: Mac) -> None:
    mac.service("install")
    mac.service("restart")
    assert "stopped" in mac.service("logs").stdout
    assert mac.service("status").returncode == 0
    mac.plan(deaf=True)
    pid = mac.now()["pid"]
    with patch("swarmmemd.install.launchd._UNLOADED_WITHIN", 0.2):
        mac.service("restart")
    assert mac.now()["pid"] != pid
