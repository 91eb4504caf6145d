"""What is looked at without a hint, so that a lost notification costs only time.

Each sweep is a duty of the loop, and spread over its period. docs/architecture.md, "Watching".
"""

from contextlib import suppress
from pathlib import Path

from swarmmemd.derive.classify import IN_PROGRESS
from swarmmemd.errors import StorageError
from swarmmemd.model import WorkerId
from swarmmemd.schedule import PIECE, Round, beat
from swarmmemd.service.canary import canary_of, tell
from swarmmemd.service.members import Members
from swarmmemd.service.retention import Retention
from swarmmemd.service.running import Running
from swarmmemd.watch import WatchHealth
from swarmmemd.watch.root import Backoff
from swarmmemd.watchplan import Hinted

PULSE = 2.0
"""Seconds after which the loop comes round in any case: it looks at the clocks and after the watching threads."""
_POLLING = 10.0
"""How many times shorter the sweeps are while something cannot be watched."""
HOT = 0.25
"""Seconds between two looks at the chat of a worker that is at work: no notification tells of a commit to it."""
_WARM = 60.0
"""Seconds after its last change for which a chat counts as that of a worker at work: one that the control plane
gave up on still answers."""
_ARCHIVES = 50
"""Missions that are looked at in one piece."""
_JUMP = 5.0
"""Seconds by which the clocks may part before everything is looked at: sleep, or a clock that was set."""
_LATE = 4.0
"""Seconds that a pulse may be late. A process that stands still for `_LATE + PULSE` is always seen."""
_CHECKPOINT_EVERY = 300.0


