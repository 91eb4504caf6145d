"""Handoffs, archive and identity files over one open tree, a clock that moves when told, real files.

docs/contracts.md, "Handoffs" and "Shared memory".
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from swarmmemd.journal import Follower, KeptHandoff
from swarmmemd.layout import JOURNAL
from swarmmemd.tree import Tree
from swarmmemd.turn import Report
from tests.support.trees import MISSION, WORKER, Home, answered, dispatched

_AGO = 1_777_870_000


@pytest.fixture
def tree(home: Home) -> Iterator[Tree]:
    """The opened tree of a worker that was dispatched and met."""
    home.put(dispatched())
    with home.tree() as opened:
        opened.everything()
        yield opened


class Places:
    """Where the handoffs of the worker stand."""

    def __init__(self, home: Home) -> None:
        self.folder = home.memory() / "handoffs"
        self.latest = self.folder / "latest.md"
        self.local = self.folder / f"{MISSION}.md"
        self.mission = home.events().with_name("handoff.md")
        self.shared = home.shared / "handoffs" / "swarm" / f"{WORKER}-latest.md"


def own(text: str, mission: str = MISSION) -> bytes:
    """A handoff by the specification's template."""
    return f"# Handoff — {WORKER} — {mission}\n\n## Next exact action\n\n{text}\n".encode()


def generated(text: str) -> bytes:
    """One by the control plane's template."""
    return f"# Handoff — {WORKER}\n\nMission: {MISSION}\n\n## Next action\n\n{text}\n".encode()


def put(path: Path, data: bytes, at: int = _AGO) -> None:
    """Puts a file in place that was written long ago: it stands still."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (at, at))


def look(home: Home, tree: Tree) -> Report:
    """Looks until what is new has stood still and was written."""
    for _ in range(3):
        report = tree.everything()
        home.hands.move(70.0)
    return report


def written(home: Home) -> list[str]:
    """The paths of the `handoff-written` events."""
    lines = [json.loads(line) for type, line, _ in home.rows() if type == "handoff-written"]
    return [line["event"]["path"] for line in lines]


def history(home: Home) -> list[KeptHandoff]:
    """Every version in the journal."""
    with closing(Follower(home.state / JOURNAL)) as follower:
        return follower.handoffs(WORKER)


def test_names_that_are_no_utf8_are_no_handoffs(home: Home, tree: Tree) -> None:
    places = Places(home)
    for name in (b"caf\xe9.md", b"a b.md", b"\xff\xfe"):
        put(places.folder / os.fsdecode(name), b"notes\n")
    (home.profiles / os.fsdecode(b"caf\xe9")).mkdir()
    (home.profiles / os.fsdecode(b"caf\xe9") / "runtime.json").write_text("{}")
    put(places.latest, own("Go on"))
    look(home, tree)
    assert tree.problems() == ()
    assert places.local.read_bytes() == own("Go on")
    assert written(home) == ["memory/handoffs/latest.md"]
