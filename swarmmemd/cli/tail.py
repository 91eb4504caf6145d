"""`swarmmemd tail`: events in recording order, from the journal."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import as_mission, as_worker, common_options, load_config
from swarmmemd.cli.output import say_json, say_line
from swarmmemd.errors import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from swarmmemd.journal import Filter, Follower, Recorded

_EPILOG = """\b
Examples:
  swarmmemd tail -f
  swarmmemd tail -n 50 --worker swarm5 --type checkpoint
  swarmmemd tail --json --after 1200
"""
_POLL = 0.1
_NEWEST = 10
_MOST = 2**63 - 1
"""The largest number that a journal can hold."""
_TYPES = [
    "mission-start",
    "dispatch",
    "checkpoint",
    "handoff-requested",
    "handoff-written",
    "resume",
    "blocked",
    "complete",
    "note",
]


@click.command("tail", epilog=_EPILOG)
@click.option(
    "-f", "--follow", is_flag=True, help="Go on as events are recorded, over restarts of the daemon."
)
@click.option(
    "-n", "count", type=click.IntRange(0, _MOST), help="The newest N events; 10, or with --after all of them."
)
@click.option("--worker", help="Only this worker.")
@click.option("--mission", help="Only this mission.")
@click.option("--type", "type_", type=click.Choice(_TYPES), help="Only this type.")
@click.option("--since", metavar="TIME", help="Only what happened at or after this ISO time.")
@click.option(
    "--after", type=click.IntRange(0, _MOST), metavar="SEQ", help="Only events after this sequence number."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: as in events.jsonl, with seq.")
@common_options
@click.pass_context
def tail_command(
    ctx: click.Context,
    follow: bool,
    count: int | None,
    worker: str | None,
    mission: str | None,
    type_: str | None,
    since: str | None,
    after: int | None,
    as_json: bool,
) -> int:
    """Show events of all workers in the order in which they were recorded. Exits 1 if there is none."""
    from swarmmemd.journal import Filter
    from swarmmemd.layout import JOURNAL
    from swarmmemd.model import parse_iso

    at = parse_iso(since)
    if since is not None and at is None:
        raise click.BadParameter(
            f"{since!r} is no ISO time such as 2026-04-28T12:00:00Z", param_hint="--since"
        )
    of = as_worker(worker) if worker is not None else None
    where = Filter(
        worker=of, mission=as_mission(mission) if mission is not None else None, type=type_, since=at
    )
    journal = load_config(ctx).config.state_dir / JOURNAL
    follower = _opened(journal, follow)
    show = _say_json if as_json else _say_row
    try:
        # Asked before the events are read: one that comes between the two is shown, not lost.
        last = follower.last() if after is None else after
        if after is not None and count is None:
            events: Iterable[Recorded] = _pages(follower, where, after)
        else:
            events = follower.newest(where, _NEWEST if count is None else count, after or 0)
        seen = _print(events, show)
        if follow:
            _follow(journal, follower, where, max(seen, last), show)
    except KeyboardInterrupt:
        return Exit.DONE
    finally:
        follower.close()
    return Exit.DONE if seen else Exit.NOTHING


def _opened(journal: "Path", follow: bool) -> "Follower":
    """The journal; who follows waits until there is one."""
    from swarmmemd.errors import DeniedError, StorageError
    from swarmmemd.journal import Follower

    while True:
        try:
            return Follower(journal)
        except StorageError as error:
            if not follow or isinstance(error, DeniedError):
                raise
            time.sleep(_POLL)


def _pages(follower: "Follower", where: "Filter", after: int) -> "Iterable[Recorded]":
    while events := follower.events(where, after):
        yield from events
        after = events[-1].seq


def _follow(
    journal: "Path", follower: "Follower", where: "Filter", after: int, show: "Callable[[Recorded], None]"
) -> None:
    """Reads on from `after` whenever the journal's files have changed."""
    log = journal.with_name(journal.name + "-wal")
    file, before = _stat(journal), None
    while True:
        now = (_stat(journal), _stat(log))
        if now[0] is not None and file is not None and now[0][:2] != file[:2]:
            # Deleted and made anew: its numbers begin again, and what was read back was shown before.
            say_line("The journal was made anew: its sequence numbers begin again", err=True)
            follower.close()
            follower, file = _opened(journal, follow=True), now[0]
            after = follower.read_back()
        if now != before:
            before = now
            after = max(after, _print(_pages(follower, where, after), show))
        time.sleep(_POLL)


def _stat(path: "Path") -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _print(events: "Iterable[Recorded]", show: "Callable[[Recorded], None]") -> int:
    seen = 0
    for recorded in events:
        show(recorded)
        seen = recorded.seq
    return seen


def _say_json(recorded: "Recorded") -> None:
    from swarmmemd.journal import numbered

    say_json(numbered(recorded), compact=True)


def _say_row(recorded: "Recorded") -> None:
    from swarmmemd.bodies import dropped
    from swarmmemd.model import iso
    from swarmmemd.text import one_row

    event = recorded.event
    state = event.detail.get("state")
    word = f"{event.type.value} {state}" if state else event.type.value
    where = event.mission or "no mission"
    said = one_row(event.summary, 100) if dropped(event) is None else "(its text is no longer kept)"
    say_line(f"{iso(event.at)[:19]}Z  {event.worker:<12}  {word:<24}  {where:<28}  {said}")
