"""From a fresh clone to an uninstalled service, as the README says it, with a live user manager."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import answered, dispatched, until
from tests.support.manager import UserManager

_ROOT = Path(__file__).parents[2]
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "swarmmemd")


@pytest.fixture
def user() -> Iterator[UserManager]:
    """A user with a clone of this tree in its home, and a manager."""
    manager = UserManager()
    try:
        manager.up()
        clone = manager.home / "clone"
        clone.mkdir()
        for name in _SOURCES:
            if (_ROOT / name).exists():
                subprocess.run(["cp", "-r", str(_ROOT / name), str(clone)], check=True)
        subprocess.run(["chown", "-R", manager.user, str(clone)], check=True)
        yield manager
    finally:
        manager.down()


def install(user: UserManager) -> Path:
    """What `pipx install .` does: an environment of its own, and a link to the command."""
    place, shim = user.home / ".local/share/pipx/venvs/swarmmemd", user.home / ".local/bin/swarmmemd"
    user.run(f"{sys.base_prefix}/bin/python3", "-m", "venv", str(place))
    index = [f"{key}={value}" for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))]
    pip = user.run(
        "env", *index, f"{place}/bin/pip", "install", "-q", str(user.home / "clone"), code=None, seconds=240
    )
    if pip.returncode and not os.environ.get("SWARMMEMD_CI"):
        pytest.skip(f"nothing can be installed here: {pip.stderr.strip().splitlines()[-1]}")
    assert pip.returncode == 0, pip.stderr
    user.run("mkdir", "-p", str(shim.parent))
    user.run("ln", "-s", f"{place}/bin/swarmmemd", str(shim))
    return shim


@pytest.mark.timeout(300)
def test_installed_and_forgotten(user: UserManager) -> None:
    command = str(install(user))
    user.run("rm", "-r", str(user.home / "clone"))  # what is installed needs no checkout
    user.write("w1", dispatched("m1"))
    assert user.run(command, "service", "install").stdout == f"installed: {user.unit}\n"
    assert f"ExecStart={command} run --supervisor systemd\n" in user.unit.read_text()
    user.write("w1", answered("m1", "Halfway", "IN_PROGRESS"))
    user.recorded("w1", "m1", "Halfway")
    told = user.run(command, "service", "status").stdout
    assert "systemd: active, starts with the login" in told
    assert "is current" in told
    assert "it ends at the last logout: swarmmemd service install --linger" in told

    user.stop()
    user.write("w1", answered("m1", "While nobody was there", "IN_PROGRESS"))
    user.up()
    user.recorded("w1", "m1", "While nobody was there")
    user.write("w1", answered("m1", "Finished"))
    user.recorded("w1", "m1", "Finished")

    assert user.run(command, "service", "uninstall").stdout.startswith(f"removed: {user.unit}\n")
    until(lambda: user.run(command, "status", code=None).returncode == 3, "its end")
    assert not user.unit.exists()
    assert not list(user.home.rglob("*.wants/swarmmemd*"))
    types = [one["type"] for one in user.lines("w1", "m1")]
    assert types == ["mission-start", "dispatch", "checkpoint", "checkpoint", "checkpoint", "complete"]
