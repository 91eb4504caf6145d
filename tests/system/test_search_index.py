"""The daemon keeps the index, and searches beside it are right."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from swarmmemd.config import Config
from swarmmemd.recall import pieces
from swarmmemd.recall.index import Index
from swarmmemd.recall.keeper import keep
from swarmmemd.sources.file import signature
from tests.support.daemon import Home, dispatched, running, until


@pytest.mark.parametrize("ruined", [False, True])
def test_the_daemon_makes_an_index_once_it_is_worth_it(home: Home, ruined: bool) -> None:
    home.write("builder-1", dispatched("mission-1"))
    page = home.profiles / "builder-1" / "memory" / "MEMORY.md"
    page.parent.mkdir()
    page.write_text("filler of no interest\n" * 450_000 + "zeta here\n")
    index = home.state / "search.db"
    home.state.mkdir(mode=0o700)
    if ruined:
        index.write_bytes(b"no index at all " * 1000)
    with running(home):
        until(lambda: (home.state / "search.seal").exists(), "the index")
        assert index.read_bytes()[:6] == b"SQLite"
        for _ in range(2):
            done = home.command("search", "--json", "zeta")
            assert [hit["line"] for hit in json.loads(done.stdout)["results"]] == [450_001]
    shutil.rmtree(home.state)
    assert home.command("search", "zeta").returncode == 0
    assert not home.state.exists()


_WORDS = {0: "zeta", 1: "omega"}


def row(number: int) -> str:
    word = _WORDS.get(number % 7, "kappa")
    return f'{{"at":"2026-05-03T10:00:00.000Z","type":"note","missionId":"mission-1","summary":"{word} {number}"}}\n'


def entry(number: int) -> str:
    word = _WORDS.get(number % 9, "kappa")
    return f"## 10:{number % 60:02d} UTC — note\n\n- Mission: mission-1\n- Summary: {word} {number}\n\n"


def change(path: Path, how: str) -> None:
    """What agents, editors and the daemon do to a file."""
    data = path.read_bytes()
    if how == "appended":
        with path.open("a") as file:
            file.write("zeta by a person\n")
    elif how == "edited":
        with path.open("r+b") as file:
            file.seek(data.index(b"omega", len(data) // 2))
            file.write(b"zeta ")
    elif how == "truncated":
        os.truncate(path, len(data) // 3)
    else:
        aside = path.with_name(".aside")
        aside.write_bytes(data[: len(data) // 2] + b"\nzeta, and another end\n")
        aside.replace(path)


def found(home: Home, word: str, *given: str) -> list[tuple[str, int]]:
    done = home.command("search", "--json", "--limit", "1000", *given, word)
    return sorted((hit["path"], hit["line"]) for hit in json.loads(done.stdout)["results"])


def standing(paths: list[Path], word: str) -> list[tuple[str, int]]:
    """Every line in which the word stands now, found by reading them."""
    rows = ((path, enumerate(path.read_text().split("\n"), 1)) for path in paths)
    return sorted((str(path), number) for path, some in rows for number, text in some if word in text)


def test_what_grows_is_found_with_the_index_and_without_whatever_happens(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "_BLOCK", 16_000)
    home.write("builder-1", dispatched("mission-1"))
    memory = home.profiles / "builder-1" / "memory"
    events, day = memory / "missions" / "mission-1" / "events.jsonl", memory / "episodes" / "2026-05-03.md"
    for path, make in ((events, row), (day, entry)):
        path.parent.mkdir(parents=True)
        path.write_text("".join(map(make, range(2000))))
    home.state.mkdir(mode=0o700)
    config = Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )

    def is_indexed() -> bool:
        keep(config, threading.Event())
        index = Index(home.state / "search.db")
        try:
            known = index._known()
        finally:
            index.close()
        return all(known.get(str(path), (0, None))[1] == signature(path.stat()) for path in (events, day))

    def agree() -> None:
        expected = standing([events, day], "zeta")
        assert found(home, "zeta") == expected
        assert found(home, "zeta", "--state-dir", str(home.state.with_name("none"))) == expected

    until(is_indexed, "the index")
    for how in ("appended", "edited", "replaced", "truncated"):
        for path in (events, day):
            change(path, how)
        agree()
        until(is_indexed, f"the index of what was {how}")
        agree()

    ended = threading.Event()

    def append_until_it_ends() -> None:
        number = 0
        while not ended.wait(0.01):
            number += 1
            for path, make in ((events, row), (day, entry)):
                with path.open("a") as file:
                    file.write(make(number))

    change(events, "edited")
    writer = threading.Thread(target=append_until_it_ends)
    writer.start()
    try:
        keep(config, threading.Event())
    finally:
        ended.set()
        writer.join()
    agree()
    until(is_indexed, "the index of what was appended meanwhile")
    agree()
