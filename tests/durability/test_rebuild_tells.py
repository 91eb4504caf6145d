"""What `rebuild` says of its work: what it changed, what it leaves alone and what it cannot mend."""

import shutil
from pathlib import Path

import pytest

from swarmmemd.cli.main import run
from swarmmemd.durable import Directory, Version, replace
from swarmmemd.layout import AUDIT
from tests.support.edits import Edit, edits, filled
from tests.support.trees import MISSION, WORKER, Home, flags
from tests.support.whole import OTHER, found, made_right, ours, whole


@pytest.fixture
def tree(tmp_path: Path) -> Home:
    return whole(tmp_path / "home")


def _handoff(home: Home) -> Path:
    return home.memory() / "handoffs" / f"{MISSION}.md"


def test_a_damaged_copy_of_a_handoff_is_no_new_one(tree: Home) -> None:
    path = _handoff(tree)
    before = path.read_bytes()
    for edit in edits(before):
        if edit.kind == "changed":
            continue
        path.write_bytes(edit.data)
        (finding, *_) = found(tree).findings
        assert finding.path == str(path), edit
        assert str(path) in made_right(tree).changed, edit
        assert path.read_bytes() == before, edit
        assert found(tree).findings == [], edit
    assert tree.types().count("handoff-written") == 1


def test_what_the_turn_before_made_right_counts_too(tree: Home) -> None:
    tree.summary().unlink()
    done = made_right(tree)
    assert str(tree.summary()) in done.changed
    assert made_right(tree).changed == ()


def test_a_broken_audit_log_is_said_and_is_no_success(tree: Home) -> None:
    path = tree.state / AUDIT
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    done = made_right(tree)
    assert done.changed == ()
    assert [problem.partition(" ")[0] for problem in done.problems] == [f"{path}:3:"]


@pytest.mark.parametrize("kind", ["cut", "taken out", "doubled", "swapped", "line ends"])
def test_a_line_of_any_file_is_named_and_put_right(tree: Home, kind: str) -> None:
    files = [path for path in ours(tree) if WORKER not in str(path) and path.parent.name != "memory"]
    assert len(files) > 6
    for path in files:
        before = path.read_bytes()
        wanted = [edit for edit in edits(before) if edit.kind == kind and filled(edit.data) != filled(before)]
        if kind == "line ends":
            wanted = [Edit(kind, 0, before.replace(b"\n", b"\r\n"))] if path.name != "SUMMARY.md" else []
        for edit in wanted[len(wanted) // 2 :][:1]:
            path.write_bytes(edit.data)
            assert [one for one in found(tree).findings if one.path == str(path) and one.mend], edit
            assert str(path) in made_right(tree).changed, edit
            assert path.read_bytes() == before, edit
            assert found(tree).findings == [], edit
    assert made_right(tree).changed == ()


def test_what_is_archived_of_a_profile_that_is_gone_cannot_be_made_again(
    tree: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(tree.profiles / OTHER)
    path = tree.shared / "swarm" / "missions" / MISSION / OTHER / "SUMMARY.md"
    path.unlink()
    (finding,) = found(tree).findings
    assert (finding.path, finding.mend) == (
        str(path),
        "It cannot be made again: the worker's profile is gone.",
    )
    assert run(["rebuild", "--dry-run", *flags(tree)]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"{path}:1: it is missing. It cannot be made again.\n")
    done = made_right(tree)
    assert done.changed == ()
    assert done.problems == (f"{path}:1: it is missing. It cannot be made again.",)


def test_a_copy_in_the_archive_whose_own_file_is_gone_too_is_made_again(
    tree: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tree.shared / "swarm" / "missions" / MISSION / OTHER / "SUMMARY.md"
    before = copy.read_bytes()
    copy.unlink()
    tree.summary(worker=OTHER).unlink()
    assert {finding.mend for finding in found(tree).findings} == {
        f"swarmmemd rebuild --mission {MISSION}",
        f"swarmmemd rebuild --worker {OTHER}",
    }
    assert run(["rebuild", "--dry-run", *flags(tree)]) == 0
    assert f"{copy}: would be made again" in capsys.readouterr().out
    done = made_right(tree)
    assert done.problems == ()
    assert set(done.changed) == {str(copy), str(tree.summary(worker=OTHER))}
    assert copy.read_bytes() == before


@pytest.mark.parametrize("times", [1, 100], ids=["once", "all the while"])
def test_somebody_writes_a_file_that_is_just_made_right(
    tree: Home, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree.events()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    writes = iter(range(times))

    def too_late(folder: Directory, name: str, data: bytes, expected: Version | None) -> Version:
        if next(writes, None) is not None:
            with path.open("ab") as file:
                file.write(b'{"type":"note","summary":"somebody"}\n')
        return replace(folder, name, data, expected)

    monkeypatch.setattr("swarmmemd.rebuild.replace", too_late)
    done = made_right(tree)
    assert done.problems == ((f"{path}: somebody was just writing it",) if times > 1 else ())
    assert (found(tree).findings == []) is (times == 1)
    monkeypatch.undo()
    assert made_right(tree).problems == ()
    assert found(tree).findings == []
