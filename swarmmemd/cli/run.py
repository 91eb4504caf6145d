"""`swarmmemd run`: the daemon in the foreground."""

import contextlib
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config, state_directory
from swarmmemd.cli.output import say
from swarmmemd.errors import ConfigError, Exit, SwarmmemdError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarmmemd.config import Config
    from swarmmemd.log import Log
    from swarmmemd.web.beside import Beside

_EPILOG = """\b
Examples:
  swarmmemd run
  swarmmemd run --profiles-root /srv/hermes/profiles --log-format json
"""
_CRASHES = 1 << 20
"""Bytes of the file that launchd collects stderr in, beyond which it is emptied at start."""


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
        _serve(ctx, supervisor, allow_root)
    except SwarmmemdError as error:
        _complain(error)
        _leave_word(ctx, error)
        # launchd restarts whatever did not exit 0, for ever: it must not restart into what stays wrong.
        return Exit.DONE if supervisor == "launchd" and error.permanent else error.code
    return Exit.DONE


def _serve(ctx: click.Context, supervisor: str, allow_root: bool) -> None:
    import time

    from swarmmemd.layout import LOG
    from swarmmemd.log import File, Outlet, Stream, configure
    from swarmmemd.logfile import LogFile
    from swarmmemd.notify import notify
    from swarmmemd.recall.keeper import Keeper
    from swarmmemd.service import Daemon, Stop, pulse
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    loaded = load_config(ctx)
    settings = loaded.config.log
    outlets: list[Outlet] = [Stream(settings.format)]
    log = configure(settings.level, outlets)
    clock = Clock(monotonic=time.monotonic, wall=time.time)
    stop = Stop()
    stop.on_signals()
    _prepare_last_words()
    _look_into_roots(loaded.config, log)
    notify("STATUS=opening the journal, and reading what is there")
    with open_tree(loaded.config, clock, allow_root) as tree:
        if settings.files:
            # Only who holds the lock may write it.
            file = LogFile(loaded.config.state_dir / LOG, settings.files, settings.max_mb << 20)
            outlets.append(File(file))
            if supervisor == "launchd":
                del outlets[0]  # the file behind stderr would grow without end
        for notice in loaded.notices:
            log.warning("notice", text=notice)
        tree.forget_last_exit()
        reload = lambda: load_config(ctx).config  # noqa: E731
        with Keeper(loaded.config), _api(loaded.config, log) as api:
            daemon = Daemon(tree, clock, log, stop, reload, pulse(supervisor, sys.stderr), api)
            daemon.run(ready=partial(notify, "READY=1"))
        # A second one that was started by mistake has left word as well: that is not why this one is down.
        tree.forget_last_exit()
        log.info("stopped")


@contextlib.contextmanager
def _api(config: "Config", log: "Log") -> "Iterator[Beside | None]":
    """The HTTP API beside the daemon, where it is wanted."""
    if not config.api.enabled:
        yield None
        return
    from swarmmemd.cli.serve import check_extra

    check_extra()
    from swarmmemd.web.beside import Beside

    with Beside(config, log) as beside:
        yield beside


def _look_into_roots(config: "Config", log: "Log") -> None:
    """A line before each root is opened: on macOS that can wait for somebody's consent, without a word. What is
    denied is no warning yet: a root that is only read, or that nothing goes to, troubles nobody."""
    from swarmmemd.access import refusal, roots

    for key, path in roots(config).items():
        log.info("opening", root=key, path=str(path))
        denied = refusal(key, path)
        if denied:
            log.info("denied", reason=denied)


def _prepare_last_words() -> None:
    """The stack on stderr when a watchdog or a bug kills the process; the file behind it, where launchd keeps
    one, begins anew when it has grown."""
    import faulthandler

    from swarmmemd.durable import shorten

    named = os.environ.get("SWARMMEMD_CRASH_LOG")
    if named:
        shorten(sys.stderr.fileno(), named, _CRASHES)
    with contextlib.suppress(OSError, ValueError):
        faulthandler.enable()


def _complain(error: SwarmmemdError) -> None:
    from swarmmemd.log import by_journald, prioritised

    text = f"swarmmemd: {error}\n  {error.mend}".rstrip()
    say(prioritised(text, "error") if by_journald(sys.stderr) else f"{text}\n", err=True, nl=False)


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
