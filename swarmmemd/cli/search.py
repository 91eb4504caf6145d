"""`swarmmemd search`: what the memory of the swarm says of some words."""

from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_json, say_line
from swarmmemd.errors import Exit

if TYPE_CHECKING:
    from swarmmemd.config import Config
    from swarmmemd.recall.search import Results, SearchQuery

_EPILOG = """\b
Examples:
  swarmmemd search "rate limit"
  swarmmemd search --worker swarm5 --type blocked parser
  swarmmemd search --scope all --since 2026-04-28 --json foo/bar.py
"""
_TYPES = [
    *("mission-start", "dispatch", "checkpoint", "handoff-requested", "handoff-written"),
    *("resume", "blocked", "complete", "note"),
]


@click.command("search", epilog=_EPILOG)
@click.argument("query", nargs=-1, required=True)
@click.option("--worker", help="Only the memory of this worker.")
@click.option("--mission", help="Only lines of this mission.")
@click.option("--type", "type_", type=click.Choice(_TYPES), help="Only events of this type.")
@click.option("--since", metavar="TIME", help="Only what happened at or after this ISO time.")
@click.option(
    "--scope",
    type=click.Choice(("worker", "shared", "all")),
    default="worker",
    show_default=True,
    help="The workers' own memory, the shared folder, or both.",
)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Hits at most.")
@click.option(
    "--context", type=click.IntRange(0, 50), default=0, metavar="N", help="N lines around each hit."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def search_command(
    ctx: click.Context,
    query: tuple[str, ...],
    worker: str | None,
    mission: str | None,
    type_: str | None,
    since: str | None,
    scope: str,
    limit: int,
    context: int,
    as_json: bool,
) -> int:
    """Search the memory files as they are now, whether or not the daemon runs. The words are taken literally; a
    line that holds one of them is a hit. Exits 1 if there is none."""
    from swarmmemd.model import parse_iso
    from swarmmemd.recall.search import SearchQuery

    at = parse_iso(since)
    if since is not None and at is None:
        raise click.BadParameter(
            f"{since!r} is no ISO time such as 2026-04-28T12:00:00Z", param_hint="--since"
        )
    wanted = SearchQuery(
        text=" ".join(query),
        worker=worker,
        mission=mission,
        type=type_,
        since=at,
        scope=scope,
        limit=limit,
        context=context,
    )
    found = _search(load_config(ctx).config, wanted)
    if as_json:
        from swarmmemd.recall.search import shown

        say_json(shown(wanted.text, found))
    else:
        _tell(found)
    return _complain(found, wanted.text)


def _search(config: "Config", query: "SearchQuery") -> "Results":
    """With the index where there is one; SQLite is imported only then."""
    from swarmmemd.recall.search import has_index, scan

    if not has_index(config):
        return scan(config, query)
    from swarmmemd.recall.index import search

    return search(config, query)


def _tell(found: "Results") -> None:
    """Two rows for each hit: where, whose and how old it is; and what it says."""
    import time

    from swarmmemd.model import iso
    from swarmmemd.recall.ages import age
    from swarmmemd.text import harmless

    now = int(time.time() * 1000)
    for hit in found.hits:
        whose = "  ".join(part for part in (hit.worker or "shared", hit.mission, hit.type) if part)
        say_line(f"{harmless(hit.path)}:{hit.line}")
        say_line(f"  {whose}  {iso(hit.at)[:19]}Z, {age(hit.at, now)}")
        rows = [*hit.context, (hit.line, hit.snippet)]
        for number, text in sorted(rows):
            say_line(f"  {'>' if hit.context and number == hit.line else ' '} {text}")


def _complain(found: "Results", text: str) -> int:
    """On stderr: what could not be read, and, without a hit, what was searched where. Gives how the command ends."""
    from swarmmemd.cli.unread import tell_unread
    from swarmmemd.text import one_row

    code = tell_unread(found.hits, found.troubles)
    if found.hits:
        return code
    if not found.query.sequence:
        say_line(f"{one_row(text, 80)}: there is no letter or digit in it to search for", err=True)
        return Exit.NOTHING
    places = list(found.looked)
    asked = " or ".join(repr(one_row(word, 80)) for word in found.query.words[:8])
    say_line(f"Nothing holds {asked}. Searched:", err=True)
    for place in places[:20] or ["no worker's memory: there is no worker"]:
        say_line(f"  {one_row(place, 400)}", err=True)
    if len(places) > 20:
        say_line(f"  and {len(places) - 20} more", err=True)
    return code
