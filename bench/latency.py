"""How long it takes from a replaced `runtime.json`, or a commit to the chat, to its event in `events.jsonl`.

    python -m bench.latency [--n 500] [--chat | --recorded] [--folder DIR]

A daemon of its own runs on a temporary home on the disk of the given folder. Each sample begins right before
`os.replace` (with `--chat`: after the commit) and ends when the line is seen in the file; with `--recorded`, when
another process sees the event in the journal, which is when it is durable: SQLite shows a commit to others once it has
synced it. What the disk itself takes for the same calls is measured in the same run, so that two
machines can be compared.
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_MISSION = "mission-bench"
_WORKER = "bench-1"
_PACE = 0.02
_PATIENCE = 30.0
_PAUSE = 0.00005
"""Seconds between two looks. One that never rests has a core for itself: where there are two, the daemon then waits
for a slice of 3 ms now and then, which nobody who reads a file would make it do."""
COMMIT = "SQLite commit (WAL, FULL)"

Samples = list[float]
"""Milliseconds."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="samples of each kind")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--chat", action="store_true", help="commits to the chat of a worker at work")
    how.add_argument("--recorded", action="store_true", help="until it is durable in the journal")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(os.environ.get("TMPDIR", ".")),
        help="a folder on the disk to measure",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        home = Path(name).resolve()
        with daemon(home):
            measure = measure_chat if given.chat else measure_recorded if given.recorded else measure_events
            latency = measure(home, given.n)
        floors = measure_floors(home, given.n)
    source = "commit to state.db" if given.chat else "runtime.json"
    tell(f"{source} -> {'journal' if given.recorded else 'events.jsonl'}", latency, floors)


def tell(what: str, latency: Samples, floors: dict[str, Samples]) -> None:
    """Prints the table: p50, p99 and the longest, and how the latency compares with what the disk takes."""
    print(f"{'ms':<34}{'p50':>9}{'p99':>9}{'max':>9}")
    for title, samples in {what: latency, **floors}.items():
        cells = (quantile(samples, 0.5), quantile(samples, 0.99), max(samples))
        print(f"{title:<34}" + "".join(f"{cell:9.2f}" for cell in cells))
    for share in (0.5, 0.99):
        floor = sum(quantile(samples, share) for samples in floors.values())
        ratio = quantile(latency, share) / floor
        print(f"p{share * 100:.0f} is {ratio:.2f} times the sum of one commit, one append and one replace")


def quantile(samples: Samples, share: float) -> float:
    """The sample below which this share of them lies."""
    return sorted(samples)[min(int(len(samples) * share), len(samples) - 1)]


# The daemon


@contextmanager
def daemon(home: Path, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon that is ready, on roots below `home`, with `more` flags."""
    (home / "profiles" / _WORKER).mkdir(parents=True, exist_ok=True)
    (home / "workspace").mkdir(exist_ok=True)
    roots = ("profiles-root", "workspace-root", "shared-root", "state-dir")
    flags = [part for root in roots for part in (f"--{root}", str(home / root.partition("-")[0]))]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SWARMMEMD_", "HERMES_"))
    }
    with (home / "daemon.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "swarmmemd", "run", *flags, *more],
            env={**kept, "HOME": str(home)},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(lambda: process.poll() is not None or is_ready(home / "state" / "status.json"), 0.005)
        if process.poll() is not None:
            raise SystemExit(f"the daemon did not start:\n{(home / 'daemon.log').read_text()}")
        yield process
    finally:
        process.terminate()
        process.wait()


def is_ready(status: Path) -> bool:
    """Whether the daemon has left word that it runs."""
    try:
        return bool(json.loads(status.read_bytes())["running"])
    except (OSError, ValueError):
        return False


def wait_for(condition: Callable[[], bool], pause: float = _PAUSE) -> None:
    """Waits for it: the sample ends when it holds."""
    end = time.perf_counter() + _PATIENCE
    while not condition():
        time.sleep(pause)
        if time.perf_counter() > end:
            raise SystemExit(f"waited {_PATIENCE:.0f} s in vain")


# Samples


def measure_events(home: Path, count: int) -> Samples:
    """Dispatches and checkpoints in turn, and what each takes until its line stands in the file."""
    events = home / "profiles" / _WORKER / "memory" / "missions" / _MISSION / "events.jsonl"
    return measure_changes(home, count, lambda: size(events))


def measure_recorded(home: Path, count: int) -> Samples:
    """The same, until it is durable in the journal."""
    address = f"{(home / 'state' / 'journal.db').as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as reader:
        newest = "SELECT coalesce(max(seq), 0) FROM event"
        return measure_changes(home, count, lambda: int(reader.execute(newest).fetchone()[0]))


def measure_changes(home: Path, count: int, seen: Callable[[], int]) -> Samples:
    """What each of `count` changes of `runtime.json` takes until `seen` is greater."""
    profile = home / "profiles" / _WORKER
    one_change(profile, seen, dispatch(0))  # the first one makes the folders
    samples = []
    for number in range(count):
        content = dispatch(number) if number % 2 else checkpoint(number)
        began = time.perf_counter()
        samples.append(one_change(profile, seen, content))
        time.sleep(max(began + _PACE - time.perf_counter(), 0.0))
    return samples


def one_event(profile: Path, events: Path, content: dict[str, object]) -> float:
    """Replaces the file and waits for the line."""
    return one_change(profile, lambda: size(events), content)


def one_change(profile: Path, seen: Callable[[], int], content: dict[str, object]) -> float:
    """Replaces the file and waits until `seen` is greater. Milliseconds."""
    before = seen()
    aside = profile / ".runtime.json.new"
    aside.write_text(json.dumps(content, indent=2))
    began = time.perf_counter()
    aside.replace(profile / "runtime.json")
    wait_for(lambda: seen() > before)
    return (time.perf_counter() - began) * 1000


def measure_chat(home: Path, count: int) -> Samples:
    """Checkpoints that a worker at work commits to its chat, at times that know nothing of the daemon's ticks."""
    profile = home / "profiles" / _WORKER
    events = profile / "memory" / "missions" / _MISSION / "events.jsonl"
    with closing(chat(profile / "state.db")) as agent:
        one_event(profile, events, dispatch(0))
        samples = []
        for number in range(count):
            time.sleep(random.uniform(0.0, 0.3))
            before = size(events)
            say(agent, block(f"Plank {number} has its first coat"))
            began = time.perf_counter()
            wait_for(lambda known=before: size(events) > known)  # type: ignore[misc]
            samples.append((time.perf_counter() - began) * 1000)
    return samples


def chat(path: Path) -> sqlite3.Connection:
    """A chat database as an agent keeps it, with the columns that are read."""
    agent = sqlite3.connect(path, isolation_level=None)
    agent.execute("PRAGMA journal_mode = WAL")
    agent.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT)")
    agent.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, "
        "timestamp REAL, finish_reason TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0)"
    )
    agent.execute("INSERT INTO sessions VALUES ('main', 'cli', NULL)")
    return agent


