"""Which workers there are: profiles that come and go, the roster, and the ledger that speaks of all of them."""

from swarmmemd.model import WorkerId
from swarmmemd.service.running import Running

_GONE_AFTER = 1.0
"""Seconds after which a missing profile is believed to be gone."""


class Members:
    """Keeps the list of workers, and the watches on their folders, as the profiles root is."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._missing: dict[WorkerId, float] = {}
        self._skipped: tuple[str, ...] = ()

    def refresh(self) -> None:
        """Arms what is new, then lists it, and retires what is gone."""
        running, now = self._running, self._running.now()
        running.plan.arm_roots()
        found = running.tree.discover()
        running.troubles.update("profiles root", found.trouble or None, now)
        running.troubles.update("shared root", found.shared or None, now)
        if found.trouble:
            self._missing.clear()  # a root that cannot be listed says nothing of who is gone
            return
        new = found.folders - running.plan.armed
        for worker in new:
            running.plan.arm(worker)
        # What came between listing and arming is not reported: look again.
        late = running.tree.discover() if new else found
        running.schedule.mark(found.new | late.new, now)
        for worker in running.plan.armed - late.folders:
            running.plan.disarm(worker)
        self._retire(late.gone, now)
        for name in {*late.skipped, *self._skipped}:
            why = "its name is no worker id, skipped" if name in late.skipped else None
            running.troubles.update(f"profile {name!r}", why, now)
        self._skipped = late.skipped

    def look_at_sources(self) -> None:
        """Looks at roster and ledger; a new one is news for every worker."""
        running, turns = self._running, self._running.turns
        now, wall = running.now(), running.clock.wall()
        roster, ledger = turns.roster.value, turns.ledger.value
        turns.roster.look(now, wall)
        if turns.roster.value is not roster:
            self.refresh()
        turns.ledger.look(now, wall)
        if turns.ledger.value is not ledger or turns.roster.value is not roster:
            running.schedule.mark(turns.workers, now)

    def next_retirement(self) -> float | None:
        """When a missing profile will be believed to be gone, monotonic; None if none is missing."""
        return min((since + _GONE_AFTER for since in self._missing.values()), default=None)

    def _retire(self, gone: frozenset[WorkerId], now: float) -> None:
        self._missing = {worker: self._missing.get(worker, now) for worker in gone}
        for worker, since in tuple(self._missing.items()):
            if now - since >= _GONE_AFTER:
                del self._missing[worker]
                self._let_go(worker, now)

    def _let_go(self, worker: WorkerId, now: float) -> None:
        running = self._running
        running.turns.retire(worker)
        running.schedule.drop(worker)
        for part in (
            "runtime.json",
            "state.db",
            "transcripts",
            "memory",
            "shared",
            "handoffs",
            "shared handoff",
        ):
            running.troubles.update(f"{worker}/{part}", None, now)
        running.figures.stale = True
        running.log.info("worker retired, its memory stays", worker=worker)
