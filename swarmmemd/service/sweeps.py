"""What is looked at without a hint, so that a lost notification costs only time.

Spread over seconds: each tick stats a slice of the workers. docs/architecture.md, "Watching".
"""

import random
from collections.abc import Iterable
from contextlib import suppress

from swarmmemd.derive.classify import IN_PROGRESS
from swarmmemd.errors import StorageError
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.service.canary import canary_of, tell
from swarmmemd.service.members import Members
from swarmmemd.service.retention import Retention
from swarmmemd.service.running import Running
from swarmmemd.watch import WatchHealth
from swarmmemd.watch.root import Backoff

TICK = 1.0
_POLLING = 10.0
"""How many times shorter the sweeps are while something cannot be watched."""
HOT = 0.25
"""Seconds between two looks at the chat of a worker that is at work: no notification tells of a commit to it."""
_WARM = 60.0
"""Seconds after its last change for which a chat counts as that of a worker at work: one that the control plane
gave up on still answers."""
_ARCHIVES = 16
"""Missions that are looked at in a tick."""
_JUMP = 5.0
"""Seconds by which the clocks may part before everything is looked at: sleep, or a clock that was set."""
_CHECKPOINT_EVERY = 300.0
_NEVER = float("inf")


class Sweeps:
    """The tiers of sweeping. `tick` is called once a second."""

    def __init__(self, running: Running, members: Members) -> None:
        self._running = running
        self._members = members
        self._retention = Retention(running)
        self._canary = canary_of(running)
        self._ticks = 0
        self._full = 0.0
        self._archives_at, self._archives_over = 0.0, True
        self._hot: set[WorkerId] = set()
        """The workers at work. One becomes so in a turn, and is no more after a while."""
        self._hot_at = _NEVER
        self._checkpoint = running.now() + _CHECKPOINT_EVERY
        self._apart = running.clock.wall() - running.clock.monotonic()
        self._ticked = running.now()
        self._losses = Backoff(1.0, 60.0)
        self._lost: str | None = None

    def tick(self, health: WatchHealth) -> None:
        """A slice of the workers, and what is due now and then."""
        running, now = self._running, self._running.now()
        self._ticks += 1
        self._clocks(now)
        self._make_up(now)
        self._canary.tick(now)
        tell(running, self._canary)
        workers = sorted(running.turns.workers)
        shorter = _POLLING if health.mode == "poll" or health.polled or self._canary.deaf else 1.0
        for worker in self._slice(workers, running.config.sweep.runtime_s / shorter):
            if running.turns.workers[worker].runtime.changed():
                running.schedule.at(worker, now)
        for worker in self._slice(workers, running.config.sweep.directories_s / shorter):
            self._folder(worker)
            one = running.turns.workers.get(worker)
            if one is not None and (one.handoffs.changed() or one.transcripts.changed()):
                running.schedule.at(worker, now)
        if self._ticks % max(round(running.config.sweep.directories_s / shorter / TICK), 1) == 0:
            self._members.refresh()
        self._archives(now)
        self._chats(self._slice(workers, running.config.sweep.chat_s / shorter))
        self._hot = {worker for worker in self._hot if self._at_work(worker, now)}
        self._hot_at = min(self._hot_at, now + HOT) if self._hot else _NEVER
        for worker in self._hot:
            if running.turns.workers[worker].transcripts.changed():
                running.schedule.at(worker, now)
        self._sources(now)
        if now >= self._full:
            self._full = now + running.config.sweep.full_s * random.uniform(0.75, 1.25)
            self.full()
        self._retention.tick(now)
        if now >= self._checkpoint:
            self._checkpoint = now + _CHECKPOINT_EVERY
            with suppress(StorageError):  # a full disk: the journal says so itself when it is written
                running.tree.journal.checkpoint()

    @property
    def hot_at(self) -> float:
        """When the chats of the workers at work are due, monotonic; infinite if nobody is at work."""
        return self._hot_at

    def watch_chat(self, worker: WorkerId) -> None:
        """The worker was looked at: if it is at work now, its chat is looked at often from now on."""
        now = self._running.now()
        if worker not in self._hot and self._at_work(worker, now):
            self._hot.add(worker)
            self._hot_at = min(self._hot_at, now + HOT)

    def hot(self) -> None:
        """Looks at the chats of the workers at work, if they are due."""
        now = self._running.now()
        if now >= self._hot_at:
            self._hot_at = now + HOT
            self._chats(self._hot)

    def full(self) -> None:
        """Lists the roots and arms again what is not watched. Stats every worker, unless each source came up in its own
        sweep since."""
        running = self._running
        self._members.refresh()
        for worker in running.plan.armed:
            if running.plan.stale(worker):
                running.plan.arm(worker)
        sweep = running.config.sweep
        if max(sweep.runtime_s, sweep.chat_s, sweep.directories_s) > sweep.full_s:
            changed = (worker for worker, one in running.turns.workers.items() if one.changed())
            running.schedule.mark(tuple(changed), running.now())

    def everything(self, reason: str) -> None:
        """Every worker is looked at: start, lost notifications, a clock that jumped."""
        running = self._running
        running.figures.sweeps += 1
        running.log.info("sweep of everything", reason=reason)
        self._members.refresh()
        self._members.look_at_sources()
        running.schedule.mark(running.turns.workers, running.now())

    def _archives(self, now: float) -> None:
        """A few of the missions: however many there are, a tick costs no more."""
        running = self._running
        if self._archives_over:
            if now < self._archives_at:
                return
            self._archives_at = now + running.config.sweep.directories_s
        with suppress(StorageError):  # the next turn says so
            watched = running.turns.workers
            workers, self._archives_over = running.tree.shared.archived.look(_ARCHIVES, watched)
            for worker in workers:
                running.schedule.at(worker, now)

    def lost(self, reason: str) -> None:
        """Notifications were lost: everything is looked at, soon. While that goes on, less and less often."""
        self._lost = reason
        self._make_up(self._running.now())

    def _make_up(self, now: float) -> None:
        if self._lost is not None and self._losses.ready(now):
            reason, self._lost = self._lost, None
            self._losses.failed(now)
            self.everything(reason)

    def _slice(self, workers: list[WorkerId], period: float) -> list[WorkerId]:
        """The workers whose turn it is in this second, so that each comes up once in `period` seconds."""
        parts = max(round(period / TICK), 1)
        return workers[self._ticks % parts :: parts]

    def _chats(self, workers: Iterable[WorkerId]) -> None:
        running = self._running
        for worker in workers:
            one = running.turns.workers.get(worker)
            if one is not None and one.chat.changed():
                running.schedule.at(worker, running.now())

    def _at_work(self, worker: WorkerId, now: float) -> bool:
        one = self._running.turns.workers.get(worker)
        if one is None:
            return False
        warm = one.chat.changed_at is not None and now - one.chat.changed_at < _WARM
        return warm or (one.state is not None and one.state.look.status == IN_PROGRESS)

    def _folder(self, worker: WorkerId) -> None:
        running = self._running
        if running.plan.stale(worker):
            running.plan.arm(worker)
            running.schedule.at(worker, running.now())
        mission = self._current(worker)
        if mission is not None and running.tree.memory.replaced_by_others(worker, mission):
            running.show_again(worker, mission)

    def _current(self, worker: WorkerId) -> MissionId | None:
        one = self._running.turns.workers.get(worker)
        return one.state.current.mission if one and one.state and one.state.current else None

    def _sources(self, now: float) -> None:
        running = self._running
        often = self._ticks % max(round(running.config.sweep.chat_s), 1) == 0
        for source in (running.turns.ledger, running.turns.roster):
            due = source.due is not None and source.due <= now
            if due or (often and source.changed()):
                self._members.look_at_sources()
                return

    def _clocks(self, now: float) -> None:
        running = self._running
        late, self._ticked = now - self._ticked - TICK, now
        if late > _JUMP:
            self.everything("the daemon stood still")
        apart = running.clock.wall() - running.clock.monotonic()
        if abs(apart - self._apart) > _JUMP:
            self._apart = apart
            self.everything("the clock jumped, or the machine slept")
