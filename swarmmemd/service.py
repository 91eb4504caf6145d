"""The long run: watch, turn after turn, sweep, and an orderly end. One loop in one thread.

Notifications only mark workers; the loop looks. What every notification can lose, the sweeps find.
docs/architecture.md, "The daemon".
"""

import random
import signal
from collections.abc import Callable
from typing import Any

from swarmmemd import inbox
from swarmmemd.config import Config
from swarmmemd.errors import StorageError, SwarmmemdError
from swarmmemd.log import GRACE, Log, Troubles
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.report import Figures, write_status
from swarmmemd.schedule import Schedule, Wake
from swarmmemd.sources.file import FileSource
from swarmmemd.tree import Tree
from swarmmemd.turn import Clock, Report
from swarmmemd.watchplan import EVERYTHING, LEDGER, PROFILES, REQUESTS, WatchPlan

_TICK = 1.0
_TURN = 64
"""Workers in one turn at most: a stop is never far away, and one commit serves them all."""
_POLLING = 10.0
"""How many times shorter the sweeps are for what cannot be watched."""
_JUMP = 5.0
"""Seconds by which the clocks may part before everything is looked at: sleep, or a clock that was set."""
_CHECKPOINT_EVERY = 300.0
_GONE_AFTER = 1.0
"""Seconds after which a missing profile is believed to be gone."""


class Stop:
    """What ends the loop, and what makes it read its configuration again. Safe to use in signal handlers."""

    def __init__(self) -> None:
        self.wake = Wake()
        self.now = False
        self.reload = False

    def on_signals(self) -> None:
        """SIGTERM and SIGINT end the run after the current turn, SIGHUP reads configuration and roster again."""
        signal.signal(signal.SIGTERM, lambda *_: self.set())
        signal.signal(signal.SIGINT, lambda *_: self.set())
        signal.signal(signal.SIGHUP, lambda *_: self.hang_up())

    def set(self) -> None:
        """Ends the run."""
        self.now = True
        self.wake.ring()

    def hang_up(self) -> None:
        """Reads configuration and roster again."""
        self.reload = True
        self.wake.ring()


