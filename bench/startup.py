"""How long the daemon takes until it is ready: many workers, one of them with a long chat.

python -m bench.startup [--workers 1000] [--megabytes 100] [--folder DIR]
"""

import argparse
import json
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from bench.latency import daemon, wait_for
from bench.swarms import long_chat, swarm


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the long chat")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        found = startup(Path(name).resolve(), given.workers, given.megabytes)
    print(f"{given.workers} workers, a chat of {given.megabytes} MB: ready in {found.first:.2f} s")
    print(f"  again {found.again:.2f} s; MB read until the chat was looked at: {found.read or 'not known'}")


class Started(msgspec.Struct, frozen=True):
    """Seconds until ready: the first time, with nothing recorded, and the second time. `read` is how many MB the
    daemon had read when it had looked at the long chat; None where the system does not tell."""

    first: float
    again: float
    read: float | None


def startup(home: Path, workers: int, megabytes: int) -> Started:
    """Starts twice; the first start is waited for until the long chat was looked at."""
    names = swarm(home, workers)
    chat = home / "profiles" / names[0] / "state.db"
    chat.unlink()
    long_chat(chat, megabytes)
    first, read = once(home, names[0])
    again, _ = once(home)
    return Started(first, again, read)


def once(home: Path, met: str | None = None) -> tuple[float, float | None]:
    """Seconds from the start of the process until it says that it runs, and the MB that it has read once the chat of
    the worker `met` was looked at."""
    (home / "state" / "status.json").unlink(missing_ok=True)
    began = time.perf_counter()
    with daemon(home) as process:
        took = time.perf_counter() - began
        if met is None:
            return took, None
        wait_for(lambda: looked_at(home, met), 0.05)
        return took, megabytes_read(process.pid)


def looked_at(home: Path, worker: str) -> bool:
    """Whether the journal says how far the worker's chat is read."""
    with closing(sqlite3.connect(home / "state" / "journal.db")) as journal:
        row = journal.execute("SELECT state FROM worker WHERE worker = ?", (worker,)).fetchone()
    return row is not None and json.loads(row[0])["chat"] is not None


def megabytes_read(pid: int) -> float | None:
    """What the process has read by any call, in MB: from the disk or from memory."""
    try:
        counted = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    return int(counted.split()[1]) / 1e6


if __name__ == "__main__":
    main()
