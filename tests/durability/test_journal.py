"""The journal file: new, newer, damaged, deleted, linked; docs/architecture.md, "Journal"."""

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from swarmmemd.errors import Exit, JournalError, StorageError, SwarmmemdError
from swarmmemd.journal import Filter, Follower, Journal
from swarmmemd.journal.schema import SCHEMA
from swarmmemd.layout import JOURNAL
from swarmmemd.model import WorkerId, iso, parse_iso
from tests.support.faults import calls_of, in_child
from tests.support.trees import MISSION, STORY_TYPES, WORKER, Home, Undisturbed, answered, dispatched, story


def _told(home: Home, steps: int = 5) -> None:
    for content in story()[:steps]:
        home.put(content)
        home.turn()


def _path(home: Home) -> Path:
    return home.state / JOURNAL


def test_newer_schema_is_refused_with_the_way_out(home: Home) -> None:
    _told(home)
    with closing(sqlite3.connect(_path(home))) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = _path(home).read_bytes()
    with pytest.raises(JournalError, match=f"schema {SCHEMA + 1}.*schema {SCHEMA}") as told:
        home.turn()
    assert told.value.code is Exit.IO
    assert int(told.value.code) == 74
    assert "Install the newer swarmmemd" in told.value.mend
    assert "rename" in told.value.mend
    assert _path(home).read_bytes() == before
    with pytest.raises(JournalError):
        Follower(_path(home))


def test_a_database_of_another_program_is_refused(home: Home) -> None:
    home.put(story()[0])
    home.state.mkdir()
    with closing(sqlite3.connect(_path(home))) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(JournalError, match="another program"):
        home.turn()
    with closing(sqlite3.connect(_path(home))) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]


def _header_overwritten(data: bytes) -> bytes:
    return b"not a database any more!" + data[24:]


