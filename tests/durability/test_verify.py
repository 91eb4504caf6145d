"""Whatever is done to our part of any file is named by `verify` and mended by `rebuild`; what others wrote stays.

docs/contracts.md, "Verify and rebuild".
"""

import itertools
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from swarmmemd.cli.main import run
from swarmmemd.layout import JOURNAL, Place
from swarmmemd.model import MissionId
from swarmmemd.recall.parts import Examiner, Kind, Part
from swarmmemd.seam import Hook
from tests.support.faults import hooked
from tests.support.trees import CASES, MISSION, WORKER, Home, Kept, answered, dispatched, flags, story
from tests.support.whole import DAMAGE, OTHER, SECOND, calm, found, made_right, ours, whole

_IDENTITY = ("IDENTITY.md", "SOUL.md", "MEMORY.md")
_THEIRS = (
    b"- A bullet of somebody's\n",
    b"## Update \xe2\x80\x94 somebody",
    b"Seen by somebody else",
    b"The sand comes from the beach.\n",
    b"- Summary: First row laid, they say\n",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Kept]]:
    memory = Path("/dev/shm")
    base = tempfile.mkdtemp(prefix="swarmmemd-test-", dir=memory if memory.is_dir() else None)
    home = whole(Path(base) / "home")
    yield home, Kept(home)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def tree(built: tuple[Home, Kept]) -> Home:
    """The whole tree, as if nobody had touched it."""
    built[1].put_back()
    return built[0]


def _bytes(home: Home) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in ours(home)}


def _named(home: Home) -> set[str]:
    return {finding.path for finding in found(home).findings}


def _theirs(home: Home) -> list[bool]:
    everything = b"\n".join(path.read_bytes() for path in home.memory().rglob("*.*"))
    return [text in everything for text in _THEIRS]


def test_a_tree_in_which_others_write_too_is_right(tree: Home) -> None:
    verdict = found(tree)
    assert verdict.findings == []
    assert verdict.files == len(ours(tree))
    assert (verdict.workers, verdict.events) == (2, len(tree.journal()))
    assert [note.what for note in verdict.information] == ["1 line of other writers"]
    before = _bytes(tree)
    assert made_right(tree).changed == ()
    assert _bytes(tree) == before


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_file_damaged_is_named_and_mended(built: tuple[Home, Kept], damage: str) -> None:
    home, kept = built
    kept.put_back()
    nothing_left = damage in ("removed", "emptied", "filled with NULs")
    files = [path for path in ours(home) if nothing_left or path.name not in _IDENTITY]
    assert len(files) > 20
    for path in files:
        kept.put_back()
        if damage == "cut by a byte" and path == home.summary():
            continue  # its end is somebody else's
        before = path.read_bytes()
        damaged = DAMAGE[damage](before)
        path.unlink() if damaged is None else path.write_bytes(damaged)
        assert str(path) in _named(home), path
        done = made_right(home)
        assert not done.problems, path
        assert found(home).findings == [], path
        if damage == "edited":
            after = _bytes(home)
            assert made_right(home).changed == (), path
            assert _bytes(home) == after, path
        if damage in ("removed", "emptied", "cut by a byte"):
            theirs = [text in before for text in _THEIRS]
            assert any(theirs) or path.read_bytes() == before or "handoffs" in path.parts, path


@pytest.mark.parametrize("name", ["events.jsonl", "SUMMARY.md", "handoff.md", "-latest.md", ".md"])
def test_two_files_swapped_are_named_and_mended(built: tuple[Home, Kept], name: str) -> None:
    home, kept = built
    kept.put_back()
    alike = [path for path in ours(home) if path.name.endswith(name) and path.name not in _IDENTITY]
    if name == ".md":
        alike = [path for path in alike if path.parent.name in ("episodes", "handoffs")]
    for one, other in itertools.combinations(alike, 2):
        kept.put_back()
        first, second = one.read_bytes(), other.read_bytes()
        if first == second:
            continue
        one.write_bytes(second)
        other.write_bytes(first)
        assert {str(one), str(other)} & _named(home), (one, other)
        made_right(home)
        assert found(home).findings == [], (one, other)
    assert made_right(home).changed == ()


def test_what_others_wrote_stays_when_our_part_is_mended(tree: Home) -> None:
    assert all(_theirs(tree))
    for path in ours(tree):
        if path.name in _IDENTITY or tree.shared in path.parents:
            continue
        path.write_bytes(DAMAGE["edited"](path.read_bytes()) or b"")
    made_right(tree)
    assert found(tree).findings == []
    assert all(_theirs(tree))


def test_lines_in_another_order_are_put_back(tree: Home) -> None:
    before = tree.events().read_bytes()
    lines = before.splitlines(keepends=True)
    tree.events().write_bytes(b"".join([*lines[:-2], lines[-1], lines[-2]]))
    (finding,) = found(tree).findings
    assert (finding.path, finding.line) == (str(tree.events()), len(lines) - 1)
    made_right(tree)
    assert tree.events().read_bytes() == before


