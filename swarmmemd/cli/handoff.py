"""`swarmmemd handoff`: the handoff that counts, and every version there was."""

from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import as_mission, as_worker, common_options, load_config
from swarmmemd.cli.output import say, say_json, say_line
from swarmmemd.errors import Exit

if TYPE_CHECKING:
    from swarmmemd.journal import KeptHandoff

_EPILOG = """\b
Examples:
  swarmmemd handoff show swarm5
  swarmmemd handoff history swarm5 --mission mission-x --json
  swarmmemd handoff show swarm5 --version 3fa1
  swarmmemd handoff write swarm5 --mission mission-x handoff.md
"""


@click.group("handoff", epilog=_EPILOG)
def handoff_command() -> None:
    """A worker's handoffs: show the one that counts, list all versions that were ever seen, write one."""


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
    kept = _history(ctx, worker, mission)
    if version is not None:
        kept = [one for one in kept if one.sha256.startswith(version.lower())]
    else:
        kept = [one for one in kept if _counts(one)]
        kept = [one for one in kept if one.mission == kept[-1].mission]
        kept.sort(key=_counts)
    if not kept:
        say_line(f"No handoff of {worker} is known", err=True)
        return Exit.NOTHING
    found = kept[-1]
    if found.dropped:
        when = found.sha256[:12]
        say_line(f"The text of {when} is no longer kept: it is older than retention.days", err=True)
        return Exit.NOTHING
    say_line(f"== {found.path}, by {found.author.value}, sha256 {found.sha256[:12]}", err=True)
    say(found.text.decode("utf-8", "replace").rstrip("\n"))
    return Exit.DONE


@handoff_command.command("write", epilog=_EPILOG)
@click.argument("worker")
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True), default="-"
)
@click.option(
    "--mission", help="Which mission, where the text does not say it; else the worker's current one."
)
@click.option("--wait", is_flag=True, help="Wait until the daemon has recorded it.")
@common_options
@click.pass_context
def write_command(ctx: click.Context, worker: str, file: str, mission: str | None, wait: bool) -> int:
    """Hand over a handoff as the worker's own, from FILE or stdin. It is mirrored as one that the worker wrote.

    It goes into the inbox of the daemon and survives a crash from then on; where no daemon runs, the next one
    records it.
    """
    from swarmmemd.cli.posting import LONGEST, post
    from swarmmemd.model import EventType

    id, of = as_worker(worker), as_mission(mission) if mission is not None else None
    with click.open_file(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read(LONGEST + 1)
    return post(load_config(ctx).config, id, of, EventType.HANDOFF_WRITTEN, text, wait)


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
            say_json(
                {
                    "at": iso(one.at),
                    "by": one.author.value,
                    "missionId": one.mission,
                    "path": one.path,
                    "bytes": None if one.dropped else len(one.text),
                    "sha256": one.sha256,
                }
            )
        else:
            size = "no longer kept" if one.dropped else f"{len(one.text):>8} bytes"
            row = f"{iso(one.at)[:19]}Z  {one.sha256[:12]}  {one.author.value:<13}  {size}"
            say_line(f"{row}  {one.mission or 'no mission'}  {one_row(one.path, 80)}")
    if not kept:
        say_line(f"No handoff of {worker} is known", err=True)
    return Exit.DONE if kept else Exit.NOTHING


def _counts(one: "KeptHandoff") -> int:
    from swarmmemd.handoff import is_local, rank

    return rank(one.author, local=is_local(one.path))


def _history(ctx: click.Context, worker: str, mission: str | None) -> "list[KeptHandoff]":
    from swarmmemd.journal import Follower
    from swarmmemd.layout import JOURNAL

    id, of = as_worker(worker), as_mission(mission) if mission is not None else None
    follower = Follower(load_config(ctx).config.state_dir / JOURNAL)
    try:
        return [one for one in follower.handoffs(id) if of is None or one.mission == of]
    finally:
        follower.close()
