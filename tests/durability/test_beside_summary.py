"""`SUMMARY.md` beside people and programs that write it too; docs/contracts.md, "SUMMARY.md".

They know nothing of the daemon: the renamer reads, adds a bullet and saves by rename; the scribe truncates and
writes in place, with pauses. They take turns among themselves, as editors that lock do; the daemon knows nothing of
that. In the end every bullet of theirs stands there, and all of ours.

Their steps are put between the daemon's turns, and between its own calls, by a seeded choice, so that a failure
comes again. One spot is left out for saving by rename: between the daemon's last comparison and its own rename there
is no system call that could tell.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from swarmmemd.model import iso
from swarmmemd.tree import Tree
from tests.support.faults import From, failing, hooked, is_system_call
from tests.support.trees import CASES, MISSION, WORKER, Home, answered, dispatched

EACH = 200
"""Bullets of each of the two writers."""
_THEIRS = "## Wishes\n"


class Writer:
    """Adds its bullets one by one; each step of it is one system call of a program that saves a file."""

    def __init__(self, path: Path, name: str, in_place: bool = False, slow: bool = False) -> None:
        self.path, self.name, self.in_place, self.slow = path, name, in_place, slow
        self.bullets: list[str] = []

    def save(self) -> Iterator[str]:
        """One bullet, step by step. What is yielded is the step that has just been done."""
        bullet = f"- {self.name} {len(self.bullets):03d} by hand"
        if self.in_place:
            with self.path.open("r+", encoding="utf-8", newline="") as file:
                text = self._with(file.read(), bullet)
                yield "read"
                file.seek(0)
                file.truncate()
                yield "truncated"
                half = len(text) // 2
                file.write(text[:half])
                file.flush()
                yield "half"
                file.write(text[half:])
        else:
            text = self._with(self.path.read_text("utf-8"), bullet)
            if self.slow:
                yield "read"
            aside = self.path.with_name(f".{self.name}.tmp")
            aside.write_text(text, "utf-8", newline="")
            if self.slow:
                yield "aside"
            aside.replace(self.path)
        self.bullets.append(bullet)

    def _with(self, text: str, bullet: str) -> str:
        """Odd ones go under Decisions, even ones into a section of their own at the end."""
        if len(self.bullets) % 2:
            head, found, tail = text.partition("## Decisions\n")
            if found:
                return f"{head}{found}\n{bullet}\n{tail.lstrip(chr(10))}"
        if _THEIRS not in text:
            text = f"{text.rstrip()}\n\n{_THEIRS}\n"
        return f"{text.rstrip()}\n{bullet}\n"


class Beside:
    """The writers, of which one is in the middle of saving at a time."""

    def __init__(self, home: Home, seed: int, *writers: Writer) -> None:
        self.home = home
        self.writers = writers
        self._random = random.Random(seed)
        self._saving: Iterator[str] | None = None
        self._who = writers[0]
        self._last = ""

    def done(self) -> bool:
        return self._saving is None and all(len(writer.bullets) >= EACH for writer in self.writers)

    def step(self) -> None:
        """The next step of the one that is saving; if none is, one of them begins."""
        self.home.hands.move(0.002)
        if self._saving is None:
            self._choose()
        try:
            self._last = next(self._saving) if self._saving else ""
        except StopIteration:
            self._saving = None

    def _choose(self) -> None:
        waiting = [writer for writer in self.writers if len(writer.bullets) < EACH]
        if waiting and self.home.summary().exists():
            self._who = self._random.choice(waiting)
            self._saving = self._who.save()

    def between(self, call: str, name: str) -> int | None:
        """A hook: now and then a step or two of theirs come before the daemon's next call."""
        while self._random.random() < 0.3 and not (call == "rename" and self._can_rename()):
            self.step()
        return None

    def _can_rename(self) -> bool:
        """Whether the next step could be a rename."""
        in_it = self._saving is not None
        return not self._who.in_place if in_it else any(not writer.in_place for writer in self.writers)

    def finish(self) -> None:
        while self._saving is not None:
            self.step()


