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
import tempfile
import time
from contextlib import closing
from pathlib import Path

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
        at_once(Path(name).resolve(), given.n)
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        growing(Path(name).resolve(), given.n)


def at_once(home: Path, count: int) -> None:
    """All in one turn."""
    config = swarm(home)
    with closing(chat(config.profiles_root / _WORKER / "state.db")) as agent:
        agent.execute("BEGIN")
        for number in range(count):
            say(agent, block(f"Plank {number} has its first coat"))
        agent.execute("COMMIT")
        with open_tree(config, _CLOCK, allow_root=True) as tree:
            tree.discover()
            began = time.perf_counter()
            looked = len(tree.turns.look(tree.turns.workers).recorded)
            recorded = time.perf_counter()
            tree.turns.apply(tree.turns.workers)
            tree.turns.settle()
            ended = time.perf_counter()
    print(f"{looked} events in {ended - began:.2f} s: {looked / (ended - began):.0f} a second")
    print(f"  found and recorded {recorded - began:.2f} s, applied and settled {ended - recorded:.2f} s")


def growing(home: Path, count: int) -> None:
    """One by one, so that the cost of one event in a long mission can be compared with that in a short one."""
    config = swarm(home)
    with (
        closing(chat(config.profiles_root / _WORKER / "state.db")) as agent,
        open_tree(config, _CLOCK, allow_root=True) as tree,
    ):
        tree.discover()
        tree.everything()
        early = sum(one(tree, agent, number) for number in range(100)) / 100
        agent.execute("BEGIN")
        for number in range(100, count - 100):
            say(agent, block(f"Plank {number} has its first coat"))
        agent.execute("COMMIT")
        tree.everything()
        late = sum(one(tree, agent, number) for number in range(count - 100, count)) / 100
    print(
        f"one event of the first hundred {early * 1000:.2f} ms, of the last {late * 1000:.2f} ms: {late / early:.2f}"
    )


def one(tree: Tree, agent: sqlite3.Connection, number: int) -> float:
    """Seconds of a turn that finds one checkpoint."""
    say(agent, block(f"Plank {number} has its first coat"))
    began = time.perf_counter()
    tree.turns.run([WorkerId(_WORKER)])
    return time.perf_counter() - began


def swarm(home: Path) -> Config:
    """One worker that was dispatched."""
    config = Config(
        profiles_root=home / "profiles",
        workspace_root=home / "workspace",
        shared_root=home / "shared",
        state_dir=home / "state",
    )
    profile = config.profiles_root / _WORKER
    for folder in (profile, config.workspace_root, config.shared_root):
        folder.mkdir(parents=True)
    (profile / "runtime.json").write_text(json.dumps(dispatch(0)))
    return config


if __name__ == "__main__":
    main()
