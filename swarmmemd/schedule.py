"""When each worker is looked at: hints grouped, retries and sweeps spread over time.

A hint only marks its worker; the first one is due at once, later ones wait a moment and never longer than a
maximum, so a steady writer postpones nothing for ever. docs/architecture.md, "Watching".
"""

import threading
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue

from swarmmemd.model import WorkerId

QUIET = 0.005
"""Seconds between two looks at one worker, however many hints come."""
_OVERFULL = 10_000


class Wake:
    """What other threads leave for the loop: marked workers, and "look at everything". Cheap and never raises."""

    def __init__(self) -> None:
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._lock = threading.Lock()
        self._workers: set[WorkerId] = set()
        self._words: set[str] = set()

    def worker(self, worker: WorkerId) -> None:
        """Marks a worker. When there are too many marks, they become one: everything."""
        with self._lock:
            if len(self._workers) >= _OVERFULL:
                self._workers.clear()
                self._words.add("everything")
            else:
                self._workers.add(worker)
        self.ring()

    def word(self, word: str) -> None:
        """Leaves a word for the loop, such as `profiles`, `ledger` or `stop`."""
        with self._lock:
            self._words.add(word)
        self.ring()

    def ring(self) -> None:
        """Wakes the loop, from a signal handler too: the queue, unlike an Event, can be used in one."""
        if not self._rung:
            self._rung = True
            self._bell.put(None)

    def wait(self, seconds: float) -> None:
        """Waits until something is left, at most `seconds`."""
        with suppress(Empty):
            self._bell.get(timeout=max(seconds, 0.0))

    def take(self) -> tuple[set[WorkerId], set[str]]:
        """What was left since the last call. Cleared before the look, so a change during the look marks again."""
        self._rung = False
        with self._lock:
            workers, self._workers = self._workers, set()
            words, self._words = self._words, set()
        return workers, words


class Schedule:
    """Due times of workers, monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[WorkerId, float] = {}
        self._last: dict[WorkerId, float] = {}

    def mark(self, workers: Iterable[WorkerId], now: float) -> None:
        """A hint came for these workers."""
        for worker in workers:
            self.at(worker, max(now, self._last.get(worker, 0.0) + QUIET))

    def at(self, worker: WorkerId, when: float) -> None:
        """The worker is due then, or earlier if it was due earlier."""
        self._due[worker] = min(when, self._due.get(worker, when))

    def put_off(self, worker: WorkerId, when: float) -> None:
        """The worker is due then and not before, whatever was said."""
        self._due[worker] = when

    def ready(self, now: float, limit: int) -> list[WorkerId]:
        """Takes up to `limit` workers that are due, those first that are due longest."""
        due = sorted((when, worker) for worker, when in self._due.items() if when <= now)
        found = [worker for _, worker in due[:limit]]
        for worker in found:
            del self._due[worker]
            self._last[worker] = now
        return found

    def next(self) -> float | None:
        """When the next worker is due; None for none."""
        return min(self._due.values(), default=None)

    def drop(self, worker: WorkerId) -> None:
        """The worker is retired."""
        self._due.pop(worker, None)
        self._last.pop(worker, None)

    def __len__(self) -> int:
        return len(self._due)