class Sweeps:
    """The sweeps. They begin with `start`, and begin anew with it where their periods have changed."""

    def __init__(self, running: Running, members: Members) -> None:
        self._running = running
        self._members = members
        self._retention = Retention(running)
        self._canary = canary_of(running)
        self._health: WatchHealth | None = None
        self._hot: set[WorkerId] = set()
        """The workers at work. One becomes so in a turn, and is no more after a while."""
        self._elsewhere: set[WorkerId] = set()
        self._deeper: set[WorkerId] = set()
        """The workers of whom something can be written where no watch tells of it."""
        self._profiles: tuple[int, ...] = ()
        self._listed_until = 0.0
        self._apart = running.clock.wall() - running.clock.monotonic()
        self._pulsed = running.now()
        self._losses = Backoff(1.0, 60.0)
        self._lost: str | None = None
        self._rounds = (
            Round(self._unheard, self._runtime, lambda: running.config.sweep.runtime_s / self._shorter),
            Round(self._unheard, self._chat, lambda: running.config.sweep.chat_s / self._shorter),
            Round(self._workers, self._summary, lambda: running.config.sweep.directories_s / self._shorter),
            Round(self._unwatched, self._folder, lambda: running.config.sweep.directories_s / self._shorter),
            Round(self._workers, self._whole, lambda: running.config.sweep.full_s),
        )

    def start(self) -> None:
        """Begins with all of them."""
        running, now = self._running, self._running.now()
        self._pulsed = now
        duties = (*self._rounds, self._archives, self.pulse, self.sources, self._canaries, self._list)
        for duty in (*duties, self._retention.tick):
            running.agenda.at(duty, beat(now, 1.0))
        running.agenda.at(self._checkpoint, now + _CHECKPOINT_EVERY)

    # The watcher and the clocks

    @property
    def polling(self) -> bool:
        """Whether something cannot be watched, or is watched and not heard."""
        health = self._health
        return health is not None and (health.mode == "poll" or health.polled > 0 or self._canary.deaf)

    @property
    def _shorter(self) -> float:
        return _POLLING if self.polling else 1.0

    def pulse(self, now: float) -> float:
        """Looks at the clocks and after the watches."""
        self._clocks(now)
        before = self.polling
        self._health = self._running.plan.check()
        self._hasten(before, now)
        return beat(now, PULSE)

    def _canaries(self, now: float) -> float:
        before = self.polling
        again = self._canary.tick(now)
        tell(self._running, self._canary)
        self._hasten(before, now)
        return again

    def _hasten(self, polling: bool, now: float) -> None:
        """Where hints come no more, nothing waits for the end of a long period."""
        if self.polling and not polling:
            for one in (*self._rounds, self._list):
                self._running.agenda.at(one, now)

    def _clocks(self, now: float) -> None:
        running = self._running
        late, self._pulsed = now - self._pulsed - PULSE, now
        if late > _LATE:
            self.everything("the daemon stood still")
        apart = running.clock.wall() - running.clock.monotonic()
        if abs(apart - self._apart) > _JUMP:
            self._apart = apart
            self.everything("the clock jumped, or the machine slept")

    # Everything

    def everything(self, reason: str) -> None:
        """Every worker is looked at: start, lost notifications, a clock that jumped."""
        running = self._running
        running.figures.sweeps += 1
        running.log.info("sweep of everything", reason=reason)
        self._members.refresh()
        self._members.look_at_sources()
        running.schedule.mark(running.turns.workers, running.now())

    def lost(self, reason: str) -> None:
        """Notifications were lost: everything is looked at, soon. While that goes on, less and less often."""
        self._lost = reason
        self._running.agenda.at(self._make_up, self._running.now())

    def _make_up(self, now: float) -> float | None:
        if self._lost is None:
            return None
        if not self._losses.ready(now):
            return self._losses.due
        reason, self._lost = self._lost, None
        self._losses.failed(now)
        self.everything(reason)
        return None

    # Workers at work

    def looked_at(self, worker: WorkerId) -> None:
        """The worker was looked at: if it is at work now, its chat is looked at often from now on; and what can be
        written unheard may be something else."""
        now, one = self._running.now(), self._running.turns.workers.get(worker)
        if one is not None:
            _set(self._elsewhere, worker, one.runtime.elsewhere or one.chat.elsewhere)
            _set(self._deeper, worker, one.handoffs.snapshots or one.transcripts.silent)
        if worker not in self._hot and self._at_work(worker, now):
            self._hot.add(worker)
            self._running.plan.heed_writes(worker, False)
            self._running.agenda.at(self._hot_chats, beat(now, HOT))
            self._running.agenda.at(self._hot_transcripts, beat(now, 1.0))

    def _hot_chats(self, now: float) -> float | None:
        for worker in self._hot:
            self._chat(worker)
        rest = {worker for worker in self._hot if not self._at_work(worker, now)}
        self._hot -= rest
        for worker in rest & self._running.turns.workers.keys():
            self._running.plan.heed_writes(worker, True)
            self._chat(worker)  # what came before they were heeded
            self._runtime(worker)
        return beat(now, HOT) if self._hot else None

    def _hot_transcripts(self, now: float) -> float | None:
        for worker in self._hot:
            one = self._running.turns.workers.get(worker)
            if one is not None and one.transcripts.changed():
                self._running.schedule.at(worker, now)
        return beat(now, 1.0) if self._hot else None

    def _at_work(self, worker: WorkerId, now: float) -> bool:
        one = self._running.turns.workers.get(worker)
        if one is None:
            return False
        warm = one.chat.changed_at is not None and now - one.chat.changed_at < _WARM
        return warm or (one.state is not None and one.state.look.status == IN_PROGRESS)

    # All workers, in turn

    def _workers(self) -> list[WorkerId]:
        return list(self._running.turns.workers)

    @property
    def _hinted(self) -> Hinted:
        return Hinted() if self.polling else self._running.plan.hinted()

    def _unheard(self) -> list[WorkerId]:
        """The workers of whom no hint tells each write to the chat and to `runtime.json`: also those at work."""
        return self._not_in(self._hinted.writes - self._elsewhere)

    def _unwatched(self) -> list[WorkerId]:
        """The workers of whom handoffs or transcripts can come that no hint tells of."""
        return self._not_in((self._hinted.handoffs & self._hinted.folders) - self._deeper)

    def _not_in(self, hinted: frozenset[WorkerId]) -> list[WorkerId]:
        return sorted(self._running.turns.workers.keys() - hinted)

    def _look_if(self, changed: bool, worker: WorkerId) -> None:
        if changed:
            self._running.schedule.at(worker, self._running.now())

    def _runtime(self, worker: WorkerId) -> None:
        one = self._running.turns.workers.get(worker)
        self._look_if(one is not None and one.runtime.changed(), worker)

    def _chat(self, worker: WorkerId) -> None:
        one = self._running.turns.workers.get(worker)
        self._look_if(one is not None and one.chat.changed(), worker)

    def _summary(self, worker: WorkerId) -> None:
        """Nobody listens to the folders of missions."""
        running, one = self._running, self._running.turns.workers.get(worker)
        current = one.state.current if one is not None and one.state is not None else None
        mission = current.mission if current is not None else None
        if mission is not None and running.tree.memory.replaced_by_others(worker, mission):
            running.show_again(worker, mission)

    def _folder(self, worker: WorkerId) -> None:
        one = self._running.turns.workers.get(worker)
        self._look_if(one is not None and (one.handoffs.changed() or one.transcripts.changed()), worker)

    def _whole(self, worker: WorkerId) -> None:
        """Everything of the worker, as if no hint had ever come."""
        one = self._running.turns.workers.get(worker)
        self._arm_again(worker)
        self._look_if(one is not None and one.changed(), worker)

    def _arm_again(self, worker: WorkerId) -> None:
        """Where another folder stands in the place of the one that is watched."""
        running = self._running
        if running.plan.stale(worker):
            running.plan.arm(worker)
            running.schedule.at(worker, running.now())

    def _archives(self, now: float) -> float:
        """The next missions: however many there are, a second costs no more."""
        running, over = self._running, True
        with suppress(StorageError):  # the next turn says so
            workers, over = running.tree.shared.archived.look(_ARCHIVES, running.turns.workers)
            for worker in workers:
                running.schedule.at(worker, now)
        return beat(now, running.config.sweep.directories_s if over else PIECE)

    # What all workers share

    def _list(self, now: float) -> float:
        """Lists the profiles where one came or went, or was put in the place of another: the root itself shows that."""
        running, sweep = self._running, self._running.config.sweep
        seen = _seen(running.config.profiles_root)
        moved = seen != self._profiles or self.polling
        if moved or now >= self._listed_until:
            self._profiles, self._listed_until = seen, now + sweep.full_s
            self._members.refresh()
            # The full sweep comes to each worker itself, and only to these.
            for worker in running.plan.armed - (set() if moved else running.turns.workers.keys()):
                self._arm_again(worker)
        return beat(now, sweep.directories_s / self._shorter)

    def sources(self, now: float) -> float:
        """Ledger and roster, where they changed or wait."""
        for source in (self._running.turns.ledger, self._running.turns.roster):
            if (source.due is not None and source.due <= now) or source.changed():
                self._members.look_at_sources()
                break
        return beat(now, self._running.config.sweep.chat_s)

    def _checkpoint(self, now: float) -> float:
        with suppress(StorageError):  # a full disk: the journal says so itself when it is written
            self._running.tree.journal.checkpoint()
        return beat(now, _CHECKPOINT_EVERY)


def _set(workers: set[WorkerId], worker: WorkerId, on: bool) -> None:
    (workers.add if on else workers.discard)(worker)


def _seen(folder: Path) -> tuple[int, ...]:
    try:
        found = folder.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
