"""What the commands print. Texts and names of others are data: nothing in them steers a terminal.

docs/commands.md, "Output".
"""

import json
from typing import Any

import click

from swarmmemd.text import harmless, harmless_json, on_one_line


def say(text: str, err: bool = False) -> None:
    """Prints lines, with control and direction characters shown as `\\x1b` and the like."""
    click.echo(harmless(text), err=err)


def say_line(text: str, err: bool = False) -> None:
    """The same for what is one line: a break in a name begins no second one."""
    click.echo(on_one_line(text), err=err)


def say_json(value: Any, indent: int | None = None, compact: bool = False) -> None:
    """Prints JSON; what would steer a terminal stands there escaped."""
    separators = (",", ":") if compact else None
    click.echo(harmless_json(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)))
