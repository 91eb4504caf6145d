"""`swarmmemd archive`: the archive of a completed mission, by hand."""

import time

import click

from swarmmemd.cli.asking import answered, succeeded
from swarmmemd.cli.options import as_mission, common_options, load_config
from swarmmemd.cli.output import say_line
from swarmmemd.errors import Exit, HeldError

_EPILOG = """\b
Examples:
  swarmmemd archive mission-x
"""


@click.command("archive", epilog=_EPILOG)
@click.argument("mission")
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def archive_command(ctx: click.Context, mission: str, allow_root: bool) -> int:
    """Archive a completed mission into the shared folder, redacted, with its manifest.

    The daemon does this by itself when a mission completes; doing it again changes nothing. Where a daemon
    runs, it does the work. Exits 1 if no worker has completed the mission.
    """
    from swarmmemd.inbox import Request
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    id = as_mission(mission)
    config = load_config(ctx).config
    try:
        with open_tree(config, Clock(monotonic=time.monotonic, wall=time.time), allow_root) as tree:
            changed = tree.archive(id)
    except HeldError as held:
        answer = succeeded(answered(config.state_dir, Request("archive", mission=id), held))
        changed = answer.changed
    if changed is None:
        say_line(f"No worker has completed {mission}", err=True)
        return Exit.NOTHING
    where = config.shared_root / "swarm" / "missions" / mission
    say_line(f"{where}: {changed} changed" if changed else f"{where}: up to date")
    return Exit.DONE
