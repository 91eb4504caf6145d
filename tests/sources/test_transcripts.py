"""Transcripts on real files, with a clock that the test turns. docs/contracts.md, "Transcripts"."""

import errno
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from swarmmemd.checkpoint import parse
from swarmmemd.observation import TranscriptPosition, TranscriptText
from swarmmemd.sources import transcripts
from swarmmemd.sources.transcripts import TranscriptSource

WALL = 1_777_885_200.0
MIB = 1 << 20


def block(result: str, state: str = "DONE", next_action: str = "Go on") -> str:
    return (
        f"STATE: {state}\nFILES_CHANGED: a.py\nCOMMANDS_RUN: pytest -q\n"
        f"RESULT: {result}\nBLOCKER: none\nNEXT_ACTION: {next_action}\n"
    )


class Reader:
    """A worker's transcripts and the daemon's side of them. Files are written at the time of the clock."""

    def __init__(self, profile: Path, *globs: str) -> None:
        self.profile = profile
        self.globs = globs or ("checkpoint.md", "checkpoints/*.md", "*.log")
        self.positions: dict[str, TranscriptPosition] = {}
        self.now = 100.0
        self.given: list[TranscriptText] = []
        self.start()

    def start(self) -> None:
        """A new process: the positions come back from where they were kept."""
        kept = msgspec.json.encode(self.positions)
        self.positions = msgspec.json.decode(kept, type=dict[str, TranscriptPosition])
        self.source = TranscriptSource(self.profile, self.globs)

    @property
    def wall(self) -> float:
        return WALL + self.now

    def write(self, name: str, data: bytes | str, *, how: str = "wb") -> Path:
        path = self.profile / name
        path.parent.mkdir(exist_ok=True)
        with open(path, how) as file:
            file.write(data.encode() if isinstance(data, str) else data)
        self.touch(path)
        return path

    def add(self, name: str, data: bytes | str) -> Path:
        return self.write(name, data, how="ab")

    def swap(self, name: str, data: str) -> None:
        """As editors and careful writers do it: aside, then renamed."""
        aside = self.write("aside.tmp", data)
        os.replace(aside, self.profile / name)

    def touch(self, path: Path) -> None:
        os.utime(path, ns=(int(self.wall * 1e9),) * 2)

    def look(self) -> str:
        """One look; its texts together."""
        texts = self.source.look(self.positions, self.now, self.wall)
        self.positions |= {text.path: text.position for text in texts}
        self.given += texts
        return "".join(text.text for text in texts)

    def drain(self) -> str:
        """Looks as often as `due` asks for it, the clock turned on to that time."""
        got = self.look()
        for _ in range(100):
            if self.source.due is None:
                return got
            self.now = max(self.now, self.source.due) + 0.001
            got += self.look()
        raise AssertionError("never at rest")

    def results(self) -> list[str | None]:
        """The checkpoints in everything given out so far, each text read by itself, repeats once."""
        found = [checkpoint.result for text in self.given for checkpoint in parse(text.text)]
        return list(dict.fromkeys(found))


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


# How a file grows


def test_what_is_added_is_given_once(reader: Reader) -> None:
    reader.write("a.log", "one\ntwo\n")
    assert reader.drain() == "one\ntwo\n"
    assert reader.drain() == ""
    reader.add("a.log", "three\n")
    assert reader.drain() == "three\n"
    assert reader.positions["a.log"].offset == 14
    assert reader.given[-1].written == int(reader.given[-1].written)
    assert [text.path for text in reader.given] == ["a.log", "a.log"]


def test_half_a_line_waits_for_its_end(reader: Reader) -> None:
    reader.write("a.log", "one\ntw")
    assert reader.drain() == "one\n"
    reader.add("a.log", "o\n")
    assert reader.drain() == "two\n"


def test_an_empty_or_missing_file_says_nothing(reader: Reader) -> None:
    assert reader.drain() == ""
    reader.write("checkpoint.md", "")
    assert reader.drain() == ""
    assert reader.source.troubles == {}


def test_a_missing_profile_says_nothing(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "gone")
    assert reader.drain() == ""
    assert not reader.source.changed()


