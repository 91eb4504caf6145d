"""What every source that is one file keeps to: `runtime.json`, the ledger and the roster alike.

Real files, a clock that the test turns. docs/contracts.md, "Sources".
"""

import errno
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from swarmmemd.model import Absent, Unreadable
from swarmmemd.sources.document import SIZE_LIMIT
from swarmmemd.sources.file import FileSource, Unchanged, read_still
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.roster import parse_roster
from swarmmemd.sources.runtime import parse_runtime

OLD = 1_777_885_200.0
"""The time of day at which the files of these tests were written, s."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of source: how it is read, a document for a word, and that word in a value."""

    name: str
    parse: Callable[[bytes, int], Any]
    document: Callable[[str], bytes]
    word: Callable[[Any], str]
    broken: tuple[bytes, ...]


def _runtime(word: str) -> bytes:
    return json.dumps({"checkpointStatus": "none", "phase": word}).encode()


def _ledger(word: str) -> bytes:
    return json.dumps({"missions": [{"id": "mission-a", "state": "executing", "title": word}]}).encode()


def _roster(word: str) -> bytes:
    return f"version: 1\nworkers:\n  - id: builder-1\n    name: [{word}, 1]\n".replace(
        f"[{word}, 1]", json.dumps(word)
    ).encode()


KINDS = [
    Kind("runtime.json", parse_runtime, _runtime, lambda value: str(value.phase), (b"null", b"[]", b"{} x")),
    Kind(
        "swarm-missions.json",
        parse_ledger,
        _ledger,
        lambda value: str(next(iter(value.missions.values())).title),
        (b"null", b"[]", b"{}", b'{"missions": {}}'),
    ),
    Kind(
        "swarm.yaml",
        parse_roster,
        _roster,
        lambda value: str(next(iter(value.values())).name),
        (b"null", b"[]", b"workers:", b"workers: {}"),
    ),
]


