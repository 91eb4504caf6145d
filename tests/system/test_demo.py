"""`swarmmemd demo`: the newcomer's first command."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import Home


def demo(home: Home, temporary: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the demonstration; its files go below `temporary`."""
    temporary.mkdir()
    command = [sys.executable, "-m", "swarmmemd", "demo", "--pace", "0.05", *arguments]
    environment = {**home.environment(), "TMPDIR": str(temporary)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_it_shows_a_swarm_at_work_and_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    before = sorted(home.root.rglob("*"))
    done = demo(home, tmp_path / "tmp")
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(home.root.rglob("*")) == before
    types = re.findall(r"^  [\d:.]+  \S+ +([a-z-]+) ", done.stdout, re.MULTILINE)
    assert types.count("mission-start") == 3
    assert types.count("dispatch") == 4
    assert types.count("blocked") == 1
    assert types.count("checkpoint") == 4
    assert types.count("complete") == 3
    assert "SUMMARY.md" in done.stdout
    assert "- Status: complete" in done.stdout
    assert re.search(r"painter-2/memory/episodes/\d{4}-\d\d-\d\d\.md  \d+ bytes", done.stdout)
    said = re.search(r"^(\d+) events recorded", done.stdout, re.MULTILINE)
    assert said is not None
    assert int(said[1]) == len(types)
    assert "\x1b" not in done.stdout


def test_it_keeps_the_files_where_it_is_asked_to(home: Home, tmp_path: Path) -> None:
    done = demo(home, tmp_path / "tmp", "--keep")
    assert done.returncode == 0
    (kept,) = (tmp_path / "tmp").iterdir()
    assert f"They are in {kept}" in done.stdout
    events = next(kept.rglob("painter-2/memory/missions/*/events.jsonl"))
    types = [json.loads(line)["type"] for line in events.read_text().splitlines()]
    assert types == ["mission-start", "dispatch", "blocked", "dispatch", "checkpoint", "complete"]
