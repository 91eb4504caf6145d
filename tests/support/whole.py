"""A whole memory tree, in which people and the other writer write too, and what can be done to each of its files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swarmmemd.model import MissionId, WorkerId
from swarmmemd.rebuild import Rebuilt, rebuild
from swarmmemd.recall.verify import Verdict, verify
from tests.support.trees import MISSION, WORKER, Home, answered, dispatched, story

OTHER = WorkerId("painter-2")
SECOND = MissionId("mission-mo5a0002-bbbbbb")
_ROSTER = """workers:
  - id: builder-1
    name: Builder
    role: Builder
  - id: painter-2
    name: Painter
    role: Painter
"""
_HANDED_OVER = 1777886520
"""2026-05-04T09:22:00Z, while the mission was blocked."""
_THEIRS = "- A bullet of somebody's\n"


def whole(base: Path) -> Home:
    """Two workers, two missions, handoffs, archives, and lines of others in every file that has room for them."""
    home = Home(base, WORKER, OTHER)
    (home.workspace / "swarm.yaml").write_text(_ROSTER)
    for step, content in enumerate(story()):
        home.put(content)
        home.put(json.dumps({**content, "workerId": OTHER}).replace("path", "fence").encode(), OTHER)
        home.turn()
        if step == 1:
            _others_write(home)
        if step == 2:
            _hand_over(home)
    second: dict[str, Any] = {"currentMissionId": SECOND, "currentTask": "Plant the hedge"}
    second["lastDispatchAt"] = 1777940000000
    stamp = {"lastCheckIn": "2026-05-05T00:20:00.000Z"}
    home.put(dispatched(**second, **stamp))
    home.turn()
    handed = answered("done", "HANDOFF", "Half of the hedge stands", action="Plant the other half")
    home.put({**handed, **second, "lastCheckIn": "2026-05-05T00:30:00.000Z", "lastOutputAt": 1777941000000})
    home.turn()
    calm(home)
    return home


def calm(home: Home) -> None:
    """Turns until nothing waits."""
    with home.tree() as tree:
        home.turns(tree)
        home.hands.move(5.0)
        home.turns(tree)
        home.hands.move(5.0)
        home.turns(tree)


def _hand_over(home: Home) -> None:
    text = (
        f"# Handoff — {WORKER} — {MISSION}\n\n## Next exact action\n\nLay the second row, from the gate on\n"
    )
    folder = home.memory() / "handoffs"
    folder.mkdir(exist_ok=True)
    (folder / "latest.md").write_text(text)
    os.utime(folder / "latest.md", (_HANDED_OVER, _HANDED_OVER))
    calm(home)


def _others_write(home: Home) -> None:
    line = {
        "at": "2026-05-04T09:12:00.000Z",
        "type": "note",
        "workerId": WORKER,
        "missionId": MISSION,
        "assignmentId": None,
        "summary": "Seen by somebody else",
    }
    with home.events().open("a") as file:
        file.write(json.dumps(line) + "\n")
    with (home.memory() / "episodes" / "2026-05-04.md").open("a") as file:
        file.write("\n## My own note\n\nThe sand comes from the beach.\n")
        bullets = (
            f"- Mission: {MISSION}\n- Assignment: assign-mo5a0001-aaaa01\n- Summary: First row laid, they say"
        )
        file.write(f"\n## 09:10 UTC — checkpoint\n{bullets}\n")
    text = home.summary().read_text().replace("## Decisions\n", f"## Decisions\n\n{_THEIRS}", 1)
    home.summary().write_text(f"{text}\n## Update — somebody\n\n- State: fine\n")


def found(home: Home) -> Verdict:
    """What `verify` says."""
    return verify(home.config)


def made_right(home: Home) -> Rebuilt:
    """What `rebuild` does, with the turns before it."""
    with home.tree() as tree:

        def opening() -> None:
            for _ in range(3):
                tree.everything()
                home.hands.move(5.0)

        return rebuild(tree, opening=opening)


def ours(home: Home) -> list[Path]:
    """Every file in which a part is ours."""
    own = [path for worker in (WORKER, OTHER) for path in sorted(home.memory(worker).rglob("*.*"))]
    return [path for path in (*own, *sorted(home.shared.rglob("*.*"))) if path.name != "latest.md"]


def _edited(data: bytes) -> bytes:
    """One of our values, changed."""
    for old, new in (
        (b"The path is laid", b"The path is late"),
        (b"The fence is laid", b"The fence is late"),
        (b"Lay the garden fence", b"Pay the garden fence"),
        (b"Half of the hedge", b"Half of the wedge"),
        (b"First row laid", b"First row lost"),
        (b"Lay the garden path", b"Pay the garden path"),
        (b"second row", b"second bow"),
        (b'"complete"', b'"compete"'),
    ):
        if old in data:
            return data.replace(old, new, 1)
    raise AssertionError(f"nothing of ours in {data[:200]!r}")


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda data: None,
    "emptied": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-2],
    "edited": _edited,
    "filled with NULs": lambda data: bytes(len(data)),
}
