"""What holds for every test: the real home stays untouched, and no process is left behind."""

import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import STARTED, Home
from tests.support.tally import Tally, summed

_OURS = (
    ".hermes",
    ".openclaw",
    "hermes-workspace",
    ".config/swarmmemd",
    ".local/state/swarmmemd",
    "Library/Application Support/swarmmemd",
)


def _real_home() -> Path:
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


@pytest.fixture(scope="session", autouse=True)
def _real_home_stays_untouched() -> Iterator[None]:
    missing = [name for name in _OURS if not (_real_home() / name).exists()]
    yield
    made = [name for name in missing if (_real_home() / name).exists()]
    assert not made, f"the tests made {made} in the real home"


@pytest.fixture(autouse=True)
def _no_process_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.path.parent.name != "system":
        yield
        return
    folder = str(request.getfixturevalue("tmp_path"))
    yield
    left = [process.pid for process in STARTED if process.poll() is None]
    for process in STARTED:
        process.send_signal(signal.SIGKILL)
    STARTED.clear()
    assert not left, f"daemons still run: {left}"
    listed = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, text=True, check=True)
    strays = [line for line in listed.stdout.splitlines() if folder in line]
    assert not strays, f"processes still run: {strays}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A temporary home with empty roots."""
    return Home(tmp_path / "home")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Counts that are said when all tests are done."""
    return Tally(request.node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how often what was made to fail."""
    counted = summed(terminalreporter)
    if counted:
        told = ", ".join(f"{name} {count}" for name, count in counted.items())
        terminalreporter.write_line(f"calls that were made to fail: {told}; {counted.total()} in all")