class Daemon:
    """One run over an opened tree."""

    def __init__(self, tree: Tree, clock: Clock, log: Log, stop: Stop, reload: Callable[[], Config]) -> None:
        self._tree = tree
        self._config = tree.config
        self._clock = clock
        self._log = log
        self._stop = stop
        self._reload = reload
        self._wake = stop.wake
        self._schedule = Schedule()
        self._plan = WatchPlan(tree.config, stop.wake)
        self._troubles = Troubles(log)
        self._figures = Figures(started=clock.wall())
        self._missing: dict[WorkerId, float] = {}
        self._tick = 0
        self._next = {"tick": 0.0, "full": 0.0, "checkpoint": 0.0, "flush": float("inf"), "status": 0.0}
        self._apart = clock.wall() - clock.monotonic()

    def run(self, ready: Callable[[], object]) -> None:
        """Runs until it is told to stop. `ready` is called once the watches are up."""
        self._plan.start()
        try:
            self._profiles()
            self._sweep_all("start")
            self._status()
            ready()
            self._log.info("ready", workers=len(self._tree.turns.workers), watching=self._plan.check().mode)
            while not self._stop.now:
                self._step()
        finally:
            self._plan.close()
            self._flush()
            self._status(final=True)

    def _step(self) -> None:
        """Waits for something to do, and does it."""
        self._wake.wait(self._idle_for())
        workers, words = self._wake.take()
        now = self._clock.monotonic()
        self._schedule.mark(workers, now)
        if self._stop.reload:
            self._hang_up()
        self._heed(words)
        if now >= self._next["tick"]:
            self._sweep(now)
        self._turn()
        self._rescue()
        self._later()

    def _idle_for(self) -> float:
        now = self._clock.monotonic()
        times = (*self._next.values(), self._schedule.next(), self._tree.memory.next_rescue())
        return min(time for time in times if time is not None) - now

    def _heed(self, words: set[str]) -> None:
        if EVERYTHING in words:
            self._sweep_all(self._plan.last_loss or "asked for")
        if PROFILES in words:
            self._plan.arm_roots()
            self._profiles()
        if LEDGER in words:
            self._plan.arm_roots()
            self._sources()
        if REQUESTS in words:
            self._requests()

    # Turns

    def _turn(self) -> None:
        ready = self._schedule.ready(self._clock.monotonic(), _TURN)
        if ready:
            self._run(ready)

    def _run(self, workers: list[WorkerId]) -> None:
        began = self._clock.monotonic()
        report = self._tree.turns.run(workers)
        now = self._clock.monotonic()
        self._figures.turn(now - began, report, self._clock.wall())
        for recorded in report.recorded:
            event = recorded.event
            self._log.info(
                "recorded", seq=recorded.seq, type=event.type.value, worker=event.worker, mission=event.mission
            )
        self._note(report, now)
        for worker in workers:
            self._come_back(worker, now)
        self._next["flush"] = min(self._next["flush"], now + 1.0)
        self._next["status"] = min(self._next["status"], max(now, self._figures.written + 1.0))

    def _come_back(self, worker: WorkerId, now: float) -> None:
        """When the worker has to be looked at again without a hint: a source or a file that waits."""
        one = self._tree.turns.workers.get(worker)
        if one is None:
            return
        if one.runtime.due is not None:
            self._schedule.at(worker, one.runtime.due)
        if one.obstacles:
            self._schedule.at(worker, one.apply_after)

    def _note(self, report: Report, now: float) -> None:
        failure = report.failure
        self._troubles.update("journal", str(failure) if failure else None, now)
        if failure:
            for one in self._tree.turns.workers.values():
                self._schedule.at(one.id, now + self._figures.backoff())
        else:
            self._figures.failures = 0
        for worker, ids in report.skipped_ids.items():
            self._figures.skipped += 1
            self._log.warning("id is not valid, skipped", worker=worker, ids=ids)
        for worker in report.gone:
            self._missing.setdefault(worker, now)
            self._wake.word(PROFILES)

    # What is wrong now

    def _judge_health(self, now: float) -> None:
        for one in self._tree.turns.workers.values():
            self._source_health(f"{one.id}/runtime.json", one.runtime, now)
            reasons = [f"{o.path}: {o.reason}" for o in one.obstacles if not o.expected]
            self._troubles.update(f"{one.id}/memory", "; ".join(reasons) or None, now)
        self._source_health("ledger", self._tree.turns.ledger, now)
        self._source_health("roster", self._tree.turns.roster, now)
        health = self._plan.check()
        self._troubles.update("watching", health.reason or None, now)
        self._troubles.update("watcher", None if health.alive else "a thread died", now)

    def _source_health(self, key: str, source: FileSource[Any], now: float) -> None:
        reason = source.trouble.reason if source.trouble else None
        self._troubles.update(key, reason, now, GRACE)

    # Sweeps

    def _sweep(self, now: float) -> None:
        """Once a second: a slice of the workers, and what is due now and then."""
        self._tick += 1
        self._next["tick"] = now + _TICK
        self._clocks()
        workers = sorted(self._tree.turns.workers)
        polled = _POLLING if self._plan.check().mode == "poll" else 1.0
        self._look_at(workers, max(self._config.sweep.runtime_s / polled, _TICK), now)
        self._folders(workers, max(self._config.sweep.directories_s / polled, _TICK))
        self._sources_if_due()
        if now >= self._next["full"]:
            self._next["full"] = now + self._config.sweep.full_s * random.uniform(0.75, 1.25)
            self._full()
        if now >= self._next["checkpoint"]:
            self._next["checkpoint"] = now + _CHECKPOINT_EVERY
            self._tree.journal.checkpoint()
        self._judge_health(now)

    def _slice(self, workers: list[WorkerId], period: float) -> list[WorkerId]:
        """The workers whose turn it is in this second, so that each comes up once in `period` seconds."""
        parts = max(round(period / _TICK), 1)
        return workers[self._tick % parts :: parts]

    def _look_at(self, workers: list[WorkerId], period: float, now: float) -> None:
        for worker in self._slice(workers, period):
            if self._tree.turns.workers[worker].runtime.changed():
                self._schedule.at(worker, now)

    def _folders(self, workers: list[WorkerId], period: float) -> None:
        for worker in self._slice(workers, period):
            if self._plan.stale(worker):
                self._plan.arm(worker)
                self._wake.worker(worker)
            mission = self._current(worker)
            if mission is not None and self._tree.memory.replaced_by_others(worker, mission):
                self._show_again(worker, mission)

    def _sources_if_due(self) -> None:
        now = self._clock.monotonic()
        for source in (self._tree.turns.ledger, self._tree.turns.roster):
            due = source.due is not None and source.due <= now
            if due or (self._tick % max(round(self._config.sweep.chat_s), 1) == 0 and source.changed()):
                self._sources()
                return

    def _full(self) -> None:
        self._plan.arm_roots()
        self._profiles()
        for worker in self._plan.armed:
            self._plan.arm(worker)
        for worker, one in self._tree.turns.workers.items():
            if one.runtime.changed():
                self._schedule.at(worker, self._clock.monotonic())
        self._requests()

    def _sweep_all(self, reason: str) -> None:
        """Every worker is looked at: start, lost notifications, a clock that jumped."""
        self._figures.sweeps += 1
        if reason != "start":
            self._log.info("sweep of everything", reason=reason)
        self._plan.arm_roots()
        self._profiles()
        self._sources()
        self._schedule.mark(self._tree.turns.workers, self._clock.monotonic())

    def _clocks(self) -> None:
        apart = self._clock.wall() - self._clock.monotonic()
        if abs(apart - self._apart) > _JUMP:
            self._apart = apart
            self._sweep_all("the clock jumped, or the machine slept")

    # Workers, ledger and roster

    def _profiles(self) -> None:
        """Arms what is new, then lists it, and retires what is gone."""
        found = self._tree.discover()
        now = self._clock.monotonic()
        self._troubles.update("profiles root", found.trouble or None, now)
        if found.trouble:
            return
        for worker in found.folders - self._plan.armed:
            self._plan.arm(worker)
        # What came between listing and arming is not reported: look again.
        late = self._tree.discover()
        for worker in found.new | late.new:
            self._missing.pop(worker, None)
            self._schedule.at(worker, now)
        for worker in self._plan.armed - late.folders:
            self._plan.disarm(worker)
        self._retire(late.gone, now)
        for name in late.skipped:
            self._troubles.update(f"profile {name!r}", "its name is no worker id, skipped", now)

    def _retire(self, gone: frozenset[WorkerId], now: float) -> None:
        for worker in gone:
            since = self._missing.setdefault(worker, now)
            if now - since < _GONE_AFTER:
                self._next["full"] = min(self._next["full"], since + _GONE_AFTER)
                continue
            del self._missing[worker]
            self._tree.turns.retire(worker)
            self._schedule.drop(worker)
            for key in ("runtime.json", "memory"):
                self._troubles.update(f"{worker}/{key}", None, now)
            self._log.info("worker retired, its memory stays", worker=worker)

    def _sources(self) -> None:
        """Looks at ledger and roster; a new ledger is news for every worker."""
        turns, now, wall = self._tree.turns, self._clock.monotonic(), self._clock.wall()
        before = turns.roster.value
        turns.roster.look(now, wall)
        if turns.roster.value is not before:
            self._profiles()
        ledger = turns.ledger.value
        turns.ledger.look(now, wall)
        if turns.ledger.value is not ledger:
            self._schedule.mark(turns.workers, now)

    def _current(self, worker: WorkerId) -> MissionId | None:
        state = self._tree.turns.workers[worker].state
        return state.current.mission if state and state.current else None

    # SUMMARY.md beside other writers

    def _show_again(self, worker: WorkerId, mission: MissionId, other: tuple[bytes, ...] = ()) -> None:
        state = self._tree.turns.workers[worker].state
        if state is None:
            return
        try:
            self._tree.memory.reshow(state, mission, self._clock.monotonic(), other)
        except FileNotFoundError:
            self._wake.word(PROFILES)

    def _rescue(self) -> None:
        for worker, mission, data in list(self._tree.memory.rescued(self._clock.monotonic())):
            if worker in self._tree.turns.workers:
                self._show_again(worker, mission, (data,))

    # Requests, signals, settling

    def _requests(self) -> None:
        for name, request in inbox.waiting(self._tree.state):
            if request is not None and request.ask == "once":
                self._sweep_all("asked for")
                while ready := self._schedule.ready(self._clock.monotonic(), _TURN):
                    self._run(ready)
            inbox.done(self._tree.state, name)

    def _hang_up(self) -> None:
        self._stop.reload = False
        try:
            config = self._reload()
        except SwarmmemdError as error:
            self._log.error("configuration not reloaded", reason=str(error))
            return
        if _roots(config) != _roots(self._config):
            self._log.warning(
                "changed roots need a restart", running=_roots(self._config), asked=_roots(config)
            )
            return
        self._config = self._tree.config = config
        self._log.info("configuration reloaded")
        self._sweep_all("SIGHUP")

    def _later(self) -> None:
        now = self._clock.monotonic()
        if now >= self._next["flush"]:
            self._flush()
        if now >= self._next["status"]:
            self._status()

    def _flush(self) -> None:
        self._next["flush"] = float("inf")
        try:
            self._tree.turns.settle()
        except StorageError as error:
            self._troubles.update("journal", str(error), self._clock.monotonic())
            self._next["flush"] = self._clock.monotonic() + self._figures.backoff()

    def _status(self, final: bool = False) -> None:
        """Figures for people; liveness is the lock."""
        now = self._clock.monotonic()
        self._next["status"] = now + 30.0
        self._figures.written = now
        write_status(self._tree, self._figures, self._plan, self._troubles.all(now), self._clock, final)


def _roots(config: Config) -> list[str]:
    return [
        str(p) for p in (config.profiles_root, config.workspace_root, config.shared_root, config.state_dir)
    ]
