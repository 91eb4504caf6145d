"""A daemon that runs for long: a watcher that goes deaf, clocks, a slow reader, old bodies; docs/architecture.md."""

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from swarmmemd.journal import Journal
from swarmmemd.layout import CANARY, JOURNAL
from tests.support.daemon import Home, answered, dispatched, running, until

_MISSION, _OTHER = "mission-1", "mission-2"


def test_a_watcher_that_hears_nothing_is_replaced_and_it_is_said_once(home: Home) -> None:
    """Every thread is alive, and no hint ever comes: the canary is missed, and the sweep finds what changed."""
    home.write("one", dispatched(_MISSION))
    with running(home, plant=("--deaf",)) as daemon:
        home.write("one", answered(_MISSION, "Painted"))
        until(lambda: daemon.logged("failing", what="notifications"), "the canary to be missed")
        until(lambda: "complete" in home.types("one"), "the sweep to find it")
        until(lambda: home.figures()["watching"]["losses"], "the watcher to be replaced")
        assert len(daemon.logged("failing", what="notifications")) == 1
        assert "no notification came" in home.figures()["watching"]["last_loss"]


def test_the_canary_is_heard_and_nobody_is_told(home: Home) -> None:
    home.write("one", dispatched(_MISSION))
    with running(home) as daemon:
        until(lambda: (home.state / CANARY / "one").exists(), "the canary")
        home.looked_at()
        assert not daemon.logged("failing")
        assert home.figures()["watching"]["losses"] == 0


def test_old_bodies_are_dropped_at_the_next_start(home: Home) -> None:
    home.write("one", dispatched(_MISSION))
    with running(home):
        until(lambda: "dispatch" in home.types(), "the dispatch")
        home.write("one", answered(_MISSION, "Painted"))
        until(lambda: "complete" in home.types(), "the end")
    with running(home, "--retention-days", "1") as daemon:
        until(lambda: daemon.logged("old bodies dropped"), "old bodies to be dropped")
        assert home.types() == ["mission-start", "dispatch", "checkpoint", "complete"]
        said = [event["summary"] for event in home.events()]
        assert said == ["", "Paint the fence", "", ""]
        home.write("one", dispatched(_OTHER, lastDispatchAt=1_777_100_000_000))
        until(lambda: home.types()[-1] == "dispatch", "the next dispatch")
    done = home.command("verify")
    assert done.returncode == 0, done.stdout


def test_the_log_of_the_journal_stays_bounded_behind_a_slow_reader(tmp_path: Path) -> None:
    """A reader holds an old state; once it lets go, the log is folded back and does not grow on."""
    path = tmp_path / JOURNAL
    journal = Journal.open(path)
    log = path.with_name(f"{JOURNAL}-wal")

    def write(count: int) -> int:
        for number in range(count):
            journal.settle(copies={f"path-{number}": "x" * 2000})
            journal.flush()
        journal.checkpoint()
        return log.stat().st_size

    write(200)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM copy").fetchone()
        held = write(1500)
        assert held > 8 << 20
    write(10)
    write(10)
    assert log.stat().st_size <= 4 << 20
    assert write(1500) <= 8 << 20
    journal.close()


def test_a_second_that_takes_long_is_looked_at(home: Home) -> None:
    """Stopped by SIGSTOP: both clocks go on, so only the tick itself is late."""
    home.write("one", dispatched(_MISSION))
    with running(home) as daemon:
        home.looked_at()
        daemon.signal(signal.SIGSTOP)
        time.sleep(6.5)  # that is what it is about: nothing can be waited for in a process that stands still
        daemon.signal(signal.SIGCONT)
        until(lambda: daemon.logged("sweep of everything", reason="the daemon stood still"), "the sweep")


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_clocks_that_part_are_a_reason_to_look_at_everything(home: Home, seconds: int) -> None:
    """After a sleep, or where somebody sets the clock."""
    home.write("one", dispatched(_MISSION))
    with running(home, plant=[f"--jump={seconds}"]) as daemon:
        home.looked_at()
        reason = "the clock jumped, or the machine slept"
        assert not daemon.logged("sweep of everything", reason=reason)
        daemon.signal(signal.SIGUSR1)
        until(lambda: daemon.logged("sweep of everything", reason=reason), "the sweep")
        home.write("one", answered(_MISSION, "After the jump", "IN_PROGRESS"))
        until(lambda: "checkpoint" in home.types(), "the checkpoint")
        assert len(daemon.logged("sweep of everything", reason=reason)) == 1, "one jump, one sweep"
