"""Many events through one daemon: what it holds at the beginning and at the end.

    python -m bench.soak [--events 20000] [--workers 4] [--folder DIR]
    python -m bench.soak --events 1000000
    python -m bench.soak --events 40000 --checkpoints 10    # many missions

Workers are dispatched, print some hundred checkpoints into their chats, and get the next mission. Resident memory,
descriptors, threads and their CPU are read when a tenth has passed, and at the end; beside them the files of the state
folder.
Linux only: it reads /proc.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from swarmmemd.errors import SwarmmemdError
from swarmmemd.journal import Follower
from swarmmemd.model import iso
from tests.support.chats import BUILD
from tests.support.daemon import Daemon, Home

_PATIENCE = 300.0


class Held(msgspec.Struct, frozen=True):
    """What the process holds, and how large its files are, in MiB."""

    events: int
    memory: float
    descriptors: int
    threads: int
    journal: float
    wal: float
    cpu: tuple[float, ...]
    """s of each thread, the first one first."""

    def row(self) -> str:
        """A line of the table."""
        return (
            f"{self.events:>10}{self.memory:>10.1f}{self.descriptors:>8}{self.threads:>9}"
            f"{self.journal:>12.1f}{self.wal:>8.1f}  {' + '.join(f'{one:.1f}' for one in self.cpu)}"
        )


class Soaked(msgspec.Struct, frozen=True):
    """What was held on the way, and how long it took."""

    rows: tuple[Held, ...]
    seconds: float


def main() -> None:
    """Soaks and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--checkpoints", type=int, default=250, help="of one mission")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where it happens")
    given = parser.parse_args()
    print(
        f"{'events':>10}{'MiB':>10}{'fds':>8}{'threads':>9}{'journal MiB':>12}{'WAL':>8}  CPU s of each thread"
    )
    with tempfile.TemporaryDirectory(prefix="swarmmemd-soak-", dir=given.folder) as name:
        soaked = soak(
            Path(name).resolve(),
            given.events,
            given.workers,
            given.checkpoints,
            lambda row: print(row.row(), flush=True),
        )
    first, last = soaked.rows[0], soaked.rows[-1]
    print(
        f"{last.events} events in {soaked.seconds:.0f} s, {last.events / soaked.seconds:.0f} a second; from the "
        f"first line to the last: memory {last.memory - first.memory:+.1f} MiB, descriptors "
        f"{last.descriptors - first.descriptors:+d}, threads {last.threads - first.threads:+d}"
    )


def soak(
    folder: Path, events: int, workers: int, checkpoints: int, tell_row: Callable[[Held], object]
) -> Soaked:
    """Tells until so many events are recorded. A row for each tenth, at least one."""
    home = Home(folder / "home")
    daemon = Daemon(home).ready()
    try:
        return _soaked(home, daemon, events, workers, checkpoints, tell_row)
    finally:
        daemon.stop(60.0)


def _soaked(
    home: Home,
    daemon: Daemon,
    events: int,
    workers: int,
    checkpoints: int,
    tell_row: Callable[[Held], object],
) -> Soaked:
    profiles = {f"worker-{n}": BUILD.Profile(home.profiles / f"worker-{n}") for n in range(workers)}
    began, number, there = time.monotonic(), 0, 0
    rows: list[Held] = []
    while there < events:
        number += 1
        for worker, profile in profiles.items():
            tell(profile, worker, f"mission-{worker}-{number}", checkpoints)
        there = await_events(home, number * workers * (checkpoints + 3))
        if there * 10 >= events * (len(rows) + 1):
            rows.append(held(home, daemon.process.pid, there))
            tell_row(rows[-1])
    return Soaked(tuple(rows), time.monotonic() - began)


def tell(profile: Any, worker: str, mission: str, checkpoints: int) -> None:
    """One mission of the worker, from its dispatch to its end."""
    task = f"Task of {mission}: lay the path"
    now = (time.time() - BUILD.T0) / 60
    profile.dispatch(task, mission, f"assign-{mission}", now)
    profile.runtime(workerId=worker, lastCheckIn=iso(int(time.time() * 1000)))
    if not profile.con.execute("SELECT count(*) FROM sessions").fetchone()[0]:
        profile.session("main", at=now)
    profile.con.execute("BEGIN")
    profile.say("user", BUILD.prompt(task), now)
    for row in range(1, checkpoints):
        profile.say("assistant", BUILD.block("IN_PROGRESS", f"Row {row} of {mission} laid"), now)
    profile.say("assistant", BUILD.block("DONE", f"{mission} is done"), now)
    profile.con.execute("COMMIT")


def await_events(home: Home, count: int) -> int:
    """Waits until so many are recorded and in their files."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            follower = Follower(home.state / "journal.db")
        except SwarmmemdError:
            time.sleep(0.1)
            continue
        try:
            if follower.last() >= count and follower.backlog()[0] == 0:
                return follower.last()
        finally:
            follower.close()
        time.sleep(0.05)
    raise SystemExit(f"{count} events were not recorded within {_PATIENCE:g} s")


def held(home: Home, pid: int, events: int) -> Held:
    """What the process holds now."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Held(
        events=events,
        memory=int(status["VmRSS"].split()[0]) / 1024,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(status["Threads"]),
        journal=_size(home.state / "journal.db"),
        wal=_size(home.state / "journal.db-wal"),
        cpu=_cpu(pid),
    )


def _cpu(pid: int) -> tuple[float, ...]:
    tasks = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
    times = [(task / "stat").read_text().rpartition(")")[2].split()[11:13] for task in tasks]
    return tuple((int(user) + int(system)) / os.sysconf("SC_CLK_TCK") for user, system in times)


def _size(path: Path) -> float:
    return path.stat().st_size / (1 << 20) if path.exists() else 0.0


if __name__ == "__main__":
    main()
