"""The loop: waits for something to do, does it, and comes back."""

from collections.abc import Callable

from swarmmemd import inbox
from swarmmemd.access import refused
from swarmmemd.backfill import backfill
from swarmmemd.config import Config
from swarmmemd.errors import StorageError, SwarmmemdError
from swarmmemd.log import Log, set_level
from swarmmemd.model import EventId, MissionId, WorkerId, mission_id, worker_id
from swarmmemd.schedule import beat
from swarmmemd.service.health import judge
from swarmmemd.service.members import Members
from swarmmemd.service.pulse import Silence
from swarmmemd.service.report import write_status
from swarmmemd.service.running import Api, Running
from swarmmemd.service.stop import Stop
from swarmmemd.service.sweeps import PULSE, Sweeps
from swarmmemd.tree import Tree
from swarmmemd.turn import Clock, Report
from swarmmemd.watchplan import EVERYTHING, LEDGER, PROFILES, REQUESTS

_TURN = 64
"""Workers in one turn at most: a stop is never far away, and one commit serves them all."""
_APPLIED = 8
"""Workers whose files are written before it is looked again who is due."""
_LAST = 2.0
"""Seconds that a stop spends on what is recorded and not in its files."""
_API_PATIENCE, _API_SOON = 5.0, 0.05
"""Seconds that the word "ready" waits for the API, and between two looks whether it has spoken."""
_NEVER = float("inf")
_STATUS_EVERY = 30.0
_REQUESTS_EVERY = 10.0
"""Seconds between two looks into the inbox without a hint, while all is heard."""