def _look_after(home: Home, tree: Tree) -> None:
    """What the daemon does between turns: rescue what came into replaced files, and show again what others
    replaced."""
    state = tree.turns.workers[WORKER].state
    assert state is not None
    for _, mission, data in list(tree.memory.rescued(home.hands.now)):
        tree.memory.reshow(state, mission, home.hands.now, (data,))
    if tree.memory.replaced_by_others(WORKER, MISSION):
        tree.memory.reshow(state, MISSION, home.hands.now)


def _checkpoint(number: int) -> dict[str, Any]:
    at = 1777885800000 + number * 60_000
    result = f"Row {number} laid"
    return {
        **answered("work", "IN_PROGRESS", result, files=f"path/row-{number:03d}.svg"),
        "lastOutputAt": at,
        "lastCheckIn": iso(at),
    }


def _settled(home: Home, tree: Tree) -> None:
    for _ in range(6):
        home.hands.move(2.5)
        tree.everything()
        _look_after(home, tree)


def _played(home: Home, beside: Beside, inside: bool) -> int:
    """Turns, each with a checkpoint, until the writers are done; the number of checkpoints. `inside`: their
    steps come between the daemon's calls too."""
    number = 0
    with home.tree() as tree:
        tree.everything()
        while not beside.done():
            number += 1
            home.put(_checkpoint(number))
            with hooked(beside.between if inside else _nothing):
                report = tree.everything()
                assert report.failure is None
                assert not [o for found in report.obstacles.values() for o in found if not o.expected]
                home.hands.move(0.01)
                _look_after(home, tree)
            for _ in range(4):
                beside.step()
        beside.finish()
        _settled(home, tree)
    return number


def _nothing(call: str, name: str) -> int | None:
    return None


def _begun(home: Home, start: str) -> list[str]:
    """Puts the file in place that stands there before the daemon comes; the lines of it that must stay."""
    home.put(dispatched())
    if not start:
        return []
    text = (CASES / "memory" / start).read_text("utf-8").replace("mission-mo4d0030-aaaaaa", MISSION)
    home.summary().parent.mkdir(parents=True)
    home.summary().write_text(text, "utf-8")
    expected = yaml.safe_load((CASES / "memory" / "expected.yaml").read_text("utf-8"))
    keep: list[str] = expected["files"][start]["keep"]
    return keep


def _all_stand(home: Home, beside: Beside, keep: list[str], number: int) -> None:
    lines = home.summary().read_text("utf-8").splitlines()
    theirs = [bullet for writer in beside.writers for bullet in writer.bullets]
    assert len(theirs) == len(beside.writers) * EACH
    assert [bullet for bullet in theirs if bullet not in lines] == []
    assert [line for line in keep if line not in lines] == []
    assert [bullet for bullet in theirs if lines.count(bullet) > 1] == []
    _ours_stand(home, lines, number)


each_start = pytest.mark.parametrize("start", ["", "SUMMARY.md", "SUMMARY-by-hand.md"])
each_seed = pytest.mark.parametrize("seed", range(2))


@each_start
@each_seed
def test_saving_by_rename_at_any_point(quick_path: Path, start: str, seed: int) -> None:
    """What it read may be long out of date when it saves: what it so removes of ours comes back."""
    home = Home(quick_path / "home")
    keep = _begun(home, start)
    beside = Beside(home, seed, Writer(home.summary(), "renamer", slow=True))
    _all_stand(home, beside, keep, _played(home, beside, inside=True))


