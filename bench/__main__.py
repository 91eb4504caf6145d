"""All that is measured, in one run, with a table at the end. docs/performance.md.

    python -m bench [--full | --check] [--only PART ...] [--plot FILE.svg] [--json] [--folder DIR]

Quick by default (some minutes). `--full` goes up to 1,000 workers, 100,000 events and a chat of 1 GB. `--check` takes
as few samples as show that each part works: its figures say nothing.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench import catchup, idle, scale, search, soak, startup
from bench.floors import WAKE, floors, together
from bench.latency import COMMIT, Samples, daemon, measure_chat, measure_events, measure_recorded
from bench.peers import peers
from bench.scale import Curve
from bench.table import Figure, figure, lines


class Size(msgspec.Struct, frozen=True):
    """How much is measured."""

    latency: int
    chat: int
    catchup: int
    rounds: int
    megabytes: int
    idle: tuple[int, ...]
    warm: float
    seconds: float
    workers: int
    long_chat: int
    soak: int
    peers: bool = True


_QUICK = Size(200, 40, 5_000, 3, 20, (20,), idle.WARM, 30.0, 100, 50, 10_000)
_FULL = Size(1_000, 300, 5_000, 5, 100, (20, 1_000), idle.WARM, 300.0, 1_000, 1_000, 200_000)
_CHECK = Size(5, 2, 200, 1, 1, (2,), 0.0, 1.0, 3, 1, 1, peers=False)

Part = Callable[[Path, Size, "Measured"], list[Figure]]


class Measured:
    """What is measured once for all parts, and what could not be."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.notes: list[str] = []
        self.floors: dict[str, Samples] = {}
        self.curves: dict[str, Curve] = {}
        with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=folder) as name:
            self.floors = floors(Path(name).resolve(), max(size.latency, 20))

    @property
    def floor(self) -> float:
        """A wake-up, a commit, an append and a replace, ms."""
        return together(self.floors)

    @property
    def floor_recorded(self) -> float:
        """A wake-up and a commit, ms."""
        return together({name: taken for name, taken in self.floors.items() if name in (WAKE, COMMIT)})


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--full", action="store_true", help="large swarms and long histories too")
    how.add_argument("--check", action="store_true", help="only whether each part works, within a minute")
    parser.add_argument("--only", nargs="+", choices=tuple(_PARTS), default=tuple(_PARTS), metavar="PART")
    parser.add_argument("--plot", type=Path, help="an SVG file to draw the curves of `scale` into")
    parser.add_argument("--json", action="store_true", help="one object, on standard output")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    size = _FULL if given.full else _CHECK if given.check else _QUICK
    measured = Measured(given.folder, size)
    figures = [figure("floor", name, "ms", samples) for name, samples in measured.floors.items()]
    for name in given.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        figures += _PARTS[name](given.folder, size, measured)
    if given.plot and measured.curves:
        given.plot.write_text(scale.drawn(measured.curves))
    load = os.getloadavg()
    if given.json:
        found: dict[str, Any] = {"load": load, "cpus": os.cpu_count(), "notes": measured.notes}
        print(msgspec.json.encode({**found, "figures": figures}).decode())
        return
    print("\n".join(lines(figures)))
    print("\n".join(f"note: {note}" for note in measured.notes))
    print(f"load {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f} on {os.cpu_count()} processors")


def _home(folder: Path, do: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=folder) as name:
        return do(Path(name).resolve())


