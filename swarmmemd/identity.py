"""The id of an event, and digests of texts: what makes two sights of one thing one event.

The recipe is fixed for ever: another one would record everything again. docs/contracts.md, "Event ids".
"""

import hashlib
from functools import lru_cache
from unicodedata import normalize

from swarmmemd.model import EventId, EventType, MissionId, WorkerId

_VERSION = "1"


@lru_cache(maxsize=64)
def fold(text: str | None) -> str:
    """`text` as it counts for identity: NFC, each run of white space one blank, none at the ends."""
    return " ".join(normalize("NFC", text).split()) if text else ""


def digest(text: str | None) -> str:
    """A short digest of the folded text; the empty string for no text."""
    folded = fold(text)
    return (
        hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest() if folded else ""
    )


@lru_cache(maxsize=16)
def event_id(
    worker: WorkerId,
    mission: MissionId | None,
    dispatch: int,
    type: EventType,
    words: tuple[str | None, ...],
    occurrence: int,
) -> EventId:
    """The id of an event: a hash over who, which mission and dispatch, what was said, and how often before.

    `words` are state, result, blocker and next action (or what stands for them in another type). Row ids,
    times and the source are no part of it, so one checkpoint seen in several places is one event.
    """
    parts = [_VERSION, worker, mission or "", str(dispatch), type, *map(fold, words), str(occurrence)]
    whole = b"".join(map(_measured, parts))
    return EventId("ev_" + hashlib.blake2b(whole, digest_size=15).hexdigest())


@lru_cache(maxsize=64)
def _measured(part: str) -> bytes:
    """The part with its length before it. All but what was said are the same from event to event."""
    data = part.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "big") + data
