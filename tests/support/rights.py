"""Commands that may do no more than the modes of files say, also where the tests run as root."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemon import PATIENCE, STARTED, Home, until

_PR_CAPBSET_DROP = 24
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2

CAN_BE_REFUSED = os.geteuid() != 0 or sys.platform == "linux"
"""Elsewhere root may read everything, and that cannot be taken from it."""


def bound_by_modes(home: Home, *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end; what its modes close is closed to it."""
    return subprocess.run(
        home.arguments(*arguments),
        env=home.environment(),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_drop if os.geteuid() == 0 else None,
    )


def _drop() -> None:
    """Root's leave to pass over modes does not survive the next exec."""
    call = ctypes.CDLL(None).prctl
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        call(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Nobody may read, write or enter it meanwhile."""
    kept = path.stat().st_mode & 0o777
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(kept)


@contextmanager
def running_bound_by_modes(home: Home) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon that is up, and that a mode can shut out; stopped at the end."""
    log = home.root / "bound.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            home.arguments("run", "--log-format", "json"),
            env=home.environment(),
            stdout=out,
            stderr=out,
            preexec_fn=_drop if os.geteuid() == 0 else None,
        )
    STARTED.append(process)
    try:
        until(
            lambda: home.figures().get("pid") == process.pid and home.figures().get("running"), "the daemon"
        )
        yield process
        process.terminate()
        assert process.wait(PATIENCE) == 0, log.read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
