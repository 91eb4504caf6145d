"""What people use instead, with the same job: append a line, durably, when a worker's `runtime.json` was replaced.

`inotifywait` with a shell script is the usual home-made way; watchfiles is the same in Python. Both keep far less
than the daemon does (one line, no state, no summary), so they are a yardstick for the wake-up, not rivals.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from bench.latency import Samples, size, wait_for

_SHELL = """
inotifywait -m -q -e moved_to --format '%f' "$1" | while read -r name; do
    if [ "$name" = runtime.json ]; then
        echo "{\\"at\\":\\"$(date -u +%FT%T.%3NZ)\\",\\"type\\":\\"note\\"}" >> "$2"
        sync "$2"
    fi
done
"""
_PYTHON = """
import os, sys
from watchfiles import watch
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for changes in watch(sys.argv[1], step=5, debounce=50, recursive=False):
    if any(path.endswith("runtime.json") for _, path in changes):
        os.write(log, b'{"at":"2026-01-01T00:00:00.000Z","type":"note"}\\\\n')
        os.fsync(log)
"""


def peers(home: Path, count: int, install: bool) -> tuple[dict[str, Samples], list[str]]:
    """Milliseconds until the line stands in the file, by the peer's name; and why a peer is not among them."""
    found: dict[str, Samples] = {}
    notes: list[str] = []
    if shutil.which("inotifywait"):
        found["inotifywait and a shell script"] = measured(home / "shell", ["sh", "-c", _SHELL, "sh"], count)
    else:
        notes.append("inotifywait is not installed (Debian: inotify-tools)")
    python = watchfiles(home) if install else None
    if python:
        found["watchfiles and a Python script"] = measured(home / "python", [*python, "-c", _PYTHON], count)
    else:
        notes.append(
            "watchfiles could not be installed from the package index" if install else "no watchfiles"
        )
    return found, notes


def watchfiles(home: Path) -> list[str] | None:
    """A Python that has watchfiles, in an environment of its own; None where it cannot be had."""
    environment = home / "environment"
    python = environment / "bin" / "python"
    steps = (
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "watchfiles"],
    )
    for step in steps:
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(step, capture_output=True, timeout=60, check=False)
            if done.returncode == 0:
                continue
        return None
    return [str(python)]


def measured(home: Path, command: list[str], count: int) -> Samples:
    """Starts the peer on a folder and replaces `runtime.json` there again and again."""
    folder, log = home / "profile", home / "events.jsonl"
    folder.mkdir(parents=True)
    process = subprocess.Popen([*command, str(folder), str(log)], start_new_session=True)
    try:
        wait_for(lambda: _touched(folder, log), 0.1)
        time.sleep(0.3)
        return [_one(folder, log) for _ in range(count)]
    finally:
        os.killpg(process.pid, 15)
        process.wait()


def _touched(folder: Path, log: Path) -> bool:
    """Whether the peer has seen this replace: it watches from some moment after its start."""
    _replace(folder)
    return size(log) > 0


def _replace(folder: Path) -> None:
    aside = folder / ".runtime.json.new"
    aside.write_text('{"state": "executing"}')
    aside.replace(folder / "runtime.json")


def _one(folder: Path, log: Path) -> float:
    before, began = size(log), time.perf_counter()
    _replace(folder)
    wait_for(lambda: size(log) > before)
    took = (time.perf_counter() - began) * 1000
    time.sleep(0.02)
    return took