def _cut_in_the_middle(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _cut_in_the_header(data: bytes) -> bytes:
    return data[:60]


def _all_nul(data: bytes) -> bytes:
    return bytes(len(data))


def _first_page_nul(data: bytes) -> bytes:
    return bytes(4096) + data[4096:]


@pytest.mark.parametrize(
    "damage", [_header_overwritten, _cut_in_the_middle, _cut_in_the_header, _all_nul, _first_page_nul]
)
def test_a_damaged_journal_is_refused_and_never_replaced(
    home: Home, damage: Callable[[bytes], bytes]
) -> None:
    _told(home)
    damaged = damage(_path(home).read_bytes())
    _path(home).write_bytes(damaged)
    before = home.files()
    for _ in range(2):
        with pytest.raises(JournalError, match="is damaged") as told:
            home.turn()
        assert told.value.code == 74
        assert "Set it aside" in told.value.mend
    assert _path(home).read_bytes() == damaged
    assert home.files() == before


@pytest.mark.parametrize("table", ["worker", "mission"])
def test_a_row_of_state_that_cannot_be_read_stops_it_with_the_way_out(home: Home, table: str) -> None:
    _told(home)
    with closing(sqlite3.connect(_path(home))) as db:
        db.execute(f"UPDATE {table} SET state = substr(state, 2)")
        db.commit()
    with pytest.raises(JournalError, match="cannot be read") as told:
        home.turn()
    assert told.value.code == 74
    assert "rebuild --journal" in told.value.mend


def test_set_aside_as_the_message_says_it_starts_and_reads_back(home: Home, undisturbed: Undisturbed) -> None:
    _told(home)
    _path(home).write_bytes(_header_overwritten(_path(home).read_bytes()))
    with pytest.raises(JournalError):
        home.turn()
    _path(home).rename(home.state / "journal.db.damaged")
    home.turn()
    assert home.journal() == undisturbed.journals[-1]
    assert home.files() == undisturbed.files[-1]


def test_an_empty_file_starts_and_reads_back(home: Home, undisturbed: Undisturbed) -> None:
    _told(home)
    os.truncate(_path(home), 0)
    home.turn()
    assert home.journal() == undisturbed.journals[-1]
    assert home.files() == undisturbed.files[-1]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_deleted_again_and_again(home: Home, undisturbed: Undisturbed, every: int) -> None:
    for step, content in enumerate(story()):
        home.put(content)
        home.turn()
        if step % every == every - 1:
            home.delete_journal()
        home.turn()
        assert home.files() == undisturbed.files[step]
        assert home.journal() == undisturbed.journals[step]


def test_deleted_while_a_checkpoint_came(home: Home, undisturbed: Undisturbed) -> None:
    for step, content in enumerate(story()):
        home.put(content)
        if step:
            home.delete_journal()
        home.turn()
        assert home.files() == undisturbed.files[step]
        assert home.journal() == undisturbed.journals[step]


def test_deleted_where_another_writer_s_line_stands_for_ours(home: Home) -> None:
    """His line has another time than the event, so the bullet of the event looks like somebody's."""
    home.put(dispatched())
    home.turn()
    done = answered("done", "DONE", "The path is laid")
    at = (parse_iso(done["lastCheckIn"]) or 0) - 800
    line = {
        "at": iso(at),
        "type": "checkpoint",
        "workerId": WORKER,
        "missionId": MISSION,
        "assignmentId": done["currentAssignmentId"],
        "summary": "The path is laid",
        "event": {"stateLabel": "DONE", "result": "The path is laid"},
    }
    with home.events().open("a") as file:
        file.write(json.dumps(line) + "\n")
    home.put(done)
    home.turn()
    assert home.summary().read_text().count("DONE — The path is laid") == 1
    home.delete_journal()
    home.turn()
    home.turn()
    assert home.summary().read_text().count("DONE — The path is laid") == 1


def test_deleted_with_several_workers(tmp_path: Path) -> None:
    workers = [WorkerId("builder-1"), WorkerId("painter-2"), WorkerId("scout-3")]
    home = Home(tmp_path / "home", *workers)
    for content in story():
        for worker in workers:
            home.put({**content, "workerId": worker}, worker)
        home.turn()
    before = {worker: home.files(worker) for worker in workers}
    lines = sorted(home.journal())
    home.delete_journal()
    home.turn()
    assert {worker: home.files(worker) for worker in workers} == before
    assert sorted(home.journal()) == lines


@pytest.mark.parametrize("target", ["file", "nothing", "folder"])
def test_a_symlink_in_its_place_is_refused(home: Home, target: str) -> None:
    home.put(story()[0])
    home.state.mkdir()
    elsewhere = home.base / "elsewhere"
    if target == "file":
        elsewhere.write_bytes(b"somebody's")
    elif target == "folder":
        elsewhere.mkdir()
    _path(home).symlink_to(elsewhere)
    with pytest.raises(StorageError, match="not a regular file") as told:
        home.turn()
    assert told.value.mend
    assert elsewhere.exists() == (target != "nothing")
    assert target != "file" or elsewhere.read_bytes() == b"somebody's"
    assert not home.memory().exists()


def test_a_fifo_in_its_place_does_not_block(home: Home) -> None:
    home.put(story()[0])
    home.state.mkdir()
    os.mkfifo(_path(home))
    with pytest.raises(StorageError, match="not a regular file"):
        home.turn()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_are_private_whatever_the_umask(home: Home, umask: int) -> None:
    home.put(story()[0])
    before = os.umask(umask)
    try:
        with home.tree() as tree:
            tree.everything()
            files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.state.iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.state.stat().st_mode) == 0o700
    assert {JOURNAL, f"{JOURNAL}-wal", "lock", "holder.json"} <= set(files)
    assert set(files.values()) == {0o600}


def test_a_state_directory_that_is_open_to_others_is_closed(home: Home) -> None:
    home.state.mkdir(mode=0o777)
    home.state.chmod(0o777)
    with home.tree():
        assert stat.S_IMODE(home.state.stat().st_mode) == 0o700


def _waiting(home: Home) -> int:
    follower = Follower(_path(home))
    try:
        return follower.backlog()[0]
    finally:
        follower.close()


def test_what_was_settled_rides_in_the_next_commit(home: Home) -> None:
    home.put(story()[0])
    with home.tree() as tree:
        commits = [call for call in calls_of(tree.everything) if call[0] == "commit"]
        assert len(commits) == 1
        assert _waiting(home) == 2
        home.put(story()[1])
        commits = [call for call in calls_of(tree.everything) if call[0] == "commit"]
        assert len(commits) == 1
        assert _waiting(home) == 1, "the two from before were marked with it"
        assert calls_of(tree.turns.settle) == [("commit", JOURNAL)]
        assert _waiting(home) == 0
        assert calls_of(tree.turns.settle) == []


