"""`swarmmemd status`: whether the daemon runs, and how it is."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_json, say_line
from swarmmemd.cli.spelling import spelled, uptime
from swarmmemd.errors import Exit

_EPILOG = """\b
Examples:
  swarmmemd status
  swarmmemd status --json | jq .backlog
"""


@click.command("status", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def status_command(ctx: click.Context, as_json: bool) -> int:
    """Say whether the daemon runs, and how it is. Exits 0 if it runs, 3 if not.

    Running means: it holds the lock. The figures are its own, at most a few seconds old.
    """
    from swarmmemd.cli.service import brief
    from swarmmemd.model import parse_iso
    from swarmmemd.standing import standing

    config = load_config(ctx).config
    found = standing(config.state_dir)
    figures = found.figures or {"schema": 1}
    waiting, unplaced, last = _journal(config.state_dir)
    age = max(time.time() - (parse_iso(figures.get("written")) or 0) / 1000, 0.0)
    since = found.holder.since if found.holder else ""
    content = {
        **figures,
        "running": found.running,
        "uptime_s": uptime(since),
        "age_s": round(age, 1),
        "backlog": waiting,
        "unplaced": unplaced,
        "last_event": last,
        "last_exit": found.last_exit.reason if found.last_exit and not found.holder else None,
        "service": brief(ctx, found),
    }
    if as_json:
        say_json(content, indent=2)
    else:
        _tell(content, found.holder is not None)
    return Exit.DONE if found.running else Exit.NOT_RUNNING


def _journal(state_dir: Path) -> tuple[int, int, dict[str, Any] | None]:
    """Events not in their files yet, those that have no place, and the newest event: what is proven to work."""
    from swarmmemd.errors import SwarmmemdError
    from swarmmemd.journal import Filter, Follower
    from swarmmemd.layout import JOURNAL
    from swarmmemd.model import iso

    try:
        follower = Follower(state_dir / JOURNAL)
    except SwarmmemdError:
        return 0, 0, None
    try:
        newest = follower.newest(Filter(), 1)
        waiting, unplaced = follower.backlog()
    except SwarmmemdError:
        return 0, 0, None
    finally:
        follower.close()
    if not newest:
        return waiting, unplaced, None
    event = newest[0].event
    told = {"seq": newest[0].seq, "at": iso(event.at), "worker": event.worker, "type": event.type.value}
    return waiting, unplaced, told


def _tell(content: dict[str, Any], held: bool) -> None:
    from swarmmemd.standing import OLD

    if not content["running"]:
        start = "swarmmemd service start" if content["service"] else "swarmmemd run"
        say_line("swarmmemd is starting" if held else f"swarmmemd is not running. Start it: {start}")
    else:
        runs = f"runs since {content['since']}, process {content['pid']}, for {spelled(content['uptime_s'])}"
        say_line(f"swarmmemd {content['version']} {runs}")
        watching = content["watching"]
        say_line(
            f"watching  {_watched(watching)}" + (f" ({watching['reason']})" if watching["reason"] else "")
        )
        if content.get("api"):
            say_line(f"api       {content['api']}")
    if content["service"]:
        say_line(f"service   {content['service']}")
    if content["last_exit"]:
        say_line(f"ended     {content['last_exit']}")
    if content["running"] and content["age_s"] > OLD:
        say_line(f"figures   are {content['age_s']:.0f} s old: it hangs, or the state directory is full")
    lag = content.get("lag_s") or 0.0
    say_line(
        f"backlog   {content['backlog']} events not in their files yet"
        + _unplaced(content["unplaced"])
        + (f", {lag:.1f} s behind" if content["running"] and lag >= 1.0 else "")
    )
    last = content["last_event"]
    told = f"{last['at']} {last['type']} of {last['worker']}, seq {last['seq']}" if last else "none"
    say_line(f"proven    last event recorded: {told}")
    _tell_workers(content.get("workers", []))
    for trouble in content.get("troubles", []) if content["running"] else []:
        since = f"since {trouble['since'][:19]}Z, " if "since" in trouble else ""
        say_line(f"trouble   {trouble['what']}: {trouble['reason']}, {since}for {spelled(trouble['for_s'])}")


def _watched(watching: dict[str, Any]) -> str:
    polled = f", {watching['polled']} polled" if watching["polled"] else ""
    return f"{watching['wanted'] - watching['polled']} folders by events{polled}"


def _unplaced(count: int) -> str:
    return f", {count} more of profiles that are gone" if count else ""


def _tell_workers(workers: list[dict[str, Any]]) -> None:
    from swarmmemd.text import one_row

    say_line(f"workers   {len(workers)}")
    if sys.stdout.isatty():
        _table(workers)
        return
    for worker in workers:
        last = worker["last_event"]
        told = f"{last['at']} {last['type']}: {last['summary']}" if last else "no event since the start"
        mission = f"{worker['mission']} ({worker['status']})" if worker["mission"] else "no mission"
        say_line("  " + one_row(f"{worker['worker']}  {mission}  {told}", 160))
        say_line("    reads " + one_row(", ".join(map(_source, worker["sources"])), 400))


def _source(source: dict[str, Any]) -> str:
    """A source, how far it is read, and what is or was wrong with it."""
    at = f" at {source['position']}" if source["position"] is not None else ""
    behind = f", {source['lag_s']:.0f} s behind" if source["lag_s"] else ""
    now = f", {source['trouble']}" if source["trouble"] else ""
    before = f" (last error: {source['last_error']})" if source["last_error"] and not now else ""
    return f"{source['name']}{at}{behind}{now}{before}"


def _table(workers: list[dict[str, Any]]) -> None:
    """For a person who looks: columns that fit the terminal. rich honours NO_COLOR."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from swarmmemd.text import one_row

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    for title in ("worker", "status", "mission", "last event"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    for worker in workers:
        last = worker["last_event"]
        told = f"{last['at'][:19]}Z {last['type']}: {last['summary']}" if last else "none since the start"
        cells = (worker["worker"], worker["status"] or "-", worker["mission"] or "-", told)
        table.add_row(*(Text(one_row(cell, 200)) for cell in cells))
    Console().print(table)
