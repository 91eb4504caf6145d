"""One swarm's tree, opened: the locks, the journal, and the workers that there are now.

`once` opens it for one turn, the daemon for its life. docs/architecture.md, "The daemon".
"""

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

import swarmmemd
from swarmmemd import inbox, layout
from swarmmemd.config import Config
from swarmmemd.durable import Directory, private_directory, sweep_temporaries
from swarmmemd.errors import DeniedError, StorageError, system_error
from swarmmemd.instance import Holder, Instance
from swarmmemd.journal import Journal
from swarmmemd.memory.audit import AuditLog
from swarmmemd.memory.obstacles import Obstructed
from swarmmemd.memory.shared import SharedMemory
from swarmmemd.memory.versions import Versions
from swarmmemd.memory.worker import Memory
from swarmmemd.model import EventId, MissionId, Unreadable, WorkerId, iso
from swarmmemd.observation import RosterWorker
from swarmmemd.redact import Redactor
from swarmmemd.sources.profiles import Profiles, list_profiles
from swarmmemd.turn import Clock, Report, Turns


class Found(msgspec.Struct, frozen=True):
    """What a look at the profiles root has changed: workers that are new, and folders that are or are not
    there. `trouble` says why the root could not be listed: then nothing has changed. `shared` says why the shared root
    is closed."""

    new: frozenset[WorkerId] = frozenset()
    gone: frozenset[WorkerId] = frozenset()
    folders: frozenset[WorkerId] = frozenset()
    skipped: tuple[str, ...] = ()
    trouble: str = ""
    shared: str = ""


