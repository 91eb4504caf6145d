"""`swarmmemd rebuild`: our part of the memory files from the journal, or the journal from the files."""

import time
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.asking import answered
from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_line
from swarmmemd.errors import Exit, HeldError, UsageError
from swarmmemd.text import one_row

if TYPE_CHECKING:
    from swarmmemd.config import Config
    from swarmmemd.model import MissionId, WorkerId
    from swarmmemd.recall.parts import Part

_EPILOG = """\b
Examples:
  swarmmemd rebuild --dry-run
  swarmmemd rebuild --worker swarm5
  swarmmemd rebuild --journal
"""
_PATIENCE = 600.0
_STILL = 2.0
"""Seconds during which files that are being written are waited for."""
_WIDTH = 300


@click.command("rebuild", epilog=_EPILOG)
@click.option("--worker", help="Only this worker's files.")
@click.option("--mission", help="Only this mission's files.")
@click.option("--dry-run", is_flag=True, help="Show as a diff what would be changed, and change nothing.")
@click.option(
    "--journal", is_flag=True, help="Set the journal aside and make a new one from the memory files."
)
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def rebuild_command(
    ctx: click.Context,
    worker: str | None,
    mission: str | None,
    dry_run: bool,
    journal: bool,
    allow_root: bool,
) -> int:
    """Make the memory files right again from the journal: all that `verify` finds wrong.

    What people and other programs wrote stays. Where a daemon runs, it does the work. Exits 1 if something could
    not be made right; what it was stands on stderr.
    """
    from swarmmemd.model import mission_id, worker_id

    who, which = worker_id(worker), mission_id(mission)
    if worker is not None and who is None:
        raise UsageError(f"{worker!r} is no worker id", "Letters, digits, - and _, at most 64.")
    if mission is not None and which is None:
        raise UsageError(f"{mission!r} is no mission id", "Letters, digits and _.:- , at most 128.")
    if journal and (worker or mission):
        raise UsageError("--journal is for all workers and missions", "Leave --worker and --mission out.")
    config = load_config(ctx).config
    if journal:
        return _journal(config, dry_run, allow_root)
    if who is not None and not _is_known(config, who):
        say_line(f"No worker {who} is known", err=True)
        return Exit.NOTHING
    return _show(config, who, which) if dry_run else _rebuild(config, who, which, allow_root)


def _is_known(config: "Config", worker: "WorkerId") -> bool:
    from contextlib import closing

    from swarmmemd.journal.inspector import Inspector
    from swarmmemd.layout import JOURNAL

    with closing(Inspector(config.state_dir / JOURNAL)) as journal:
        return worker in journal.workers()


def _rebuild(
    config: "Config", worker: "WorkerId | None", mission: "MissionId | None", allow_root: bool
) -> int:
    from swarmmemd.inbox import Request
    from swarmmemd.rebuild import rebuild
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    try:
        with open_tree(config, Clock(monotonic=time.monotonic, wall=time.time), allow_root) as tree:
            tree.discover()
            done = rebuild(tree, worker, mission, lambda: tree.until_still(_STILL))
            changed, problems = done.changed, done.problems
    except HeldError as held:
        request = Request("rebuild", mission=mission, worker=worker)
        answer = answered(config.state_dir, request, held, _PATIENCE)
        changed, problems = answer.files, answer.problems
    for problem in dict.fromkeys(problems):
        say_line(one_row(problem, _WIDTH), err=True)
    for path in changed:
        say_line(one_row(path, _WIDTH))
    if changed or not problems:
        say_line(f"{len(changed)} files made right" if changed else "nothing to change")
    return Exit.NOTHING if problems else Exit.DONE


def _show(config: "Config", worker: "WorkerId | None", mission: "MissionId | None") -> int:
    """What would be changed."""
    from contextlib import closing

    from swarmmemd.instance import is_running
    from swarmmemd.journal.inspector import Inspector
    from swarmmemd.layout import JOURNAL, profile
    from swarmmemd.recall.verify import BUSY, beyond_repair, examiner, settled, settled_archives

    count, left = 0, False
    running = is_running(config.state_dir) is not None
    with closing(Inspector(config.state_dir / JOURNAL)) as journal:
        one = examiner(config, journal, taken_up=running)
        parts: list[Part] = []
        for each in [worker] if worker is not None else journal.workers():
            found = settled(one, each, running, mission)
            if found is None:
                say_line(one_row(f"{profile(config.profiles_root, each)}: {BUSY}", _WIDTH), err=True)
            parts += [part for part in found or () if part.faults]
        parts += [part for part in settled_archives(one, running, mission, worker) if part.faults]
        for part in parts:
            count += _diff(part)
            left = left or part.right is None or any(not fault.mendable for fault in part.faults)
        for finding in beyond_repair(config, journal) if worker is None and mission is None else ():
            say_line(
                one_row(f"{finding.path}:{finding.line}: {finding.what}. {finding.mend}", _WIDTH), err=True
            )
            left = True
    if count or not left:
        say_line(f"{count} files would be made right" if count else "nothing to change")
    return Exit.NOTHING if left else Exit.DONE


def _diff(part: "Part") -> bool:
    """Shows what would be changed in the file. Says whether anything would be."""
    from difflib import unified_diff

    path = one_row(str(part.path), _WIDTH)
    if part.right in (None, part.data):
        for fault in part.faults:
            mend = part.mend or "It cannot be made again."
            say_line(one_row(f"{path}:{fault.line}: {fault.what}. {mend}", _WIDTH), err=True)
        return False
    assert part.right is not None
    if not part.right:
        say_line(f"{path}: would be made again")
        return True
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (part.data or b"", part.right))
    for line in unified_diff(old, new, path, path, "as it is", "made right", lineterm=""):
        say(line)
    return True


def _journal(config: "Config", dry_run: bool, allow_root: bool) -> int:
    """The journal from the files. A running daemon has it open, so it has to be stopped first."""
    from swarmmemd.recall.memory import remembered
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    if dry_run:
        workers, events = remembered(config)
        say_line(f"{events} events of {workers} workers would be read back")
        return Exit.DONE
    clock = Clock(monotonic=time.monotonic, wall=time.time)
    try:
        with open_tree(config, clock, allow_root, anew=True) as tree:
            tree.discover()
            tree.until_still(_STILL)
            workers, events = tree.journal.read_back()
            problems = tree.problems()
    except HeldError as error:
        raise HeldError(str(error), "Stop it first: the journal is open in it.") from error
    for problem in problems:
        say_line(one_row(problem, _WIDTH), err=True)
    say_line(f"{events} events of {workers} workers read back")
    return Exit.NOTHING if problems else Exit.DONE
