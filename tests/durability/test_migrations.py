"""A journal of an older version of the program: brought up to date with a copy beside it, and nothing lost."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from swarmmemd.journal import schema
from swarmmemd.journal.migrations import migrate
from tests.support.daemon import Home, answered, dispatched

_OLDER = Path(__file__).parent / "schema-1.sql"


def _shape(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows if not name.startswith("sqlite_")}


def test_every_step_leads_to_the_tables_of_a_new_journal(tmp_path: Path) -> None:
    old, new = tmp_path / "journal.db", tmp_path / "new.db"
    with closing(sqlite3.connect(old, isolation_level=None)) as db:
        db.executescript(_OLDER.read_text() + "PRAGMA user_version = 1;")
        migrate(db, old, 1, schema.SCHEMA)
    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        schema.check_schema(db, new)
    assert _shape(old) == _shape(new)


def _as_older(journal: Path) -> None:
    """Takes away what schema 1 did not have."""
    with closing(sqlite3.connect(journal, isolation_level=None)) as db:
        for name in ("rendered_count", "placing", "heard", "audit", "audit_head", "copy"):
            db.execute(f"DROP TABLE {name}")
        db.execute("DROP INDEX event_dispatch")
        db.execute("PRAGMA user_version = 1")


def test_an_older_journal_goes_on(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1"))
    assert home.command("once").returncode == 0
    journal = home.state / "journal.db"
    _as_older(journal)
    home.write("builder-1", answered("mission-1", "Painted"))
    assert home.command("once").returncode == 0
    assert home.types() == ["mission-start", "dispatch", "checkpoint", "complete"]
    assert home.command("verify").returncode == 0
    copy = home.state / "journal-schema1.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM event").fetchone() == (2,)
