"""docs/files.md names every path there is, and no file is made that it does not name."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from swarmmemd import layout
from swarmmemd.layout import Place
from tests.support.daemon import Home, answered, dispatched, running, until

_PAGE = Path(__file__).parents[2] / "docs" / "files.md"
_STANDS_FOR = {
    "mission": "<missionId>",
    "worker": "<workerId>",
    "day": "<YYYY-MM-DD>",
    "profiles_root": Path("<profiles_root>"),
    "workspace_root": Path("<workspace_root>"),
}
_NAMES = {
    "identity_file": ("IDENTITY.md", "SOUL.md", "MEMORY.md"),
    "archived": ("SUMMARY.md", "events.jsonl", "handoff.md"),
}


def paths_of_layout() -> Iterator[str]:
    """Every path that `layout` makes, as the page writes it, and every name that it holds."""
    for name, value in vars(layout).items():
        if name.isupper() and isinstance(value, str | tuple):
            yield from [value] if isinstance(value, str) else value
        if inspect.isfunction(value) and value.__module__ == layout.__name__:
            wanted = inspect.signature(value).parameters
            for last in _NAMES.get(name, ("",)):
                made = value(**{one: last if one == "name" else _STANDS_FOR[one] for one in wanted})
                yield made.shown.removeprefix("memory/") if isinstance(made, Place) else str(made)


def test_every_path_of_the_layout_is_named() -> None:
    page = _PAGE.read_text()
    missing = [path for path in paths_of_layout() if f"`{path}" not in page and f"/{path}" not in page]
    assert missing == []


def templates(section: str) -> list[re.Pattern[str]]:
    """The paths of a section of the page, as patterns; a folder stands for what is in it."""
    text = re.split(r"^## ", _PAGE.read_text().partition(f"\n## {section}\n")[2], flags=re.M)[0]
    rows = [row.split(" | ")[0] for row in text.splitlines() if row.startswith("| `")]
    found = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    return [
        re.compile(re.sub(r"<[^>]+>", "[^/]+", re.escape(path)) + (".*" if path.endswith("/") else ""))
        for path in found
    ]


def test_no_file_is_made_that_is_not_named(home: Home) -> None:
    (home.workspace / "swarm.yaml").write_text("workers: [{id: swarm5, name: Bo}]\n")
    home.write("swarm5", dispatched("mission-x"))
    assert home.command("note", "--worker", "swarm5", "painted").returncode == 0
    (home.state / "inbox" / "torn.post").write_bytes(b"{")
    with running(home):
        home.write("swarm5", answered("mission-x", "Half of it", "HANDOFF"))
        until(
            lambda: "handoff-written" in home.types() or list(home.shared.rglob("*-latest.md")), "the handoff"
        )
        home.write("swarm5", answered("mission-x", "All of it"))
        until(lambda: list(home.shared.rglob("manifest.json")), "the archive")
        assert home.command("promote", home.events()[0]["id"]).returncode == 0
    assert home.command("rebuild", "--journal").returncode == 0
    roots = {
        "A worker's memory": home.profiles / "swarm5" / "memory",
        "Shared memory": home.shared,
        "The state folder": home.state,
    }
    made = {
        name: [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        for name, root in roots.items()
    }
    assert all(len(paths) > 2 for paths in made.values()), made
    unnamed = [
        path
        for name, paths in made.items()
        for path in paths
        if not any(template.fullmatch(path) for template in templates(name))
    ]
    assert unnamed == []