def say(agent: sqlite3.Connection, text: str, role: str = "assistant") -> None:
    """One row, committed."""
    agent.execute(
        "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) VALUES ('main', ?, ?, ?, 'stop')",
        (role, text, time.time()),
    )


def block(result: str) -> str:
    """A checkpoint as a worker prints it."""
    return (
        "STATE: IN_PROGRESS\nFILES_CHANGED: planks.md\nCOMMANDS_RUN: make check\n"
        f"RESULT: {result}\nBLOCKER: none\nNEXT_ACTION: Second coat"
    )


def size(path: Path) -> int:
    """The size of the file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def dispatch(number: int) -> dict[str, object]:
    """What the control plane writes when it hands out a task."""
    return {
        "workerId": _WORKER,
        "state": "executing",
        "phase": "dispatched",
        "checkpointStatus": "in_progress",
        "currentTask": f"Paint plank {number} of the landing stage",
        "currentMissionId": _MISSION,
        "currentAssignmentId": f"assign-{number}",
        "lastDispatchAt": time.time_ns() // 1_000_000,
        "lastDispatchMode": "tmux",
    }


def checkpoint(number: int) -> dict[str, object]:
    """What it writes when the worker has said how far it is with the task that was handed out last."""
    result = f"Plank {number} has its first coat"
    raw = block(result)
    return {
        **dispatch(max(number - 1, 0)),
        "phase": "in_progress",
        "lastOutputAt": time.time_ns() // 1_000_000,
        "lastResult": result,
        "nextAction": "Second coat",
        "checkpointRaw": raw,
    }


# What the disk takes


def measure_floors(home: Path, count: int) -> dict[str, Samples]:
    """The same calls as the daemon makes, alone."""
    folder = home / "floors"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with closing(journal(folder)) as connection, (folder / "appended").open("ab", buffering=0) as file:

            def commit() -> None:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO event (line) VALUES (?)", (b"x" * 400,))
                connection.execute("COMMIT")

            def append() -> None:
                file.write(b"x" * 400)
                os.fsync(file.fileno())

            return {
                COMMIT: timed(commit, count),
                "append and fsync": timed(append, count),
                "replace, fsync of file and folder": timed(lambda: replace(folder, descriptor), count),
            }
    finally:
        os.close(descriptor)


def timed(call: Callable[[], None], count: int) -> Samples:
    """What each of `count` calls takes."""
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        samples.append((time.perf_counter() - began) * 1000)
    return samples


def journal(folder: Path) -> sqlite3.Connection:
    """A database with the journal's settings."""
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, line BLOB)")
    return connection


def replace(folder: Path, descriptor: int) -> None:
    """Puts a file in the place of another, durably."""
    aside = folder / "aside"
    with aside.open("wb", buffering=0) as file:
        file.write(b"x" * 2000)
        os.fsync(file.fileno())
    aside.replace(folder / "replaced")
    os.fsync(descriptor)


if __name__ == "__main__":
    main()