class Tree:
    """The opened tree. Made by `open_tree`."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        state: Directory,
        instance: Instance,
        journal: Journal,
    ) -> None:
        self.config = config
        self.state = state
        self.journal = journal
        self._versions = Versions(journal, _redactor(config))
        settle, redact = config.coexist.settle_ms / 1000, config.redact.local
        self.memory = Memory(config.profiles_root, journal, settle, clock.wall, self._versions, redact)
        self.shared = SharedMemory(
            config.shared_root,
            config.profiles_root,
            journal,
            self._versions,
            self.memory.auditor,
            claim=lambda: instance.take_root(config.shared_root),
        )
        self.turns = Turns(config, journal, self.memory, self.shared, self._versions, clock)
        self.audit = AuditLog(state, journal)
        self._clock = clock
        self._instance = instance
        self._listed_well = False
        self._inbox_trouble = ""

    def discover(self) -> Found:
        """Lists the profiles and tracks the workers among them. Raises `HeldError` if another daemon writes to a
        root that has appeared only now."""
        trouble, shared = self._closed(self.config.profiles_root), self._closed(self.config.shared_root)
        if trouble:
            return Found(trouble=trouble, shared=shared)
        listed = self._listed()
        self._listed_well = not isinstance(listed, Unreadable)
        if isinstance(listed, Unreadable):
            return Found(trouble=listed.reason, shared=shared)
        new = frozenset(worker for worker in listed.workers if worker not in self.turns.workers)
        gone = frozenset(worker for worker in self.turns.workers if worker not in listed.workers)
        for worker in new:
            self.turns.track(worker)
        return Found(new, gone, listed.folders, listed.skipped, shared=shared)

    def _closed(self, root: Path) -> str:
        """Why a root cannot be opened, and so not be locked; nothing where it can, or is not there."""
        try:
            self._instance.take_root(root)
        except OSError as error:
            return f"{root}: {error.strerror}"
        return ""

    def forget_last_exit(self) -> None:
        """The daemon is up: what ended it the last time is no longer of interest."""
        with contextlib.suppress(FileNotFoundError):
            self.state.unlink(layout.LAST_EXIT)

    def reconfigure(self, config: Config) -> None:
        """Takes over a configuration with the same roots."""
        if config.redact != self.config.redact:
            self._versions.redactor = _redactor(config)
            self.memory.handoffs.redact(config.redact.local)
            self.turns.redact(config.redact.local)
            self.shared.archived.redact_anew()
        self.config = config
        self.memory.settle_within(config.coexist.settle_ms / 1000)

    def until_still(self, seconds: float) -> int:
        """Turns for every worker until nothing waits any more, or the time is over. Gives the number of new events.

        Raises `StorageError` where they cannot be recorded.
        """
        end, events = self._clock.monotonic() + seconds, 0
        while True:
            report = self.everything()
            events += len(report.recorded)
            if report.failure is not None:
                raise report.failure
            waits = [one.due for one in self.turns.workers.values() if one.due is not None]
            if not waits or min(waits) > end:
                return events
            time.sleep(max(min(waits) - self._clock.monotonic(), 0.0))

    def settle(self) -> None:
        """Commits what was applied, and brings the audit log up to date. Raises `StorageError`."""
        self.turns.settle()
        self.audit.append()

    def bring_over(self, worker: WorkerId, mission: MissionId, other: bytes) -> None:
        """Merges what stands in another version of the mission's `SUMMARY.md` into the one that is there."""
        state = self.journal.load(worker)
        if state is not None:
            self.memory.reshow(state, mission, self._clock.monotonic(), (other,))

    def archive(self, mission: MissionId) -> int | None:
        """Archives a completed mission. Gives the number of files that changed; None if nobody completed it."""
        return self.shared.archive_by_hand(mission)

    def promote(self, event: EventId, lesson: str | None) -> bool | None:
        """Puts a lesson from an event (by default what it says) into its worker's `MEMORY.md`. Says whether it was not
        there yet; None if there is no such event. Raises `StorageError`."""
        found = self.journal.event(event)
        if found is None:
            return None
        worker = found.event.worker
        roster = self.turns.roster.value or {}
        entry = roster.get(worker) or RosterWorker(id=worker, name=worker)
        try:
            return self.memory.promote(entry, lesson or found.event.summary, event)
        except Obstructed as stopped:
            raise StorageError(
                f"{stopped.obstacle.path}: {stopped.obstacle.reason}", "Try it again."
            ) from stopped
        except OSError as error:
            raise system_error(error.filename or worker, error, "Check what stands there.") from error

    def problems(self) -> tuple[str, ...]:
        """What cannot be read or written now, a line each."""
        workers = self.turns.workers.values()
        unread = [
            f"{one.id}/runtime.json: {one.runtime.trouble.reason}" for one in workers if one.runtime.trouble
        ]
        unread += [f"{one.id}/state.db: {one.chat.trouble.reason}" for one in workers if one.chat.trouble]
        unread += [
            f"{one.id}/{path}: {why}" for one in workers for path, why in one.refused_handoffs().items()
        ]
        if self._inbox_trouble:
            unread.append(self._inbox_trouble)
        if self.audit.trouble:
            unread.append(self.audit.trouble)
        return (*unread, *(f"{Path(one.id, o.path)}: {o.reason}" for one in workers for o in one.obstacles))

    def look_at_archives(self) -> None:
        """Looks whether somebody has changed a part of what was archived; the next turn archives it again."""
        self.shared.archived.look_at_all(self.turns.workers)

    def everything(self) -> Report:
        """One turn for every worker."""
        self.look_at_archives()
        self._inbox_trouble = ""
        with self._about_inbox():
            self.take_posts()
        report = self.turns.run(tuple(self.turns.workers))
        with self._about_inbox():
            self.posted(report)
        return report

    @contextmanager
    def _about_inbox(self) -> Iterator[None]:
        """An inbox that cannot be read stops no turn: what waits there waits on."""
        try:
            yield
        except OSError as error:
            self._inbox_trouble = f"{error.filename or layout.INBOX}: {error.strerror or error}"

    def take_posts(self) -> frozenset[WorkerId]:
        """Hands the posts in the inbox to their workers, and says to whom. What is none is set aside with its reason.

        Raises OSError where the inbox cannot be read.
        """
        to: set[WorkerId] = set()
        for name, post in inbox.posts(self.state):
            if isinstance(post, str):
                inbox.reject(self.state, name, post)
            elif (one := self.turns.workers.get(post.worker)) is not None:
                one.posts.setdefault(post.id, post)
                to.add(post.worker)
            elif self._listed_well:
                inbox.reject(self.state, name, f"there is no worker {post.worker}")
        return frozenset(to)

    def posted(self, report: Report) -> None:
        """Takes away what is recorded and applied, and sets aside what cannot be. Raises OSError."""
        for one in report.posted:
            if one.rejected is None:
                inbox.take_away(self.state, one.id)
            else:
                inbox.reject(self.state, inbox.post_name(one.id), one.rejected)

    def _listed(self) -> Profiles | Unreadable:
        workers = self.config.workers
        self.turns.roster.look(self._clock.monotonic(), self._clock.wall())
        roster = self.turns.roster.value or {}
        return list_profiles(self.config.profiles_root, roster.keys(), workers.include, workers.exclude)


