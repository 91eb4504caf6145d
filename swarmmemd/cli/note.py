"""`swarmmemd note`: something that is worth remembering, from outside."""

import click

from swarmmemd.cli.options import as_mission, as_worker, common_options, load_config

_EPILOG = """\b
Examples:
  swarmmemd note --worker swarm5 "The staging key expires in May"
  swarmmemd note --worker swarm5 --mission mission-x --wait - < note.txt
"""


@click.command("note", epilog=_EPILOG)
@click.option("--worker", required=True, metavar="W", help="Whose memory it goes into.")
@click.option("--mission", metavar="M", help="Which mission; by default the worker's current one.")
@click.option("--type", "type_", metavar="TYPE", default="note", show_default=True, help="Type of the event.")
@click.option("--wait", is_flag=True, help="Wait until the daemon has recorded it.")
@click.argument("text")
@common_options
@click.pass_context
def note_command(
    ctx: click.Context, worker: str, mission: str | None, type_: str, wait: bool, text: str
) -> int:
    """Leave a note for a worker's memory. TEXT may be - for stdin.

    It goes into the inbox of the daemon and survives a crash from then on; where no daemon runs, the next one
    records it. A `checkpoint` or `blocked` with a checkpoint block in its text is that checkpoint.
    """
    from swarmmemd.cli.posting import LONGEST, post
    from swarmmemd.model import EventType

    if type_ not in set(EventType) or type_ == EventType.HANDOFF_WRITTEN:
        names = ", ".join(one for one in EventType if one is not EventType.HANDOFF_WRITTEN)
        raise click.BadParameter(f"{type_!r} is none of {names}", param_hint="--type")
    if text == "-":
        with click.open_file("-", encoding="utf-8", errors="replace") as stdin:
            text = stdin.read(LONGEST + 1)
    id, of = as_worker(worker), as_mission(mission) if mission is not None else None
    return post(load_config(ctx).config, id, of, EventType(type_), text, wait)
