"""`swarmmemd completion`: what a shell needs to complete commands and options."""

import click

from swarmmemd.cli.options import common_options
from swarmmemd.cli.output import say
from swarmmemd.errors import Exit

_EPILOG = """\b
Examples:
  swarmmemd completion bash > ~/.local/share/bash-completion/completions/swarmmemd
  swarmmemd completion zsh > "${fpath[1]}/_swarmmemd"
  swarmmemd completion fish > ~/.config/fish/completions/swarmmemd.fish
"""


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> int:
    """Print the completion script for SHELL. It asks this program, so it needs no renewal after an upgrade."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(ctx.find_root().command, {}, "swarmmemd", "_SWARMMEMD_COMPLETE")
    say(script.source_template % script.source_vars())
    return Exit.DONE
