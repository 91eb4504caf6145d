"""The sign of life comes from the loop: a daemon that hangs gives none, whatever its other threads do."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarmmemd.notify import watchdog_interval
from swarmmemd.service.pulse import Deadman, Silence, Watchdog, pulse
from tests.support.daemon import Daemon, Home, dispatched

ALLOWED = 2.0


class Supervisor:
    """The socket on which systemd listens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def close(self) -> None:
        """Listens no more."""
        self._socket.close()

    def hear(self, seconds: float) -> str | None:
        """The next word; None where there is none within so many seconds."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(4096).decode()
        except (TimeoutError, BlockingIOError):
            return None

    def wait(self, word: str, count: int = 1) -> None:
        """Waits for a word."""
        for _ in range(200):
            count -= self.hear(20.0) == word
            if count == 0:
                return
        raise AssertionError(f"no {word}")


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    found = Supervisor(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(found.path))
    yield found
    found.close()


def test_a_daemon_that_hangs_in_a_turn_is_silent(
    home: Home, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"NOTIFY_SOCKET": str(supervisor.path), "WATCHDOG_USEC": str(int(ALLOWED * 1e6))}
    environment = {**home.environment(), **told}
    monkeypatch.setattr(home, "environment", lambda: environment)
    daemon = Daemon(home, plant=["--hang", "turn:observe"], forked=True)
    try:
        supervisor.wait("READY=1")
        supervisor.wait("WATCHDOG=1", 2)
        home.write("w1", dispatched("m1"))
        for _ in range(100):
            if supervisor.hear(ALLOWED) is None:
                break
        else:
            raise AssertionError("it goes on saying that it is well")
        assert daemon.running()
        assert home.mission("w1", "m1").exists() is False
    finally:
        daemon.kill()


def test_signs_are_given_often_enough_and_not_more_often(supervisor: Supervisor) -> None:
    watchdog = Watchdog(allowed=40.0)
    for now in (100.0, 101.0, 109.9, 110.0, 111.0, 120.1):
        watchdog.beat(now)
    assert [supervisor.hear(0.01) for _ in range(4)] == ["WATCHDOG=1"] * 3 + [None]


def test_who_is_watched_is_told_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    assert watchdog_interval() is None
    assert type(pulse("none", sys.stderr)) is Silence
    assert type(pulse("systemd", sys.stderr)) is Silence
    assert isinstance(pulse("launchd", sys.stderr), Deadman)
    monkeypatch.setenv("WATCHDOG_USEC", "90000000")
    assert watchdog_interval() == 90.0
    assert isinstance(pulse("systemd", sys.stderr), Watchdog)
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_interval() is None


def test_without_a_watchdog_the_process_ends_itself_and_leaves_its_stack() -> None:
    source = (
        "import sys, time\nfrom swarmmemd.service.pulse import Deadman\n"
        "def hanging():\n    time.sleep(60)\n"
        "Deadman(sys.stderr, allowed=0.2).beat(0.0)\nhanging()"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "in hanging" in done.stderr
