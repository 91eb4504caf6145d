"""How long a search takes, beside `rg -n -i` of the same words, over the same files in the same run.

    python bench/search.py [--megabytes 100] [--folder DIR]

Builds a tree of memory files and asks 20 queries: rare and common words, two and three words, phrases, Chinese. The
ways take turns at each. `rg` prints what it finds to a pipe that is read to its end. A fresh process, with its bytecode
at hand, is what counts on the small tree.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from swarmmemd.config import Config
from swarmmemd.layout import SEARCH
from swarmmemd.recall.indexing import Indexer
from swarmmemd.recall.seal import seal
from swarmmemd.recall.search import SearchQuery, scan
from swarmmemd.recall.words import parse_query

Way = Callable[[str], object]
"""One way to search for a text."""

_ROUNDS = 3
_QUERIES = [
    *(
        "word7",
        "word40",
        "word300",
        "word2500",
        "word9000",
        "parser",
        "flaky",
        "missingword",
        "checkpoint",
        "砂",
    ),
    *("word3 word5", "word12 word900", "parser merged", "flaky test", "word2 word77 word1234", "tests green"),
    *("src/module7/file12.py", "v1.2.3", "砂が足りない", "wor"),
]
_CHINESE = ("砂が足りない", "部署失败了", "테스트 통과")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100, help="size of the large tree")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", ".")))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-bench-", dir=given.folder) as name:
        home = Path(name).resolve()
        for title, size in (("small", 5), ("large", given.megabytes)):
            config = build(home / title, size * 1_000_000)
            files = sum(1 for path in config.profiles_root.rglob("*") if path.is_file())
            print(f"{title} tree: {size} MB in {files} files")
            measure(config, large=title == "large")


def measure(config: Config, large: bool) -> None:
    """Prints the table of one tree."""
    compared: dict[str, Way] = {}
    if shutil.which("rg") is not None:
        compared["rg -n -i"] = lambda text: rg(config, text)
    else:
        print("  rg is not installed: nothing to compare with")
    fresh(config, "compiles")
    rows = times({"fresh process, no index": lambda text: fresh(config, text)}, 1 if large else _ROUNDS)
    rows |= times({"in process, no index": lambda text: scan(config, SearchQuery(text=text))}, 1)
    time.sleep(1.1)  # what changed a moment ago is not indexed
    config.state_dir.mkdir(exist_ok=True)
    began = time.perf_counter()
    index = indexed(config)
    took, size = time.perf_counter() - began, (config.state_dir / SEARCH).stat().st_size / 1e6
    print(f"  index made in {took:.1f} s, {size:.0f} MB")
    compared["in process, warm index"] = lambda text: index.search(config, SearchQuery(text=text))
    compared["fresh process, index"] = lambda text: fresh(config, text)
    rows |= times(compared, _ROUNDS)
    index.close()
    tell(rows)


def compared(config: Config, rounds: int) -> dict[str, list[float]]:
    """The ways that a warm index is compared with, and the index: ms of each query."""
    ways: dict[str, Way] = {}
    if shutil.which("rg") is not None:
        ways["rg -n -i"] = lambda text: rg(config, text)
    time.sleep(1.1)  # what changed a moment ago is not indexed
    config.state_dir.mkdir(exist_ok=True)
    index = indexed(config)
    try:
        fresh(config, "compiles")
        ways["in process, warm index"] = lambda text: index.search(config, SearchQuery(text=text))
        ways["fresh process, index"] = lambda text: fresh(config, text)
        return times(ways, rounds)
    finally:
        index.close()


def indexed(config: Config) -> Indexer:
    """The index, made and sealed without the rests that its keeper takes."""
    index = Indexer(config.state_dir / SEARCH)
    index.update(config)
    if not index.settle():
        raise SystemExit("somebody else reads the index")
    seal(config)
    return index


def times(ways: dict[str, Way], rounds: int) -> dict[str, list[float]]:
    """The median of each query in ms, for each way; the ways take turns."""
    found: dict[str, list[float]] = {title: [] for title in ways}
    for text in _QUERIES:
        samples: dict[str, list[float]] = {title: [] for title in ways}
        for _ in range(rounds):
            for title, way in ways.items():
                began = time.perf_counter()
                way(text)
                samples[title].append((time.perf_counter() - began) * 1000)
        for title, taken in samples.items():
            found[title].append(statistics.median(taken))
    return found


def tell(rows: dict[str, list[float]]) -> None:
    """Prints median, shortest and longest of the queries."""
    print(f"  {'ms':<26}{'median':>9}{'min':>9}{'max':>9}   slowest query")
    for title, taken in rows.items():
        worst = _QUERIES[taken.index(max(taken))]
        print(f"  {title:<26}{statistics.median(taken):9.1f}{min(taken):9.1f}{max(taken):9.1f}   {worst}")


def rg(config: Config, text: str) -> None:
    """Every line that holds a word of the query."""
    words = [part for word in parse_query(text).words for part in ("-e", word)]
    command = ["rg", "-n", "-i", "-F", *words, str(config.profiles_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def fresh(config: Config, text: str) -> None:
    """The command, as a process, with its bytecode, as an installed program has it."""
    roots = ("profiles-root", "workspace-root", "shared-root", "state-dir")
    values = (config.profiles_root, config.workspace_root, config.shared_root, config.state_dir)
    flags = [part for root, value in zip(roots, values, strict=True) for part in (f"--{root}", str(value))]
    compiled = {
        "PYTHONPYCACHEPREFIX": str(config.state_dir.with_name("bytecode")),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    subprocess.run(
        [sys.executable, "-m", "swarmmemd", "search", *flags, "--json", text],
        env={**os.environ, **compiled},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


# The tree


def build(base: Path, size: int) -> Config:
    """A tree of about so many bytes: 20 workers; half of it records, the rest episodes, summaries and handoffs."""
    dice = random.Random(7)
    weights = [1 / (rank + 2) for rank in range(10_000)]
    stock = dice.choices([f"word{rank}" for rank in range(10_000)], weights, k=400_000)
    config = Config(
        profiles_root=base / "profiles",
        workspace_root=base / "workspace",
        shared_root=base / "shared",
        state_dir=base / "state",
    )
    left, mission = size, 0
    while left > 0:
        left -= fill(config, mission, dice, stock)
        mission += 1
    return config


def fill(config: Config, number: int, dice: random.Random, stock: list[str]) -> int:
    """The files of one mission of a worker, and of a day. Gives their bytes."""
    worker, mission = f"worker-{number % 20}", f"mission-{number:05d}"
    profile = config.profiles_root / worker
    memory = profile / "memory"
    day = 1_700_000_000 + number * 7_200
    stamps = [time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(day + 60 * one)) for one in range(80)]
    records = "".join(record(worker, mission, stamp, dice, stock) for stamp in stamps)
    entries = "".join(
        f"## {stamp[11:16]} UTC — checkpoint\n\n- Mission: {mission}\n- Assignment: none\n"
        f"- Summary: {prose(dice, stock)}\n- Result: {prose(dice, stock)}\n\n"
        for stamp in stamps
    )
    page = "".join(f"- {stamp}: DONE — {prose(dice, stock)}\n" for stamp in stamps[:40])
    date = time.strftime("%Y-%m-%d", time.gmtime(1_400_000_000 + number // 20 * 86_400))
    contents = {
        profile / "runtime.json": "{}",
        memory / "missions" / mission / "events.jsonl": records,
        memory
        / "missions"
        / mission
        / "SUMMARY.md": f"# Mission {mission} — Bench\n\n## Checkpoints\n\n{page}",
        memory / "handoffs" / f"{mission}.md": f"# Handoff — {worker} — {mission}\n\n{page}",
        memory / "episodes" / f"{date}.md": f"# Episodes — {worker} — {date}\n\n{entries}",
    }
    for path, text in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sum(len(text) for text in contents.values())


def record(worker: str, mission: str, stamp: str, dice: random.Random, stock: list[str]) -> str:
    """A line of `events.jsonl`."""
    result = prose(dice, stock)
    line = {
        "at": stamp,
        "type": dice.choice(("checkpoint", "dispatch", "note")),
        "workerId": worker,
        "missionId": mission,
        "assignmentId": "assign-1",
        "summary": result,
        "event": {"state": "DONE", "result": result, "nextAction": prose(dice, stock)},
        "id": f"ev_{dice.getrandbits(120):030x}",
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def prose(dice: random.Random, stock: list[str]) -> str:
    """What a worker says: 15 words, now and then a file, a version, a common phrase or one in another script."""
    at = dice.randrange(len(stock) - 15)
    words = stock[at : at + 15]
    if dice.random() < 0.2:
        words.append(f"src/module{dice.randrange(40)}/file{dice.randrange(40)}.py")
    if dice.random() < 0.05:
        words.append(
            dice.choice(
                ("parser merged", "41 tests green", "flaky test", f"v1.{dice.randrange(9)}.3", *_CHINESE)
            )
        )
    return " ".join(words)


if __name__ == "__main__":
    main()
