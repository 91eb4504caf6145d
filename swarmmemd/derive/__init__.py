"""Derivation: (State, Observation) -> events and the next State. Pure: no I/O, clock or log.

A new kind of event is found in one of the modules here and folded in `swarmmemd.fold`.
docs/architecture.md, "One turn"; docs/contracts.md, "Events".
"""

from collections.abc import Mapping

import msgspec

from swarmmemd.derive.draft import Draft, Known, Safe, Version
from swarmmemd.derive.handoffs import look_at_handoffs, render_missing
from swarmmemd.derive.ledger import close_missions, open_missions
from swarmmemd.derive.runtime import look_at_runtime
from swarmmemd.model import Event
from swarmmemd.observation import Observation, Runtime
from swarmmemd.state import WorkerState

__all__ = ["Derived", "Known", "Safe", "Version", "derive"]


class Derived(msgspec.Struct, frozen=True):
    """What one look has shown: the events that are new, in order, and the state after them."""

    state: WorkerState
    events: tuple[Event, ...]
    versions: tuple[Version, ...] = ()
    """New versions of handoffs."""
    refused: Mapping[str, str] = {}
    """Handoff files that cannot be used, and why."""


def derive(state: WorkerState, seen: Observation, known: Known, safe: Safe = str) -> Derived:
    """The events between what was recorded (`state`) and what is there now (`seen`).

    `known` tells whether an event of this id was recorded before. A part of `seen` that could not be read
    changes nothing. `safe` is what is done to each text of an event, after its id is made from the whole one.
    """
    draft = Draft(state, seen, known, safe)
    open_missions(draft)
    if isinstance(seen.runtime, Runtime):
        look_at_runtime(draft, seen.runtime)
    close_missions(draft)
    look_at_handoffs(draft)
    render_missing(draft)
    return Derived(draft.state, tuple(draft.events), tuple(draft.versions), draft.refused)
