"""The campaign: every call of every turn fails in every way that it can; docs/architecture.md, "Durability".

Each run tells the same story and plants one fault in each of its steps: run number n at the n-th call that the kind
of fault can befall. After each step everything must be as in a run without faults. How many calls of each kind have
failed is said at the end of the tests.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from swarmmemd.durable import TEMPORARY
from swarmmemd.errors import SwarmmemdError
from swarmmemd.recall.verify import verify
from swarmmemd.seam import Hook
from tests.support.campaign import STORY, Standing, Step, calm, done, standing, told
from tests.support.disk import Disk
from tests.support.faults import KILLED, From, failing, hooked, in_child, kill
from tests.support.tally import Tally
from tests.support.trees import Home


class Kind(msgspec.Struct, frozen=True):
    """A way to fail: which calls it can befall, and what happens there. `ends` for a process that is gone then,
    `forgets` where what is not certain of the disk's content is."""

    name: str
    befalls: Callable[[str], bool]
    fault: Callable[[Home, Disk], Hook]
    ends: bool = False
    forgets: bool = False


def _any(call: str) -> bool:
    return True


def _system(call: str) -> bool:
    return call != "turn"


def _only(wanted: str) -> Callable[[str], bool]:
    return lambda call: call == wanted


def _errno(number: int) -> Callable[[Home, Disk], Hook]:
    return lambda home, disk: failing(number)


def _cut_power(home: Home, disk: Disk) -> Hook:
    def hook(call: str, name: str) -> int | None:
        disk.fail()
        return kill(call, name)

    return hook


def _lose(home: Home, disk: Disk) -> Hook:
    """The fsync that comes now fails, and the data is gone, whatever a later one says."""

    def hook(call: str, name: str) -> int | None:
        disk.failing = True
        return None

    return hook


def _wait(home: Home, disk: Disk) -> Hook:
    def hook(call: str, name: str) -> int | None:
        home.hands.move(30.0)
        return None

    return hook


KINDS = (
    Kind("crash", _any, lambda home, disk: kill, ends=True),
    Kind("power cut", _any, _cut_power, ends=True, forgets=True),
    Kind("ENOSPC", _system, _errno(errno.ENOSPC)),
    Kind("EIO", _system, _errno(errno.EIO)),
    Kind("EROFS", _system, _errno(errno.EROFS)),
    Kind("EACCES", _system, _errno(errno.EACCES)),
    Kind("EMFILE", _system, _errno(errno.EMFILE)),
    Kind("rename fails", _only("rename"), _errno(errno.EIO)),
    Kind("fsync fails", _only("fsync"), _lose, forgets=True),
    Kind("short write", _only("write"), lambda home, disk: lambda call, name: 1),
    Kind("delay", _any, _wait),
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Standing]:
    return told(tmp_path_factory.mktemp("told") / "home")


def _run(home: Home, kind: Kind, number: int) -> Iterator[tuple[Step, int]]:
    """Tells the story with a fault at call `number` of each step. Gives each step and how many calls failed in it."""
    for step in STORY:
        step.happen(home)
        disk = Disk(home.base)
        hook = From(number, kind.fault(home, disk), matching=lambda call, name: kind.befalls(call))
        with ExitStack() as stack:
            if kind.forgets:
                stack.enter_context(disk.watched())
            fired = _ended(home, step, hook) if kind.ends else _went_on(home, step, hook)
        if fired and kind.forgets and not kind.ends:
            disk.fail()
        done(home, step)
        yield step, fired


def _ended(home: Home, step: Step, hook: From) -> int:
    def work() -> None:
        with hooked(hook), home.tree() as tree:
            step.work(home, tree)

    status = in_child(work)
    assert status in (0, KILLED)
    return int(status == KILLED)


def _went_on(home: Home, step: Step, hook: From) -> int:
    """The daemon goes on after the fault; only where it cannot even begin, it ends and says why."""
    with hooked(hook), suppress(SwarmmemdError), home.tree() as tree:
        try:
            step.work(home, tree)
        finally:
            home.hands.move(120.0)
            calm(home, tree)
    return len(hook.fired)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_call_fails(quick_path: Path, expected: list[Standing], kind: Kind, tally: Tally) -> None:
    number, failed = 0, 0
    while True:
        home, fired = Home(quick_path / f"run-{number}"), 0
        for step, count in _run(home, kind, number):
            where = f"{kind.name} at call {number} of step {step.name}"
            assert _same(standing(home), expected[STORY.index(step)]), where
            assert verify(home.config).findings == [], where
            fired += count
        assert not list(home.base.rglob(f"{TEMPORARY}*")), f"{kind.name} at call {number}"
        if not fired:
            break
        number, failed = number + 1, failed + fired
    assert failed
    tally.add(kind.name, failed)


def _same(found: Standing, wanted: Standing) -> bool:
    for field in Standing.__struct_fields__:
        assert getattr(found, field) == getattr(wanted, field), field
    return True
