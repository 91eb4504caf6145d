"""`swarmmemd demo`: the real daemon on real files, beside a small scripted swarm."""

import click

from swarmmemd.cli.options import common_options

_EPILOG = """\b
Examples:
  swarmmemd demo
  swarmmemd demo --keep       (leave the files to look at)
"""


@click.command("demo", epilog=_EPILOG)
@click.option("--keep", is_flag=True, help="Leave the temporary home behind and print where it is.")
@click.option(
    "--pace", type=click.FloatRange(0.0, 10.0), default=0.5, show_default=True, help="Seconds a step."
)
@common_options
@click.pass_context
def demo_command(ctx: click.Context, keep: bool, pace: float) -> int:
    """Show the daemon at work, in a few seconds, touching nothing of yours.

    Makes a temporary home with three workers, starts `swarmmemd run` on it, plays a control plane that
    dispatches, checkpoints, blocks and completes, shows the events as they are recorded, and prints the memory
    tree at the end.
    """
    from swarmmemd.demo.show import demonstrate

    return demonstrate(keep, pace)