def test_a_line_that_stands_twice_is_taken_out(tree: Home) -> None:
    before = tree.events().read_bytes()
    tree.events().write_bytes(before + before.splitlines(keepends=True)[0])
    (finding,) = found(tree).findings
    assert finding.line == before.count(b"\n") + 1
    made_right(tree)
    assert tree.events().read_bytes() == before


def test_an_entry_that_was_removed_comes_back_in_its_place(tree: Home) -> None:
    path = tree.memory() / "episodes" / "2026-05-04.md"
    before = path.read_text()
    entries = before.split("\n\n## ")
    path.write_text("\n\n## ".join([*entries[:2], *entries[3:]]))
    assert [finding.path for finding in found(tree).findings] == [str(path)]
    made_right(tree)
    assert path.read_text() == before


def test_after_it_was_made_right_the_daemon_goes_on_where_it_was(tree: Home) -> None:
    tree.events().unlink()
    made_right(tree)
    with closing(sqlite3.connect(tree.state / JOURNAL)) as db:
        rows = db.execute(
            "SELECT inode, size FROM file WHERE worker = ? AND path LIKE ?", (WORKER, f"%{MISSION}/events%")
        )
        assert rows.fetchall() == [(tree.events().stat().st_ino, tree.events().stat().st_size)]


def _while_it_is_replaced(path: Path, write: Callable[[bytes], bytes]) -> Hook:
    """Another program has the file open, and writes into it after it was replaced."""
    opened = path.open("r+b")

    def hook(call: str, name: str) -> int | None:
        if (
            call == "fsync"
            and name.endswith(path.parent.name)
            and os.stat(path).st_ino != os.fstat(opened.fileno()).st_ino
        ):
            data = opened.read()
            opened.seek(0)
            opened.write(write(data))
            opened.close()
            hooks.clear()
        return None

    hooks = [hook]
    return lambda call, name: hooks[0](call, name) if hooks else None


def test_what_is_written_into_a_file_while_it_is_replaced_is_brought_over(tree: Home) -> None:
    line = b'{"type":"note","summary":"come late"}\n'
    lines = tree.events().read_bytes().splitlines(keepends=True)
    tree.events().write_bytes(b"".join(lines[1:]))
    with hooked(_while_it_is_replaced(tree.events(), lambda data: data + line)):
        made_right(tree)
    assert tree.events().read_bytes() == b"".join([*lines, line])
    text = tree.summary().read_bytes()
    tree.summary().write_bytes(text.replace(b"- Status: complete", b"- Status: blocked!"))
    with hooked(_while_it_is_replaced(tree.summary(), lambda data: data + b"\n## Come late\n\n- mine\n")):
        made_right(tree)
    assert tree.summary().read_bytes() == text + b"\n## Come late\n\n- mine\n"
    assert found(tree).findings == []


def test_people_may_write_between_our_lines(tree: Home) -> None:
    path = tree.memory() / "episodes" / "2026-05-04.md"
    path.write_text(path.read_text().replace("\n\n## ", "\n\nA word of mine.\n\n## "))
    tree.events().write_bytes(tree.events().read_bytes().replace(b"\n", b"\nmy own line\n"))
    text = tree.summary().read_text()
    tree.summary().write_text(text.replace("## Blockers", "- mine\n\n## My section\n\ntext\n\n## Blockers"))
    assert found(tree).findings == []
    assert made_right(tree).changed == ()  # the archive follows what people wrote
    before = _bytes(tree)
    assert made_right(tree).changed == ()
    assert _bytes(tree) == before


def test_a_link_where_a_file_should_be_is_named_and_not_followed(tmp_path: Path) -> None:
    tree = whole(tmp_path / "home")
    target = tmp_path / "elsewhere.md"
    target.write_text("not ours")
    tree.summary().unlink()
    tree.summary().symlink_to(target)
    (finding,) = found(tree).findings
    assert finding.path == str(tree.summary())
    assert made_right(tree).problems
    assert target.read_text() == "not ours"


def test_a_new_handoff_is_taken_up_and_not_overwritten(tree: Home) -> None:
    path = tree.memory() / "handoffs" / f"{MISSION}.md"
    text = f"# Handoff — {WORKER} — {MISSION}\n\n## Next exact action\n\nSomething quite different, and much longer\n"
    path.write_text(text)
    (finding,) = found(tree).findings
    assert finding.mend == "To take it up: swarmmemd once"
    made_right(tree)
    assert path.read_text() == text
    assert found(tree).findings == []
    assert tree.types().count("handoff-written") == 2


def test_an_older_text_of_ours_in_the_shared_folder_is_named_and_mended(tmp_path: Path) -> None:
    home = whole(tmp_path / "home")
    shared = home.shared / "handoffs" / "swarm" / f"{WORKER}-latest.md"
    older = shared.read_bytes()
    handed = answered("done", "HANDOFF", "All but the gate", action="Plant at the gate")
    home.put({**handed, "currentMissionId": SECOND, "lastOutputAt": 1777943000000})
    home.turn()
    calm(home)
    newer = shared.read_bytes()
    assert b"Plant at the gate" in newer != older
    shared.write_bytes(older)
    assert _named(home) == {str(shared)}
    assert made_right(home).changed == (str(shared),)
    assert shared.read_bytes() == newer
    assert found(home).findings == []


