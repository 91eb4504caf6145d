"""The audit log as a file: it tells of every file that was written, once, over crashes and rotation.

docs/contracts.md, "Audit log".
"""

import errno
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from swarmmemd.audit import Damage, damages, names
from swarmmemd.journal.audits import audit_state
from swarmmemd.layout import JOURNAL
from swarmmemd.memory.audit import AuditLog
from tests.support.faults import KILLED, From, calls_of, failing, hooked, in_child, kill
from tests.support.trees import MISSION, WORKER, Home, story


def _told(home: Home, steps: int = 5) -> None:
    for content in story()[:steps]:
        home.put(content)
        home.turn()


def _files(home: Home) -> list[tuple[str, bytes]]:
    found = names([path.name for path in home.state.iterdir()], "audit.jsonl")
    return [(name, (home.state / name).read_bytes()) for name in found if (home.state / name).exists()]


def _lines(home: Home) -> list[dict[str, Any]]:
    return [json.loads(line) for _, data in _files(home) for line in data.splitlines()]


def _damage(home: Home) -> list[Damage]:
    with closing(sqlite3.connect(home.state / JOURNAL)) as db:
        known = audit_state(db)
    return damages(_files(home), known.head, [line for _, line in known.waiting], lambda: known.head)


def _written(home: Home) -> set[str]:
    return {line["path"] for line in _lines(home)}


def test_every_file_that_was_written_is_in_it(home: Home) -> None:
    _told(home)
    roots = (home.memory(), home.shared)
    assert _written(home) == {str(path) for root in roots for path in root.rglob("*") if path.is_file()}
    assert _damage(home) == []
    assert (home.state / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_its_digests_are_those_of_what_was_written(home: Home) -> None:
    _told(home)
    newest = {line["path"]: line for line in _lines(home)}
    for path, line in newest.items():
        data = Path(path).read_bytes()
        part = data if "appended" not in line else data[len(data) - line["appended"] :]
        assert (line["bytes"], line["sha256"]) == (len(data), hashlib.sha256(part).hexdigest())


def test_each_event_is_named_for_each_of_its_files_once(home: Home) -> None:
    _told(home)
    ids = [json.loads(line)["id"] for line in home.journal()]
    told = [id for line in _lines(home) if line["path"] == str(home.events()) for id in line["events"]]
    assert told == ids
    days = [id for line in _lines(home) if "/episodes/" in line["path"] for id in line["events"]]
    assert sorted(days) == sorted(ids)


def test_a_turn_without_news_writes_no_line(home: Home) -> None:
    _told(home)
    before = _files(home)
    calls = calls_of(home.turn)
    assert _files(home) == before
    assert [name for call, name in calls if call in ("write", "fsync") and "audit" in name] == []


def test_killed_at_every_call_it_stays_whole_and_names_no_event_twice(quick_path: Path) -> None:
    point, killed = 0, True
    while killed:
        home = Home(quick_path / f"run-{point}")
        home.put(story()[0])

        def work(home: Home = home, point: int = point) -> None:
            with hooked(From(point, kill)):
                home.turn()

        killed = in_child(work) == KILLED
        home.turn()
        home.put(story()[1])
        home.turn()
        assert _damage(home) == [], point
        for path in (str(home.events()), str(home.memory() / "episodes" / "2026-05-04.md")):
            told = [id for line in _lines(home) if line["path"] == path for id in line["events"]]
            assert told == [json.loads(line)["id"] for line in home.journal()], point
        point += 1
    assert point > 20


def test_a_full_file_is_put_aside_and_the_chain_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    init = AuditLog.__init__
    monkeypatch.setattr(
        AuditLog, "__init__", lambda self, state, journal: init(self, state, journal, rotated_at=700)
    )
    with home.tree() as tree:
        for content in story():
            home.put(content)
            tree.discover()
            home.turns(tree)
            tree.settle()
            tree.journal.record([])
    assert len(_files(home)) > 2
    assert all(len(data) < 8000 for _, data in _files(home))
    assert [line["n"] for line in _lines(home)] == list(range(1, len(_lines(home)) + 1))
    assert _damage(home) == []


def test_a_file_that_cannot_be_written_stops_nothing_and_is_finished_later(home: Home) -> None:
    home.put(story()[0])
    with home.tree() as tree:
        full = From(0, failing(errno.ENOSPC), 1000, lambda call, name: name == "audit.jsonl")
        with hooked(full):
            home.turns(tree)
            tree.settle()
        assert full.fired
        assert any("audit.jsonl" in problem for problem in tree.problems())
        assert home.events().exists()
        home.put(story()[1])
        home.turns(tree)
        tree.settle()
        assert tree.problems() == ()
    assert _damage(home) == []
    assert str(home.events()) in _written(home)


def test_without_a_journal_the_chain_goes_on(home: Home) -> None:
    _told(home, 3)
    last = _lines(home)[-1]["n"]
    home.delete_journal()
    _told(home)
    assert _damage(home) == []
    assert _lines(home)[-1]["n"] > last


def test_lines_do_not_stay_in_the_journal(home: Home) -> None:
    _told(home)
    home.turn()
    with closing(sqlite3.connect(home.state / JOURNAL)) as db:
        (count,) = db.execute("SELECT count(*) FROM audit").fetchone()
    assert count == 0
    assert str(home.events(MISSION, WORKER)) in _written(home)
