"""Random memory trees, and a search of them that shares nothing with the program: for comparison.

It is written from docs/search.md, the slow and plain way: characters one by one, every file, every line.
"""

import json
import os
import random
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from swarmmemd.config import Config

WORKERS = ("builder-1", "painter-2", "scout-3")
MISSIONS = ("mission-a", "mission-b", "m.3")
VOCABULARY = [
    *(
        "parser",
        "parse",
        "Parsers",
        "go",
        "C++",
        "foo/bar.py",
        "don't",
        "snake_case",
        "v1.2.3",
        "#123",
        "AND",
        "to",
    ),
    *("Müller", "muller", "résumé", "re\u0301sume\u0301", "Straße", "STRASSE", "ｆｕｌｌ", "ﬁle", "İstanbul"),
    *(
        "Привет",
        "мой",
        "мои",
        "ёлка",
        "Ελλάδα",
        "ΕΛΛΑΔΑ",
        "部署",
        "部署失败了",
        "昨天部署",
        "デプロイ",
        "デフロイ",
        "がっこう",
    ),
    *(
        "한국어",
        "배포가",
        unicodedata.normalize("NFD", "배포"),
        "नमस्ते",
        "สวัสดีครับ",
        "سلام",
        "שלום",
        "a",
        "—",
        "...",
        "🎉",
    ),
]
QUERIES = [
    *VOCABULARY,
    *(
        "失败",
        "部",
        "배포",
        "pars",
        "parser go",
        "go parser",
        "foo bar",
        "to parser résumé",
        "AND a",
        "'",
        '"',
        "*",
        "a b",
    ),
    *(
        "部署 go",
        "昨天部署失败",
        "NEAR(a b)",
        "title: go",
        "-go",
        "снова мой",
        "parser — go",
        "go  to",
        "swarm",
        "x" * 300,
    ),
]


def plant(base: Path, seed: int) -> Config:
    """A tree of up to three workers with every kind of memory file, the same for the same seed."""
    dice = random.Random(seed)
    config = Config(
        profiles_root=base / "profiles",
        workspace_root=base / "workspace",
        shared_root=base / "shared",
        state_dir=base / "state",
    )
    for worker in WORKERS[: dice.randint(1, 3)]:
        _worker(config, worker, dice)
    _put(config.shared_root / "handoffs" / "swarm" / "builder-1-latest.md", _prose(dice, 3), dice)
    _put(config.shared_root / "private.md", "parser go 部署 of the main session\n", dice)
    archived = config.shared_root / "swarm" / "missions" / "mission-a"
    _put(archived / "manifest.json", '{"missionId": "parser"}', dice)
    _put(archived / "builder-1" / "events.jsonl", _records("builder-1", "mission-a", dice), dice)
    return config


def _worker(config: Config, worker: str, dice: random.Random) -> None:
    profile = config.profiles_root / worker
    memory = profile / "memory"
    _put(profile / "runtime.json", "{}", dice)
    _put(profile / "memories" / "MEMORY.md", "parser go: private\n", dice)
    _put(memory / "MEMORY.md", _prose(dice, 4), dice)
    for mission in MISSIONS[: dice.randint(1, 3)]:
        _put(memory / "missions" / mission / "events.jsonl", _records(worker, mission, dice), dice)
        _put(memory / "missions" / mission / "SUMMARY.md", _prose(dice, 5), dice)
        _put(memory / "handoffs" / f"{mission}.md", _prose(dice, 3), dice)
    head = f"# Handoff — {worker} — {dice.choice(MISSIONS)}\n\n"
    _put(memory / "handoffs" / "latest.md", head + _prose(dice, 2), dice)
    day = f"2026-05-{dice.randint(1, 28):02d}"
    _put(memory / "episodes" / f"{day}.md", _episode(worker, day, dice), dice)


def _put(path: Path, text: str, dice: random.Random) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    at = dice.choice((1_777_000_000, 1_777_900_000, 1_778_000_000)) + dice.randint(0, 3)
    os.utime(path, (at, at))


