"""What the commands print. Texts and names of others are data: nothing in them steers a terminal.

docs/commands.md, "Output".
"""

from typing import Any

import click

from swarmmemd.text import harmless, harmless_json, on_one_line


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Prints lines, with control and direction characters shown as `\\x1b` and the like; without `nl` as they end."""
    click.echo(harmless(text), err=err, nl=nl)


def say_titled(title: str, text: str, colour: str | None) -> None:
    """Prints a line that begins with a title of ours, in that colour."""
    click.echo(f"{click.style(title, fg=colour) if colour else title}  {on_one_line(text)}")


def say_progress(text: str) -> None:
    """Writes over the line on stderr that the last call wrote. For a terminal only."""
    click.echo(f"\r{on_one_line(text)} ", nl=False, err=True)


def say_line(text: str, err: bool = False) -> None:
    """The same for what is one line: a break in a name begins no second one."""
    click.echo(on_one_line(text), err=err)


def say_json(value: Any, indent: int | None = None, compact: bool = False) -> None:
    """Prints JSON; what would steer a terminal stands there escaped."""
    import json  # for those who ask for it

    separators = (",", ":") if compact else None
    click.echo(harmless_json(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)))
