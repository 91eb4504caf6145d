"""What readers of the HTTP API cost the daemon: its latency without them, and with them.

    python -m bench.api [--seconds 60] [--readers 200] [--streams 20] [--pause 1.0]

Each reader asks, waits for the answer, pauses, and asks again; a pause of 0 asks as fast as it is answered. The latency
is that of bench/latency.py: from a replaced `runtime.json` to its line in `events.jsonl`. Ends with 1 if a request
failed.
"""

import argparse
import asyncio
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from bench.latency import Samples, checkpoint, daemon, dispatch, one_event, quantile

_PATHS = (
    "/api/workers",
    "/api/swarm-memory?workerId=bench-1&kind=mission",
    "/api/swarm-memory/search?query=checkpoint&workerId=bench-1",
    "/healthz",
)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two questions of a reader")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=os.environ.get("TMPDIR", ".")) as name:
        home = Path(name).resolve()
        with daemon(home, "--api-enabled", "--api-listen", "127.0.0.1:7799"):
            numbers = itertools.count()
            _for(home, numbers, 1.0)  # the first ones make the folders
            idle = _for(home, numbers, given.seconds / 4)
            end = multiprocessing.Event()
            told: multiprocessing.Queue[dict[str, int]] = multiprocessing.Queue()
            token = (home / "state" / "token").read_text().strip()
            crowd = multiprocessing.Process(
                target=_crowd, args=(token, given.readers, given.streams, given.pause, end, told)
            )
            crowd.start()
            time.sleep(2.0)
            busy = _for(home, numbers, given.seconds)
            end.set()
            counts = told.get(timeout=30)
            crowd.join()
    print(f"{'ms':<34}{'p50':>9}{'p99':>9}{'max':>9}{'n':>9}")
    for title, samples in (("nobody reads", idle), (f"{given.readers} read, {given.streams} listen", busy)):
        cells = (quantile(samples, 0.5), quantile(samples, 0.99), max(samples))
        print(f"{title:<34}" + "".join(f"{cell:9.2f}" for cell in cells) + f"{len(samples):9}")
    ratios = [quantile(busy, share) / quantile(idle, share) for share in (0.5, 0.99)]
    print(f"p50 {ratios[0]:.2f} times, p99 {ratios[1]:.2f} times")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["errors"] > 0)


def _for(home: Path, numbers: Iterator[int], seconds: float) -> Samples:
    """Dispatches and checkpoints in turn, twenty a second."""
    profile = home / "profiles" / "bench-1"
    events = profile / "memory" / "missions" / "mission-bench" / "events.jsonl"
    samples: Samples = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number = next(numbers)
        samples.append(one_event(profile, events, checkpoint(number) if number % 2 else dispatch(number)))
        time.sleep(0.05)
    return samples


def _crowd(token: str, readers: int, streams: int, pause: float, end: Event, told: Any) -> None:
    told.put(asyncio.run(_read(token, readers, streams, pause, end)))


async def _read(token: str, readers: int, streams: int, pause: float, end: Event) -> dict[str, int]:
    counts = {"requests": 0, "events": 0, "errors": 0}
    tasks = [asyncio.create_task(_reader(token, n, pause, counts)) for n in range(readers)]
    tasks += [asyncio.create_task(_listener(token, counts)) for _ in range(streams)]
    while not end.is_set():
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return counts


async def _reader(token: str, number: int, pause: float, counts: dict[str, int]) -> None:
    await asyncio.sleep(pause * number / 200)
    for path in itertools.islice(itertools.cycle(_PATHS), number % 4, None):
        try:
            reading, writing = await _asked(token, path, "Connection: close\r\n")
            answer = await reading.read()
            writing.close()
            counts["errors"] += not answer.startswith(b"HTTP/1.1 200")
        except OSError:
            counts["errors"] += 1
        counts["requests"] += 1
        await asyncio.sleep(pause)


async def _listener(token: str, counts: dict[str, int]) -> None:
    reading, _ = await _asked(token, "/api/events")
    while line := await reading.readline():
        counts["events"] += line.startswith(b"data: ")
    counts["errors"] += 1  # a stream has no end


async def _asked(token: str, path: str, more: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reading, writing = await asyncio.open_connection("127.0.0.1", 7799)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:7799\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
    writing.write(head.encode())
    await writing.drain()
    return reading, writing


if __name__ == "__main__":
    sys.exit(main())