def _words(dice: random.Random) -> str:
    blank = dice.choice((" ", " ", " ", "  ", "\t", ", "))
    many = dice.randint(60, 120) if dice.random() < 0.03 else dice.randint(0, 6)
    return blank.join(dice.choices(VOCABULARY, k=many))


def _prose(dice: random.Random, lines: int) -> str:
    ends = ("\n", "\n", "\r\n", "\udcff\n", "\0\n", "\n\n")
    return "".join(_words(dice) + dice.choice(ends) for _ in range(lines)) + dice.choice(("", _words(dice)))


def _records(worker: str, mission: str, dice: random.Random) -> str:
    rows = [_record(worker, mission, number, dice) for number in range(dice.randint(0, 6))]
    return "\n".join(rows) + dice.choice(("\n", "", '\n{"at": "torn parser'))


def _record(worker: str, mission: str, number: int, dice: random.Random) -> str:
    type = dice.choice(("dispatch", "checkpoint", "blocked", "note"))
    at = f"2026-05-{dice.randint(1, 9):02d}T0{dice.randint(0, 9)}:00:00.000Z"
    record = {
        "at": at,
        "type": type,
        "workerId": worker,
        "missionId": mission,
        "assignmentId": None,
        "summary": f"{_words(dice)} n{number}",
        "event": {
            "state": "DONE",
            "result": _words(dice),
            "list": [1, {"deep": _words(dice)}],
            "blocker": None,
        },
        "id": f"ev_{dice.getrandbits(60):x}",
    }
    if dice.random() < 0.3:  # another writer's
        del record["id"]
        record["note"] = str(number)
    return json.dumps(record, ensure_ascii=dice.random() < 0.5)


def _episode(worker: str, day: str, dice: random.Random) -> str:
    text = f"# Episodes — {worker} — {day}\n\n"
    for _ in range(dice.randint(0, 4)):
        time = f"{dice.randint(0, 23):02d}:{dice.randint(0, 59):02d}"
        text += f"## {time} UTC — {dice.choice(('checkpoint', 'blocked'))}\n\n"
        text += f"- Mission: {dice.choice(MISSIONS)}\n- Assignment: none\n- Summary: {_words(dice)}\n\n"
    return text


# The reference

WIDTH = 240


def reference(
    config: Config, text: str, worker: str | None = None, scope: str = "worker"
) -> list[dict[str, Any]]:
    """All hits of a query, the best first: path, line, score, at, mission, type."""
    phrase, asked = _folded(text), _pieces(_folded(text))
    if not asked:
        return []
    hits = []
    for path, owner in _files(config, worker, scope):
        rows = path.read_bytes().decode("utf-8", "replace").split("\n")
        for number, shown in enumerate(_shown(path, owner, rows), 1):
            body, at, mission, type = shown
            count, whole = _score(_folded(body), phrase, asked)
            if count:
                hit = {"path": str(path), "line": number, "score": count + 100 * whole, "at": at}
                hits.append({**hit, "mission": mission, "type": type, "text": body})
    return sorted(hits, key=lambda hit: (-hit["score"], -hit["at"], hit["path"], hit["line"]))


def snippet_is_right(snippet: str, hit: dict[str, Any], query: str) -> bool:
    """Whether a snippet is the whole line, or the piece around the first word of it that was found."""
    shown, row = snippet.replace("\\x00", "\0"), " ".join(hit["text"].split())
    if len(row) <= WIDTH:
        return shown == row
    core = shown.strip("…").strip()
    start = row.find(core)
    # Up to the blank before it: a word that is cut there would be another word.
    before, asked = row[:start].rpartition(" ")[0], _pieces(_folded(query))
    return (
        len(shown) <= WIDTH
        and start >= 0
        and shown.startswith("…") == (start > 0)
        and shown.endswith("…") == (start + len(core) < len(row))
        and _score(_folded(core), "", asked)[0] > 0
        and (not before or _score(_folded(before), "", asked)[0] == 0)
    )


