"""`swarmmemd show`: a worker's memory files, as they are."""

from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_json, say_line
from swarmmemd.cli.unread import tell_unread
from swarmmemd.errors import Exit

if TYPE_CHECKING:
    from swarmmemd.recall.files import Found

_EPILOG = """\b
Examples:
  swarmmemd show --worker swarm5
  swarmmemd show --worker swarm5 --kind mission --mission mission-x
  swarmmemd show --worker swarm5 --kind episodic --date 2026-04-28
"""
_KINDS = ("profile", "mission", "episodic", "handoff", "shared")


@click.command("show", epilog=_EPILOG)
@click.option("--worker", required=True, help="Whose memory.")
@click.option("--kind", type=click.Choice(_KINDS), default="mission", show_default=True)
@click.option("--mission", help="Which mission; without it the one that was written last.")
@click.option("--date", metavar="YYYY-MM-DD", help="Which day; without it the newest.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def show_command(
    ctx: click.Context, worker: str, kind: str, mission: str | None, date: str | None, as_json: bool
) -> int:
    """Print a worker's memory: read from the files, whether or not the daemon runs. Exits 1 if there is none."""
    from swarmmemd.recall.files import MemoryQuery, read_memory

    query = MemoryQuery(worker=worker, kind=kind, mission=mission, date=date)
    found = read_memory(load_config(ctx).config, query)
    if as_json:
        files = [{"name": f.name, "path": str(f.path), "content": f.content} for f in found.files]
        content = {
            "ok": bool(found.files),
            "workerId": worker,
            "kind": kind,
            "path": str(found.path),
            "files": files,
        }
        say_json(content, indent=2)
    else:
        _tell(found)
    code = tell_unread(found.files, found.troubles)
    if code is Exit.NOTHING and not as_json:
        say_line(f"Nothing in {found.path}", err=True)
    return code


def _tell(found: "Found") -> None:
    """The files one after the other; on stdout the text, on stderr whose it is."""
    for file in found.files:
        say_line(f"== {file.path}", err=True)
        say(file.content.rstrip("\n"))
