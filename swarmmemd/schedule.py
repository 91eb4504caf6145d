"""When each worker is looked at: hints grouped, retries and sweeps spread over time.

A hint only marks its worker; the first one is due at once, later ones wait a moment and never longer than a
maximum, so a steady writer postpones nothing for ever. docs/architecture.md, "Watching".
"""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from swarmmemd.model import WorkerId

QUIET = 0.005
"""Seconds between two looks at one worker, however many hints come."""
_OVERFULL = 10_000
_SLICE = 64
"""So many are looked at in one piece, if there is time for another: a hint does not wait long for a sweep."""
PIECE = 5.0
"""Seconds from one piece to the next, at least: who wakes often wakes for little, and finds all caches cold."""

T = TypeVar("T")
Duty = Callable[[float], float | None]
"""What is done at a time, monotonic seconds. Says when it is due again; None: when somebody asks for it."""


def beat(now: float, period: float) -> float:
    """The next multiple of the period: what is done now and then is done together, so that the loop sleeps longer."""
    return (now // period + 1) * period


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


class Agenda:
    """What is done without a hint, and when."""

    def __init__(self) -> None:
        self._due: dict[Duty, float] = {}

    def at(self, duty: Duty, when: float) -> None:
        """The duty is due then, or earlier if it was due earlier."""
        self._due[duty] = min(when, self._due.get(duty, when))

    def run(self, now: float) -> None:
        """Does what is due."""
        for duty in [duty for duty, when in self._due.items() if when <= now]:
            del self._due[duty]
            again = duty(now)
            if again is not None:
                self.at(duty, again)

    def next(self) -> float:
        """When the next duty is due; infinite if none is."""
        return min(self._due.values(), default=math.inf)


class Round(Generic[T]):
    """Goes round all that `listed` gives, a piece at a time, so that each comes up once in `period` seconds.

    A duty: call it with the time.
    """

    def __init__(
        self,
        listed: Callable[[], Sequence[T]],
        look: Callable[[T], object],
        period: Callable[[], float],
    ) -> None:
        self._listed, self._look, self._period = listed, look, period
        self._left: Sequence[T] = ()
        self._pieces = 1
        self._size = 0

    def __call__(self, now: float) -> float:
        """Looks at the next piece, and says when the one after it is due."""
        begins = not self._left
        if begins:
            self._left = self._listed()
        period = self._period()
        if begins:
            self._pieces = max(min(math.ceil(len(self._left) / _SLICE), int(period / PIECE)), 1)
            self._size = math.ceil(len(self._left) / self._pieces)
        piece, self._left = self._left[: self._size], self._left[self._size :]
        for one in piece:
            self._look(one)
        return beat(now, period / self._pieces)
