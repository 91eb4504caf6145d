"""What the daemon costs while nothing happens: CPU time, memory, threads and descriptors. Linux only.

    python -m bench.idle [--workers 20 1000] [--seconds 60] [--folder DIR]

CPU time is the sum over the threads of what the scheduler counted, in nanoseconds; it begins a minute after the daemon
has become ready, so that starting is no part of it: until then each chat that it has just met counts as changing.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import msgspec

from bench.latency import daemon
from bench.swarms import swarm

_QUIET = 2.0
"""Percent of a core, over `_WINDOW` seconds twice: then what came with the start is over."""
_WINDOW = 4.0
WARM = 65.0
"""Seconds after which no chat counts as changing any more."""
_PATIENCE = 120.0


class Idle(msgspec.Struct, frozen=True):
    """`used` is seconds of CPU, `share` percent of one core; `resident` is MiB."""

    used: float
    share: float
    resident: float
    threads: int
    descriptors: int


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[20], metavar="COUNT")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    for workers in given.workers:
        with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
            found = idle(Path(name).resolve(), workers, given.seconds)
        used = f"{found.used:.3f} s of CPU, {found.share:.4f} % of one core"
        print(f"{workers} idle workers, {given.seconds:.0f} s: {used}")
        print(
            f"  {found.resident:.1f} MiB resident, {found.threads} threads, {found.descriptors} descriptors",
            flush=True,
        )


def idle(home: Path, workers: int, seconds: float, warm: float = WARM) -> Idle:
    """What a daemon with so many idle workers uses over that time, `warm` seconds after it is ready."""
    swarm(home, workers)
    with daemon(home) as process:
        settle(process.pid, warm)
        before, began = cpu(process.pid), time.perf_counter()
        time.sleep(seconds)
        used, took = cpu(process.pid) - before, time.perf_counter() - began
        status = Path(f"/proc/{process.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return Idle(
            used=used,
            share=used / took * 100,
            resident=int(resident.split()[1]) / 1024,
            threads=len(list(Path(f"/proc/{process.pid}/task").iterdir())),
            descriptors=len(list(Path(f"/proc/{process.pid}/fd").iterdir())),
        )


def settle(process: int, warm: float) -> None:
    """Waits until the daemon has done what it found at its start."""
    time.sleep(warm)
    end, quiet = time.perf_counter() + _PATIENCE, 0
    while quiet < 2 and time.perf_counter() < end:
        before = cpu(process)
        time.sleep(_WINDOW)
        quiet = quiet + 1 if (cpu(process) - before) / _WINDOW * 100 < _QUIET else 0


def cpu(process: int) -> float:
    """Seconds that the threads have run."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    main()
