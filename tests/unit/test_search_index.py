"""The index finds exactly what reading every file finds, whatever happens to the files."""

import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from swarmmemd.config import Config
from swarmmemd.layout import SEAL, SEARCH
from swarmmemd.recall import index as module
from swarmmemd.recall import indexing
from swarmmemd.recall.index import Index, search
from swarmmemd.recall.indexing import Indexer
from swarmmemd.recall.keeper import keep
from swarmmemd.recall.seal import sealed
from swarmmemd.recall.search import Results, SearchQuery, scan
from tests.support.memories import MISSIONS, QUERIES, VOCABULARY, WORKERS, plant

_LONG = [" ".join(VOCABULARY[first : first + 7]) for first in (0, 14, 28)]


@pytest.fixture(autouse=True)
def _files_of_now_count_as_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_SETTLED", 0)


def opened(config: Config) -> Indexer:
    config.state_dir.mkdir(exist_ok=True)
    return Indexer(config.state_dir / SEARCH)


def queries(dice: random.Random, count: int) -> Iterator[SearchQuery]:
    """Queries of every kind, with filters or without."""
    for text in [
        *dice.sample(QUERIES, count),
        *dice.sample(_LONG, 1),
        " ".join(dice.choices(VOCABULARY, k=3)),
    ]:
        yield SearchQuery(
            text=text,
            worker=dice.choice((None, None, *WORKERS)),
            mission=dice.choice((None, None, None, *MISSIONS)),
            type=dice.choice((None, None, None, "checkpoint")),
            since=dice.choice((None, None, 1_777_950_000_000)),
            scope=dice.choice(("worker", "shared", "all")),
            limit=dice.choice((1, 5, 1000)),
            context=dice.choice((0, 1)),
        )


def disturb(config: Config, dice: random.Random) -> None:
    """Does to some files what editors, agents and the daemon do."""
    files = sorted(path for path in config.profiles_root.rglob("memory/**/*.*") if path.is_file())
    for path in dice.sample(files, min(len(files), 4)):
        word = dice.choice(VOCABULARY)
        change = dice.randrange(5)
        if change == 0:
            path.unlink()
        elif change == 1:
            with path.open("a") as file:
                file.write(f'{{"summary": "{word}", "at": "2026-05-03T00:00:00Z"}}\n')
        elif change == 2:
            aside = path.with_suffix(".new")
            aside.write_text(f"{word}\n" * 3)
            aside.replace(path)
        elif change == 3:
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2])
        else:
            path.with_name(f"moved{path.suffix}").write_bytes(path.read_bytes())


@pytest.mark.parametrize("seed", range(30))
def test_it_finds_what_reading_every_file_finds(tmp_path: Path, seed: int) -> None:
    config, dice = plant(tmp_path, seed), random.Random(seed)
    index = opened(config)
    try:
        for _ in range(4):
            if dice.random() < 0.7:
                index.update(config)
            for query in queries(dice, 3):
                assert index.search(config, query) == scan(config, query), query
            disturb(config, dice)
            for query in queries(dice, 2):
                assert index.search(config, query) == scan(config, query), query
    finally:
        index.close()


def test_a_file_that_grows_is_indexed_from_where_it_was(tmp_path: Path) -> None:
    config = plant(tmp_path, 1)
    events = config.profiles_root / "builder-1" / "memory" / "missions" / "mission-a" / "events.jsonl"
    events.write_text('{"summary": "zeta 0", "at": "2026-05-03T00:00:00Z"}\n')
    index = opened(config)
    index.update(config)
    for number in range(1, 20):
        with events.open("a") as file:
            file.write(f'{{"summary": "zeta {number}", "at": "2026-05-03T00:00:00Z"}}\n')
        assert index.update(config) == 1
    query = SearchQuery(text="zeta")
    assert index.search(config, query) == scan(config, query)
    index.close()
    with sqlite3.connect(config.state_dir / SEARCH) as db:
        (gone,) = db.execute("SELECT count(*) FROM line WHERE file = 0").fetchone()
    db.close()
    assert gone == 0


def test_numbers_are_found_alike(tmp_path: Path) -> None:
    config = plant(tmp_path, 1)
    numbers = ("1e3", "1.50", "0.00001", "123456789.1234567890123", "1E400", "-0.0")
    rows = "".join(f'{{"summary": "took", "event": {{"took": {number}}}}}\n' for number in numbers)
    (config.profiles_root / "builder-1" / "memory" / "numbers.jsonl").write_text(rows)
    index = opened(config)
    index.update(config)
    for text in (*numbers, "1000", "1000.0", "1e", "05", "12345679", "inf"):
        query = SearchQuery(text=text, limit=1000)
        assert index.search(config, query) == scan(config, query), text
    index.close()


