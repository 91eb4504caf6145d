"""Nothing came: when that is missed, and how often it is asked; docs/architecture.md, "Watching"."""

from swarmmemd.service.canary import EVERY, LATE, Canary


class _Watcher:
    """Hints come at once, while it is not deaf."""

    def __init__(self) -> None:
        self.deaf = False
        self.hopeless = False
        self.sent: list[float] = []
        self.missed = 0
        self.now = 1000.0
        self.canary = Canary(self._send, self._missed)

    def _send(self) -> bool:
        self.sent.append(self.now)
        if not self.deaf:
            self.canary.heard()
        return not self.hopeless

    def _missed(self) -> None:
        self.missed += 1

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.canary.tick(self.now)
            self.now += 1.0


def test_a_watcher_that_hears_is_asked_every_half_minute_and_never_missed() -> None:
    watcher = _Watcher()
    watcher.run(10 * EVERY)
    assert 9 <= len(watcher.sent) <= 10
    assert not watcher.missed
    assert not watcher.canary.deaf


def test_a_deaf_one_is_missed_within_three_seconds_and_then_less_and_less_often() -> None:
    watcher = _Watcher()
    watcher.run(10.0)
    watcher.deaf = True
    watcher.run(EVERY + LATE + 2)
    assert watcher.missed == 1
    assert watcher.canary.deaf
    watcher.run(3600.0)
    assert watcher.missed < 9
    watcher.deaf = False
    watcher.run(3600.0)
    assert not watcher.canary.deaf
    before = watcher.missed
    watcher.run(3600.0)
    assert watcher.missed == before


def test_the_first_tick_after_a_stop_of_the_process_misses_nothing() -> None:
    watcher = _Watcher()
    watcher.deaf = True
    watcher.canary.tick(watcher.now)
    watcher.canary.tick(watcher.now + 500.0)
    watcher.canary.heard()
    watcher.canary.tick(watcher.now + 501.0)
    assert not watcher.missed


def test_where_no_hint_can_be_expected_none_is_missed() -> None:
    watcher = _Watcher()
    watcher.deaf = watcher.hopeless = True
    watcher.run(10 * EVERY)
    assert not watcher.missed