def _files(config: Config, worker: str | None, scope: str) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    if scope in ("worker", "all"):
        for profile in config.profiles_root.iterdir():
            if worker in (None, profile.name):
                found += [(path, profile.name) for path in (profile / "memory").rglob("*")]
    if scope in ("shared", "all"):
        for path in (config.shared_root / "handoffs" / "swarm").glob("*"):
            found.append((path, path.name.removesuffix("-latest.md")))
        for path in (config.shared_root / "swarm" / "missions").rglob("*"):
            found.append((path, path.parent.name))
        found = [one for one in found if worker in (None, one[1])]
    return [one for one in found if one[0].is_file() and one[0].suffix in (".md", ".jsonl")]


def _shown(path: Path, owner: str, rows: list[str]) -> list[tuple[str, int, str | None, str | None]]:
    written = int(path.stat().st_mtime) * 1000
    inside = path.parts[path.parts.index("memory" if "memory" in path.parts else "shared") + 1 :]
    named = inside[inside.index("missions") + 1] if "missions" in inside else None
    if path.suffix == ".jsonl":
        return [_of_record(row, written, named) for row in rows]
    if "episodes" in inside:
        return _of_episode(path.stem, rows)
    if inside[0] == "handoffs":
        if rows[0].startswith("# Handoff — "):
            named = rows[0].split(" — ")[2].strip()
        elif not path.stem.endswith("latest"):
            named = path.stem
    return [(row, written, named, None) for row in rows]


def _of_record(row: str, written: int, named: str | None) -> tuple[str, int, str | None, str | None]:
    try:
        record = json.loads(row)
    except ValueError:
        return row, written, named, None
    values: list[str] = []

    def gather(value: Any) -> None:
        if isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                gather(one)
        elif isinstance(value, str | int) and str(value) not in values:
            values.append(str(value))

    gather(record["summary"])
    gather(record["event"])
    gather({key: value for key, value in record.items() if key not in ("summary", "event")})
    return " · ".join(values), _ms(record["at"]), record["missionId"], record["type"]


def _of_episode(day: str, rows: list[str]) -> list[tuple[str, int, str | None, str | None]]:
    at, mission, type = _ms(day), None, None
    shown: list[tuple[str, int, str | None, str | None]] = []
    for place, row in enumerate(rows):
        if row.startswith("## "):
            at, type = _ms(f"{day}T{row[3:8]}"), row.split(" — ")[1]
            mission = rows[place + 2].removeprefix("- Mission: ")
        shown.append((row, at, mission, type))
    return shown


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@cache
def _folded(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold()).casefold()
    kept: list[str] = []
    for character in apart:
        base = next((one for one in reversed(kept) if unicodedata.category(one) != "Mn"), "")
        cyrillic = "CYRILLIC" in unicodedata.name(base or "x", "")
        if "\u0300" <= character <= "\u036f" and (not cyrillic or (base == "е" and character == "\u0308")):
            continue
        kept.append(character)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


_TOGETHER = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")


@cache
def _kind(character: str) -> str:
    """`word`, `together` or nothing."""
    if character == "_" or unicodedata.category(character)[0] not in "LMN":
        return ""
    return "together" if unicodedata.name(character, "").startswith(_TOGETHER) else "word"


def _pieces(folded: str) -> list[tuple[str, str]]:
    pieces: list[tuple[str, str]] = []
    before = ""
    for character in folded:
        kind = _kind(character)
        if kind and kind == before:
            pieces[-1] = (kind, pieces[-1][1] + character)
        elif kind:
            pieces.append((kind, character))
        before = kind
    return pieces


def _score(body: str, phrase: str, asked: list[tuple[str, str]]) -> tuple[int, bool]:
    there = _pieces(body)
    plain = [word for kind, word in there if kind == "word"]
    tests: dict[str, Callable[[str], bool]] = {}
    for kind, word in asked:
        tests[word] = (
            plain.__contains__ if kind == "word" else lambda word: any(word in run for _, run in there)
        )
    if asked[-1][0] == "word":
        tests[asked[-1][1]] = lambda word: any(one.startswith(word) for one in plain)
    count = sum(test(word) for word, test in tests.items())
    starts = [place for place in range(len(body)) if body.startswith(phrase, place)]
    free = [
        place for place in starts if not (place and _kind(body[place]) == _kind(body[place - 1]) == "word")
    ]
    return count, bool(free)
