"""How long the readers take for 4 MiB of what is made to be slow; or, with --atheris, new bytes until one fails.

    python bench/fuzz.py [--mib 4] [--most 1.0]
    python bench/fuzz.py --atheris --seconds 600

Each source's reader gets each of the texts of tests/support/fuzzing.py. The time is that of the processor; one that is
too long is measured twice more and the shortest counts, since the processor is slower beside others. Exits 1 where
one takes longer than `--most` seconds. `--all` prints each that does, not only the longest.
Atheris, which is no dependency, must be installed for the second.
"""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.fuzzing import READERS, SLOW, slow


def main() -> int:
    """Measures and prints, or fuzzes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=float, default=4.0, help="size of each text")
    parser.add_argument("--most", type=float, default=1.0, help="seconds of the processor that one may take")
    parser.add_argument("--reader", choices=sorted(READERS), help="only this one")
    parser.add_argument("--all", action="store_true", help="print every text that takes too long")
    parser.add_argument("--atheris", action="store_true", help="fuzz by coverage")
    parser.add_argument("--seconds", type=int, default=60, help="for how long")
    given = parser.parse_args()
    if given.atheris:
        return fuzz(given.seconds)
    failed = False
    for reader in [given.reader] if given.reader else READERS:
        found = times(reader, int(given.mib * (1 << 20)), given.most)
        for seconds, name in found:
            if (seconds, name) == found[0] or (given.all and seconds > given.most):
                print(f"{reader:<20}{seconds:8.3f} s for {given.mib:g} MiB of {name}", flush=True)
        failed = failed or found[0][0] > given.most
    return int(failed)


def times(reader: str, size: int, most: float) -> list[tuple[float, str]]:
    """The time for each text, the longest first."""
    return sorted(((seconds_for(reader, slow(name, size), most), name) for name in SLOW), reverse=True)


def seconds_for(reader: str, data: bytes, most: float) -> float:
    """Seconds of the processor, the fewest of three where one look takes too many."""
    shortest = float("inf")
    for _ in range(3):
        began = time.process_time()
        READERS[reader](data)
        shortest = min(shortest, time.process_time() - began)
        if shortest <= most:
            break
    return shortest


def fuzz(seconds: int) -> int:
    """All readers with the bytes that atheris finds. An exception ends it, with the bytes in a file."""
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        print("atheris is not installed: pip install atheris", file=sys.stderr)
        return 1
    readers = list(READERS.values())

    def one(data: bytes) -> None:
        if data:
            readers[data[0] % len(readers)](data[1:])

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}"], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
