"""`swarmmemd promote`: a lesson from an event into the worker's long memory."""

import time

import click

from swarmmemd.cli.asking import answered, succeeded
from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_line
from swarmmemd.errors import Exit, HeldError, UsageError

_EPILOG = """\b
Examples:
  swarmmemd promote ev_8c1f6a31f7df41a2a5b1b6c4a0e9d3
  swarmmemd promote ev_8c1f6a31f7df41a2a5b1b6c4a0e9d3 --text "Run the migrations before the tests"
"""


@click.command("promote", epilog=_EPILOG)
@click.argument("event")
@click.option("--text", help="The lesson in your words; by default what the event says.")
@click.option(
    "--wait", is_flag=True, expose_value=False, help="Wait until it is done, which this command always does."
)
@click.option("--allow-root", is_flag=True, help="Run as root over another user's profiles.")
@common_options
@click.pass_context
def promote_command(ctx: click.Context, event: str, text: str | None, allow_root: bool) -> int:
    """Put a lesson from an event into its worker's MEMORY.md, under "Lessons learned".

    The event's id stands behind it as evidence. Once is enough: a second time changes nothing. Where a daemon
    runs, it does the work. Exits 1 if there is no such event.
    """
    from swarmmemd.inbox import Request
    from swarmmemd.model import EventId
    from swarmmemd.text import whole
    from swarmmemd.tree import open_tree
    from swarmmemd.turn import Clock

    if text is not None and not text.strip():
        raise UsageError("the lesson is empty", "Leave --text out to take what the event says.")
    text = whole(text) if text is not None else None
    config = load_config(ctx).config
    try:
        with open_tree(config, Clock(monotonic=time.monotonic, wall=time.time), allow_root) as tree:
            tree.discover()
            done = tree.promote(EventId(event), text)
            tree.settle()
    except HeldError as held:
        answer = succeeded(answered(config.state_dir, Request("promote", event=event, text=text), held))
        done = None if answer.changed is None else bool(answer.changed)
    if done is None:
        say_line(f"There is no event {event}", err=True)
        return Exit.NOTHING
    say_line("promoted" if done else "it stands there already")
    return Exit.DONE