class Daemon:
    """One run over an opened tree. `reload` gives the configuration as it is now."""

    def __init__(
        self,
        tree: Tree,
        clock: Clock,
        log: Log,
        stop: Stop,
        reload: Callable[[], Config],
        pulse: Silence | None = None,
        api: Api | None = None,
    ) -> None:
        self._running = Running(tree, clock, log, stop.wake, api)
        self._members = Members(self._running)
        self._sweeps = Sweeps(self._running, self._members)
        self._stop = stop
        self._reload = reload
        self._pulse = pulse or Silence()
        self._to_apply: dict[WorkerId, None] = {}
        self._to_judge: set[WorkerId] = set()

    def run(self, ready: Callable[[], object]) -> None:
        """Runs until it is told to stop. `ready` is called once the watches are up and the API has said where it is
        served, or what stands in its way, if it says so soon.

        Raises `HeldError` where a root that appears late is another daemon's.
        """
        running = self._running
        running.plan.start()
        try:
            self._sweeps.everything("start")
            self._begin(ready)
            while not self._stop.now:
                self._step()
            self._finish()
        finally:
            running.plan.close()
            self._flush(running.now())
            write_status(running, final=True)

    def _begin(self, ready: Callable[[], object]) -> None:
        """What is done from now on without a hint."""
        now = self._running.now()
        end = now + _API_PATIENCE

        def announce(now: float) -> float | None:
            if self._api_is_silent and now < end:
                return now + _API_SOON
            self._status(now)
            ready()
            workers, mode = self._running.turns.workers, self._running.plan.check().mode
            self._running.log.info("ready", workers=len(workers), watching=mode)
            return None

        self._sweeps.start()
        for duty in (self._answer_requests, self._judge, self._tend):
            self._running.agenda.at(duty, now)
        self._running.agenda.at(self._status, beat(now, _STATUS_EVERY))
        if self._api_is_silent:
            self._status(now)
            self._running.agenda.at(announce, now)
        else:
            announce(now)

    @property
    def _api_is_silent(self) -> bool:
        """Whether the API has just been started, and not said yet where it is served or what stands in its way."""
        api = self._running.api
        return api is not None and api.address is None and api.trouble is None

    def _finish(self) -> None:
        """Writes what is recorded into its files, as far as a stop can wait for it; the next start does the rest."""
        end = self._running.now() + _LAST
        while self._to_apply and self._running.now() < end:
            self._turn([])

    def _step(self) -> None:
        running = self._running
        running.wake.wait(self._next() - running.now())
        workers, words = running.wake.take()
        running.schedule.mark(workers & running.turns.workers.keys(), running.now())
        self._heed(words | self._newcomers(workers))
        self._turn(running.schedule.ready(running.now(), _TURN))
        for worker, mission, data in list(running.tree.memory.rescued(running.now())):
            running.show_again(worker, mission, (data,))
        for source in (running.turns.ledger, running.turns.roster):
            if source.due is not None:
                running.agenda.at(self._sweeps.sources, source.due)
        running.agenda.run(running.now())
        if running.figures.stale or running.troubles.changed:
            self._tell_soon()

    def _tell_soon(self) -> None:
        running = self._running
        running.agenda.at(self._status, max(running.now(), running.figures.written + 1.0))

    def _next(self) -> float:
        if self._to_apply:
            return 0.0
        times = (
            self._running.agenda.next(),
            self._running.schedule.next(),
            self._pulse.next,
            self._running.tree.memory.next_rescue(),
            self._members.next_retirement(),
        )
        return min(time for time in times if time is not None)

    def _newcomers(self, workers: set[WorkerId]) -> set[str]:
        """A folder that was no worker's until now can have become one."""
        return {PROFILES} if workers - self._running.turns.workers.keys() else set()

    def _heed(self, words: set[str]) -> None:
        if self._stop.reload:
            self._stop.reload = False
            self._hang_up()
        if EVERYTHING in words:
            self._sweeps.lost(self._running.plan.last_loss)
        gone = self._members.next_retirement()
        if PROFILES in words or (gone is not None and gone <= self._running.now()):
            self._members.refresh()
        if LEDGER in words:
            self._running.plan.arm_roots()
            self._members.look_at_sources()
        if REQUESTS in words:
            self._requests()

    def _turn(self, workers: list[WorkerId], at_once: bool = False) -> None:
        """Looks at these workers, then applies for some of those that were looked at. Looking comes first: a
        state that is overwritten before it is recorded is gone, what is recorded can wait."""
        running, began = self._running, self._running.now()
        self._pulse.beat(began)
        report = running.turns.look(workers) if workers else Report()
        self._to_apply.update(dict.fromkeys(workers))
        some = list(self._to_apply)[:_APPLIED]
        if not some:
            return
        for worker in some:
            del self._to_apply[worker]
        self._to_judge.update(workers, some)
        running.agenda.at(self._judge, beat(began, 1.0))
        for worker in (*workers, *some):
            running.figures.said.pop(worker, None)
        applied = running.turns.apply(some, at_once)
        report.failure = report.failure or applied.failure
        self._posted(applied)
        running.figures.turn(running.now() - began, report)
        for recorded in report.recorded:
            event = recorded.event
            running.log.info(
                "recorded",
                seq=recorded.seq,
                type=event.type.value,
                worker=event.worker,
                mission=event.mission,
            )
        self._note(report)
        self._come_back(some)
        running.agenda.at(self._flush, running.now() + 1.0)
        self._tell_soon()

    def _note(self, report: Report) -> None:
        running = self._running
        for worker, ids in report.skipped_ids.items():
            running.figures.skipped += 1
            running.log.warning("an id is not valid, skipped", worker=worker, ids=ids)
        if report.gone:
            running.wake.word(PROFILES)
        self._journal_health(report.failure)

    def _journal_health(self, failure: StorageError | None) -> None:
        running = self._running
        running.troubles.update("journal", str(failure) if failure else None, running.now())
        if failure is None:
            running.figures.failures = 0
            return
        again = running.now() + running.figures.backoff()
        for worker in running.turns.workers:
            running.schedule.put_off(worker, again)

    def _come_back(self, workers: list[WorkerId]) -> None:
        """When the workers have to be looked at again without a hint: a source or a file that waits."""
        for worker in workers:
            one = self._running.turns.workers.get(worker)
            if one is not None and one.due is not None:
                self._running.schedule.at(worker, one.due)
            if one is not None:
                self._sweeps.looked_at(worker)
            if one is not None and one.state is not None:
                self._running.plan.follow_handoffs(worker, one.state.current is not None)

    def _posted(self, report: Report) -> None:
        try:
            self._running.tree.posted(report)
        except OSError as error:
            # They are found again, and known: taking them away is all that is left then.
            self._running.troubles.update("inbox", error.strerror or str(error), self._running.now())

    def _requests(self) -> None:
        """Carries out what other processes ask for, and answers; takes up what they have left."""
        running = self._running
        try:
            if inbox.is_empty(running.tree.state):
                running.troubles.update("inbox", None, running.now())
                return
            for worker in running.tree.take_posts():
                running.schedule.at(worker, running.now())
            for name, request in inbox.waiting(running.tree.state):
                answer = self._answered(request)
                if answer is None:
                    inbox.reject(running.tree.state, name, "not a request that this version knows")
                    running.log.warning("a request was rejected", request=name)
                else:
                    inbox.answer(running.tree.state, name, answer)
        except OSError as error:
            running.troubles.update("inbox", error.strerror or str(error), running.now())
        else:
            running.troubles.update("inbox", None, running.now())

    def _answered(self, request: inbox.Request | None) -> inbox.Answer | None:
        """What cannot be done is the answer: no request ends the daemon."""
        self._running.figures.said.clear()
        try:
            return self._carried_out(request)
        except StorageError as error:
            self._running.log.warning("a request failed", reason=str(error))
            return inbox.Answer(0, 0, (str(error),))

    def _carried_out(self, request: inbox.Request | None) -> inbox.Answer | None:
        if request is None:
            return None
        worker, mission = worker_id(request.worker), mission_id(request.mission)
        if (worker, mission) != (request.worker, request.mission):
            return None  # an id that is none: not the same as none given
        if request.ask == "once":
            return self._once()
        if request.ask == "access":
            return inbox.Answer(0, 0, refused(self._running.config))
        if request.ask == "archive" and mission is not None:
            return inbox.Answer(0, 0, changed=self._running.tree.archive(mission))
        if request.ask == "promote" and request.event is not None:
            done = self._running.tree.promote(EventId(request.event), request.text)
            return inbox.Answer(0, 0, changed=None if done is None else int(done))
        if request.ask == "rebuild":
            return self._rebuilt(worker, mission)
        if request.ask == "backfill" and worker is not None:
            return self._backfill(worker, request)
        return None

    def _backfill(self, worker: WorkerId, request: inbox.Request) -> inbox.Answer | None:
        """The past of one worker. The other workers wait meanwhile."""
        if worker not in self._running.turns.workers:
            return None
        self._to_judge.add(worker)
        try:
            found = backfill(self._running.tree, worker, request.since, request.dry, self._goes_on)
        except (OSError, StorageError) as error:
            return inbox.Answer(1, 0, (str(error),))
        return inbox.Answer(1, len(found))

    def _goes_on(self, row: int) -> None:
        """A long chat is read: that is progress, which the watchdog must hear of."""
        self._pulse.beat(self._running.now())

    def _rebuilt(self, worker: WorkerId | None, mission: MissionId | None) -> inbox.Answer:
        """What is recorded goes into its files, and what is wrong in them is made right."""
        from swarmmemd.rebuild import rebuild

        before = self._running.figures.events
        done = rebuild(self._running.tree, worker, mission, self._once)
        new = self._running.figures.events - before
        return inbox.Answer(len(self._running.turns.workers), new, done.problems, files=done.changed)

    def _once(self) -> inbox.Answer:
        """A full turn for every worker."""
        running = self._running
        before = running.figures.events
        self._sweeps.everything("asked for")
        running.tree.look_at_archives()
        for worker in running.turns.workers:
            running.schedule.at(worker, running.now())
        while not self._stop.now:
            ready = running.schedule.ready(running.now(), _TURN)
            if not ready and not self._to_apply:
                break
            self._turn(ready, at_once=True)
        return inbox.Answer(
            len(running.turns.workers), running.figures.events - before, running.tree.problems()
        )

    def _hang_up(self) -> None:
        running = self._running
        try:
            config = self._reload()
        except SwarmmemdError as error:
            running.log.error("configuration not reloaded", reason=str(error))
            self._configured(f"not reloaded: {error}")
            return
        now, asked = _roots(running.config), _roots(config)
        if now != asked:
            running.log.warning("changed roots need a restart", running=now, asked=asked)
            self._configured("changed roots need a restart")
            return
        self._configured(None)
        running.tree.reconfigure(config)
        if running.api is not None:
            running.api.reconfigure(config)
        set_level(config.log.level)
        running.log.info("configuration reloaded")
        running.turns.roster.forget()
        self._sweeps.start()
        self._sweeps.everything("SIGHUP")

    def _configured(self, trouble: str | None) -> None:
        """Why the file is not what holds, for `status`: who looks later has not seen the line in the log."""
        self._running.troubles.update("configuration", trouble, self._running.now(), grace=_NEVER)

    # Duties

    def _answer_requests(self, now: float) -> float:
        """Those that no hint told of."""
        self._requests()
        return beat(now, 1.0 if self._sweeps.polling else _REQUESTS_EVERY)

    def _tend(self, now: float) -> float | None:
        """Looks after the API; where it is served is one of the figures."""
        api = self._running.api
        if api is None:
            return None
        before = api.address
        api.tend(now)
        self._running.figures.stale |= api.address != before
        if self._api_is_silent:
            return now + _API_SOON
        return beat(now, 1.0 if api.trouble else PULSE)

    def _judge(self, now: float) -> float:
        """What lasts becomes worth a line, so it is judged again."""
        running = self._running
        self._to_judge = judge(running, self._to_judge, running.plan.check())
        return beat(now, 1.0 if self._to_judge or running.troubles.any else PULSE)

    def _flush(self, now: float) -> float | None:
        """Commits what was applied, where no later turn did it on its way."""
        try:
            self._running.tree.settle()
        except StorageError as error:
            self._journal_health(error)
            return now + 1.0
        return None

    def _status(self, now: float) -> float:
        """Leaves the figures for `swarmmemd status`."""
        self._running.figures.written = now
        self._running.figures.stale = self._running.troubles.changed = False
        write_status(self._running, final=False)
        return beat(now, _STATUS_EVERY)


def _roots(config: Config) -> list[str]:
    return [
        str(p) for p in (config.profiles_root, config.workspace_root, config.shared_root, config.state_dir)
    ]