@pytest.mark.parametrize("made", ["checkpoints/", "checkpoint.md"])
def test_where_a_watch_of_the_profile_tells_nothing_is_told(tmp_path: Path, made: str) -> None:
    """In a folder below the profile, however empty, a file can appear without any sign in the profile itself."""
    source = TranscriptSource(tmp_path, ("checkpoint.md", "checkpoints/*.md"))
    source.look({}, 0.0, 0.0)
    assert not source.silent
    path = tmp_path / made
    path.mkdir() if made.endswith("/") else path.touch()
    source.look({}, 1.0, 1.0)
    assert source.silent


def test_text_is_given_in_the_order_in_which_files_were_written(reader: Reader) -> None:
    reader.write("z.log", "first\n")
    reader.now += 1
    reader.write("a.log", "second\n")
    assert reader.drain() == "first\nsecond\n"


def test_every_byte_by_itself_gives_the_same_text(reader: Reader) -> None:
    text = "é 完成 🎉\n\x1b[1;31mred\x1b[0m \x1b]8;;x\x1b\\link\x1b]8;;\x1b\\\r\nlast\n"
    got = ""
    for byte in text.encode():
        reader.add("a.log", bytes([byte]))
        got += reader.look()
    assert got == "é 完成 🎉\nred link\nlast\n"


@pytest.mark.parametrize("cut", range(1, 28))
def test_a_character_is_never_broken_even_where_the_file_stands_still(reader: Reader, cut: int) -> None:
    data = "NEXT_ACTION: é完🎉\x1b[31mred\n".encode()
    reader.write("a.log", block("r").rsplit("NEXT", 1)[0].encode() + data[:cut])
    got = reader.drain()
    reader.now += 60
    reader.add("a.log", data[cut:])
    got += reader.drain()
    assert "\ufffd" not in got
    assert reader.results() == ["r"]
    assert "[" not in got


@pytest.mark.parametrize("cut", [1, 3, 4, 6, 7, 8])
def test_a_value_that_ends_within_a_character_waits_for_its_rest(reader: Reader, cut: int) -> None:
    data = "é完🎉 and on\n".encode()
    reader.write("a.log", block("r").rsplit("Go on", 1)[0].encode() + data[:cut])
    reader.drain()
    assert reader.results() == []
    reader.now += 600
    reader.add("a.log", data[cut:])
    reader.drain()
    assert [found.next_action for given in reader.given for found in parse(given.text)] == ["é完🎉 and on"]


def test_a_value_that_ends_within_a_character_is_given_when_its_file_is_replaced(reader: Reader) -> None:
    reader.write("a.log", block("r").rsplit("Go on", 1)[0].encode() + "é完".encode()[:-1])
    reader.drain()
    reader.now += 60
    reader.swap("a.log", "begun anew\n")
    reader.drain()
    assert [found.next_action for given in reader.given for found in parse(given.text)] == ["é"]


# Files that become others


def test_a_truncated_file_is_read_from_its_beginning(reader: Reader) -> None:
    reader.write("a.log", "one\ntwo\nthree\n")
    reader.drain()
    reader.write("a.log", "new\n")
    assert reader.drain() == "new\n"


def test_a_file_emptied_between_is_read_from_its_beginning(reader: Reader) -> None:
    reader.write("a.log", "one\n")
    reader.drain()
    reader.write("a.log", "")
    assert reader.drain() == ""
    reader.add("a.log", "other, and longer\n")
    assert reader.drain() == "other, and longer\n"


@pytest.mark.parametrize("more", ["", "and more\n" * 300])
def test_a_file_rewritten_longer_at_once_is_another_text(reader: Reader, more: str) -> None:
    path = reader.write("a.log", "one\ntwo\n" + more)
    inode = path.stat().st_ino
    reader.drain()
    reader.write("a.log", "uno\ndue\ntre\n" + more)
    assert path.stat().st_ino == inode
    assert reader.drain() == "uno\ndue\ntre\n" + more


def test_a_text_that_differs_only_at_its_beginning_is_another(reader: Reader) -> None:
    reader.write("a.log", "one\n" + "and more\n" * 300)
    reader.drain()
    reader.write("a.log", "two\n" + "and more\n" * 301)
    assert reader.drain() == "two\n" + "and more\n" * 301


