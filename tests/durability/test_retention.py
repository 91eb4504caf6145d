"""Bodies of old events are dropped, and nobody takes what is gone for damage; docs/contracts.md, "Retention"."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from swarmmemd.bodies import dropped
from swarmmemd.cli.main import run
from swarmmemd.journal import Filter, Follower
from swarmmemd.layout import JOURNAL
from swarmmemd.rebuild import rebuild
from swarmmemd.recall.verify import verify
from tests.support.trees import MISSION, NOON, STORY_TYPES, WORKER, Home, flags, story
from tests.support.whole import whole

_DAYS = 24 * 60 * 60 * 1000


def _told(base: Path) -> Home:
    home = Home(base)
    for content in story():
        home.put(content)
        home.turn()
    return home


def _forget(home: Home, before: float = NOON * 1000 + _DAYS) -> int:
    """Drops all that is old, slice by slice, as the daemon does in a day."""
    total, after = 0, 0
    with home.tree() as tree:
        while True:
            last, count = tree.journal.forget(after, int(before))
            total += count
            if last is None:
                return total
            after = last


def _columns(home: Home) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(home.state / JOURNAL)) as db:
        return db.execute(
            "SELECT seq, id, worker, mission, type, at, applied FROM event ORDER BY seq"
        ).fetchall()


def test_bodies_go_and_all_else_stays(tmp_path: Path) -> None:
    home = _told(tmp_path / "home")
    before, files = _columns(home), home.files()
    assert _forget(home) == len(STORY_TYPES) - 2  # the dispatches are among the newest
    assert _columns(home) == before
    assert home.files() == files
    assert _forget(home) == 0
    follower = Follower(home.state / JOURNAL)
    events = [one.event for one in follower.events(Filter())]
    follower.close()
    assert [event.type.value for event in events] == STORY_TYPES
    for event in events:
        gone = dropped(event) is not None
        assert gone == (event.type != "dispatch")
        assert bool(event.summary) != gone


def test_nothing_young_and_nothing_of_an_open_mission_is_dropped(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    for content in story()[:3]:
        home.put(content)
        home.turn()
    assert _forget(home) == 0
    for content in story()[3:]:
        home.put(content)
        home.turn()
    assert _forget(home, 0) == 0


def test_a_tree_is_as_whole_as_before(tmp_path: Path) -> None:
    """Two workers, handoffs, lines of others: verify finds nothing, and a repeated turn gives no event."""
    home = whole(tmp_path / "home")
    assert verify(home.config).findings == []
    assert _forget(home)
    count = len(home.rows())
    verdict = verify(home.config)
    assert verdict.findings == []
    with home.tree() as tree:
        home.turns(tree)
        assert rebuild(tree).changed == ()
    assert len(home.rows()) == count


def test_what_is_gone_for_good_is_said_and_the_rest_is_mended(tmp_path: Path) -> None:
    home = _told(tmp_path / "home")
    _forget(home)
    home.events().unlink()
    with home.tree() as tree:
        home.turns(tree)
        rebuild(tree)
    lines = [json.loads(line) for line in home.events().read_bytes().splitlines()]
    assert [line["type"] for line in lines] == ["dispatch", "dispatch"]
    verdict = verify(home.config)
    assert verdict.findings == []
    assert [one.what for one in verdict.information if one.part == "events"] == [
        "5 events without a line of ours here; the text is no longer kept"
    ]


def test_an_entry_that_was_removed_is_made_again_while_its_line_stands(tmp_path: Path) -> None:
    home = _told(tmp_path / "home")
    day = home.memory() / "episodes" / "2026-05-04.md"
    before = day.read_bytes()
    _forget(home)
    day.unlink()
    assert verify(home.config).findings
    with home.tree() as tree:
        home.turns(tree)
        rebuild(tree)
    assert day.read_bytes() == before


def test_a_journal_made_from_the_files_has_the_texts_again(tmp_path: Path) -> None:
    home = _told(tmp_path / "home")
    lines = home.journal()
    _forget(home)
    home.delete_journal()
    home.turn()
    assert home.journal() == lines


def test_versions_of_handoffs_that_count_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home(tmp_path / "home")
    home.put(story()[0])
    home.turn()
    latest = home.memory() / "handoffs" / "latest.md"
    for row in ("second", "third"):
        latest.parent.mkdir(exist_ok=True)
        latest.write_text(f"# Handoff — {WORKER} — {MISSION}\n\n## Next exact action\n\nLay the {row} row\n")
        os.utime(latest, (NOON - 3600, NOON - 3600))
        with home.tree() as tree:
            home.turns(tree)
            home.hands.move(5.0)
            home.turns(tree)
    assert _forget(home) == 1
    assert verify(home.config).findings == []
    assert run(["handoff", "history", WORKER, "--json", *flags(home)]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["bytes"] is None for one in told] == [True, False]
    assert run(["handoff", "show", WORKER, "--version", told[0]["sha256"], *flags(home)]) == 1
    assert "no longer kept" in capsys.readouterr().err
    assert run(["handoff", "show", WORKER, *flags(home)]) == 0
    assert "third row" in capsys.readouterr().out
    assert run(["handoff", "history", WORKER, *flags(home)]) == 0
    assert "no longer kept" in capsys.readouterr().out
    assert run(["tail", *flags(home)]) == 0
