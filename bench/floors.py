"""What cannot be avoided: the wake-up by the kernel, and the calls that make something durable, each alone."""

import ctypes
import os
import sys
import time
from pathlib import Path

from bench.latency import Samples, measure_floors, quantile

WAKE = "inotify wake-up after a rename"
_MOVED_TO = 0x80


def floors(home: Path, count: int) -> dict[str, Samples]:
    """Milliseconds of each call, by its name."""
    found = measure_floors(home, count)
    wake = wake_up(home, count) if sys.platform == "linux" else []
    return {WAKE: wake, **found} if wake else found


def together(found: dict[str, Samples]) -> float:
    """The median of one of each, one after the other, ms."""
    return sum(quantile(samples, 0.5) for samples in found.values())


def wake_up(home: Path, count: int) -> Samples:
    """From a rename until a read of inotify gives the event, in one thread."""
    folder = home / "woken"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(descriptor, os.fsencode(folder), _MOVED_TO)
    samples = []
    with os.fdopen(descriptor, "rb", buffering=0) as events:
        for _ in range(count):
            (folder / "aside").write_bytes(b"{}")
            began = time.perf_counter()
            (folder / "aside").replace(folder / "runtime.json")
            events.read(4096)
            samples.append((time.perf_counter() - began) * 1000)
    return samples