def test_it_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_MANY", 50)
    config = plant(tmp_path, 1)
    page = config.profiles_root / "builder-1" / "memory" / "MEMORY.md"
    index = opened(config)
    for number in range(60):
        page.write_text(f"zeta {number}\n" * 20)
        index.update(config)
    index.update(config)
    query = SearchQuery(text="zeta")
    assert index.search(config, query) == scan(config, query)
    index.close()
    with sqlite3.connect(config.state_dir / SEARCH) as db:
        (lines,) = db.execute("SELECT count(*) FROM line").fetchone()
    db.close()
    assert lines < 400


def test_a_file_that_changed_a_moment_ago_is_read_and_not_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_SETTLED", 3600_000_000_000)
    config = plant(tmp_path, 1)
    index = opened(config)
    assert index.update(config) == 0
    query = SearchQuery(text="parser")
    assert index.search(config, query) == scan(config, query)
    index.close()


def test_a_file_that_changes_during_the_search_is_searched_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = plant(tmp_path, 1)
    page = config.profiles_root / "builder-1" / "memory" / "MEMORY.md"
    page.write_text("zeta one\n")
    index = opened(config)
    index.update(config)
    text = module._Lines.text

    def changed(self: module._Lines, *given: object) -> tuple[str, str]:
        if "one" in page.read_text():
            page.write_text("zeta two, longer\n")
        return text(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(module._Lines, "text", changed)
    (hit,) = index.search(config, SearchQuery(text="zeta")).hits
    assert hit.snippet == "zeta two, longer"
    index.close()


@pytest.mark.parametrize(
    "damage", ["empty", "garbage", "version", "lies", "words", "cut", "old", "link", "folder"]
)
def test_an_index_that_is_no_use_changes_nothing(tmp_path: Path, damage: str) -> None:
    config = plant(tmp_path, 1)
    config.state_dir.mkdir()
    keep(config, threading.Event())
    assert sealed(config)
    path = config.state_dir / SEARCH
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(os.urandom(100_000))
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "old":
        before = path.read_bytes()
        (config.profiles_root / "builder-1" / "memory" / "new.md").write_text("parser\n")
        keep(config, threading.Event())
        path.write_bytes(before)
    elif damage in ("version", "lies", "words"):
        sql = {
            "version": "PRAGMA user_version = 99",
            "lies": "UPDATE line SET number = number + 1",
            "words": "INSERT INTO word (word) VALUES ('delete-all')",
        }
        db = sqlite3.connect(path)
        db.execute(sql[damage])
        db.commit()
        db.close()
    else:
        path.unlink()
        path.symlink_to("/dev/zero") if damage == "link" else path.mkdir()
    for text in ("parser", "部署 go"):
        query = SearchQuery(text=text, scope="all")
        assert search(config, query) == scan(config, query)
    assert not sealed(config)
    if damage != "folder":  # which nobody but a person can have made
        keep(config, threading.Event())
        assert sealed(config)


def test_it_is_used_as_long_as_nobody_else_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, query = plant(tmp_path, 1), SearchQuery(text="parser", scope="all")
    config.state_dir.mkdir()
    expected = scan(config, query)
    for _ in range(2):
        keep(config, threading.Event())
        with monkeypatch.context() as patched:
            patched.setattr(module, "scan", lambda *_: pytest.fail("every file was read"))
            assert search(config, query) == search(config, query) == expected


def test_one_that_is_damaged_while_it_is_searched_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, query = plant(tmp_path, 1), SearchQuery(text="parser", scope="all")
    config.state_dir.mkdir()
    keep(config, threading.Event())
    expected, whole = scan(config, query), Index.search

    def damaged(self: Index, *given: object) -> Results:
        with (config.state_dir / SEARCH).open("r+b") as file:
            file.write(b"SQLite")  # as it was before: only that it was written is seen
        return msgspec.structs.replace(whole(self, *given), hits=())  # type: ignore[arg-type]

    monkeypatch.setattr(Index, "search", damaged)
    assert search(config, query) == expected


def test_it_is_private(tmp_path: Path) -> None:
    config = plant(tmp_path, 1)
    config.state_dir.mkdir()
    keep(config, threading.Event())
    assert [(config.state_dir / name).stat().st_mode & 0o777 for name in (SEARCH, SEAL)] == [0o600, 0o600]