class Stage:
    """A source of some kind and its file; `now` and `wall` are the clocks."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind = kind
        self.path = folder / kind.name
        self.source: FileSource[Any] = FileSource(kind.name, self.path, kind.parse)
        self.now = 1000.0
        self.wall = OLD + 3600.0
        self._written = OLD

    def write(self, data: bytes) -> None:
        """Writes in place, as most writers do, a second after the last time."""
        self.path.write_bytes(data)
        self._written += 1.0
        os.utime(self.path, (self._written, self._written))

    def put(self, word: str) -> None:
        self.write(self.kind.document(word))

    def look(self) -> Any:
        return self.source.look(self.now, self.wall)

    def later(self, seconds: float) -> Any:
        self.now += seconds
        self.wall += seconds
        return self.look()

    def sees(self, word: str) -> bool:
        return self.kind.word(self.look()) == word


@pytest.fixture(params=KINDS, ids=[kind.name for kind in KINDS])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(request.param, tmp_path)


def read_once(stage: Stage) -> None:
    stage.put("first")
    assert stage.sees("first")
    assert stage.source.value is not None


def still_first(stage: Stage) -> bool:
    return stage.kind.word(stage.source.value) == "first"


# Values


def test_a_value_is_shown_once_and_then_unchanged(stage: Stage) -> None:
    read_once(stage)
    assert stage.look() == Unchanged()
    assert stage.later(3600.0) == Unchanged()
    assert (stage.source.due, stage.source.trouble) == (None, None)


def test_a_new_content_is_a_new_value(stage: Stage) -> None:
    read_once(stage)
    stage.put("second")
    assert stage.sees("second")
    assert stage.look() == Unchanged()


def test_a_replaced_file_is_a_new_value(stage: Stage) -> None:
    read_once(stage)
    aside = stage.path.with_name("aside.tmp")
    aside.write_bytes(stage.kind.document("second"))
    aside.rename(stage.path)
    assert stage.sees("second")


def test_equal_content_that_was_written_again_is_unchanged(stage: Stage) -> None:
    read_once(stage)
    stage.put("first")
    assert stage.source.changed()
    assert stage.look() == Unchanged()
    assert not stage.source.changed()


def test_content_that_changed_and_changed_back_between_two_looks_is_unchanged(stage: Stage) -> None:
    read_once(stage)
    stage.put("second")
    stage.put("first")
    assert stage.look() == Unchanged()


def test_a_forgotten_source_shows_its_value_once_more(stage: Stage) -> None:
    read_once(stage)
    stage.source.forget()
    assert stage.sees("first")


def test_a_young_file_is_read_once_more(stage: Stage) -> None:
    """Within one tick of the file's clock it can change again without another time."""
    stage.put("first")
    stage.wall = OLD + 1.01
    assert stage.sees("first")
    assert stage.source.due == pytest.approx(stage.now + 0.02)
    found = stage.path.stat()
    stage.path.write_bytes(stage.kind.document("tsrif"))
    os.utime(stage.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    stage.now, stage.wall = stage.now + 0.02, stage.wall + 0.02
    assert stage.sees("tsrif")
    assert stage.source.due is None


def test_a_file_from_the_future_is_not_young_for_ever(stage: Stage) -> None:
    stage.put("first")
    stage.wall = OLD - 1000.0
    assert stage.sees("first")
    assert stage.source.due is None


# Unreadable content

CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "blank": lambda good: b" \n\t\n",
    "NUL": lambda good: b"\0" * len(good),
    "NUL-tail": lambda good: good + b"\0" * 8,
    "non-UTF-8": lambda good: good.replace(b"first", b"fir\xff\xfest"),
    "cut-character": lambda good: good + b"# \xc3",
    "too-long": lambda good: good + b" " * (SIZE_LIMIT + 1 - len(good)),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_content_that_cannot_be_believed_is_unreadable_and_the_last_value_stays(
    stage: Stage, content: str
) -> None:
    read_once(stage)
    stage.write(CONTENTS[content](stage.kind.document("first")))
    found = stage.look()
    assert isinstance(found, Unreadable)
    assert found.reason
    assert stage.source.trouble == found
    assert still_first(stage)


def test_half_a_file_is_unreadable_wherever_it_ends(stage: Stage) -> None:
    read_once(stage)
    whole = stage.kind.document("first")
    ends = range(1, len(whole)) if stage.kind.name != "swarm.yaml" else range(1, whole.index(b"- id"))
    for end in ends:
        stage.write(whole[:end])
        assert isinstance(stage.look(), Unreadable), whole[:end]
        assert still_first(stage)


def test_another_shape_is_unreadable(stage: Stage) -> None:
    read_once(stage)
    for data in stage.kind.broken:
        stage.write(data)
        assert isinstance(stage.look(), Unreadable), data
        assert still_first(stage)


def test_a_file_of_exactly_the_limit_is_read(stage: Stage) -> None:
    good = stage.kind.document("first")
    stage.write(good + b"\n" * (SIZE_LIMIT - len(good)))
    assert stage.sees("first")


def test_a_file_that_cannot_be_read_is_tried_again_with_growing_waits(stage: Stage) -> None:
    stage.write(b"")
    waits: list[float] = []
    for _ in range(15):
        assert isinstance(stage.look(), Unreadable)
        assert stage.source.due is not None
        waits.append(round(stage.source.due - stage.now, 6))
        stage.now = stage.source.due
    assert waits == [0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    assert stage.source.failing_since == 1000.0


def test_waits_begin_anew_after_a_good_look(stage: Stage) -> None:
    stage.write(b"")
    for _ in range(4):
        stage.later(1.0)
    read_once(stage)
    assert (stage.source.due, stage.source.trouble, stage.source.failing_since) == (None, None, None)
    stage.write(b"")
    stage.look()
    assert stage.source.due == pytest.approx(stage.now + 0.02)
    assert stage.source.failing_since == stage.now


def test_a_file_that_is_whole_again_gives_its_new_value(stage: Stage) -> None:
    read_once(stage)
    stage.write(b"")
    stage.look()
    stage.put("second")
    assert stage.sees("second")


def test_a_file_that_is_whole_again_with_the_old_content_is_unchanged(stage: Stage) -> None:
    read_once(stage)
    stage.write(b"")
    stage.look()
    stage.put("first")
    assert stage.look() == Unchanged()
    assert stage.source.trouble is None


# Missing files


def test_a_file_is_missing_only_after_a_second(stage: Stage) -> None:
    assert isinstance(stage.look(), Unreadable)
    assert stage.source.due == stage.now + 1.0
    assert isinstance(stage.later(0.9), Unreadable)
    assert stage.later(0.1) == Absent()
    assert stage.source.due is None
    assert stage.later(3600.0) == Absent()


def test_a_delete_in_the_middle_of_a_save_is_no_absence(stage: Stage) -> None:
    read_once(stage)
    stage.path.unlink()
    assert isinstance(stage.look(), Unreadable)
    stage.put("second")
    assert stage.kind.word(stage.later(0.5)) == "second"
    stage.path.unlink()
    assert isinstance(stage.later(0.9), Unreadable)


def test_a_file_that_is_gone_keeps_its_last_value_and_is_shown_when_it_comes_back(stage: Stage) -> None:
    read_once(stage)
    stage.path.unlink()
    stage.look()
    assert stage.later(1.0) == Absent()
    assert still_first(stage)
    stage.put("first")
    assert stage.sees("first")


def test_a_missing_folder_is_a_missing_file(tmp_path: Path) -> None:
    source = FileSource("runtime.json", tmp_path / "nowhere" / "runtime.json", parse_runtime)
    source.look(0.0, OLD)
    assert source.look(1.0, OLD) == Absent()


# What stands in the place of a file


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.mkdir()


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


PLACED = [make_fifo, make_directory, make_device, make_socket, make_loop]


@pytest.mark.parametrize("make", PLACED, ids=lambda make: make.__name__.removeprefix("make_"))
def test_what_is_no_regular_file_is_unreadable_and_never_blocks(
    stage: Stage, make: Callable[[Path], None]
) -> None:
    read_once(stage)
    stage.path.unlink()
    make(stage.path)
    assert isinstance(stage.look(), Unreadable)
    assert still_first(stage)
    stage.path.rmdir() if make is make_directory else stage.path.unlink()
    stage.put("second")
    assert stage.sees("second")


def test_a_link_to_a_file_is_read(stage: Stage) -> None:
    """Profiles may be links; what is read is the file behind it."""
    target = stage.path.with_name("target")
    target.write_bytes(stage.kind.document("first"))
    os.utime(target, (OLD, OLD))
    stage.path.symlink_to(target)
    assert stage.sees("first")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_a_file_that_cannot_be_opened_is_unreadable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    read_once(stage)
    stage.put("second")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        assert stage.look() == Unreadable(os.strerror(number).lower())
        assert still_first(stage)
    assert stage.sees("second")


def test_a_folder_that_cannot_be_entered_is_no_absence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    read_once(stage)

    def refuse(*_: object, **__: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refuse)
        found = [stage.later(2.0) for _ in range(3)]
    assert found == [Unreadable("permission denied")] * 3
    assert still_first(stage)


def test_a_file_that_is_written_while_it_is_read_is_unreadable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_once(stage)
    stage.put("second")
    read = os.read
    written: list[bool] = []

    def and_write(descriptor: int, count: int) -> bytes:
        data = read(descriptor, count)
        if not written:
            written.append(True)
            with stage.path.open("ab") as file:
                file.write(b" ")
        return data

    with monkeypatch.context() as patched:
        patched.setattr(os, "read", and_write)
        assert stage.look() == Unreadable("written while it was read")
    assert stage.sees("second")


def test_a_file_that_is_replaced_while_it_is_read_is_unreadable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put("first")
    read, aside = os.read, stage.path.with_name("aside")

    def and_replace(descriptor: int, count: int) -> bytes:
        data = read(descriptor, count)
        if not data:
            aside.write_bytes(stage.kind.document("second"))
            aside.rename(stage.path)
        return data

    with monkeypatch.context() as patched:
        patched.setattr(os, "read", and_replace)
        assert isinstance(stage.look(), Unreadable)
    assert stage.sees("second")


def test_no_descriptor_is_left_open(stage: Stage) -> None:
    before = len(os.listdir("/dev/fd"))
    read_once(stage)
    for data in (b"", b"{", b"\0"):
        stage.write(data)
        stage.look()
    stage.path.unlink()
    stage.path.mkdir()
    stage.look()
    assert len(os.listdir("/dev/fd")) == before


def test_reading_never_writes(stage: Stage) -> None:
    read_once(stage)
    before = stage.path.stat()
    stage.source.forget()
    stage.look()
    after = stage.path.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_ino) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
    )
    assert [path.name for path in stage.path.parent.iterdir()] == [stage.kind.name]


def test_a_longer_file_than_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="longer than 100 bytes"):
        read_still(path, 100)


def test_of_a_link_that_leads_nowhere_yet_it_is_known_that_nobody_hears(tmp_path: Path) -> None:
    path, target = tmp_path / "runtime.json", tmp_path / "elsewhere" / "runtime.json"
    path.symlink_to(target)
    source = FileSource("runtime.json", path, parse_runtime)
    for now in (0.0, 2.0):
        source.look(now, OLD)
        assert source.elsewhere
    path.unlink()
    source.look(3.0, OLD)
    assert not source.elsewhere
