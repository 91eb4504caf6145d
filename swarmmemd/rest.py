"""Which missions rest. Nothing changes one that rests until something names it, and then it comes back from the
journal: so what a worker's state holds does not grow with the missions that it ever had. Pure.

docs/architecture.md, "State".
"""

from msgspec.structs import replace

from swarmmemd.fold import is_open
from swarmmemd.model import MissionId
from swarmmemd.observation import Ledger
from swarmmemd.state import MissionState, WorkerState


def awake(state: WorkerState, ledger: Ledger | None = None) -> tuple[MissionId, ...]:
    """The missions of the state that do not rest. `ledger` is the one that the worker's last look saw."""
    return tuple(id for id, mission in state.missions.items() if not rests(state, mission, ledger))


def without_resting(state: WorkerState, ledger: Ledger | None = None) -> WorkerState:
    """The state without the missions that rest."""
    kept = awake(state, ledger)
    if len(kept) == len(state.missions):
        return state
    return replace(state, missions={id: state.missions[id] for id in kept})


def rests(state: WorkerState, mission: MissionState, ledger: Ledger | None = None) -> bool:
    """Whether the next look needs the mission only if it names it. The newest dispatch and the newest handoff, and
    what the ledger holds open, are asked for without a name; before the first look the newest of all is."""
    if state.floor is None or is_open(mission.ledger) or mission.mission == state.handed_off:
        return False
    if state.current is not None and mission.mission == state.current.mission:
        return False
    said = ledger.missions.get(mission.mission) if ledger else None
    return said is None or said.state is mission.ledger