def test_a_text_that_differs_only_behind_a_long_heading_is_another(reader: Reader) -> None:
    heading = "A heading that is always the same\n" * 50
    reader.write("a.log", heading + "one\n")
    reader.drain()
    reader.write("a.log", heading + "two\nthree\n")
    assert reader.drain() == heading + "two\nthree\n"


def test_a_rotated_log_is_followed_under_both_names(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "a.log*")
    path = reader.write("a.log", "one\n")
    reader.drain()
    reader.now += 1
    reader.add("a.log", "last words\n")
    path.rename(tmp_path / "a.log.1")
    reader.now += 1
    reader.write("a.log", "begun anew, and longer than before\n")
    assert reader.drain() == "last words\nbegun anew, and longer than before\n"
    reader.start()
    assert reader.drain() == ""


def test_a_rotated_log_that_no_glob_names_leaves_the_new_one(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    path.rename(reader.profile / "a.old")
    reader.write("a.log", "one\ntwo\n")
    assert reader.drain() == "one\ntwo\n"


def test_a_checkpoint_file_replaced_by_rename_gives_each_block(reader: Reader) -> None:
    reader.write("checkpoint.md", block("first"))
    reader.drain()
    reader.now += 30
    reader.swap("checkpoint.md", block("first") + "\n" + block("second"))
    reader.drain()
    assert reader.results() == ["first", "second"]
    reader.now += 30
    reader.swap("checkpoint.md", block("third"))
    reader.drain()
    assert reader.results() == ["first", "second", "third"]


def test_a_file_deleted_and_made_again_is_read(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    path.unlink()
    assert reader.drain() == ""
    reader.write("a.log", "two\nthree\n")
    assert reader.drain() == "two\nthree\n"


# Files that are where no glob looks


def test_what_was_added_just_before_a_log_was_renamed_is_read(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    reader.add("a.log", block("last"))
    path.rename(reader.profile / "a.old")
    reader.write("a.log", "begun anew\n")
    reader.drain()
    assert reader.results() == ["last"]
    reader.start()
    assert reader.drain() == ""


@pytest.mark.parametrize("new_name", ["a.old", "a-2026.log"])
def test_the_last_words_of_a_renamed_log_come_before_those_of_its_successor(
    reader: Reader, new_name: str
) -> None:
    """Whether a glob matches the new name or not."""
    path = reader.write("a.log", block("first"))
    assert reader.look() == ""
    path.rename(reader.profile / new_name)
    assert reader.look() == ""
    reader.now += 0.5
    reader.write("a.log", block("second") + "\nand on\n")
    reader.look()
    assert reader.results() == ["first", "second"]


def test_a_block_that_waited_when_its_log_was_renamed_is_given(reader: Reader) -> None:
    path = reader.write("a.log", block("first"))
    assert reader.look() == ""
    path.rename(reader.profile / "a.old")
    reader.drain()
    assert reader.results() == ["first"]
    assert not reader.source.changed()


def test_a_renamed_log_is_followed_while_its_writer_goes_on(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    path.rename(reader.profile / "a.old")
    for number in range(3):
        reader.look()
        reader.now += 1
        reader.add("a.old", block(f"number {number}"))
    reader.drain()
    assert reader.results() == ["number 0", "number 1", "number 2"]
    reader.now += 60
    reader.add("a.old", block("somebody's own"))
    assert reader.drain() == ""


def test_a_log_renamed_while_nobody_looked_is_read_to_its_end(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    reader.add("a.log", block("last"))
    path.rename(reader.profile / "a.old")
    reader.start()
    reader.drain()
    assert reader.results() == ["last"]


def test_a_file_that_has_the_inode_of_one_that_is_gone_is_not_read(reader: Reader) -> None:
    """As if the old file were gone and its inode given to another one."""
    reader.write("a.log", "one\n" * 300)
    reader.drain()
    reader.write("a.log", "private\n" + block("nobody's"))
    (reader.profile / "a.log").rename(reader.profile / "private")
    assert reader.drain() == ""


@pytest.mark.parametrize("how", ["deleted", "replaced", "truncated", "rewritten"])
def test_a_block_that_waited_in_a_file_that_is_no_more_is_given(reader: Reader, how: str) -> None:
    path = reader.write("checkpoint.md", "Done.\n\n" + block("first"))
    assert reader.look() == "Done.\n\n"
    reader.now += 0.5
    match how:
        case "deleted":
            path.unlink()
        case "replaced":
            reader.swap("checkpoint.md", block("second"))
        case "truncated":
            reader.write("checkpoint.md", "")
            reader.look()
        case _:
            reader.write("checkpoint.md", block("second"))
    reader.drain()
    assert reader.results() == ["first", *(["second"] if how in ("replaced", "rewritten") else [])]
    reader.start()
    assert reader.drain() == ""


def test_a_file_that_is_written_anew_with_every_word_is_one_checkpoint(reader: Reader) -> None:
    text = block("all of it is said")
    for end in range(1, len(text) + 1):
        reader.write("checkpoint.md", "")
        reader.look()
        reader.write("checkpoint.md", text[:end])
        reader.look()
        reader.now += 0.1
    reader.drain()
    assert [found.result for given in reader.given for found in parse(given.text)] == ["all of it is said"]


# Blocks that may go on


@pytest.mark.parametrize("pause", [0.0, 1.5])
def test_a_block_written_line_by_line_is_given_as_one(reader: Reader, pause: float) -> None:
    for line in ("Working on it.\n" + block("merged") + "\n" + "$ \n").splitlines(keepends=True):
        reader.add("a.log", line)
        reader.look()
        reader.now += pause
    assert reader.results() == ["merged"]
    assert sum("STATE" in text.text for text in reader.given) == 1


@pytest.mark.parametrize("lines", range(1, 4))
def test_what_is_no_checkpoint_yet_waits_however_long_the_pause(reader: Reader, lines: int) -> None:
    whole = block("merged").splitlines(keepends=True)
    part = "".join(whole[:lines])
    reader.write("checkpoint.md", part)
    assert reader.drain() == ""
    reader.now += 3600
    reader.start()
    reader.add("checkpoint.md", "".join(whole)[len(part) :])
    reader.drain()
    assert [(text.text, text.whole) for text in reader.given] == [(block("merged"), True)]


def test_a_block_at_the_end_is_given_when_the_file_has_stood_still(reader: Reader) -> None:
    reader.write("checkpoint.md", block("merged").rstrip("\n"))
    assert reader.look() == ""
    assert reader.source.due is not None
    assert reader.source.due <= reader.now + 2
    assert reader.drain() == block("merged").rstrip("\n")
    assert reader.given[-1].whole
    assert reader.positions["checkpoint.md"].offset == len(block("merged")) - 1
    assert reader.drain() == ""


def test_a_block_that_ended_is_given_at_once(reader: Reader) -> None:
    reader.write("a.log", block("merged") + "\nNow the next thing.\n")
    reader.look()
    assert reader.results() == ["merged"]


def test_the_next_state_line_ends_a_block(reader: Reader) -> None:
    reader.write("a.log", block("first") + block("second"))
    assert reader.look() == block("first")
    assert reader.drain() == block("second")
    assert reader.results() == ["first", "second"]


def test_a_result_of_several_paragraphs_is_not_cut(reader: Reader) -> None:
    for part in block("one\n\ntwo\n\nthree").splitlines(keepends=True):
        reader.add("a.log", part)
        reader.look()
        reader.now += 0.5
    reader.drain()
    assert reader.results() == ["one\n\ntwo\n\nthree"]


def test_a_block_above_a_busy_log_is_given_after_a_while(reader: Reader) -> None:
    reader.write("a.log", block("merged").replace("BLOCKER: none\n", "") + "\nbusy\n")
    for _ in range(12):
        reader.look()
        reader.add("a.log", "busy\n")
        reader.now += 0.25
    assert reader.results() == ["merged"]


def test_a_progress_bar_below_a_block_does_not_keep_it(reader: Reader) -> None:
    reader.write("a.log", block("merged"))
    for number in range(12):
        reader.add("a.log", f"\r{number} %")
        reader.look()
        reader.now += 0.25
    assert reader.results() == ["merged"]
    reader.add("a.log", "\rdone\n")
    assert reader.drain() == "done\n"


def test_the_prompt_of_a_shell_is_no_part_of_the_block_above(reader: Reader) -> None:
    prompt = "\x1b[?2004h\x1b]0;~/repo\x07\x1b[32mme\x1b[0m$ "
    for line in (prompt + "agent\n" + block("merged")).splitlines():
        reader.add("pane.log", line + "\r\n")
        reader.look()
    reader.add("pane.log", prompt)
    reader.drain()
    reader.add("pane.log", "ls\r\nREADME.md\r\n" + prompt)
    reader.drain()
    found = [checkpoint for text in reader.given for checkpoint in parse(text.text)]
    assert [(one.result, one.next_action) for one in found] == [("merged", "Go on")]


def test_a_last_label_without_a_line_feed_is_part_of_the_block(reader: Reader) -> None:
    reader.write("pane.log", block("merged").replace("\n", "\r\n").removesuffix("\r\n"))
    reader.drain()
    (found,) = parse(reader.given[-1].text)
    assert found.next_action == "Go on"


def test_a_value_written_word_by_word_is_not_cut(reader: Reader) -> None:
    reader.write("a.log", block("merged", next_action="").rstrip("\n"))
    for word in ("write", "the", "change", "log", "of", "the", "week"):
        reader.add("a.log", f" {word}")
        reader.look()
        reader.now += 0.7
    reader.drain()
    (found,) = parse("".join(text.text for text in reader.given))
    assert found.next_action == "write the change log of the week"
    assert reader.results() == ["merged"]


def test_a_block_within_a_value_does_not_part_it(reader: Reader) -> None:
    inner = "".join(f"> {line}\n" for line in block("theirs").splitlines())
    whole = block("mine").replace("RESULT: mine\n", f"RESULT: mine\n{inner}")
    for line in (whole + "\nEnd\n").splitlines(keepends=True):
        reader.add("a.log", line)
        reader.look()
    reader.drain()
    assert sum("STATE: DONE" in text.text for text in reader.given) == 1


def test_what_is_said_of_a_block_stays_above_it(reader: Reader) -> None:
    reader.write("a.log", "Some text\nCheckpoint from swarm-7:\n")
    reader.look()
    reader.add("a.log", "\n" + block("theirs"))
    reader.drain()
    assert [c for text in reader.given for c in parse(text.text)] == []
    reader.add("a.log", "\n" + block("mine"))
    reader.drain()
    assert reader.results() == ["mine"]


@pytest.mark.parametrize(
    ("below", "counts"),
    [
        ("where agent swarm-7 reported the bug", True),
        ("Checkpoint from swarm-7", True),
        ("Checkpoint from swarm-7:", False),
        ("\nCheckpoint from swarm-7", False),
        ("---\nCheckpoint from swarm-7", False),
    ],
)
def test_lines_between_two_blocks_count_as_if_read_at_once(reader: Reader, below: str, counts: bool) -> None:
    between = f"{block('first')}{below}\n"
    assert len(parse(between + block("second"))) == 1 + counts
    reader.write("a.log", between)
    reader.drain()
    reader.add("a.log", block("second"))
    reader.drain()
    assert len(reader.results()) == 1 + counts


def test_a_value_of_the_block_before_says_nothing_of_the_next(reader: Reader) -> None:
    reader.write("a.log", block("first", next_action="Worker swarm-7 reported a bug, see its checkpoint"))
    reader.drain()
    reader.add("a.log", block("second"))
    reader.drain()
    assert reader.results() == ["first", "second"]


# Restarts


def test_a_restart_goes_on_where_it_was(reader: Reader) -> None:
    reader.write("a.log", "one\n" + block("merged"))
    assert reader.look() == "one\n"
    reader.start()
    reader.add("a.log", "\nmore\n")
    reader.now += 10
    reader.start()
    assert reader.drain() == "one\n" + block("merged") + "\nmore\n"  # with what stands right above
    reader.start()
    assert reader.drain() == ""


def test_a_position_that_was_not_kept_is_read_again(reader: Reader) -> None:
    reader.write("a.log", "one\n")
    assert [text.text for text in reader.source.look({}, reader.now, reader.wall)] == ["one\n"]
    assert reader.look() == "one\n"
    assert reader.drain() == ""


def test_forgotten_files_are_read_from_the_positions(reader: Reader) -> None:
    reader.write("a.log", "one\n")
    reader.drain()
    reader.source.forget()
    assert reader.drain() == ""
    reader.positions.clear()
    reader.source.forget()
    assert reader.drain() == "one\n"


def test_the_sweep_sees_what_no_hint_told(reader: Reader) -> None:
    reader.write("a.log", "one\n")
    assert reader.source.changed()
    reader.drain()
    assert not reader.source.changed()
    reader.add("a.log", "two\n")
    assert reader.source.changed()
    reader.drain()
    (reader.profile / "a.log").unlink()
    assert reader.source.changed()


# Sizes


def test_a_long_file_is_read_in_portions(reader: Reader) -> None:
    text = "".join(f"line {number} of many\n" for number in range(150_000))
    reader.write("a.log", text)
    first = reader.look()
    assert 0 < len(first) <= MIB
    assert reader.source.due == reader.now
    assert first + reader.drain() == text


def test_blocks_across_portions_are_whole(reader: Reader) -> None:
    blocks = [f"{number} x" + "x" * (number % 977) for number in range(3_000)]
    reader.write("a.log", "\n".join(block(result) for result in blocks))
    reader.drain()
    assert len(reader.given) > 1
    assert reader.results() == blocks


def test_a_line_too_long_is_skipped_with_a_trouble(reader: Reader) -> None:
    reader.write("a.log", b"one\n" + b"x" * (3 * MIB) + b"\n" + block("merged").encode())
    got = reader.look()
    reader.look()
    reader.look()
    reader.start()
    got += reader.drain()
    assert got == "one\n" + block("merged")
    assert reader.source.troubles == {"a.log": "a line longer than 1 MiB was skipped"}
    reader.swap("a.log", "new\n")
    assert reader.drain() == "new\n"
    assert reader.source.troubles == {}


def test_a_long_line_that_is_still_written_is_skipped_to_its_end(reader: Reader) -> None:
    reader.write("a.log", b"x" * (MIB + 10))
    assert reader.drain() == ""
    reader.add("a.log", b"y" * 10)
    assert reader.drain() == ""
    reader.add("a.log", b"z\nSTATE of things\n")
    assert reader.drain() == "STATE of things\n"


GARBAGE = [
    b"\x1b",
    b"\x1b[",
    b"\x1b]0;",
    b"\x1bPtmux;\x1b",
    b"\b",
    b"\r",
    b"\n",
    b"\x00",
    b"\xff",
    b"\xf0\x9f",
]
LABELS = [b"STATE: DONE\n", b"> STATE:\n", b"```\nSTATE:\n", b"RESULT: x\n\n"]


@pytest.mark.parametrize(
    ("unit", "size"), [*((unit, 4 * MIB) for unit in GARBAGE), *((unit, MIB) for unit in LABELS)]
)
def test_megabytes_of_anything_end(reader: Reader, unit: bytes, size: int) -> None:
    reader.write("a.log", unit * (size // len(unit)))
    reader.drain()
    offsets = [text.position.offset for text in reader.given]
    assert offsets == sorted(set(offsets))
    reader.given.clear()
    reader.add("a.log", "\n\n" + block("merged") + "\nand on\n")
    reader.drain()
    assert "merged" in reader.results()


def test_many_long_files_are_shared_out_over_looks(reader: Reader) -> None:
    for number in range(8):
        reader.write(f"{number}.log", f"file {number}\n" * (MIB // 10))
    reader.look()
    assert len({text.path for text in reader.given}) < 8
    reader.drain()
    assert {p.offset for p in reader.positions.values()} == {len("file 0\n") * (MIB // 10)}


def test_only_the_newest_files_are_read_where_there_are_too_many(reader: Reader) -> None:
    for number in range(203):
        reader.write(f"{number:03}.log", f"{number}\n")
        reader.now += 0.1
    assert reader.drain().split() == [str(number) for number in range(3, 203)]
    assert reader.source.troubles == {"transcripts": "203 files match, only the 200 written last are read"}
    assert len(reader.source.present) == 200


# What is no transcript


def test_only_regular_files_are_read(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.log").write_text("secret\n")
    os.mkfifo(reader.profile / "pipe.log")
    (reader.profile / "link.log").symlink_to(outside / "secret.log")
    (reader.profile / "checkpoints").symlink_to(outside)
    (reader.profile / "folder.log").mkdir()
    with short_socket(reader.profile / "socket.log"):
        reader.write("a.log", "one\n")
        assert reader.drain() == "one\n"
    assert reader.source.troubles == {
        "checkpoints": "a link, not followed",
        "link.log": "a link, not followed",
        "pipe.log": "not a regular file",
        "socket.log": "not a regular file",
    }


class short_socket:
    """A socket at a path that may be longer than a socket's may be."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(self.path.parent)
        try:
            self.socket.bind(self.path.name)
        finally:
            os.chdir(here)

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def test_a_name_that_becomes_a_fifo_or_a_link_is_left(reader: Reader) -> None:
    path = reader.write("a.log", "one\n")
    reader.drain()
    path.unlink()
    os.mkfifo(path)
    assert reader.drain() == ""
    assert reader.source.troubles == {"a.log": "not a regular file"}
    path.unlink()
    reader.write("a.log", "two\n")
    assert reader.drain() == "two\n"
    assert reader.source.troubles == {}


def test_the_chat_database_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, "*")
    for name in ("state.db", "state.db-wal", "state.db-shm", "State.DB", "state.db.log"):
        reader.write(name, "secret\n")
    reader.write("a.log", "one\n")
    opened: list[str] = []
    real = os.open

    def spy(path: str, *args: object, **more: object) -> int:
        opened.append(str(path))
        return real(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", spy)
    assert reader.drain() == "one\n"
    assert "a.log" in opened
    assert not [name for name in opened if "state.db" in name.lower()]


def test_a_file_closed_to_us_is_a_trouble_until_it_is_open(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    reader.write("a.log", "one\n")
    with monkeypatch.context() as patch:
        patch.setattr(transcripts, "open_file", closed)  # root may open everything
        for _ in range(2):
            assert reader.look() == ""
            assert reader.source.troubles == {"a.log": "permission denied"}
    assert reader.source.due is not None
    assert reader.drain() == "one\n"
    assert reader.source.troubles == {}


def test_a_name_that_is_no_text_is_a_trouble(reader: Reader) -> None:
    try:
        (reader.profile / os.fsdecode(b"a\xff.log")).write_text("one\n")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert reader.drain() == ""
    assert reader.source.troubles == {"a?.log": "its name is not UTF-8"}


def test_hidden_names_match_only_hidden_globs(tmp_path: Path) -> None:
    reader = Reader(tmp_path, "*/out-[ab].txt", ".pane.log")
    reader.write("logs/out-a.txt", "a\n")
    reader.write("logs/out-c.txt", "c\n")
    reader.write(".venv/out-b.txt", "b\n")
    reader.write(".pane.log", "pane\n")
    assert sorted(reader.drain().split()) == ["a", "pane"]


def test_no_file_stays_open(reader: Reader) -> None:
    before = len(os.listdir("/dev/fd"))
    for number in range(20):
        reader.write(f"{number}.log", "one\n")
        reader.drain()
    shutil.rmtree(reader.profile)
    reader.drain()
    assert len(os.listdir("/dev/fd")) == before


def walk(text: str) -> Iterator[str]:
    """The text in pieces of every small size in turn."""
    at, size = 0, 1
    while at < len(text):
        yield text[at : at + size]
        at, size = at + size, size % 17 + 1


def test_any_portions_of_a_long_stream_give_the_same_checkpoints(reader: Reader) -> None:
    """With restarts, rotations of a copy and positions that get lost in between."""
    results = [f"result {number}" for number in range(40)]
    stream = "\n".join(f"Now number {result}.\n\n{block(result)}" for result in results)
    for number, piece in enumerate(walk(stream)):
        reader.add("a.log", piece)
        reader.now += (0.0, 0.3, 1.1)[number % 3]
        if number % 4:
            reader.look()
        if number % 29 == 0:
            reader.start()
        if number % 83 == 0:
            reader.positions.pop("a.log", None)
        if number % 101 == 0:
            shutil.copy(reader.profile / "a.log", reader.profile / "copy")
            os.replace(reader.profile / "copy", reader.profile / "a.log")
    reader.drain()
    assert reader.results() == results