def test_a_text_that_is_displaced_is_kept_aside(tree: Home) -> None:
    path = tree.memory() / "missions" / MISSION / "handoff.md"
    edited = DAMAGE["edited"](path.read_bytes()) or b""
    path.write_bytes(edited)
    made_right(tree)
    (kept,) = (tree.state / "displaced").iterdir()
    assert kept.read_bytes() == edited
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_profile_that_is_gone_is_no_finding(tmp_path: Path) -> None:
    tree = whole(tmp_path / "home")
    shutil.rmtree(tree.profiles / OTHER)
    assert found(tree).findings == []
    assert any("the profile is gone" in note.what for note in found(tree).information)
    assert made_right(tree).changed == ()
    assert not (tree.profiles / OTHER).exists()


def test_events_that_are_not_applied_are_no_finding(tmp_path: Path) -> None:
    home = whole(tmp_path / "home")
    episode = home.memory() / "episodes" / "2026-05-05.md"
    before = episode.read_bytes()
    episode.unlink()
    episode.mkdir()
    home.put(
        dispatched(currentTask="Rake", lastDispatchAt=1777945000000, lastCheckIn="2026-05-05T01:40:00.000Z")
    )
    home.turn()
    episode.rmdir()
    episode.write_bytes(before)
    verdict = found(home)
    assert verdict.findings == []
    assert any("not in their files yet" in note.what for note in verdict.information)
    calm(home)
    verdict = found(home)
    assert verdict.findings == []
    assert not any("not in their files yet" in note.what for note in verdict.information)


def test_a_dry_run_beside_a_daemon_shows_nothing_that_is_just_being_written(
    tree: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the first look one of two files is not written yet, at the second both are there."""
    late = [tree.summary(), next(tree.shared.rglob("SUMMARY.md"))]
    contents = {path: path.read_bytes() for path in late}
    look = Examiner.read

    def read(one: Examiner, kind: Kind, root: Path, place: Place, mission: MissionId | None = None) -> Part:
        part = look(one, kind, root, place, mission)
        if part.data is None and (content := contents.pop(part.path, None)) is not None:
            part.path.write_bytes(content)
        return part

    monkeypatch.setattr(Examiner, "read", read)
    with tree.tree():
        for path in late:
            path.unlink()
        assert run(["rebuild", "--dry-run", *flags(tree)]) == 0
    assert capsys.readouterr().out == "nothing to change\n"
    assert not contents


# The journal from the files


def test_after_the_journal_was_made_again_the_tree_is_right(tree: Home) -> None:
    before = _bytes(tree)
    tree.delete_journal()
    calm(tree)
    assert found(tree).findings == []
    assert {name: data for name, data in _bytes(tree).items() if name in before} == before


@pytest.mark.parametrize("damage", ["removed", "edited"])
def test_a_tree_that_was_damaged_before_its_journal_was_lost(built: tuple[Home, Kept], damage: str) -> None:
    home, kept = built
    kept.put_back()
    for path in [path for path in ours(home) if path.name not in (*_IDENTITY, "events.jsonl")]:
        kept.put_back()
        home.delete_journal()
        damaged = DAMAGE[damage](path.read_bytes())
        path.unlink() if damaged is None else path.write_bytes(damaged)
        calm(home)
        made_right(home)
        assert found(home).findings == [], path
        assert made_right(home).changed == ()


# The audit log


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut in half", "cut by a byte", "filled with NULs"])
def test_the_audit_log_damaged_is_named(tree: Home, damage: str) -> None:
    path = tree.state / "audit.jsonl"
    damaged = DAMAGE[damage](path.read_bytes())
    path.unlink() if damaged is None else path.write_bytes(damaged)
    assert {finding.part for finding in found(tree).findings} == {"audit"}
    assert _named(tree) == {str(path)}


def test_each_line_of_the_audit_log_edited_is_named(tree: Home) -> None:
    path = tree.state / "audit.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        path.write_bytes(
            b"".join([*lines[:at], line.replace(b'"bytes":', b'"bytes":1', 1), *lines[at + 1 :]])
        )
        assert {finding.line for finding in found(tree).findings} == {at + 1}


# Beside another writer


def test_a_memory_that_another_writer_began_is_right(tmp_path: Path) -> None:
    """Its lines are read back at the first meeting; its entries are no entries of ours, and its end is torn."""
    home = Home(tmp_path / "home")
    mission = home.events(MissionId("mission-mo4d0030-aaaaaa")).parent
    shutil.copytree(CASES / "memory" / "episodes", home.memory() / "episodes")
    mission.mkdir(parents=True)
    for name in ("SUMMARY.md", "events.jsonl"):
        shutil.copy(CASES / "memory" / name, mission / name)
    theirs = (mission / "events.jsonl").read_bytes()
    for content in story():
        home.put(content)
        home.turn()
    assert found(home).findings == []
    assert made_right(home).changed == ()
    assert (mission / "events.jsonl").read_bytes() == theirs
    (mission / "events.jsonl").unlink()
    made_right(home)
    assert found(home).findings == []
    assert made_right(home).changed == ()
