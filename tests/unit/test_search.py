"""Search finds what stands in the files now, and ranks it as docs/search.md says."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swarmmemd.recall.search import SearchQuery, scan
from swarmmemd.recall.suspicion import could_hold_secret
from swarmmemd.recall.words import WIDTH, Matcher, as_it_is, fold, odd, parse_query, snippet
from tests.support.memories import QUERIES, VOCABULARY, WORKERS, plant, reference, snippet_is_right
from tests.support.secrets import positives


def matches(query: str, text: str) -> bool:
    return Matcher(parse_query(query)).match(fold(text)) is not None


@pytest.mark.parametrize("seed", range(200))
def test_ranks_as_the_reference_does(tmp_path: Path, seed: int) -> None:
    config = plant(tmp_path, seed)
    dice = random.Random(seed)
    for text in [*dice.sample(QUERIES, 4), " ".join(dice.choices(VOCABULARY, k=3))]:
        worker, scope = dice.choice((None, None, *WORKERS)), dice.choice(("worker", "shared", "all"))
        expected = reference(config, text, worker, scope)
        found = scan(config, SearchQuery(text=text, worker=worker, scope=scope, limit=1000)).hits
        shown = [(hit.path, hit.line, hit.score, hit.at, hit.mission, hit.type) for hit in found]
        keys = ("path", "line", "score", "at", "mission", "type")
        assert shown == [tuple(hit[key] for key in keys) for hit in expected], (text, worker, scope)
        wrong = [
            hit.snippet
            for hit, one in zip(found, expected, strict=True)
            if not snippet_is_right(hit.snippet, one, text)
        ]
        assert wrong == [], text
        first = scan(config, SearchQuery(text=text, worker=worker, scope=scope, limit=3)).hits
        assert first == found[:3]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("PARSER", "the parser"),
        ("pars", "the Parser"),
        ("go", "Go to it"),
        ("resume", "son résumé"),
        ("résumé", "resume"),
        ("STRASSE", "straße"),
        ("ＦＵＬＬ", "full"),
        ("Ελλαδα", "ΕΛΛΆΔΑ"),
        ("елка", "Ёлка"),
        ("Привет", "ПРИВЕТ, мир"),
        ("失败", "昨天部署失败了"),
        ("部", "部署"),
        ("배포", "배포가 끝났다"),
        ("がっこう", "か\u3099っこう"),
        ("ครับ", "สวัสดีครับ"),
        ("नमस्ते", "नमस्ते दुनिया"),
        ("don't", "they don't"),
        ("C++", "in C++ or C"),
        ("case", "snake_case"),
        ("AND", "this and that"),
        ("a\x00b", "b"),
    ],
)
def test_what_is_found(query: str, text: str) -> None:
    assert matches(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("parser", "parse"),
        ("arse", "parser"),
        ("pars it", "parser"),
        ("мой", "мои"),
        ("署部", "部署"),
        ("がっこう", "かっこう"),
        ("*", "anything"),
        ("'", "don't"),
        ("NOT x", "no"),
    ],
)
def test_what_is_not_found(query: str, text: str) -> None:
    assert not matches(query, text)


def test_the_whole_phrase_comes_first_then_more_words_then_the_newest(tmp_path: Path) -> None:
    config = plant(tmp_path, 1)
    page = config.profiles_root / "builder-1" / "memory" / "MEMORY.md"
    page.write_text("zeta alone\nomega zeta\nzeta omega, twice zeta\nbezeta omega\nomega\n")
    os.utime(page.with_name("MEMORY.md"), (1_800_000_000, 1_800_000_000))
    found = scan(config, SearchQuery(text="zeta omega")).hits
    assert [(hit.line, hit.score) for hit in found] == [(3, 102), (2, 2), (1, 1), (4, 1), (5, 1)]


def test_a_snippet_shows_the_first_word_that_was_found() -> None:
    query = parse_query("zeta")
    assert snippet("  a \t zeta\x00  ", query) == "a zeta\x00"
    for before in (0, 10, 100, 1000):
        for after in (0, 10, 100, 1000):
            text = f"{'alpha ' * before}ZÉTA{' omega' * after}"
            shown = snippet(text, query)
            assert len(shown) <= WIDTH
            assert "ZÉTA" in shown
            assert shown.strip("…").strip() in text
            assert shown.startswith("…") == (not text.startswith(shown.strip("…")))
            assert shown.endswith("…") == (not text.endswith(shown.strip("…")))
    assert len(snippet("部" * 10_000 + "失败", parse_query("失败"))) <= WIDTH


# What stands beside it


def test_another_writer_s_copy_of_our_record_is_found_once(tmp_path: Path) -> None:
    config = plant(tmp_path, 1)
    file = config.profiles_root / "builder-1" / "memory" / "missions" / "mission-z" / "events.jsonl"
    ours = {
        "at": "2026-05-04T10:00:00.000Z",
        "type": "checkpoint",
        "workerId": "builder-1",
        "missionId": "mission-z",
        "assignmentId": "assign-1",
        "summary": "Zeppelin moored",
        "event": {"state": "DONE", "result": "Zeppelin moored"},
        "id": "ev_1",
    }
    theirs = {**ours, "at": "2026-05-04T10:00:09.000Z", "event": {"stateLabel": "DONE", "zone": "harbour"}}
    del theirs["id"]
    file.parent.mkdir()
    file.write_text("".join(json.dumps(record) + "\n" for record in (theirs, ours, theirs)))
    assert [hit.line for hit in scan(config, SearchQuery(text="zeppelin")).hits] == [2]
    assert [hit.line for hit in scan(config, SearchQuery(text="harbour")).hits] == [1, 3]


@pytest.mark.parametrize("number", ["1e3", "1.50", "0.00001", "123456789.1234567890123", "1E400", "-0.0"])
@pytest.mark.parametrize("beside", ["", "halved \\ud83e"])
def test_a_number_is_found_as_it_was_written(tmp_path: Path, number: str, beside: str) -> None:
    config = plant(tmp_path, 1)
    page = config.profiles_root / "builder-1" / "memory" / "numbers.jsonl"
    page.write_text(
        f'{{"at": "2026-05-04T10:00:00Z", "summary": "took {beside}", "event": {{"took": {number}}}}}\n'
    )
    hit, *_ = scan(config, SearchQuery(text=number, scope="all")).hits
    assert (Path(hit.path).name, hit.score > 100, number in hit.snippet) == ("numbers.jsonl", True, True)


def test_filters(tmp_path: Path) -> None:
    config = plant(tmp_path, 3)
    for text in ("parser go", "done", "部署"):
        everything = reference(config, text)
        wanted: list[tuple[SearchQuery, Callable[[dict[str, Any]], bool]]] = [
            (
                SearchQuery(text=text, mission="mission-a", limit=1000),
                lambda hit: hit["mission"] == "mission-a",
            ),
            (SearchQuery(text=text, type="checkpoint", limit=1000), lambda hit: hit["type"] == "checkpoint"),
            (
                SearchQuery(text=text, since=1_777_950_000_000, limit=1000),
                lambda hit: hit["at"] >= 1_777_950_000_000,
            ),
        ]
        for query, holds in wanted:
            found = [(hit.path, hit.line) for hit in scan(config, query).hits]
            assert found == [(hit["path"], hit["line"]) for hit in everything if holds(hit)]


def test_only_workers_and_only_the_swarm_s_part_of_the_shared_folder(tmp_path: Path) -> None:
    config = plant(tmp_path, 2)
    private = config.profiles_root / "private" / "memory" / "MEMORY.md"
    private.parent.mkdir(parents=True)
    private.write_text("quetzal\n")
    for place in (
        config.shared_root / "2026-05-01.md",
        config.profiles_root / "builder-1" / "MEMORY.md",
        config.profiles_root / "builder-1" / "memory" / ".hidden.md",
        config.profiles_root / "builder-1" / "memory" / "notes.txt",
    ):
        place.write_text("quetzal\n")
    query = SearchQuery(text="quetzal", scope="all")
    assert scan(config, query).hits == ()
    config.workspace_root.mkdir()
    (config.workspace_root / "swarm.yaml").write_text("workers: [{id: private}]\n")
    assert [hit.worker for hit in scan(config, query).hits] == ["private"]


def test_no_link_is_followed_and_no_device_is_read(tmp_path: Path) -> None:
    config = plant(tmp_path, 2)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("quetzal\n")
    memory = config.profiles_root / "builder-1" / "memory"
    (memory / "link.md").symlink_to(outside / "secret.md")
    (memory / "folder").symlink_to(outside)
    (memory / "loop").symlink_to(memory)
    os.mkfifo(memory / "pipe.md")
    (config.profiles_root / "painter-9").mkdir()
    (config.profiles_root / "painter-9" / "runtime.json").write_text("{}")
    (config.profiles_root / "painter-9" / "memory").symlink_to(outside)
    found = scan(config, SearchQuery(text="quetzal", scope="all"))
    assert found.hits == ()
    assert [trouble for trouble in found.troubles if "painter-9" in trouble.text]


def test_hostile_files_do_no_harm(tmp_path: Path) -> None:
    config = plant(tmp_path, 2)
    memory = config.profiles_root / "builder-1" / "memory"
    deep = memory.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    (deep / "far.md").write_text("quetzal\n")
    (memory / "long.md").write_bytes(b"x" * 3_000_000 + b" quetzal\n")
    (memory / "nested.jsonl").write_text(
        "[" * 100_000 + '\n{"a":' * 3 + "\n" + '{"a":' * 100_000 + ' "quetzal"\n'
    )
    (memory / "halved.jsonl").write_text(
        '{"summary": "quetzal \\ud83e", "at": "nonsense", "type": ["note"]}\n'
    )
    (memory / "binary.md").write_bytes(bytes(range(256)) + b"\nquetzal \x1b[2J\xff\n")
    found = scan(config, SearchQuery(text="quetzal")).hits
    assert sorted(Path(hit.path).name for hit in found) == [
        "binary.md",
        "halved.jsonl",
        "long.md",
        "nested.jsonl",
    ]
    assert all(len(hit.snippet) < 1000 and "\x1b" not in hit.snippet for hit in found)


def test_context_is_the_lines_around(tmp_path: Path) -> None:
    config = plant(tmp_path, 2)
    page = config.profiles_root / "builder-1" / "memory" / "MEMORY.md"
    page.write_text("one\ntwo\nquetzal\nfour\nfive\n")
    (hit,) = scan(config, SearchQuery(text="quetzal", context=1)).hits
    assert hit.context == ((2, "two"), (4, "four"))


def test_what_is_looked_for_as_it_is_cannot_hide_in_another_character() -> None:
    """The quick look at the bytes of a file passes over no character that folds to one of a plain word."""
    hidden = []
    for code in (*range(0x80, 0xD800), *range(0xE000, 0x1_0000), *range(0x1_D400, 0x1_D800)):
        character = chr(code)
        made = set(fold(character)) - {character}
        if any(one.isalnum() and as_it_is(one) for one in made) and not odd().search(character.encode()):
            hidden.append(f"{code:04x}")
    assert hidden == []


def test_a_secret_that_is_found_is_not_shown(tmp_path: Path) -> None:
    config = plant(tmp_path, 2)
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    page = config.profiles_root / "builder-1" / "memory" / "MEMORY.md"
    page.write_text(f"one {token}\n{'x ' * 50_000}quetzal {token} {'y ' * 50_000}\nthree {token}\n")
    (hit,) = scan(config, SearchQuery(text="quetzal", context=1)).hits
    assert "quetzal [REDACTED:github-token]" in hit.snippet
    assert [text for _, text in hit.context] == [
        "one [REDACTED:github-token]",
        "three [REDACTED:github-token]",
    ]
    assert [one.line for one in scan(config, SearchQuery(text=token)).hits] == [1, 2, 3]


def test_every_secret_of_the_corpus_is_suspicious() -> None:
    assert [one for one in positives() if not could_hold_secret(one.text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Parser merged, 41 tests green · DONE · checkpoint · mission-mo5a0001-aaaaaa · 2026-04-28T00:00:00.000Z",
        "- Summary: DONE: see src/module7/file12.py",
        "## 07:38 UTC — checkpoint",
    ],
)
def test_what_is_said_every_day_needs_no_rules(text: str) -> None:
    assert not could_hold_secret(text)
