"""`swarmmemd config`: the effective configuration and where each value came from. docs/configuration.md."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, default_config_file, load_config
from swarmmemd.cli.output import say, say_json

if TYPE_CHECKING:
    from swarmmemd.config import Loaded

SCHEMA = 1

_EPILOG = """\b
Examples:
  swarmmemd config
  swarmmemd config --state-dir /srv/swarmmemd
  swarmmemd config --json | jq -r '.settings[] | select(.origin != "default") | .key'
"""


@click.command("config", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def config_command(ctx: click.Context, as_json: bool) -> None:
    """Print the effective configuration and where each value came from.

    Every key is a flag too: api.listen is --api-listen, and SWARMMEMD_API_LISTEN in the environment. The
    origin of a value is a flag, an environment variable, the file, or the default, in this order.
    """
    loaded = load_config(ctx)
    if as_json:
        say_json(envelope(loaded), indent=2)
        return
    for line in listing(loaded, default_config_file(ctx)):
        say(line)
    for notice in loaded.notices:
        say(f"Notice: {notice}", err=True)


def envelope(loaded: "Loaded") -> dict[str, object]:
    """The object that `--json` prints."""
    settings = [
        {"key": setting.key, "value": _plain(setting.value), "origin": setting.origin}
        for setting in loaded.settings
    ]
    file = str(loaded.file) if loaded.file else None
    return {"schema": SCHEMA, "file": file, "settings": settings, "notices": list(loaded.notices)}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def listing(loaded: "Loaded", default: Path) -> list[str]:
    """The lines for people: key, value and origin in columns, the file first."""
    file = str(loaded.file) if loaded.file else f"none ({default} is not there)"
    rows = [(setting.key, _text(setting.value), setting.origin) for setting in loaded.settings]
    keys = max(len(key) for key, _, _ in rows)
    values = max(len(value) for _, value, _ in rows)
    return [
        f"{'file':{keys}}  {file}",
        *(f"{key:{keys}}  {value:{values}}  {origin}" for key, value, origin in rows),
    ]


def _text(value: object) -> str:
    if isinstance(value, Path | str):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
