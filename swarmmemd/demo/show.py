"""Runs the demonstration: starts the daemon as a process, plays the script, shows what is recorded."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from swarmmemd.demo.script import MISSION, Swarm, story
from swarmmemd.errors import Exit, StorageError
from swarmmemd.journal import Filter, Follower
from swarmmemd.layout import EVENTS, JOURNAL, MEMORY, STATUS, SUMMARY
from swarmmemd.model import iso

_PATIENCE = 20.0


def demonstrate(keep: bool, pace: float) -> int:
    """Plays the story beside a real daemon. Gives the exit code."""
    home = Path(tempfile.mkdtemp(prefix="swarmmemd-demo-"))
    try:
        swarm = Swarm(home)
        with _daemon(home) as state_dir:
            seen = _play(swarm, state_dir, pace)
        _tree(swarm)
        click.echo(f"\n{seen} events recorded. Everything above stands in plain files.")
        click.echo(f"They are in {home}" if keep else "Next: swarmmemd run, and swarmmemd tail -f beside it.")
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
    return Exit.DONE


@contextmanager
def _daemon(home: Path) -> Iterator[Path]:
    """The real daemon, as a process of its own on the temporary home."""
    state_dir = home / "state"
    arguments = ["run", "--state-dir", str(state_dir), "--profiles-root", str(home / ".hermes" / "profiles")]
    arguments += ["--workspace-root", str(home / "hermes-workspace"), "--shared-root", str(home / "shared")]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SWARMMEMD_", "HERMES_"))
    }
    log = (home / "daemon.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "swarmmemd", *arguments],
        env={**kept, "HOME": str(home)},
        stderr=log,
        stdout=log,
    )
    try:
        status = state_dir / STATUS
        _until(lambda: status.exists() or process.poll() is not None, "the daemon to start")
        if process.poll() is not None:
            raise StorageError("The daemon did not start", (home / "daemon.log").read_text()[-500:])
        yield state_dir
    finally:
        process.terminate()
        process.wait(timeout=_PATIENCE)
        log.close()


def _play(swarm: Swarm, state_dir: Path, pace: float) -> int:
    follower, after = Follower(state_dir / JOURNAL), 0
    try:
        for line, step in story(swarm):
            click.secho(f"\n{line}", bold=True)
            step()
            after = _show_new(follower, after, pace)
        _until(lambda: follower.backlog() == (0, 0), "the events to be in their files")
        return _show_new(follower, after, 0.0)
    finally:
        follower.close()


def _show_new(follower: Follower, after: int, pace: float) -> int:
    """Shows what is recorded now: waits for the first event, then as long as the pace asks."""
    end, patience = time.monotonic() + pace, time.monotonic() + _PATIENCE
    first = after
    while time.monotonic() < end or (after == first and pace and time.monotonic() < patience):
        for recorded in follower.events(Filter(), after):
            event = recorded.event
            state = event.detail.get("state") or ""
            click.echo(
                f"  {iso(event.at)[11:23]}  {event.worker:<10} {event.type.value:<14} {state:<12} {event.summary}"
            )
            after = recorded.seq
        time.sleep(0.02)
    return after


def _tree(swarm: Swarm) -> None:
    click.secho("\nThe memory that was written", bold=True)
    for path in sorted(swarm.profiles.rglob("*")):
        if path.is_file() and MEMORY in path.parts:
            click.echo(f"  {path.relative_to(swarm.profiles)}  {path.stat().st_size} bytes")
    mission = swarm.profiles / "painter-2" / MEMORY / "missions" / MISSION
    for name in (SUMMARY, EVENTS):
        click.secho(f"\npainter-2/memory/missions/{MISSION}/{name}", bold=True)
        click.echo((mission / name).read_text().rstrip("\n"))


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise StorageError(
                f"Waited {_PATIENCE:.0f} s for {what}", "Try again with --keep and read daemon.log."
            )
        time.sleep(0.01)
