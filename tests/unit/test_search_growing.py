"""Files that grow are indexed from where they ended, and found as reading every file finds them, whatever else happens
to them."""

import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmmemd.config import Config
from swarmmemd.layout import SEARCH
from swarmmemd.recall import indexing, pieces
from swarmmemd.recall.index import Index
from swarmmemd.recall.indexing import Indexer
from swarmmemd.recall.pieces import Pieces, TooLongError
from swarmmemd.recall.search import SearchQuery, scan

_WORDS = ("zeta", "omega", "parser", "部署", "Müller")
_MISSIONS = ("mission-a", "mission-b", "m.3")


@pytest.fixture(autouse=True)
def _files_of_now_count_as_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_SETTLED", 0)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of some 40 lines."""
    monkeypatch.setattr(pieces, "_BLOCK", 256)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A worker, and no memory file yet."""
    (tmp_path / "state").mkdir()
    profile = tmp_path / "profiles" / "builder-1"
    profile.mkdir(parents=True)
    (profile / "runtime.json").write_text("{}")
    for folder in ("missions/mission-a", "episodes", "handoffs"):
        (profile / "memory" / folder).mkdir(parents=True)
    return Config(
        profiles_root=tmp_path / "profiles",
        workspace_root=tmp_path / "workspace",
        shared_root=tmp_path / "shared",
        state_dir=tmp_path / "state",
    )


@pytest.fixture
def files(config: Config) -> list[Path]:
    """Where each kind of file is; none is there yet."""
    memory = config.profiles_root / "builder-1" / "memory"
    names = (
        *("missions/mission-a/events.jsonl", "episodes/2026-05-03.md", "episodes/2026-99-99.md"),
        *("handoffs/mission-b.md", "MEMORY.md"),
    )
    return [memory / name for name in names]


def indexer(config: Config) -> Indexer:
    return Indexer(config.state_dir / SEARCH)


def agree(index: Index, config: Config, dice: random.Random) -> None:
    for word in _WORDS:
        mission = dice.choice((None, *_MISSIONS))
        query = SearchQuery(text=word, mission=mission, limit=dice.choice((5, 10_000)))
        assert index.search(config, query) == scan(config, query), query


def record(dice: random.Random) -> str:
    """A line of a file of records; some are torn, or a person's, and do not say when they were."""
    word = dice.choice(_WORDS)
    if dice.random() < 0.1:
        return dice.choice((f"a person's {word}", f'{{"summary": "{word}"}}', f'{{"at": "torn {word}'))
    return (
        f'{{"summary": "{word}", "at": "2026-05-0{dice.randint(1, 9)}T00:00:00Z", "missionId": "mission-a"}}'
    )


def row(dice: random.Random) -> str:
    """A line of an episode or of a page: also a heading, or a mission that is named late or never."""
    kind = dice.random()
    if kind < 0.05:
        return f"## {dice.randrange(24):02d}:00 UTC — checkpoint"
    return f"- Mission: {dice.choice(_MISSIONS)}" if kind < 0.1 else f"- Summary: {dice.choice(_WORDS)}"


def lines(path: Path, dice: random.Random) -> str:
    make = record if path.suffix == ".jsonl" else row
    return "".join(make(dice) + "\n" for _ in range(dice.choice((1, 3, 100))))


def undated(path: Path) -> int:
    """How many lines there are that do not say when they were; in an episode each one does."""
    rows = path.read_text().splitlines() if path.suffix == ".jsonl" else []
    return sum('"at": "2' not in row for row in rows)


def append(path: Path, dice: random.Random) -> None:
    with path.open("a") as file:
        file.write(lines(path, dice))


def tear(path: Path, dice: random.Random) -> None:
    with path.open("a") as file:
        file.write(lines(path, dice)[:-4])


def edit(path: Path, dice: random.Random) -> None:
    """Another word of the same length in the midst, and the file as long as before."""
    data = path.read_bytes()
    place = data.find(b"zeta", dice.randrange(len(data) + 1))
    if place >= 0:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"work")


def truncate(path: Path, dice: random.Random) -> None:
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def replace(path: Path, dice: random.Random) -> None:
    """Another file, which begins as this one did."""
    aside = path.with_name(".aside")
    aside.write_bytes(path.read_bytes()[: dice.choice((10, 2_000, 1_000_000))] + lines(path, dice).encode())
    aside.replace(path)


def touch(path: Path, dice: random.Random) -> None:
    at = 1_777_000_000 + dice.randrange(3)
    os.utime(path, (at, at))


_CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *(append, append, append, tear, edit, truncate, replace, touch),
)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(25))
def test_it_finds_what_reading_every_file_finds(config: Config, files: list[Path], seed: int) -> None:
    dice, index = random.Random(seed), indexer(config)
    for path in files:
        path.write_text("".join(lines(path, dice) for _ in range(4)))

    def meanwhile() -> bool:
        if dice.random() < 0.2:
            dice.choice(_CHANGES)(dice.choice(files), dice)
        return dice.random() < 0.1

    for _ in range(12):
        dice.choice(_CHANGES)(dice.choice(files), dice)
        index.update(config, meanwhile if dice.random() < 0.5 else lambda: False)
        agree(index, config, dice)
    index.update(config)
    agree(index, config, dice)
    index.close()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["missions/mission-a/events.jsonl", "episodes/2026-05-03.md"])
