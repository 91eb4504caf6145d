"""`swarmmemd handoff`: the handoff that counts, and every version there was."""

import json
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.errors import Exit, UsageError

if TYPE_CHECKING:
    from swarmmemd.journal import KeptHandoff

_EPILOG = """\b
Examples:
  swarmmemd handoff show swarm5
  swarmmemd handoff history swarm5 --mission mission-x --json
  swarmmemd handoff show swarm5 --version 3fa1
"""


@click.group("handoff", epilog=_EPILOG)
def handoff_command() -> None:
    """Show a worker's handoffs: the one that counts, or all versions that were ever seen."""


@handoff_command.command("show", epilog=_EPILOG)
@click.argument("worker")
@click.option("--mission", help="Which mission; without it the newest handoff of the worker.")
@click.option(
    "--version", metavar="SHA256", help="A version from the history; its first characters are enough."
)
@common_options
@click.pass_context
def show_command(ctx: click.Context, worker: str, mission: str | None, version: str | None) -> int:
    """Print one handoff: by default the one that counts. Exits 1 if there is none."""
    from swarmmemd.text import harmless

    kept = _history(ctx, worker, mission)
    if version is not None:
        kept = [one for one in kept if one.sha256.startswith(version.lower())]
    elif kept:
        kept = [one for one in kept if one.mission == kept[-1].mission]
        kept.sort(key=_counts)
    if not kept:
        click.echo(f"No handoff of {worker} is known", err=True)
        return Exit.NOTHING
    found = kept[-1]
    if found.dropped:
        when = found.sha256[:12]
        click.echo(f"The text of {when} is no longer kept: it is older than retention.days", err=True)
        return Exit.NOTHING
    click.echo(f"== {found.path}, by {found.author.value}, sha256 {found.sha256[:12]}", err=True)
    click.echo(harmless(found.text.decode("utf-8", "replace")).rstrip("\n"))
    return Exit.DONE


@handoff_command.command("history", epilog=_EPILOG)
@click.argument("worker")
@click.option("--mission", help="Only this mission.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@common_options
@click.pass_context
def history_command(ctx: click.Context, worker: str, mission: str | None, as_json: bool) -> int:
    """List every version of the worker's handoffs, oldest first. Exits 1 if there is none."""
    from swarmmemd.model import iso
    from swarmmemd.text import one_row

    kept = _history(ctx, worker, mission)
    for one in kept:
        if as_json:
            click.echo(
                json.dumps(
                    {
                        "at": iso(one.at),
                        "by": one.author.value,
                        "missionId": one.mission,
                        "path": one.path,
                        "bytes": None if one.dropped else len(one.text),
                        "sha256": one.sha256,
                    },
                    ensure_ascii=False,
                )
            )
        else:
            size = "no longer kept" if one.dropped else f"{len(one.text):>8} bytes"
            row = f"{iso(one.at)[:19]}Z  {one.sha256[:12]}  {one.author.value:<13}  {size}"
            click.echo(f"{row}  {one.mission or 'no mission'}  {one_row(one.path, 80)}")
    return Exit.DONE if kept else Exit.NOTHING


def _counts(one: "KeptHandoff") -> int:
    from swarmmemd.handoff import rank

    return rank(one.author, local=one.path.startswith("memory/"))


def _history(ctx: click.Context, worker: str, mission: str | None) -> "list[KeptHandoff]":
    from swarmmemd.journal import Follower
    from swarmmemd.layout import JOURNAL
    from swarmmemd.model import worker_id

    id = worker_id(worker)
    if id is None:
        raise UsageError(f"{worker!r} is no worker id", "Letters, digits, - and _, at most 64.")
    follower = Follower(load_config(ctx).config.state_dir / JOURNAL)
    try:
        return [one for one in follower.handoffs(id) if mission is None or one.mission == mission]
    finally:
        follower.close()
