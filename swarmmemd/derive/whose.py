"""Which dispatch something of the worker belongs to, where a time or a name tells. Pure.

docs/contracts.md, "Whose checkpoint it is".
"""

from swarmmemd.derive.prompts import LATE_DISPATCH
from swarmmemd.model import MissionId
from swarmmemd.state import Dispatch, Heard, WorkerState

DispatchKey = tuple[MissionId | None, int]


def key_of(dispatch: Dispatch | None) -> DispatchKey:
    """The name of a dispatch: its mission, and the how-manieth of it (0 for none)."""
    return (dispatch.mission, dispatch.number) if dispatch else (None, 0)


def find(state: WorkerState, key: DispatchKey) -> Dispatch | None:
    """The dispatch of that name, if it is one of those that are kept."""
    return next((d for d in reversed(state.dispatches) if key_of(d) == key), None)


def current_at(state: WorkerState, at: int) -> Dispatch | None:
    """The dispatch that was current then. The very first one can be written after its answer."""
    dispatches = state.dispatches
    for dispatch in reversed(dispatches):
        if dispatch.at <= at:
            return dispatch
    return dispatches[0] if dispatches and dispatches[0].at - at <= LATE_DISPATCH else None


def is_further(state: WorkerState, dispatch: Dispatch, known: Heard) -> bool:
    """Whether the dispatch came after the one that the known text was given to."""
    before = find(state, (known.mission, known.number))
    if before is None:
        return known.number > 0 or dispatch.at > known.at
    return state.dispatches.index(dispatch) > state.dispatches.index(before)
