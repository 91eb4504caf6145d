"""All workers at a glance: who they are, what they are at, what they said last. docs/api.md, "Workers"."""

import msgspec

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.errors import system_error
from swarmmemd.journal import Recorded
from swarmmemd.journal.inspector import Inspector
from swarmmemd.model import WorkerId
from swarmmemd.observation import Roster, RosterWorker
from swarmmemd.recall.tree import known_workers
from swarmmemd.recall.verify import roster_of
from swarmmemd.state import MissionState


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One worker: what the roster says of it, its current mission, and its newest event."""

    worker: WorkerId
    roster: RosterWorker | None
    mission: MissionState | None
    last: Recorded | None


def workers_of(config: Config) -> frozenset[WorkerId]:
    """The workers there are; none where there are no profiles at all yet. Raises `StorageError` where they cannot be
    listed."""
    try:
        return known_workers(config)
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise system_error(config.profiles_root, error, "Check its owner and permissions.") from error


def overview(config: Config) -> tuple[Card, ...]:
    """A card for each worker there is, by id. Raises `StorageError` where the profiles cannot be listed."""
    workers = workers_of(config)
    roster = roster_of(config)
    path = config.state_dir / layout.JOURNAL
    if not path.exists():
        return tuple(_card(worker, roster, None, None) for worker in sorted(workers))
    journal = Inspector(path)
    try:
        latest = journal.latest()
        return tuple(
            _card(worker, roster, journal.current(worker), latest.get(worker)) for worker in sorted(workers)
        )
    finally:
        journal.close()


def _card(worker: WorkerId, roster: Roster, mission: MissionState | None, last: Recorded | None) -> Card:
    return Card(worker=worker, roster=roster.get(worker), mission=mission, last=last)
