"""Events whose body is no longer kept: what is left of them, and how their line is known again. Pure.

docs/contracts.md, "Retention".
"""

import hashlib
from collections.abc import Iterable

from msgspec.structs import replace

from swarmmemd.model import Event, WorkerId
from swarmmemd.record import decode, encode

_KEY = "dropped"


def without_body(event: Event) -> Event:
    """The event with its id, type, times and places, and the digest of the line that it was."""
    return replace(event, summary="", detail={_KEY: _digest(encode(event)[:-1])})


def dropped(event: Event) -> str | None:
    """The digest of the line that the event was; None where it has its body."""
    found = event.detail.get(_KEY)
    return found if isinstance(found, str) else None


def with_bodies(events: Iterable[Event], data: bytes, worker: WorkerId) -> dict[str, Event]:
    """By their ids the events whose body is dropped and whose line still stands in `data`, with their bodies."""
    wanted = {digest: event.id for event in events if (digest := dropped(event)) is not None}
    found: dict[str, Event] = {}
    for line in data.split(b"\n") if wanted else ():
        event = decode(line, worker) if _digest(line) in wanted else None
        if isinstance(event, Event):
            found[event.id] = event
    return found


def _digest(line: bytes) -> str:
    return hashlib.blake2b(line, digest_size=16).hexdigest()
