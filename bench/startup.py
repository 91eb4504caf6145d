"""How long the daemon takes until it is ready: many workers, one of them with a long chat.

python -m bench.startup [--workers 1000] [--megabytes 100] [--folder DIR]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from bench.latency import daemon
from bench.swarms import long_chat, swarm


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the long chat")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        first, again = startup(Path(name).resolve(), given.workers, given.megabytes)
    print(
        f"{given.workers} workers, a chat of {given.megabytes} MB: ready in {first:.2f} s, again {again:.2f} s"
    )


def startup(home: Path, workers: int, megabytes: int) -> tuple[float, float]:
    """Seconds until ready: the first time, with nothing recorded, and the second time."""
    names = swarm(home, workers)
    chat = home / "profiles" / names[0] / "state.db"
    chat.unlink()
    long_chat(chat, megabytes)
    return once(home), once(home)


def once(home: Path) -> float:
    """Seconds from the start of the process until it says that it runs."""
    (home / "state" / "status.json").unlink(missing_ok=True)
    began = time.perf_counter()
    with daemon(home):
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
