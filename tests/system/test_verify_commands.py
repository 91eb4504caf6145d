"""`swarmmemd verify` and `swarmmemd rebuild` as commands: beside a running daemon, and without one."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Home, answered, dispatched, put_file, running, until

_WORKER, _MISSION, _OTHER = "builder-1", "mission-1", "painter-2"
_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def _worked(home: Home) -> None:
    """Two workers complete a mission each."""
    for worker, mission in ((_WORKER, _MISSION), (_OTHER, "mission-2")):
        home.write(worker, dispatched(mission))
        home.looked_at()
        home.write(worker, answered(mission, f"{worker} is done"))
        home.looked_at()
        until((home.shared / "swarm" / "missions" / mission / "manifest.json").exists, "the archive")


def _verdict(home: Home, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = home.command("verify", "--json", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"] is (code == 0)
    return found


@pytest.fixture
def worked(home: Home) -> Home:
    with running(home):
        _worked(home)
    return home


def test_beside_a_running_daemon(home: Home) -> None:
    with running(home):
        _worked(home)
        found = _verdict(home)
        assert (found["findings"], found["workers"], found["events"]) == ([], 2, len(home.events()))
        events = home.mission(_WORKER, _MISSION) / "events.jsonl"
        before = events.read_bytes()
        events.write_bytes(before.replace(b"is done", b"is gone", 1))
        (finding,) = _verdict(home, code=1)["findings"]
        assert finding["part"] == "events"
        assert (finding["path"], finding["mend"]) == (str(events), f"swarmmemd rebuild --worker {_WORKER}")
        assert finding["line"] == before[: before.index(b"is done")].count(b"\n") + 1
        done = home.command("rebuild")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{events}\n1 files made right\n"
        assert events.read_bytes() == before
        assert home.command("rebuild").stdout == "nothing to change\n"
        assert _verdict(home)["findings"] == []


def test_while_much_happens_nothing_is_found(home: Home) -> None:
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        for number in range(60):
            stamp = {"lastCheckIn": f"2026-04-24T04:{number:02d}:00.000Z"}
            home.write(_WORKER, {**answered(_MISSION, f"Row {number}", "IN_PROGRESS"), **stamp})
            if number % 12 == 0:
                assert home.command("verify").returncode == 0


def test_the_text_names_path_line_and_mend(worked: Home) -> None:
    done = worked.command("verify")
    assert done.stdout == f"2 workers, {len(worked.events())} events, 12 files: all is right\n"
    summary = worked.mission(_WORKER, _MISSION) / "SUMMARY.md"
    summary.write_text(summary.read_text().replace("- Status: complete", "- Status: blocked"))
    done = worked.command("verify")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        f"{summary}:5: Current state lacks '- Status: complete'",
        f"  swarmmemd rebuild --worker {_WORKER}",
    ]


def test_a_dry_run_shows_what_would_be_changed_and_changes_nothing(worked: Home) -> None:
    summary = worked.mission(_WORKER, _MISSION) / "SUMMARY.md"
    changed = summary.read_text().replace("- Status: complete", "- Status: blocked")
    summary.write_text(changed)
    done = worked.command("rebuild", "--dry-run")
    assert done.returncode == 0
    assert {"-- Status: blocked", "+- Status: complete", "1 files would be made right"} <= set(
        done.stdout.splitlines()
    )
    assert summary.read_text() == changed


def test_only_one_worker_or_one_mission(worked: Home) -> None:
    paths = [worked.mission(*one) / "events.jsonl" for one in ((_WORKER, _MISSION), (_OTHER, "mission-2"))]
    for path in paths:
        path.unlink()
    assert worked.command("rebuild", "--worker", _OTHER).returncode == 0
    assert [path.exists() for path in paths] == [False, True]
    paths[1].unlink()
    assert worked.command("rebuild", "--mission", _MISSION).returncode == 0
    assert [path.exists() for path in paths] == [True, False]
    assert worked.command("rebuild", "--worker", "../x").returncode == 2
    assert worked.command("rebuild", "--worker", "nobody-3").returncode == 1
    assert worked.command("rebuild", "--journal", "--worker", _WORKER).returncode == 2


def test_secrets_that_stand_in_the_shared_memory_are_found(worked: Home) -> None:
    assert _verdict(worked, "--secrets")["findings"] == []
    note = worked.shared / "notes" / "mine.md"
    put_file(note, f"one\n\nthe token is {_TOKEN}\n".encode())
    put_file(note.with_suffix(".jsonl"), json.dumps({"deep": [{"token": _TOKEN}]}).encode())
    assert _verdict(worked)["findings"] == []
    done = worked.command("verify", "--secrets", "--json")
    assert done.returncode == 1
    assert _TOKEN not in done.stdout
    found = [(one["path"], one["line"], one["what"]) for one in json.loads(done.stdout)["findings"]]
    assert found == [
        (str(note.with_suffix(".jsonl")), 1, "a secret stands here: github-token"),
        (str(note), 3, "a secret stands here: github-token"),
    ]


# The journal from the files


def test_the_journal_is_made_again_from_the_files(worked: Home) -> None:
    files = {path: path.read_bytes() for path in worked.profiles.rglob("memory/**/*.*")}
    ids = [event["id"] for event in worked.events()]
    assert worked.command("rebuild", "--journal", "--dry-run").stdout == (
        f"{len(ids)} events of 2 workers would be read back\n"
    )
    assert not list(worked.state.glob("journal-*.db"))
    done = worked.command("rebuild", "--journal")
    assert (done.returncode, done.stdout) == (0, f"{len(ids)} events of 2 workers read back\n")
    assert sorted(event["id"] for event in worked.events()) == sorted(ids)
    assert {path: path.read_bytes() for path in files} == files
    assert _verdict(worked)["findings"] == []
    (aside,) = worked.state.glob("journal-*.db")
    with closing(sqlite3.connect(aside)) as db:
        assert db.execute("SELECT count(*) FROM event").fetchone() == (len(ids),)


def test_a_running_daemon_keeps_its_journal(home: Home) -> None:
    with running(home):
        home.write(_WORKER, dispatched(_MISSION))
        home.looked_at()
        done = home.command("rebuild", "--journal")
        assert done.returncode == 75
        assert "Stop it first" in done.stderr
    assert not list(home.state.glob("journal-*.db"))


def _header_overwritten(path: Path) -> None:
    path.write_bytes(b"not a database any more!" + path.read_bytes()[24:])


def _index_without_a_row(path: Path) -> None:
    """A page in the middle is another."""
    data = path.read_bytes()
    path.write_bytes(data[: 5 * 4096] + data[7 * 4096 : 8 * 4096] + data[6 * 4096 :])


@pytest.mark.parametrize("damage", [_header_overwritten, _index_without_a_row])
def test_a_damaged_journal_is_named_and_made_again(worked: Home, damage: Any) -> None:
    damage(worked.state / "journal.db")
    found = _verdict(worked, code=1)["findings"]
    assert {one["part"] for one in found} >= {"journal"}
    assert all("rebuild --journal" in one["mend"] for one in found if one["part"] == "journal")
    assert worked.command("rebuild", "--journal").returncode == 0
    assert _verdict(worked)["findings"] == []


def test_without_a_journal_there_is_nothing_to_compare_with(home: Home) -> None:
    done = home.command("verify")
    assert (done.returncode, done.stdout) == (74, "")


def test_what_rebuild_cannot_mend_it_says_and_ends_as_verify_does(worked: Home) -> None:
    path = worked.state / "audit.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0].replace(b'"bytes":', b'"bytes":1', 1), *lines[1:]]))
    assert worked.command("verify").returncode == 1
    for options in (["--dry-run"], []):
        done = worked.command("rebuild", *options)
        assert done.returncode == 1
        assert f"{path}:1: " in done.stderr
        assert done.stdout == ""
