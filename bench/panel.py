"""Pictures of the memory panel for docs/: `python -m bench.panel`. Needs Debian's chromium.

A small swarm tells its story to a daemon on a temporary home; the browser looks at it.
"""

import tempfile
import time
from pathlib import Path

from tests.support.browser import Browser, browser
from tests.support.daemon import Home, answered, dispatched, running

DOCS = Path(__file__).parents[1] / "docs" / "pictures"
_ROSTER = """workers:
  - {id: builder-1, name: Mason, role: Builder, specialty: parsers}
  - {id: painter-2, name: Palette, role: Painter, specialty: interfaces}
  - {id: tester-3, name: Plumb line, role: Tester, specialty: regressions}
  - {id: writer-4, name: Quill, role: Writer, specialty: manuals}
"""


def swarm(home: Home) -> None:
    """Who there is, and what they are told."""
    (home.workspace / "swarm.yaml").write_text(_ROSTER)
    now = int(time.time() * 1000)
    home.write(
        "builder-1",
        dispatched("mission-parser", "Make the parser accept comments", lastDispatchAt=now - 480_000),
    )
    home.write(
        "painter-2", dispatched("mission-panel", "Draw the settings page", lastDispatchAt=now - 2_000_000)
    )
    home.write(
        "tester-3",
        dispatched("mission-parser", "Write regression tests for the parser", lastDispatchAt=now - 300_000),
    )
    home.write("writer-4", {"state": "idle"})


def answers(home: Home) -> None:
    """What they answer."""
    now = int(time.time() * 1000)
    home.write(
        "builder-1",
        _said(
            "mission-parser",
            "Comments are accepted, 41 tests are green",
            "IN_PROGRESS",
            now - 120_000,
            "Nested comments next",
        ),
    )
    home.write(
        "painter-2",
        _said(
            "mission-panel",
            "The palette for high contrast is missing",
            "BLOCKED",
            now - 1_500_000,
            "Ask for the palette",
        ),
    )
    home.write(
        "tester-3",
        _said(
            "mission-parser",
            "Twelve cases of old reports are covered",
            "DONE",
            now - 30_000,
            "Review the two flaky ones",
        ),
    )


def _said(mission: str, result: str, state: str, at: int, action: str) -> dict[str, object]:
    content = answered(mission, result, state, lastOutputAt=at, lastCheckIn=at, nextAction=action)
    block = str(content["checkpointRaw"]).replace("NEXT_ACTION: none", f"NEXT_ACTION: {action}")
    return {
        **content,
        "checkpointRaw": block.replace(
            "FILES_CHANGED: none", "FILES_CHANGED: src/parser.py, docs/grammar.md"
        ),
    }


def pictures(page: Browser) -> None:
    """The overview and one worker, at two widths, light and dark."""
    for width, height in ((390, 844), (1280, 860)):
        for dark in (False, True):
            page.window(width, height, dark)
            name = f"panel-{width}-{'dark' if dark else 'light'}"
            (DOCS / f"{name}.png").write_bytes(page.picture())
    page.window(1280, 860)
    page.js("location.hash = 'worker=builder-1'")
    page.shows("Checkpoints", "#page")
    (DOCS / "worker-1280-light.png").write_bytes(page.picture())


def main() -> None:
    """Makes them."""
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        swarm(home)
        with running(home, "--allow-root", "--api-enabled", "--api-listen", "127.0.0.1:0"):
            home.looked_at()
            answers(home)
            home.looked_at()
            link = home.command("serve", "--link").stdout.strip()
            with browser(Path(folder)) as page:
                page.window(1280, 860)
                page.open(link)
                page.shows("Live", "#link")
                page.shows("Twelve cases", "#events")
                pictures(page)
                print(*page.said, sep="\n")


if __name__ == "__main__":
    main()
