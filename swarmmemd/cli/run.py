"""`swarmmemd run`: the daemon in the foreground."""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.errors import Exit, SwarmmemdError

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
@common_options
@click.pass_context
def run_command(ctx: click.Context, supervisor: str) -> int:
    """Watch the swarm and keep its memory, in the foreground.

    SIGTERM and SIGINT end it after the current turn, SIGHUP reads configuration and roster again. Log lines
    go to stderr.
    """
    from swarmmemd.log import configure

    loaded = load_config(ctx)
    config = loaded.config
    log = configure(config.log.format, config.log.level)
    for notice in loaded.notices:
        log.warning("notice", text=notice)
    try:
        _serve(ctx, config, log, supervisor)
    except SwarmmemdError as error:
        log.error("cannot run", reason=str(error), mend=error.mend, exit=int(error.code))
        _leave_word(config, error)
        # launchd restarts whatever did not exit 0, for ever; these errors stay until a person mends them.
        permanent = error.code in (Exit.USAGE, Exit.LOCKED, Exit.PERMISSION, Exit.CONFIG)
        return Exit.DONE if supervisor == "launchd" and permanent else error.code
    return Exit.DONE


def _serve(ctx: click.Context, config: Any, log: Any, supervisor: str) -> None:
    import time

    from swarmmemd.notify import notify
    from swarmmemd.service import Daemon, Stop
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    clock = Clock(monotonic=time.monotonic, wall=time.time)
    stop = Stop()
    stop.on_signals()
    with open_tree(config, clock) as tree:
        daemon = Daemon(tree, clock, log, stop, lambda: load_config(ctx).config)
        daemon.run(ready=partial(notify, "READY=1"))
        notify("STOPPING=1")
    log.info("stopped")


def _leave_word(config: Any, error: SwarmmemdError) -> None:
    """What ended it, for whoever finds the service down: `last-exit.json` in the state directory."""
    import json

    from swarmmemd import layout
    from swarmmemd.durable import private_directory, replace

    word: Mapping[str, object] = {"exit": int(error.code), "reason": str(error), "mend": error.mend}
    with contextlib.suppress(OSError), private_directory(config.state_dir) as state:
        replace(state, layout.LAST_EXIT, json.dumps(word).encode(), permissions=0o600)