def test_an_orderly_end_leaves_nothing_waiting(home: Home) -> None:
    _told(home, 1)
    assert not (home.state / f"{JOURNAL}-wal").exists()
    assert _waiting(home) == 0


def test_a_turn_without_news_commits_nothing(home: Home) -> None:
    _told(home, 1)
    with home.tree() as tree:
        tree.everything()
        home.hands.move(10.0)
        before = _path(home).read_bytes()
        assert not [call for call in calls_of(tree.everything) if call[0] != "turn"]
    assert _path(home).read_bytes() == before


def test_another_process_follows_while_it_is_written(home: Home) -> None:
    """A child opens the journal, and after each turn of the parent reads exactly what is new."""
    to_child, to_parent = os.pipe(), os.pipe()
    home.put(story()[0])

    def follow() -> None:
        follower, seen, types = None, 0, []
        while os.read(to_child[0], 1) == b"+":
            follower = follower or Follower(_path(home))
            for recorded in follower.events(Filter(), after=seen):
                assert recorded.seq == seen + 1
                seen = recorded.seq
                types.append(recorded.event.type.value)
            assert follower.last() == seen
            os.write(to_parent[1], len(types).to_bytes())
        assert types == STORY_TYPES

    def read() -> None:
        in_parent = os.fork()
        if in_parent == 0:
            try:
                follow()
                os._exit(0)
            finally:
                os._exit(70)
        counts = []
        with home.tree() as tree:
            for content in story():
                home.put(content)
                tree.everything()
                os.write(to_child[1], b"+")
                counts.append(os.read(to_parent[0], 1)[0])
            os.write(to_child[1], b".")
        assert os.waitstatus_to_exitcode(os.waitpid(in_parent, 0)[1]) == 0
        assert counts == [2, 3, 4, 5, 7]

    # The writer is a child of its own, so that no connection crosses a fork.
    assert in_child(read) == 0
    for pipe in (*to_child, *to_parent):
        os.close(pipe)


def test_a_follower_filters(home: Home) -> None:
    _told(home)
    follower = Follower(_path(home))
    try:
        assert [r.event.type.value for r in follower.newest(Filter(), 2)] == STORY_TYPES[-2:]
        assert len(follower.events(Filter(worker=WORKER))) == len(STORY_TYPES)
        assert follower.events(Filter(worker="nobody")) == []
        assert len(follower.events(Filter(type="dispatch"))) == 2
        assert len(follower.events(Filter(since=1777938000000))) == 3
        assert follower.backlog() == (0, 0)
    finally:
        follower.close()


def test_a_follower_makes_nothing(home: Home) -> None:
    home.state.mkdir()
    with pytest.raises(StorageError, match="there is no journal"):
        Follower(_path(home))
    _path(home).touch()
    with pytest.raises(SwarmmemdError):
        Follower(_path(home))
    assert _path(home).read_bytes() == b""


def test_a_reader_that_stays_open_does_not_stop_the_writer(home: Home) -> None:
    home.put(story()[0])
    with home.tree() as tree, closing(sqlite3.connect(_path(home))) as reader:
        tree.everything()
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM event").fetchone() == (2,)
        for content in story()[1:]:
            home.put(content)
            assert tree.everything().failure is None
        tree.journal.checkpoint()
        assert reader.execute("SELECT count(*) FROM event").fetchone() == (2,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM event").fetchone() == (7,)


def test_a_writer_that_holds_the_lock_is_reported_not_raised(home: Home) -> None:
    """Somebody looks into the journal with a tool and leaves a transaction open."""
    home.put(story()[0])
    with home.tree() as tree:
        tree.journal._db.execute("PRAGMA busy_timeout = 10")
        with closing(sqlite3.connect(_path(home), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            report = tree.everything()
            assert isinstance(report.failure, StorageError)
            other.execute("ROLLBACK")
        home.hands.move(1.0)
        assert tree.everything().failure is None
        assert home.types() == STORY_TYPES[:2]


def test_closing_commits_what_was_settled(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / JOURNAL)
    journal.settle(applied=[1])
    assert calls_of(journal.close) == [("commit", JOURNAL)]


def test_what_was_read_back_is_not_held(home: Home) -> None:
    """It is applied already, and can be a long life."""
    _told(home)
    home.delete_journal()
    with home.tree() as tree:
        tree.everything()
        assert tree.journal._newest == {}
    assert home.types()
