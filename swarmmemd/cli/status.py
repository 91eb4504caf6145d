"""`swarmmemd status`: whether the daemon runs, and how it is."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_json, say_line
from swarmmemd.errors import Exit

_EPILOG = """\b
Examples:
  swarmmemd status
  swarmmemd status --json | jq .backlog
"""


_OLD = 90.0
"""Seconds. The daemon writes its figures at least every 30."""


@click.command("status", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def status_command(ctx: click.Context, as_json: bool) -> int:
    """Say whether the daemon runs, and how it is. Exits 0 if it runs, 3 if not.

    Running means: it holds the lock. The figures are its own, at most a few seconds old.
    """
    from swarmmemd.instance import is_running
    from swarmmemd.model import parse_iso

    config = load_config(ctx).config
    holder = is_running(config.state_dir)
    figures = _figures(config.state_dir)
    waiting, unplaced = _backlog(config.state_dir)
    running = holder is not None and figures.get("pid") == holder.pid and bool(figures.get("running"))
    age = max(time.time() - (parse_iso(figures.get("written")) or 0) / 1000, 0.0)
    content = {
        **figures,
        "running": running,
        "age_s": round(age, 1),
        "backlog": waiting,
        "unplaced": unplaced,
    }
    if as_json:
        say_json(content, indent=2)
    else:
        _tell(content, holder is not None)
    return Exit.DONE if running else Exit.NOT_RUNNING


def _figures(state_dir: Path) -> dict[str, Any]:
    """What the daemon wrote last; nothing where that is missing or torn."""
    from swarmmemd.layout import STATUS

    try:
        found = json.loads((state_dir / STATUS).read_bytes())
    except (OSError, ValueError):
        return {"schema": 1}
    return found if isinstance(found, dict) else {"schema": 1}


def _backlog(state_dir: Path) -> tuple[int, int]:
    from swarmmemd.errors import SwarmmemdError
    from swarmmemd.journal import Follower
    from swarmmemd.layout import JOURNAL

    try:
        follower = Follower(state_dir / JOURNAL)
    except SwarmmemdError:
        return 0, 0
    try:
        return follower.backlog()
    finally:
        follower.close()


def _tell(content: dict[str, Any], held: bool) -> None:
    if not content["running"]:
        say_line("swarmmemd is starting" if held else "swarmmemd is not running. Start it: swarmmemd run")
    else:
        say_line(f"swarmmemd {content['version']} runs since {content['since']}, process {content['pid']}")
        watching = content["watching"]
        say_line(
            f"watching  {_watched(watching)}" + (f" ({watching['reason']})" if watching["reason"] else "")
        )
    if content["running"] and content["age_s"] > _OLD:
        say_line(f"figures   are {content['age_s']:.0f} s old: is the state directory full?")
    say_line(f"backlog   {content['backlog']} events not in their files yet" + _unplaced(content["unplaced"]))
    _tell_workers(content.get("workers", []))
    for trouble in content.get("troubles", []) if content["running"] else []:
        say_line(f"trouble   {trouble['what']}: {trouble['reason']}, for {trouble['for_s']:.0f} s")


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
