"""What is held of the files of missions: `memory/held`."""

from swarmmemd.memory.held import OfMissions
from swarmmemd.model import MissionId, WorkerId

ONE, OTHER = WorkerId("builder-1"), WorkerId("builder-2")
A, B = MissionId("mission-a"), MissionId("mission-b")


def test_a_value_is_that_of_one_mission_of_one_worker() -> None:
    held: OfMissions[int] = OfMissions()
    held.put(ONE, A, 1)
    held.put(ONE, A, 2)
    assert (held.get(ONE, A), held.get(ONE, B), held.get(OTHER, A)) == (2, None, None)
    held.drop(ONE, A)
    held.drop(OTHER, A)
    assert held.get(ONE, A) is None


def test_who_keeps_some_missions_lets_go_of_the_workers_others() -> None:
    held: OfMissions[int] = OfMissions()
    for worker in (ONE, OTHER):
        held.put(worker, A, 1)
        held.put(worker, B, 2)
    held.keep(ONE, {B})
    assert (held.get(ONE, A), held.get(ONE, B), held.get(OTHER, A)) == (None, 2, 1)
    held.keep(WorkerId("nobody"), ())