def _redactor(config: Config) -> Redactor:
    return Redactor(config.redact.patterns, config.redact.allow)


@contextmanager
def open_tree(config: Config, clock: Clock, allow_root: bool = False, anew: bool = False) -> Iterator[Tree]:
    """Takes the locks, opens the journal and finishes what the last run left unapplied. With `anew` the journal is
    set aside first, so that it is made from the memory files.

    Raises `HeldError`, `JournalError`, `StorageError` or `DeniedError`.
    """
    if not allow_root:
        _refuse_root(config)
    with ExitStack() as stack:
        try:
            tree = _opened(config, clock, stack, anew)
        except OSError as error:
            where = config.state_dir / (error.filename or "")
            raise system_error(where, error, "Check its owner and permissions, and the disk.") from error
        yield tree


def _opened(config: Config, clock: Clock, stack: ExitStack, anew: bool) -> Tree:
    state = stack.enter_context(_state_directory(config))
    instance = Instance(state)
    stack.callback(instance.release)
    instance.take_state()
    instance.take_root(config.profiles_root)
    with contextlib.suppress(OSError):
        # A shared root that is closed keeps no worker from its own memory: `discover` says so, and tries again.
        instance.take_root(config.shared_root)
    sweep_temporaries(state)
    instance.say(_holder(config, clock))
    if anew:
        _set_aside(state, clock)
    journal = Journal.open(config.state_dir / layout.JOURNAL)
    stack.callback(journal.close)
    tree = Tree(config, clock, state, instance, journal)
    stack.callback(tree.memory.close)
    stack.callback(_settle, tree)
    tree.turns.recover()
    return tree


def _set_aside(state: Directory, clock: Clock) -> None:
    """Renames the journal, its log with it. The log comes last: beside an empty journal SQLite drops it."""
    stamp = iso(int(clock.wall() * 1000)).translate({ord(sign): None for sign in "-:."})
    aside = f"{layout.JOURNAL.removesuffix('.db')}-{stamp}.db"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            state.rename(layout.JOURNAL + suffix, aside + suffix)


def _settle(tree: Tree) -> None:
    """What cannot be committed at the end is applied once more at the next start, which changes nothing."""
    with contextlib.suppress(StorageError):
        tree.settle()


def _refuse_root(config: Config) -> None:
    """What root writes into somebody's profiles is root's, and the agent that owns them can no longer write it."""
    with contextlib.suppress(OSError):
        owner = config.profiles_root.stat().st_uid
        if os.geteuid() == 0 and owner != 0:
            raise DeniedError(
                f"{config.profiles_root} belongs to user {owner}, and this is root",
                "Run it as that user. If you really want this: --allow-root",
            )


def _state_directory(config: Config) -> Directory:
    try:
        return private_directory(config.state_dir)
    except OSError as error:
        mend = "Check its owner and permissions, or choose another with --state-dir."
        raise system_error(config.state_dir, error, mend) from error


def _holder(config: Config, clock: Clock) -> Holder:
    return Holder(
        pid=os.getpid(),
        version=swarmmemd.__version__,
        since=iso(int(clock.wall() * 1000)),
        profiles_root=str(config.profiles_root),
        shared_root=str(config.shared_root),
    )
