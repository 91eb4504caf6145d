"""`swarmmemd run`: the daemon in the foreground."""

import contextlib
from functools import partial

import click

from swarmmemd.cli.options import common_options, load_config, state_directory
from swarmmemd.cli.output import say
from swarmmemd.errors import ConfigError, Exit, SwarmmemdError

_EPILOG = """\b
Examples:
  swarmmemd run
  swarmmemd run --profiles-root /srv/hermes/profiles --log-format json
"""


@click.command("run", epilog=_EPILOG)
@click.option(
    "--supervisor",
    type=click.Choice(["systemd", "launchd", "none"]),
    default="none",
    help="Who restarts it: decides what is done about an error that a restart cannot mend.",
)
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def run_command(ctx: click.Context, supervisor: str, allow_root: bool) -> int:
    """Watch the swarm and keep its memory, in the foreground.

    SIGTERM and SIGINT end it after the current turn, SIGHUP reads configuration and roster again. Log lines
    go to stderr.
    """
    try:
        _serve(ctx, allow_root)
    except SwarmmemdError as error:
        say(f"swarmmemd: {error}\n  {error.mend}".rstrip(), err=True)
        _leave_word(ctx, error)
        # launchd restarts whatever did not exit 0, for ever: it must not restart into what stays wrong.
        return Exit.DONE if supervisor == "launchd" and error.permanent else error.code
    return Exit.DONE


def _serve(ctx: click.Context, allow_root: bool) -> None:
    import time

    from swarmmemd.log import configure
    from swarmmemd.notify import notify
    from swarmmemd.service import Daemon, Stop
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    loaded = load_config(ctx)
    log = configure(loaded.config.log.format, loaded.config.log.level)
    for notice in loaded.notices:
        log.warning("notice", text=notice)
    clock = Clock(monotonic=time.monotonic, wall=time.time)
    stop = Stop()
    stop.on_signals()
    with open_tree(loaded.config, clock, allow_root) as tree:
        tree.forget_last_exit()
        daemon = Daemon(tree, clock, log, stop, lambda: load_config(ctx).config)
        daemon.run(ready=partial(notify, "READY=1"))
    log.info("stopped")


def _leave_word(ctx: click.Context, error: SwarmmemdError) -> None:
    """What ended it, for whoever finds the service down: `last-exit.json` in the state directory."""
    import json

    from swarmmemd import layout
    from swarmmemd.durable import private_directory, replace

    folder = state_directory(ctx)
    if isinstance(error, ConfigError) and not (folder / layout.LOCK).exists():
        return  # it may be the state directory itself that is refused: nothing is made there
    word = {"exit": int(error.code), "reason": str(error), "mend": error.mend}
    with contextlib.suppress(OSError, SwarmmemdError), private_directory(folder) as state:
        replace(state, layout.LAST_EXIT, json.dumps(word).encode(), permissions=0o600)
