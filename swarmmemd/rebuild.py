"""Makes our part of the memory files right again from the journal. Doing it twice is doing it once.

What is wrong and what should stand there is `recall.parts`; here it is written, each file by compare-and-swap.
docs/contracts.md, "Verify and rebuild".
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec

from swarmmemd import layout
from swarmmemd.durable import Appending, Directory, Mark, Moved, Version, hold, replace
from swarmmemd.handoff import sha256
from swarmmemd.journal import FileMark
from swarmmemd.journal.inspector import Inspector
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.recall.parts import Examiner, Kind, Part
from swarmmemd.recall.verify import beyond_repair, examiner
from swarmmemd.tree import Tree

_LIMIT = 256 * 1024 * 1024
_ROUNDS = 5
_GROWING = frozenset({Kind.EVENTS, Kind.EPISODE})
_HANDOFFS = frozenset({Kind.HANDOFF, Kind.SHARED})


class Rebuilt(msgspec.Struct, frozen=True):
    """The files that were made right, and what could not be."""

    changed: tuple[str, ...]
    problems: tuple[str, ...]


class _Outcome(msgspec.Struct):
    """What came of a round: files that were written, what is left, and files that somebody else was just writing."""

    done: list[str] = []
    problems: list[str] = []
    moved: list[str] = []


def wrong_parts(
    one: Examiner, worker: WorkerId | None, mission: MissionId | None, archives: bool = True
) -> Iterator[Part]:
    """The files with something wrong in our part, of one worker or one mission where one is named."""
    workers = [worker] if worker is not None else one.journal.workers()
    for each in workers:
        yield from (part for part in one.worker(each, mission) if part.faults)
    if archives:
        yield from (part for part in one.archives(mission, worker) if part.faults)


def rebuild(
    tree: Tree,
    worker: WorkerId | None = None,
    mission: MissionId | None = None,
    opening: Callable[[], object] = lambda: None,
) -> Rebuilt:
    """Makes right what can be, over an opened tree. `opening` gives every worker a turn, so that what is recorded
    stands in its files. A damaged copy of a handoff is made right before that, lest it be taken for a new one."""
    wrong = _wrong(tree, worker, mission)
    copies = _Outcome()
    for part in wrong:
        if part.kind in _HANDOFFS:
            _mend(tree, part, copies)
    opening()
    changed = dict.fromkeys([*copies.done, *_otherwise_now(tree, wrong)])
    for _ in range(_ROUNDS):
        outcome = _round(tree, worker, mission)
        changed.update(dict.fromkeys(outcome.done))
        if not outcome.done and not outcome.moved:
            break
    problems = [*outcome.problems, *(f"{path}: somebody was just writing it" for path in outcome.moved)]
    if changed:
        tree.everything()  # an archive follows its parts
        tree.settle()
    if worker is None and mission is None:
        problems += _beyond_repair(tree)
    return Rebuilt(tuple(changed), tuple(problems))


def _wrong(tree: Tree, worker: WorkerId | None, mission: MissionId | None) -> list[Part]:
    tree.settle()
    with closing(Inspector(tree.journal.path)) as journal:
        return list(wrong_parts(examiner(tree.config, journal, taken_up=False), worker, mission))


def _otherwise_now(tree: Tree, wrong: list[Part]) -> list[str]:
    """Of the files in which something was wrong, those that hold something else by now."""
    tree.settle()
    with closing(Inspector(tree.journal.path)) as journal:
        one = examiner(tree.config, journal, taken_up=False)
        return [
            str(part.path) for part in wrong if one.read(part.kind, part.root, part.place).data != part.data
        ]


def _beyond_repair(tree: Tree) -> list[str]:
    with closing(Inspector(tree.journal.path)) as journal:
        found = beyond_repair(tree.config, journal)
        return [f"{one.path}:{one.line}: {one.what}. {one.mend}" for one in found]


def _round(tree: Tree, worker: WorkerId | None, mission: MissionId | None) -> _Outcome:
    """Goes over everything once."""
    outcome = _Outcome()
    tree.settle()
    with closing(Inspector(tree.journal.path)) as journal:
        one = examiner(tree.config, journal, taken_up=False)
        for part in wrong_parts(one, worker, mission, archives=False):
            _mend(tree, part, outcome)
    tree.settle()
    with closing(Inspector(tree.journal.path)) as journal:
        one = examiner(tree.config, journal, taken_up=False)
        _archive(tree, [part for part in one.archives(mission, worker) if part.faults], outcome)
    tree.settle()
    return outcome


def _mend(tree: Tree, part: Part, outcome: _Outcome) -> None:
    if part.right is not None and part.right != part.data:
        try:
            (outcome.done if _put(tree, part) else outcome.moved).append(str(part.path))
        except OSError as error:
            outcome.problems.append(f"{error.filename or part.path}: {error.strerror or error}")
    outcome.problems += [
        f"{part.path}:{fault.line}: {fault.what}. {part.mend}" for fault in part.faults if not fault.mendable
    ]


def _archive(tree: Tree, parts: list[Part], outcome: _Outcome) -> None:
    lost = [part for part in parts if part.right is None]
    for mission in dict.fromkeys(part.mission for part in parts if part.right is not None):
        assert mission is not None
        here = [part for part in parts if part.mission == mission and part.right is not None]
        try:
            with tree.shared.opened() as root:
                changed = tree.shared.archive(root, mission)
        except OSError as error:
            outcome.problems.append(f"{error.filename or mission}: {error.strerror or error}")
        else:
            outcome.done += [str(part.path) for part in here if changed]
            lost += [part for part in here if not changed]
    outcome.problems += [
        f"{part.path}:{fault.line}: {fault.what}. {part.mend or 'It cannot be made again.'}"
        for part in lost
        for fault in part.faults
    ]


def _put(tree: Tree, part: Part) -> bool:
    """Replaces the file, if it is still the one that was looked at: else the next round looks again. Says whether it
    was replaced."""
    assert part.right is not None
    name = part.place.name
    with _root(tree, part) as root, root.descend(part.place.folders, create=True) as folder:
        held = hold(folder, name, _LIMIT)
        try:
            if (held.data if held else None) != part.data:
                return False
            if part.kind in _HANDOFFS and part.data and part.data.strip():
                _set_aside(tree, part, part.data)
            version = replace(folder, name, part.right, held.version if held else None)
            tree.memory.auditor.replaced(f"{folder.shown}/{name}", part.right)
            if part.kind in _GROWING:
                _mark(tree, part, version)
            if held is not None and (later := held.reread()) is not None:
                _bring_over(tree, part, folder, later)
        except Moved as moved:
            if moved.data is not None:
                replace(folder, name, moved.data)
            return False
        finally:
            if held is not None:
                held.close()
    return True


def _root(tree: Tree, part: Part) -> Directory:
    return tree.shared.opened() if part.kind is Kind.SHARED else Directory.root(part.root)


def _mark(tree: Tree, part: Part, version: Version) -> None:
    """The daemon appends to the new file where it would have appended to the old one."""
    assert part.worker is not None
    known = tree.journal.mark(part.worker, part.place.shown)
    if known is not None and part.right and part.right.endswith(b"\n"):
        mark = Mark(version.device, version.inode, version.size)
        tree.journal.settle(marks=[FileMark(part.worker, part.place.shown, mark, known.seq)])


def _bring_over(tree: Tree, part: Part, folder: Directory, later: bytes) -> None:
    """What another program wrote into the file that was replaced, since it had it open."""
    before = part.data or b""
    if part.kind in _GROWING and later.startswith(before):
        with Appending(folder, part.place.name, create=False) as file:
            file.append(later[len(before) :])
    elif part.kind is Kind.SUMMARY and part.worker is not None and part.mission is not None:
        tree.bring_over(part.worker, part.mission, later)


def _set_aside(tree: Tree, part: Part, data: bytes) -> None:
    """A text that is in no version of the journal may be somebody's: it is kept in the state folder."""
    with closing(Inspector(tree.journal.path)) as journal:
        known = any(journal.handoff(worker, sha256(data)) for worker in journal.workers())
    if not known:
        with tree.state.child(layout.DISPLACED, create=True, permissions=0o700) as folder:
            replace(folder, f"{sha256(data)[:12]}-{part.place.name}", data, permissions=0o600)
