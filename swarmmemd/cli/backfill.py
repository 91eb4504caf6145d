"""`swarmmemd backfill`: the past of a swarm that was not watched."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.asking import answered
from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_line, say_progress
from swarmmemd.errors import Exit, HeldError, UsageError

if TYPE_CHECKING:
    from swarmmemd.config import Config
    from swarmmemd.model import WorkerId
    from swarmmemd.tree import Tree

_EPILOG = """\b
Examples:
  swarmmemd backfill --dry-run
  swarmmemd backfill --worker swarm5 --since 2026-04-01
"""
_PATIENCE = 3600.0


@click.command("backfill", epilog=_EPILOG)
@click.option("--worker", metavar="W", help="Only this worker.")
@click.option("--since", metavar="TIME", help="Only what happened from then on: an ISO date or time.")
@click.option("--dry-run", is_flag=True, help="Say how much there is, and record nothing.")
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def backfill_command(
    ctx: click.Context, worker: str | None, since: str | None, dry_run: bool, allow_root: bool
) -> int:
    """Record the past of each worker: missions that ended before it was watched.

    It is read from the mission ledger and the workers' chats. Missions that are known are left alone, so doing
    it twice changes nothing. Where a daemon runs, it does the work. Exits 1 if something could not be read.
    """
    from swarmmemd.model import parse_iso, worker_id
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    only = worker_id(worker) if worker is not None else None
    if worker is not None and only is None:
        raise UsageError(f"{worker!r} is no worker id", "Letters, digits, _ and -, at most 64.")
    start = parse_iso(since) if since is not None else 0
    if start is None:
        raise UsageError(f"{since!r} is no time", "An ISO date or time, such as 2026-04-01.")
    config = load_config(ctx).config
    try:
        with open_tree(config, Clock(monotonic=time.monotonic, wall=time.time), allow_root) as tree:
            problems = _here(tree, only, start, dry_run)
    except HeldError as held:
        problems = _by_the_daemon(config, only, start, dry_run, held)
    for problem in problems:
        say_line(problem, err=True)
    return Exit.NOTHING if problems else Exit.DONE


def _here(tree: "Tree", only: "WorkerId | None", since: int, dry: bool) -> list[str]:
    from swarmmemd.backfill import backfill

    tree.discover()
    tree.everything()
    problems: list[str] = []
    for worker in _chosen(sorted(tree.turns.workers), only):
        try:
            found = backfill(tree, worker, since, dry, lambda row, worker=worker: _progress(worker, row))  # type: ignore[misc]
        except OSError as error:
            problems.append(str(error))
            continue
        _tell(worker, len(found), dry)
    tree.turns.settle()
    return problems


def _by_the_daemon(
    config: "Config", only: "WorkerId | None", since: int, dry: bool, held: HeldError
) -> list[str]:
    from swarmmemd.inbox import Request
    from swarmmemd.instance import is_running

    if is_running(config.state_dir) is None:
        raise held  # and so nobody knows the workers
    problems: list[str] = []
    for worker in _chosen(_known(config.state_dir), only):
        request = Request("backfill", worker=worker, since=since, dry=dry)
        answer = answered(config.state_dir, request, held, _PATIENCE)
        problems += answer.problems
        _tell(worker, answer.events, dry)
    return problems


def _known(state_dir: Path) -> "list[WorkerId]":
    """The workers of the running daemon."""
    import json

    from swarmmemd.layout import STATUS
    from swarmmemd.model import worker_id

    try:
        listed = json.loads((state_dir / STATUS).read_bytes())["workers"]
    except (OSError, ValueError, KeyError):
        return []
    return [id for one in listed if (id := worker_id(one.get("worker"))) is not None]


def _chosen(workers: "list[WorkerId]", only: "WorkerId | None") -> "list[WorkerId]":
    if only is not None and only not in workers:
        raise UsageError(f"{only} is no worker of this swarm", "See: swarmmemd status")
    return [worker for worker in workers if only in (None, worker)]


def _tell(worker: str, count: int, dry: bool) -> None:
    say_line(f"{worker}: {count} events of the past {'found' if dry else 'recorded'}")


def _progress(worker: str, row: int) -> None:
    """Long chats take a while; a person wants to see that it goes on."""
    import sys

    if sys.stderr.isatty():
        say_progress(f"{worker}: chat read to row {row}")
