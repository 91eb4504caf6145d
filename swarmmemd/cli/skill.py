"""`swarmmemd skill`: the skill that tells workers how to use their memory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_line
from swarmmemd.errors import Exit, SwarmmemdError

if TYPE_CHECKING:
    from swarmmemd.config import Config

_EPILOG = """\b
Examples:
  swarmmemd skill show
  swarmmemd skill install
  swarmmemd skill install --profiles 'swarm*'
  swarmmemd skill install --dir ~/.hermes/skills
"""


@click.group("skill", epilog=_EPILOG)
def skill_command() -> None:
    """Show or install the skill that tells workers how to load, search and hand over their memory."""


@skill_command.command("show", epilog=_EPILOG)
@common_options
def show_command() -> int:
    """Print the skill."""
    from swarmmemd.skills import skill

    say(skill(), nl=False)
    return Exit.DONE


@skill_command.command("install", epilog=_EPILOG)
@click.option(
    "--profiles", multiple=True, metavar="GLOB", help="Only workers whose id matches one of these globs."
)
@click.option(
    "--dir", "folder", metavar="PATH", help="Into this folder of skills instead of the workers' own."
)
@click.option("--force", is_flag=True, help="Replace a skill that somebody has changed.")
@common_options
@click.pass_context
def install_command(ctx: click.Context, profiles: tuple[str, ...], folder: str | None, force: bool) -> int:
    """Put the skill where the workers' profiles load skills from: skills/swarm-memory/SKILL.md. Exits 1 if it
    could not be done everywhere, or there is nowhere to put it."""
    from swarmmemd.skills import install
    from swarmmemd.text import one_row

    if folder is not None and profiles:
        raise click.UsageError("--dir and --profiles exclude each other")
    places = _folders(load_config(ctx).config, profiles) if folder is None else [Path(folder).expanduser()]
    well = bool(places)
    if not places:
        say_line("There is no such worker", err=True)
    for place in places:
        try:
            done = install(place, force)
        except SwarmmemdError as error:
            say_line(f"{one_row(str(error), 400)}. {error.mend}", err=True)
            well = False
            continue
        if done == "kept":
            say_line(f"{place}/swarm-memory: somebody has changed it; --force replaces it", err=True)
            well = False
        else:
            say_line(f"{place}/swarm-memory: {done}")
    return Exit.DONE if well else Exit.NOTHING


def _folders(config: "Config", globs: tuple[str, ...]) -> list[Path]:
    """The folders of skills of the workers that match."""
    from fnmatch import fnmatchcase

    from swarmmemd.recall.overview import workers_of

    wanted = [
        one
        for one in sorted(workers_of(config))
        if not globs or any(fnmatchcase(one, glob) for glob in globs)
    ]
    return [config.profiles_root / one / "skills" for one in wanted]
