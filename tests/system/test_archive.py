"""The shared folder beside a real daemon: what is archived, that it is redacted, and the identity files."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Home, answered, dispatched, put_file, running, until
from tests.support.secrets import Positive, positives

_CASES = Path(__file__).parent.parent / "cases"
_MISSION = "mission-1"
_WORKERS = ("builder-1", "scout-2")


def _ledger(
    home: Home, state: str, title: str = "Open the harbour", updated: int = 1_777_890_000_000
) -> None:
    assignments = [{"id": "assign-1", "workerId": worker, "task": "Work"} for worker in _WORKERS]
    times = {"createdAt": 1_777_885_200_000, "updatedAt": updated}
    mission = {"id": _MISSION, "title": title, "state": state, **times, "assignments": assignments}
    put_file(home.ledger, json.dumps({"version": 1, "missions": [mission]}).encode())


def _archive(home: Home) -> Path:
    return home.shared / "swarm" / "missions" / _MISSION


def _manifest(home: Home) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_archive(home) / "manifest.json").read_text())
    return found


def _completed(home: Home) -> None:
    """Two workers work and the ledger completes their mission."""
    _ledger(home, "executing")
    for worker in _WORKERS:
        home.write(worker, dispatched(_MISSION))
    home.looked_at()
    for worker in _WORKERS:
        home.write(worker, answered(_MISSION, f"{worker} is done"))
    home.looked_at()
    _ledger(home, "complete")
    home.looked_at()
    until(
        lambda: (_archive(home) / "manifest.json").exists() and len(_manifest(home)["workers"]) == 2,
        "the archive",
    )


def _bytes(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_a_completed_mission_is_archived_with_its_manifest(home: Home) -> None:
    with running(home):
        _completed(home)
        found = _manifest(home)
    assert (found["missionId"], found["title"], found["status"]) == (_MISSION, "Open the harbour", "complete")
    assert found["workers"] == sorted(_WORKERS)
    assert found["archivedAt"] == "2026-05-04T10:20:00.000Z"
    names = {file["path"] for file in found["files"]}
    assert {f"{worker}/{name}" for worker in _WORKERS for name in ("SUMMARY.md", "events.jsonl")} <= names
    for file in found["files"]:
        data = (_archive(home) / file["path"]).read_bytes()
        assert (file["sha256"], file["bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))


def test_archiving_again_changes_nothing(home: Home) -> None:
    with running(home):
        _completed(home)
        home.looked_at()
        before = _bytes(_archive(home))
        assert home.command("archive", _MISSION).returncode == 0
        assert _bytes(_archive(home)) == before
        assert home.command("archive", "mission-unknown").returncode == 1
    assert home.command("archive", _MISSION).returncode == 0
    assert _bytes(_archive(home)) == before
    assert home.command("archive", "../../x").returncode == 2


def test_an_archive_that_was_lost_is_made_again_by_hand(home: Home) -> None:
    with running(home):
        _completed(home)
    before = {name: data for name, (data, _) in _bytes(_archive(home)).items()}
    shutil.rmtree(_archive(home))
    assert home.command("archive", _MISSION).returncode == 0
    assert {name: data for name, (data, _) in _bytes(_archive(home)).items()} == before


def _one_of_each_kind() -> dict[str, Positive]:
    """A text of one line of each kind."""
    found: dict[str, Positive] = {}
    for positive in positives():
        if positive.text.isprintable():
            found.setdefault(positive.kind, positive)
    return found


@pytest.mark.parametrize("local", [False, True])
def test_no_secret_reaches_the_shared_folder(home: Home, local: bool) -> None:
    kinds = _one_of_each_kind()
    text = "\n\n".join(positive.text for positive in kinds.values())
    handoff = f"# Handoff — builder-1 — {_MISSION}\n\n## Next exact action\n\n{text}\n"
    first = next(iter(kinds.values())).text
    flags = ["--redact-local"] if local else []
    with running(home, *flags):
        _ledger(home, "executing", title=f"The harbour {first}")
        home.write("builder-1", dispatched(_MISSION, task=text))
        home.looked_at()
        put_file(home.profiles / "builder-1" / "memory" / "handoffs" / "latest.md", handoff.encode())
        shared = home.shared / "handoffs" / "swarm" / "builder-1-latest.md"
        until(shared.exists, "the shared handoff")
        fields = {"lastResult": text, "checkpointRaw": None}
        home.write("builder-1", {**answered(_MISSION, "done"), **fields})
        home.looked_at()
        _ledger(home, "complete", title=f"The harbour {first}")
        home.looked_at()
        until((_archive(home) / "manifest.json").exists, "the archive")
    everything = b"".join(p.read_bytes() for p in home.shared.rglob("*") if p.is_file())
    own = b"".join(p.read_bytes() for p in (home.profiles / "builder-1" / "memory" / "missions").rglob("*.*"))
    for kind, positive in kinds.items():
        assert f"[REDACTED:{kind}]".encode() in everything, kind
        assert positive.secret.encode() not in everything, kind
        assert (positive.secret.encode() in own) is not local, kind


def test_a_secret_at_the_place_of_a_cut_is_whole_or_absent_in_the_shared_folder(home: Home) -> None:
    """Values are shortened for a line of Markdown and for a record; redaction comes later."""
    token = next(one.secret for one in positives() if one.kind == "github-token" and len(one.secret) == 40)
    lengths = (1_930, 1_955, 1_980, 64_000)
    with running(home):
        for length in lengths:
            mission, words = f"mission-{length}", ("word " * length)[: length - 2]
            result = f"{words}. {token} and {words}"
            home.write(
                "builder-1", dispatched(mission, task=result, lastDispatchAt=1_777_000_000_000 + length)
            )
            home.looked_at()
            for state in ("HANDOFF", "DONE"):
                home.write(
                    "builder-1", answered(mission, result, state, lastDispatchAt=1_777_000_000_000 + length)
                )
                home.looked_at()
            archive = home.shared / "swarm" / "missions" / mission
            until((archive / "manifest.json").exists, "the archive")
    everything = "".join(p.read_text() for p in sorted(home.shared.rglob("*")) if p.is_file())
    assert everything.count("[cut, ") > 8
    assert token[:10] not in everything
    own = home.profiles / "builder-1" / "memory" / "missions" / "mission-1930" / "events.jsonl"
    assert token in own.read_text()


def test_identity_files_are_made_from_the_roster_and_never_overwritten(home: Home) -> None:
    shutil.copy(_CASES / "roster" / "swarm.yaml", home.workspace / "swarm.yaml")
    memory = home.profiles / "builder-1" / "memory"
    memory.mkdir(parents=True)
    for name in ("IDENTITY.md", "SOUL.md"):
        shutil.copy(_CASES / "memory" / name, memory / name)
    for private in ("MEMORY.md", "USER.md"):
        (home.profiles / "builder-1" / private).write_text("private to this profile")
    for worker in ("builder-1", "scout-2", "stranger"):
        home.write(worker, dispatched(_MISSION))
    with running(home):
        home.looked_at()
    identity = (memory / "IDENTITY.md").read_text()
    assert "- Role: Builder\n" in identity
    assert "Unassigned" not in identity
    assert (memory / "SOUL.md").read_bytes() == (_CASES / "memory" / "SOUL.md").read_bytes()
    assert (memory / "MEMORY.md").read_text().startswith("# Memory — builder-1\n\n## Role\n")
    assert "publish" not in (memory / "SOUL.md").read_text()
    assert (home.profiles / "scout-2" / "memory" / "SOUL.md").exists()
    assert not (home.profiles / "stranger" / "memory" / "SOUL.md").exists()
    written = [p for root in (home.profiles, home.shared) for p in root.rglob("*") if p.is_file()]
    copies = [p for p in written if p.read_bytes() == b"private to this profile"]
    assert len(copies) == 2, "a profile's own memory is copied nowhere"


def test_an_archive_that_cannot_be_written_ends_no_daemon(home: Home) -> None:
    with running(home) as daemon:
        _completed(home)
        shutil.rmtree(_archive(home))
        _archive(home).write_text("no folder")
        done = home.command("archive", _MISSION)
        assert (done.returncode, done.stdout) == (74, "")
        assert str(_archive(home)) in done.stderr
        _archive(home).unlink()
        assert home.command("archive", _MISSION).returncode == 0
        assert daemon.running()
    assert _manifest(home)["workers"] == sorted(_WORKERS)


def test_identity_files_come_with_the_roster_and_come_back(home: Home) -> None:
    files = [home.profiles / "builder-1" / "memory" / f"{name}.md" for name in ("IDENTITY", "SOUL", "MEMORY")]
    (home.profiles / "builder-1").mkdir()
    with running(home):
        home.looked_at()
        put_file(home.workspace / "swarm.yaml", b"workers:\n  - id: builder-1\n    name: Bo\n")
        until(lambda: all(path.exists() for path in files), "the files of a worker that was never met")
        put_file(
            home.workspace / "swarm.yaml", b"workers:\n  - id: builder-1\n    name: Bo\n    role: Mason\n"
        )
        until(lambda: "- Role: Mason\n" in files[0].read_text(), "what was not assigned before")
        files[1].unlink()
        home.looked_at()
        until(files[1].exists, "the one that was deleted")
        files[2].unlink()
        home.write("builder-1", dispatched(_MISSION))
        until(files[2].exists, "the one that was deleted, after a dispatch")
    assert not list(home.shared.rglob("*.md"))


def test_an_edited_summary_comes_into_the_archive(home: Home) -> None:
    with running(home, "--sweep-directories-s", "1"):
        _completed(home)
        summary = home.mission("builder-1", _MISSION) / "SUMMARY.md"
        text = summary.read_text().replace("## Decisions\n", "## Decisions\n\n- Bigger stones\n")
        put_file(summary, text.encode())
        copy = _archive(home) / "builder-1" / "SUMMARY.md"
        until(lambda: "- Bigger stones" in copy.read_text(), "the decision in the archive")


def test_what_is_asked_for_is_archived_at_once_though_the_mission_is_at_work_again(home: Home) -> None:
    with running(home):
        _completed(home)
        home.write("builder-1", dispatched(_MISSION, "Paint it again", lastDispatchAt=1_777_895_000_000))
        until(lambda: home.types("builder-1").count("dispatch") == 2, "the second dispatch")
        asked = home.command("once")
        assert (asked.returncode, asked.stderr) == (0, "")
        own = home.mission("builder-1", _MISSION) / "events.jsonl"
        assert (_archive(home) / "builder-1" / "events.jsonl").read_bytes() == own.read_bytes()
