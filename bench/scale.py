"""Whether cost stays flat: of a turn against the length of a mission, the number of missions and that of workers.

    python -m bench.scale [--full] [--plot FILE.svg] [--folder DIR]

CPU milliseconds of a whole turn that finds one event, the median of some: CPU time, since what the disk takes is the
same for all, and larger.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from bench.catchup import _CLOCK, config_of, median, one
from bench.catchup import swarm as one_worker
from bench.latency import block, chat, dispatch, say
from bench.swarms import swarm
from swarmmemd.model import WorkerId
from swarmmemd.tree import open_tree

_SAMPLES = 40
_WORKER = WorkerId("bench-1")

Curve = list[tuple[int, float]]
"""(how many, CPU ms of a turn)."""


def main() -> None:
    """Measures, prints and draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="up to 100,000 events and 1,000 workers and missions"
    )
    parser.add_argument("--plot", type=Path, help="an SVG file to draw the curves into")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    found = curves(given.folder, given.full)
    for title, curve in found.items():
        print(title + ": " + ", ".join(f"{count:,}: {cost:.2f} ms" for count, cost in curve))
    if given.plot:
        given.plot.write_text(drawn(found))


def curves(folder: Path, full: bool, small: bool = False) -> dict[str, Curve]:
    """Each curve by what it is against."""
    most = 100_000 if full else 10_000
    steps = [count for count in (100, 1_000, 10_000, 100_000) if count <= most]
    many = [1, 20, 100, 1_000] if full else [1, 20, 100]
    if small:
        steps, many = [100, 1_000], [1, 20]
    return {
        "events of the mission": each(folder, steps, against_events),
        "missions of the worker": each(folder, many, against_missions),
        "workers": each(folder, many, against_workers),
    }


def each(folder: Path, counts: Iterable[int], measure: Callable[[Path, int], float]) -> Curve:
    """The curve over these counts, each on a home of its own."""
    found = []
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=folder) as name:
            found.append((count, measure(Path(name).resolve(), count)))
    return found


def against_events(home: Path, count: int) -> float:
    """A turn behind that many checkpoints of one mission."""
    config = one_worker(home)
    with (
        closing(chat(config.profiles_root / _WORKER / "state.db")) as agent,
        open_tree(config, _CLOCK, allow_root=True) as tree,
    ):
        agent.execute("BEGIN")
        for number in range(count):
            say(agent, block(f"Plank {number} has its first coat"))
        agent.execute("COMMIT")
        tree.discover()
        tree.everything()
        while tree.turns.workers[_WORKER].chat.more:
            tree.everything()
        return median([one(tree, agent, count + number) for number in range(_SAMPLES)]).cpu


def against_missions(home: Path, count: int) -> float:
    """A turn of a worker that had that many missions."""
    config = one_worker(home)
    runtime = config.profiles_root / _WORKER / "runtime.json"
    with (
        closing(chat(config.profiles_root / _WORKER / "state.db")) as agent,
        open_tree(config, _CLOCK, allow_root=True) as tree,
    ):
        tree.discover()
        for number in range(count):
            runtime.write_text(json.dumps({**dispatch(number), "currentMissionId": f"mission-{number}"}))
            tree.turns.look([_WORKER])
        tree.everything()
        return median([one(tree, agent, number) for number in range(_SAMPLES)]).cpu


def against_workers(home: Path, count: int) -> float:
    """A turn of one worker of that many."""
    swarm(home, count)
    with open_tree(config_of(home), _CLOCK, allow_root=True) as tree:
        tree.discover()
        tree.everything()
        profile = home / "profiles" / _WORKER
        (profile / "runtime.json").write_text(json.dumps(dispatch(0)))
        tree.turns.run([_WORKER])
        (profile / "state.db").unlink()
        with closing(chat(profile / "state.db")) as agent:
            return median([one(tree, agent, number) for number in range(_SAMPLES)]).cpu


# The plot


_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 60, 40
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c")


def drawn(found: dict[str, Curve]) -> str:
    """The curves over a logarithmic axis, as SVG."""
    top = max(cost for curve in found.values() for _, cost in curve) * 1.5
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text {font: 12px sans-serif}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="16">CPU of a turn that finds one event, ms</text>',
    ]
    for power in range(6):
        x = _x(10**power)
        parts.append(f'<path d="M{x:.0f} 30V{_HEIGHT - _BOTTOM}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT - 22}" text-anchor="middle">{10**power:,}</text>')
    for line in range(5):
        cost = top * line / 4
        y = _y(cost, top)
        parts.append(f'<path d="M{_LEFT} {y:.0f}H{_WIDTH - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{cost:.1f}</text>')
    for number, (title, curve) in enumerate(found.items()):
        colour = _COLOURS[number]
        points = " ".join(f"{_x(count):.1f},{_y(cost, top):.1f}" for count, cost in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 200 * number}" y="{_HEIGHT - 4}" fill="{colour}">{title}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _x(count: int) -> float:
    from math import log10

    return _LEFT + log10(count) / 5 * (_WIDTH - _LEFT - 30)


def _y(cost: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - cost / top * (_HEIGHT - _BOTTOM - 30)


if __name__ == "__main__":
    main()
