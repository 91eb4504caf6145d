"""`python -m bench`: each part works in a fresh home. What the figures are is nobody's promise here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(400)
def test_every_part_gives_figures(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--check", "--json", "--folder", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    parts = {"floor", "latency", "catch-up", "search", "start-up", "scale"}
    assert parts <= {one["part"] for one in figures}
    assert all(0 <= one["low"] <= one["median"] <= one["high"] for one in figures)
    assert list(tmp_path.iterdir()) == []