@each_start
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("who", ["scribe", "both"])
def test_at_any_point(quick_path: Path, start: str, seed: int, who: str) -> None:
    """Both writers, their steps between any two calls of the daemon."""
    home = Home(quick_path / "home")
    keep = _begun(home, start)
    scribe = Writer(home.summary(), "scribe", in_place=True)
    writers = [scribe] if who == "scribe" else [Writer(home.summary(), "renamer"), scribe]
    beside = Beside(home, seed, *writers)
    _all_stand(home, beside, keep, _played(home, beside, inside=True))


@each_start
@each_seed
def test_both_between_turns(quick_path: Path, start: str, seed: int) -> None:
    """The daemon finds the scribe's file whole, empty and half, and takes it up as it is."""
    home = Home(quick_path / "home")
    keep = _begun(home, start)
    beside = Beside(
        home, seed, Writer(home.summary(), "renamer"), Writer(home.summary(), "scribe", in_place=True)
    )
    _all_stand(home, beside, keep, _played(home, beside, inside=False))


@pytest.mark.parametrize("why", ["full disk", "being written"])
def test_what_was_rescued_waits_for_a_better_moment(home: Home, why: str) -> None:
    home.put(dispatched())
    with home.tree() as tree:
        tree.everything()
        with home.summary().open("a", encoding="utf-8") as late:
            home.put(_checkpoint(1))
            tree.everything()
            late.write("\n## Wishes\n\n- written late, by hand\n")
        whole = home.summary().read_bytes()
        if why == "full disk":
            with hooked(From(0, failing(28), 1000, is_system_call)):
                _look_after(home, tree)
        else:
            home.summary().write_bytes(b"")
            _look_after(home, tree)
            home.summary().write_bytes(whole)
        _settled(home, tree)
    assert LATE in home.summary().read_text("utf-8").splitlines()


LATE = "- written late, by hand"


def _late(home: Home) -> str:
    """The text with a bullet more under Decisions, as a writer has it in mind who has just read the file."""
    text = home.summary().read_text("utf-8")
    return text.replace("## Decisions\n\n- None yet.", f"## Decisions\n\n{LATE}")


@pytest.mark.parametrize("pause", [0.0, 0.1, 0.39])
def test_written_into_the_file_that_was_replaced(home: Home, pause: float) -> None:
    """A writer opens the file, the daemon replaces it, the writer truncates it and writes: one step at a time."""
    home.put(dispatched())
    with home.tree() as tree:
        tree.everything()
        text = _late(home)
        with home.summary().open("r+", encoding="utf-8", newline="") as file:
            home.put(_checkpoint(1))
            tree.everything()
            file.truncate(0)
            home.hands.move(pause)
            _look_after(home, tree)
            file.write(text[:100])
            file.flush()
            _look_after(home, tree)
            file.write(text[100:])
        _settled(home, tree)
    lines = home.summary().read_text("utf-8").splitlines()
    assert lines.count(LATE) == 1
    _ours_stand(home, lines, 1)


def _ours_stand(home: Home, lines: list[str], number: int) -> None:
    assert home.types() == ["mission-start", "dispatch", *["checkpoint"] * number]
    newest = [f"Row {n} laid" for n in range(max(1, number - 19), number + 1)]
    said = [line.rpartition(" — ")[2] for line in lines if "IN_PROGRESS — Row" in line]
    assert [words for words in said if words in newest] == newest
    assert lines.count("- Status: executing") == 1
    for n in range(max(1, number - 199), number + 1):
        assert lines.count(f"- path/row-{n:03d}.svg") == 1
    sections = [line for line in lines if line.startswith("## ")]
    assert len(sections) == len(set(sections)), "no section stands there twice"


def test_looking_again_at_what_stands_leaves_nothing_open(home: Home) -> None:
    """Somebody saves the file as it is, again and again: nothing is to be replaced, and nothing to be kept open."""
    home.put(dispatched())
    with home.tree() as tree:
        tree.everything()
        _settled(home, tree)
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            home.summary().write_bytes(home.summary().read_bytes())
            home.hands.move(5.0)
            _look_after(home, tree)
        assert len(os.listdir("/dev/fd")) == before