def _latency(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    def events(home: Path) -> Samples:
        with daemon(home):
            return measure_events(home, size.latency)

    def recorded(home: Path) -> Samples:
        with daemon(home):
            return measure_recorded(home, size.latency)

    def chat(home: Path) -> Samples:
        with daemon(home):
            return measure_chat(home, size.chat)

    found = [
        figure(
            "latency",
            "runtime.json -> its event is durable",
            "ms",
            _home(folder, recorded),
            floor=measured.floor_recorded,
            budget="p50 5, p99 25",
        ),
        figure(
            "latency",
            "runtime.json -> its line in events.jsonl",
            "ms",
            _home(folder, events),
            floor=measured.floor,
            budget="3 times the floor",
        ),
        figure(
            "latency",
            "commit to state.db -> its line in events.jsonl",
            "ms",
            _home(folder, chat),
            budget="p50 200, p99 500",
        ),
    ]
    others, notes = _home(folder, lambda home: peers(home, size.latency, size.peers))
    measured.notes += notes
    return found + [figure("latency", f"peer: {name}", "ms", samples) for name, samples in others.items()]


def _catchup(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    found: list[catchup.Caught] = [
        _home(folder, lambda home: catchup.at_once(home, size.catchup)) for _ in range(size.rounds)
    ]
    early, late = _home(folder, lambda home: catchup.growing(home, max(size.catchup, 200)))
    title = f"{size.catchup:,} checkpoints found at once"
    return [
        figure("catch-up", title, "s", [one.wall for one in found], budget="1.0"),
        figure("catch-up", "of it CPU", "s", [one.cpu for one in found]),
        figure("catch-up", "CPU of one event, first hundred", "ms", [early.cpu]),
        figure(
            "catch-up",
            f"CPU of one event, behind {size.catchup:,}",
            "ms",
            [late.cpu],
            floor=early.cpu,
            budget="1.2 times the first",
        ),
    ]


def _search(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    def one(home: Path) -> list[Figure]:
        config = search.build(home / "tree", size.megabytes * 1_000_000)
        rows = search.compared(config, size.rounds)
        rg = statistics.median(rows["rg -n -i"]) if "rg -n -i" in rows else None
        title = f"{size.megabytes} MB, "
        return [
            figure("search", title + name, "ms", taken, floor=rg, note="x floor: times rg" if rg else "")
            for name, taken in rows.items()
        ]

    if shutil.which("rg") is None:
        measured.notes.append("rg is not installed (Debian: ripgrep)")
    found: list[Figure] = _home(folder, one)
    return found


def _idle(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    if not Path("/proc/self/schedstat").exists():
        measured.notes.append("idle is measured on Linux only")
        return []
    found = []
    for workers in size.idle:
        one: idle.Idle = _home(
            folder,
            lambda home, n=workers: idle.idle(home, n, size.seconds, size.warm),  # type: ignore[misc]
        )
        few = workers <= 20
        title = f"{workers:,} idle workers"
        found += [
            figure(
                "idle", f"{title}, CPU", "% core", [one.share], budget="0.05" if few else "0.4 (of 1,000)"
            ),
            figure(
                "idle", f"{title}, resident", "MiB", [one.resident], budget="45" if few else "90 (of 1,000)"
            ),
            figure("idle", f"{title}, threads", "", [one.threads]),
            figure("idle", f"{title}, descriptors", "", [one.descriptors]),
        ]
    return found


def _startup(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    found: startup.Started = _home(folder, lambda home: startup.startup(home, size.workers, size.long_chat))
    title = f"{size.workers:,} workers, a chat of {size.long_chat:,} MB"
    read = [] if found.read is None else [found.read]
    return [
        figure("start-up", f"{title}, first time", "s", [found.first], budget="2 (1,000 workers, 1 GB)"),
        figure("start-up", f"{title}, again", "s", [found.again], budget="2 (1,000 workers, 1 GB)"),
        *(figure("start-up", "read until the chat was looked at", "MB", [one], budget="64") for one in read),
    ]


def _scale(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    found = measured.curves = scale.curves(folder, full=size is _FULL, small=size is _CHECK)
    return [
        figure("scale", f"CPU of a turn, {count:,} {title}", "ms", [cost], floor=curve[0][1])
        for title, curve in found.items()
        for count, cost in curve
    ]


def _soak(folder: Path, size: Size, measured: Measured) -> list[Figure]:
    if not Path("/proc/self/status").exists():
        measured.notes.append("soaking is measured on Linux only")
        return []
    soaked: soak.Soaked = _home(folder, lambda home: soak.soak(home, size.soak, 4, 250, lambda row: None))
    rows, title = soaked.rows, f"{soaked.rows[-1].events:,} events, "
    return [
        figure("soak", f"{title}a second", "1/s", [rows[-1].events / soaked.seconds]),
        figure("soak", f"{title}resident at the end", "MiB", [rows[-1].memory], floor=rows[0].memory),
        figure(
            "soak", f"{title}descriptors at the end", "", [rows[-1].descriptors], floor=rows[0].descriptors
        ),
        figure("soak", f"{title}threads at the end", "", [rows[-1].threads], floor=rows[0].threads),
    ]


_PARTS: dict[str, Part] = {
    "latency": _latency,
    "catchup": _catchup,
    "search": _search,
    "idle": _idle,
    "startup": _startup,
    "scale": _scale,
    "soak": _soak,
}


if __name__ == "__main__":
    main()