def test_what_is_indexed_is_not_indexed_again(config: Config, name: str) -> None:
    """Also where a line does not say when it was, and where the mission of an entry is named later than its lines."""
    path, dice = config.profiles_root / "builder-1" / "memory" / name, random.Random(1)
    path.write_text("a person's zeta\n" + "".join(lines(path, dice) for _ in range(10)))
    index = indexer(config)
    index.update(config)
    for round in range(10):
        append(path, dice)
        os.utime(path, (1_777_000_000 + round, 1_777_000_000 + round))
        assert index.update(config) == 1
        agree(index, config, dice)
    assert index._one("SELECT count(*) FROM line WHERE file = 0") <= 10 * undated(path)
    assert index._one("SELECT count(*) FROM line WHERE file > 0") == len(path.read_text().splitlines())
    index.close()


@pytest.mark.usefixtures("small_pieces")
def test_what_an_ended_look_has_indexed_is_kept(config: Config, files: list[Path]) -> None:
    path, dice = files[0], random.Random(2)
    path.write_text("".join(record(dice) + "\n" for _ in range(400)))
    index, ends = indexer(config), 0
    seen: list[int] = []
    while not seen or seen[-1] < 400:
        index.update(config, lambda: True)
        seen.append(index._one("SELECT count(*) FROM line WHERE file > 0"))
        ends += 1
        agree(index, config, dice)
        append(path, dice) if ends == 2 else None
    assert seen == sorted(set(seen))
    assert len(seen) > 4
    assert index._one("SELECT count(*) FROM line WHERE file = 0") <= undated(path)
    index.close()


def test_a_handoff_that_grew_and_kept_its_time_is_of_the_mission_that_it_names_now(config: Config) -> None:
    path = config.profiles_root / "builder-1" / "memory" / "handoffs" / "latest.md"
    path.write_text("# Handoff — builder-1\n\nzeta\n")
    os.utime(path, (1_777_000_000, 1_777_000_000))
    index, query = indexer(config), SearchQuery(text="zeta", mission="mission-a")
    index.update(config)
    with path.open("a") as file:
        file.write("\nMission: mission-a\n")
    os.utime(path, (1_777_000_000, 1_777_000_000))
    index.update(config)
    assert [hit.line for hit in scan(config, query).hits] == [3]
    assert index.search(config, query) == scan(config, query)
    index.close()


@pytest.mark.parametrize("name", ["missions/mission-a/events.jsonl", "MEMORY.md"])
def test_a_file_that_cannot_be_held_is_tried_once(
    config: Config, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config.profiles_root / "builder-1" / "memory" / name
    path.write_text("zeta\n" + "x" * 2000 + "\n")
    index, query = indexer(config), SearchQuery(text="zeta")
    assert index.update(config) == 0
    assert index.search(config, query) == scan(config, query)
    with monkeypatch.context() as patched:
        patched.setattr(Indexer, "_index", lambda *_: pytest.fail("it is tried again"))
        assert index.update(config) == 0
    path.write_text("zeta\n")
    assert index.update(config) == 1
    assert index.search(config, query) == scan(config, query)
    index.close()


def test_little_is_held_however_long_a_file_is(config: Config, files: list[Path]) -> None:
    path, size = files[1], 12 << 20
    path.write_text("# Episodes\n\n" + ("-" * 999 + "\n") * (size // 1000))
    index = indexer(config)
    assert peak(lambda: index.update(config)) < size / 2
    with path.open("a") as file:
        file.write("## 10:00 UTC — checkpoint\n\nzeta\n")
    assert peak(lambda: index.update(config)) < size / 8
    assert [hit.line for hit in index.search(config, SearchQuery(text="zeta")).hits] == [size // 1000 + 5]
    index.close()


def peak(do: Callable[[], object]) -> int:
    """Bytes that Python held at most beyond what it had held."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Pieces


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a", b"a\n" * 39, b"ab\n" * 1000, b"\n" * 1000 + b"a", b"a" * 5000]
)
def test_pieces_are_whole_lines_and_together_the_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        whole = Pieces(file.fileno(), len(data))
        found = list(whole)
        assert b"".join(found) == data
        assert whole.whole
        assert all(piece.endswith(b"\n") and piece.count(b"\n") >= 40 for piece in found[:-1])
        skipped = Pieces(file.fileno(), len(data))
        skipped.skip(len(data))
        assert (skipped.digest, skipped.whole, list(skipped)) == (whole.digest, True, [b""])


def test_a_file_that_became_shorter_ends_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ab\n")
    with path.open("rb") as file:
        cut = Pieces(file.fileno(), 10)
        assert (list(cut), cut.whole) == ([b"ab\n"], False)


@pytest.mark.usefixtures("small_pieces")
def test_a_piece_that_would_be_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST", 1000)
    path = tmp_path / "file"
    path.write_bytes(b"ab\n" * 100 + b"a" * 2000)
    with path.open("rb") as file, pytest.raises(TooLongError):
        list(Pieces(file.fileno(), 2300))
