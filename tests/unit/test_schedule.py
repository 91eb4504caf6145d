"""When each worker is looked at. docs/architecture.md, "Watching". The clock is a number."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.model import WorkerId
from swarmmemd.schedule import PIECE, QUIET, Agenda, Round, Schedule, Wake, beat

ONE, TWO, THREE = WorkerId("one"), WorkerId("two"), WorkerId("three")


def test_a_first_hint_is_due_at_once() -> None:
    schedule = Schedule()
    schedule.mark([ONE], 10.0)
    assert schedule.next() == 10.0
    assert schedule.ready(10.0, 9) == [ONE]
    assert (schedule.next(), len(schedule)) == (None, 0)


def test_hints_after_a_look_wait_a_moment() -> None:
    schedule = Schedule()
    schedule.mark([ONE], 10.0)
    schedule.ready(10.0, 9)
    schedule.mark([ONE], 10.001)
    assert schedule.ready(10.001, 9) == []
    assert schedule.next() == pytest.approx(10.0 + QUIET)
    assert schedule.ready(10.0 + QUIET, 9) == [ONE]


def test_a_steady_writer_is_looked_at_all_the_time() -> None:
    schedule, looks = Schedule(), 0
    for step in range(1000):
        now = 10.0 + step * 0.001
        schedule.mark([ONE], now)
        looks += len(schedule.ready(now, 9))
    assert 1000 * 0.001 / QUIET * 0.75 <= looks <= 1000 * 0.001 / QUIET + 1


def test_a_hint_brings_a_retry_forward_and_never_back() -> None:
    schedule = Schedule()
    schedule.at(ONE, 70.0)
    schedule.mark([ONE], 10.0)
    schedule.at(ONE, 99.0)
    assert schedule.ready(10.0, 9) == [ONE]
    assert schedule.ready(1000.0, 9) == []


def test_those_that_are_due_longest_come_first_and_no_more_than_asked() -> None:
    schedule = Schedule()
    for worker, when in ((THREE, 3.0), (ONE, 1.0), (TWO, 2.0)):
        schedule.at(worker, when)
    assert schedule.ready(5.0, 2) == [ONE, TWO]
    assert schedule.ready(5.0, 2) == [THREE]


def test_nothing_is_due_before_its_time() -> None:
    schedule = Schedule()
    schedule.at(ONE, 2.0)
    assert schedule.ready(1.999, 9) == []
    assert len(schedule) == 1


def test_a_retired_worker_is_forgotten() -> None:
    schedule = Schedule()
    schedule.mark([ONE, TWO], 1.0)
    schedule.drop(ONE)
    schedule.drop(THREE)
    assert schedule.ready(5.0, 9) == [TWO]


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO, THREE]), st.floats(0.0, 0.02)), max_size=40))
def test_every_hint_is_followed_by_a_look_within_the_quiet_time(hints: list[tuple[WorkerId, float]]) -> None:
    schedule, now = Schedule(), 10.0
    for worker, wait in hints:
        now += wait
        schedule.mark([worker], now)
        due = schedule.next()
        assert due is not None
        assert due <= now + QUIET
        now = max(now, due)
        assert worker in schedule.ready(now, 9)


# What other threads leave


def test_what_was_left_is_taken_once() -> None:
    wake = Wake()
    wake.worker(ONE)
    wake.worker(ONE)
    wake.word("ledger")
    assert wake.take() == ({ONE}, {"ledger"})
    assert wake.take() == (set(), set())


def test_too_many_marks_become_one() -> None:
    wake = Wake()
    for n in range(10_001):
        wake.worker(WorkerId(f"w{n}"))
    workers, words = wake.take()
    assert words == {"everything"}
    assert len(workers) <= 1


def test_waiting_ends_at_once_where_something_was_left() -> None:
    wake = Wake()
    wake.worker(ONE)
    wake.wait(3600.0)
    assert wake.take()[0] == {ONE}


def test_waiting_no_time_returns() -> None:
    wake = Wake()
    wake.wait(0.0)
    wake.wait(-1.0)
    assert wake.take() == (set(), set())


def test_a_mark_after_a_take_rings_again() -> None:
    wake = Wake()
    wake.ring()
    wake.wait(3600.0)
    wake.take()
    wake.word("stop")
    wake.wait(3600.0)
    assert wake.take() == (set(), {"stop"})


def test_a_duty_says_when_it_is_due_again() -> None:
    agenda, done = Agenda(), list[float]()

    def often(now: float) -> float | None:
        done.append(now)
        return now + 5.0

    agenda.at(often, 20.0)
    agenda.at(often, 10.0)
    assert agenda.next() == 10.0
    agenda.run(9.9)
    agenda.run(10.0)
    agenda.run(14.9)
    agenda.run(15.0)
    assert done == [10.0, 15.0]


def test_a_duty_that_is_done_is_due_no_more() -> None:
    agenda = Agenda()
    agenda.at(lambda _: None, 10.0)
    agenda.run(10.0)
    assert agenda.next() == float("inf")


def test_a_duty_that_asks_for_another_does_it_no_harm() -> None:
    agenda, done = Agenda(), list[str]()

    def other(_: float) -> None:
        done.append("other")

    def one(now: float) -> None:
        agenda.at(other, now)

    agenda.at(one, 10.0)
    agenda.run(10.0)
    agenda.run(10.0)
    assert done == ["other"]


@given(st.floats(0, 1e7), st.sampled_from([0.25, 1.0, 2.0, 5.0, 10.0, 15.0, 60.0]))
def test_what_is_done_now_and_then_is_done_together(now: float, period: float) -> None:
    assert now < beat(now, period) <= now + period
    assert beat(now, period) % period == 0.0


@pytest.mark.parametrize("count", [0, 1, 20, 64, 65, 1000])
@pytest.mark.parametrize("period", [0.5, 1.0, 5.0, 60.0])
def test_each_comes_up_once_in_a_period(count: int, period: float) -> None:
    looks: dict[int, list[float]] = {}
    now = 0.0
    sweep = Round(lambda: range(count), lambda one: looks.setdefault(one, []).append(now), lambda: period)
    while now < 10 * period:
        now = sweep(now)
    assert set(looks) == set(range(count))
    for times in looks.values():
        gaps = [after - before for before, after in pairwise(times)]
        assert max(gaps) == pytest.approx(period)


@pytest.mark.parametrize("period", [1.0, 5.0, 15.0, 60.0])
def test_pieces_come_no_more_often_than_is_worth_waking_for(period: float) -> None:
    sweep: Round[int] = Round(lambda: range(1000), lambda _: None, lambda: period)
    times = [0.0]
    for _ in range(50):
        times.append(sweep(times[-1]))
    assert min(after - before for before, after in pairwise(times)) == pytest.approx(min(PIECE, period))


def test_who_comes_later_is_looked_at_in_the_next_round() -> None:
    listed, looks = [1], list[int]()
    sweep = Round(lambda: tuple(listed), looks.append, lambda: 5.0)
    sweep(0.0)
    listed.append(2)
    sweep(5.0)
    assert looks == [1, 1, 2]
