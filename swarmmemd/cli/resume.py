"""`swarmmemd resume`: what a worker loads when it starts again."""

import time

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_json, say_line
from swarmmemd.errors import Exit

_EPILOG = """\b
Examples:
  swarmmemd resume swarm5
  swarmmemd resume swarm5 --max-chars 8000
  swarmmemd resume swarm5 --prompt
"""


@click.command("resume", epilog=_EPILOG)
@click.argument("worker")
@click.option("--prompt", is_flag=True, help="Print the compact prompt only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--max-chars",
    type=click.IntRange(min=1000),
    default=20_000,
    show_default=True,
    help="Characters at most.",
)
@common_options
@click.pass_context
def resume_command(ctx: click.Context, worker: str, prompt: bool, as_json: bool, max_chars: int) -> int:
    """Print what a worker loads at its start: who it is, its mission, the handoff, what happened last. Made from
    the files as they are now, whether or not the daemon runs. Exits 1 if there is nothing of that worker."""
    from swarmmemd.cli.unread import tell_unread
    from swarmmemd.recall.resume import as_object, resume

    found = resume(load_config(ctx).config, worker, int(time.time() * 1000), max_chars)
    code = tell_unread(found.found, found.troubles)
    if as_json:
        say_json({**as_object(found), "ok": found.found})
    elif prompt:
        say(found.prompt, nl=False)
    elif found.found:
        say(found.text, nl=False)
    if code is Exit.NOTHING:
        say_line(f"Nothing of {worker} in {found.looked}", err=True)
    return code
