"""`swarmmemd once`: one turn for every worker; where a daemon runs, it is asked to do it."""

import time
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_line
from swarmmemd.errors import Exit, HeldError

if TYPE_CHECKING:
    from swarmmemd.config import Config
    from swarmmemd.inbox import Answer
    from swarmmemd.turn import Clock

_EPILOG = """\b
Examples:
  swarmmemd once
  */5 * * * *  swarmmemd once        (as a cron job instead of the daemon)
"""
_TRIES = 10.0
"""Seconds during which files that are being written are tried again."""


@click.command("once", epilog=_EPILOG)
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def once_command(ctx: click.Context, allow_root: bool) -> int:
    """One turn for every worker, then exit: for cron, tests and repair.

    Where a daemon runs on the same state directory, it does the turn and this command waits for it. Exits 1
    if something could not be read or written; what it was stands on stderr.
    """
    from swarmmemd.turn import Clock

    config = load_config(ctx).config
    try:
        answer = _turn(config, Clock(monotonic=time.monotonic, wall=time.time), allow_root)
    except HeldError as held:
        from swarmmemd.cli.asking import answered
        from swarmmemd.inbox import Request

        answer = answered(config.state_dir, Request("once"), held)
    for problem in answer.problems:
        say_line(problem, err=True)
    say_line(f"{answer.workers} workers looked at, {answer.events} new events")
    return Exit.NOTHING if answer.problems else Exit.DONE


def _turn(config: "Config", clock: "Clock", allow_root: bool) -> "Answer":
    """Looks at every worker until nothing waits any more, or ten seconds are over."""
    from swarmmemd.inbox import Answer
    from swarmmemd.tree import open_tree

    with open_tree(config, clock, allow_root) as tree:
        found = tree.discover()
        if found.trouble:
            return Answer(0, 0, (f"{config.profiles_root}: {found.trouble}",))
        events = tree.until_still(_TRIES)
        shared = (found.shared,) if found.shared else ()
        return Answer(len(tree.turns.workers), events, (*shared, *tree.problems()))
