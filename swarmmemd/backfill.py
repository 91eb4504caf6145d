"""Records the past of a worker from its ledger and its chat: what happened before it was watched.

Twice is once: missions that are known are left alone. docs/contracts.md, "Backfill".
"""

import time
from collections.abc import Callable

from swarmmemd import layout
from swarmmemd.derive.past import Past
from swarmmemd.journal import Change, Journal
from swarmmemd.memory.summaries import rendered_by
from swarmmemd.model import Event, Unreadable, WorkerId
from swarmmemd.observation import Chat
from swarmmemd.sources.chat import ChatSource, Wanted
from swarmmemd.state import Heard
from swarmmemd.tree import Tree

_TRIES = 20
_PAUSE = 0.1

Progress = Callable[[int], object]
"""Told the newest row of the chat that was read."""


def _untold(row: int) -> None:
    """Nobody wants to know."""


def backfill(
    tree: Tree, worker: WorkerId, since: int, dry: bool, progress: Progress = _untold
) -> tuple[Event, ...]:
    """The worker's events of missions that are not known, from `since` (ms) on; recorded and applied, unless it is
    only to be seen what they are (`dry`). The worker must be tracked, and have been looked at.

    Raises `StorageError` where the journal cannot be written, `OSError` where the chat cannot be read.
    """
    turns = tree.turns
    known = turns.workers[worker].state
    past = Past(worker, since, int(time.time() * 1000), turns.safe)
    ledger = turns.ledger.value
    if ledger is not None:
        past.dispatches(ledger)
    _read_chat(tree, worker, past, since, progress)
    if ledger is not None:
        past.outcomes(ledger)
    recorded = tree.journal.missions(worker, tuple(past.state.missions))
    state, events = past.news(known, recorded)
    if dry or not events:
        return events
    change = Change(
        before=known,
        after=state,
        events=events,
        rendered=tuple(line for event in events for line in rendered_by(event)),
        heard=_unknown(tree.journal, worker, past),
    )
    turns.record_past(worker, change)
    return events


def _read_chat(tree: Tree, worker: WorkerId, past: Past, since: int, progress: Progress) -> None:
    source = ChatSource(layout.profile(tree.config.profiles_root, worker), worker)
    tries = 0
    while True:
        wanted = Wanted(state=past.state.chat, heard=past.heard.get, since=since)
        seen = source.look(wanted, time.monotonic(), time.time())
        if isinstance(seen, Unreadable):
            tries += 1
            if tries > _TRIES:
                raise OSError(f"{source.path}: {seen.reason}")
            time.sleep(_PAUSE)
        elif isinstance(seen, Chat):
            past.chat(seen)
            progress(seen.cursor)
        elif not source.more:
            return


def _unknown(journal: Journal, worker: WorkerId, past: Past) -> dict[str, Heard]:
    """What the past tells of texts that the daemon has not seen itself."""
    own = past.known_texts()
    known = journal.heard(worker, list(own))
    return {key: heard for key, heard in own.items() if key not in known}
