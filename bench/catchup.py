"""How fast a long chat is caught up with: checkpoints of one mission that are found all at once.

    python bench/catchup.py [--n 5000] [--folder DIR]

A worker has answered `n` times while no daemon ran. One turn finds them: reads, derives, records, and applies
to every memory file, all durable at the end. Printed are checkpoints per second, the parts of the time, and the
cost of the last hundred against that of the first.
"""

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from bench.latency import block, chat, dispatch, say
from swarmmemd.config import Config
from swarmmemd.model import WorkerId
from swarmmemd.tree import Tree, open_tree
from swarmmemd.turn import Clock

_WORKER = "bench-1"
_CLOCK = Clock(time.monotonic, time.time)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=5000, help="checkpoints")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        found = at_once(Path(name).resolve(), given.n)
    print(f"{found.events} events in {found.wall:.2f} s: {found.events / found.wall:.0f} a second")
    print(f"  found and recorded {found.recorded:.2f} s, the rest applied and settled; CPU {found.cpu:.2f} s")
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        early, late = growing(Path(name).resolve(), given.n)
    print(f"one event of the first hundred {early.wall:.2f} ms, of the last {late.wall:.2f} ms")
    print(f"  CPU {early.cpu:.2f} ms and {late.cpu:.2f} ms: {late.cpu / early.cpu:.2f}")


class Caught(msgspec.Struct, frozen=True):
    """Seconds that it took to catch up; `recorded` is the part until all was in the journal."""

    events: int
    wall: float
    recorded: float
    cpu: float


class Cost(msgspec.Struct, frozen=True):
    """The median milliseconds of a turn."""

    wall: float
    cpu: float


def at_once(home: Path, count: int) -> Caught:
    """All in one turn."""
    config = swarm(home)
    with closing(chat(config.profiles_root / _WORKER / "state.db")) as agent:
        agent.execute("BEGIN")
        for number in range(count):
            say(agent, block(f"Plank {number} has its first coat"))
        agent.execute("COMMIT")
        with open_tree(config, _CLOCK, allow_root=True) as tree:
            tree.discover()
            began, cpu = time.perf_counter(), time.process_time()
            looked = len(tree.turns.look(tree.turns.workers).recorded)
            recorded = time.perf_counter()
            tree.turns.apply(tree.turns.workers)
            tree.turns.settle()
            ended = time.perf_counter()
            return Caught(looked, ended - began, recorded - began, time.process_time() - cpu)


def growing(home: Path, count: int) -> tuple[Cost, Cost]:
    """One by one: what an event costs early in a mission, and what it costs behind `count` others."""
    config = swarm(home)
    with (
        closing(chat(config.profiles_root / _WORKER / "state.db")) as agent,
        open_tree(config, _CLOCK, allow_root=True) as tree,
    ):
        tree.discover()
        tree.everything()
        early = median([one(tree, agent, number) for number in range(100)])
        agent.execute("BEGIN")
        for number in range(100, count - 100):
            say(agent, block(f"Plank {number} has its first coat"))
        agent.execute("COMMIT")
        tree.everything()
        return early, median([one(tree, agent, number) for number in range(count - 100, count)])


def median(costs: list[Cost]) -> Cost:
    """The median of each."""
    return Cost(statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs))


def one(tree: Tree, agent: sqlite3.Connection, number: int) -> Cost:
    """A turn that finds one checkpoint, and what the loop does after it."""
    say(agent, block(f"Plank {number} has its first coat"))
    began, cpu = time.perf_counter(), time.process_time()
    tree.turns.run([WorkerId(_WORKER)])
    cost = Cost((time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000)
    tree.settle()
    return cost


def config_of(home: Path) -> Config:
    """The roots below `home`, made where they are missing."""
    config = Config(
        profiles_root=home / "profiles",
        workspace_root=home / "workspace",
        shared_root=home / "shared",
        state_dir=home / "state",
    )
    for folder in (config.profiles_root, config.workspace_root, config.shared_root):
        folder.mkdir(parents=True, exist_ok=True)
    return config


def swarm(home: Path) -> Config:
    """One worker that was dispatched."""
    config = config_of(home)
    profile = config.profiles_root / _WORKER
    profile.mkdir()
    (profile / "runtime.json").write_text(json.dumps(dispatch(0)))
    return config


if __name__ == "__main__":
    main()
