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


def test_who_keeps_some_missions_lets_go_of_the_workers_others_but_the_newest() -> None:
    held: OfMissions[int] = OfMissions()
    for number in range(100):
        for worker in (ONE, OTHER):
            held.put(worker, MissionId(f"mission-{number}"), number)
    held.put(ONE, MissionId("mission-1"), 1)
    held.keep(ONE, {MissionId("mission-7")})
    left = [number for number in range(100) if held.get(ONE, MissionId(f"mission-{number}")) is not None]
    assert left == [1, 7, *range(93, 100)]
    assert held.get(OTHER, MissionId("mission-0")) == 0
    held.keep(WorkerId("nobody"), ())


def test_of_a_worker_that_is_gone_nothing_is_held() -> None:
    held: OfMissions[int] = OfMissions()
    held.put(ONE, A, 1)
    held.put(OTHER, A, 1)
    held.forget(ONE)
    assert (held.get(ONE, A), held.get(OTHER, A)) == (None, 1)
