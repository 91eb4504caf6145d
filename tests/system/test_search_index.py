"""The daemon keeps the index, and searches beside it are right."""

import json
import shutil

import pytest

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
