"""`swarmmemd context`: what the workers know that bears on a task."""

import time

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_json, say_line

_EPILOG = """\b
Examples:
  swarmmemd context "make the flaky parser test stable"
  swarmmemd context --json --lines 5 "paint the harbour"
"""


@click.command("context", epilog=_EPILOG)
@click.argument("task", nargs=-1, required=True)
@click.option(
    "--lines", type=click.IntRange(1, 50), default=3, show_default=True, help="Lines of each worker at most."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--max-chars", type=click.IntRange(min=1000), default=6000, show_default=True, help="Characters at most."
)
@common_options
@click.pass_context
def context_command(
    ctx: click.Context, task: tuple[str, ...], lines: int, as_json: bool, max_chars: int
) -> int:
    """Find, across workers, what bears on a task, and rank the workers by it: for the prompt of an orchestrator
    before it assigns work. Exits 1 if nobody knows anything."""
    from swarmmemd.cli.unread import tell_unread
    from swarmmemd.recall.context import as_object, context

    text = " ".join(task).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    found = context(load_config(ctx).config, text, int(time.time() * 1000), lines, max_chars)
    code = tell_unread(found.workers, found.troubles)
    if as_json:
        say_json(as_object(text, found))
    elif found.workers:
        say(found.text, nl=False)
    if not found.workers:
        say_line(f"No worker's memory holds a word of it. Searched: {len(found.looked)} workers", err=True)
    return code
