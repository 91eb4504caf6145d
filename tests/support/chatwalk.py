"""A worker that lives at random: its agent writes a chat, its control plane a `runtime.json`, and a model beside them
knows each genuine checkpoint and the dispatch that it answers.

Only what docs/contracts.md decides happens here. Where a step would destroy what nobody has looked at yet, or leave
it open whose an answer is, the walk has a look taken first, or takes another step.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from tests.support.chats import BUILD

STYLES = ("form", "raw", "one-line")
ONE_LINE = "Read swarm-task.md and do what it says."
TERMINAL = ("DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF")
_STATES = ("IN_PROGRESS", "IN_PROGRESS", "DONE", "DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF", "NEEDS_REVIEW")
_RUNTIME = {"DONE": "idle", "BLOCKED": "blocked", "NEEDS_INPUT": "waiting", "HANDOFF": "idle"}
_THINGS = ("roof", "cellar", "yard", "gate", "well", "barn", "kitchen", "tower", "garden", "bridge")
TIMEOUT = "No fresh checkpoint before poll timeout."
STALE = "No parseable checkpoint found before stale threshold."


class Given(msgspec.Struct, frozen=True):
    """One dispatch. Two of the same task are told apart by `number`, the how-manieth of the worker."""

    mission: str
    assignment: str
    task: str
    at: int
    number: int


class Said(NamedTuple):
    """One genuine checkpoint: whose it is, and its words."""

    mission: str
    assignment: str
    state: str
    result: str


class Answer(msgspec.Struct, frozen=True):
    """One message of the worker with checkpoints in it."""

    text: str
    blocks: tuple[tuple[str, str], ...]
    owner: Given


class World:
    """What the workers share: the time (ms), chance, and somebody who takes a look when it is needed."""

    def __init__(
        self,
        seed: int,
        start: int,
        passing: Callable[[int], None],
        glance: Callable[[], None],
        look: Callable[[], None],
    ) -> None:
        self.random = Random(seed)
        self.now = start
        self.glance = glance  # a look
        self.look = look  # a look, until nothing waits
        self.watched = False  # somebody looks at any time
        self._passing = passing
        self._names = 0

    def wait(self, least: int, most: int) -> None:
        """Lets some ms pass."""
        by = self.random.randint(least, most)
        self.now += by
        self._passing(by)

    def name(self) -> int:
        """A number that nobody had."""
        self._names += 1
        return self._names


class Life:
    """One worker, step by step. `said` and `given` are what must be recorded, in this order."""

    def __init__(self, world: World, folder: Path, schema: int, journal: str, style: str) -> None:
        self.world, self.folder, self.style = world, folder, style
        self.profile = BUILD.Profile(folder, schema, journal)
        self.given: list[Given] = []
        self.said: list[Said] = []
        self.requested: list[str] = []
        self.story: list[str] = []
        self.doing = self.told = ""
        self._queue: list[tuple[Given, str]] = []
        self._current: Given | None = None
        self._adrift = style == "one-line"
        self._answers: list[Answer] = []
        self._answered: set[int] = set()
        self._open = False  # whether the control plane waits for the newest dispatch
        self._unseen = self._unseen_dispatch = False
        self._asked: set[str] = set()
        self._session = "main"
        self._sight = 0
        self._texts: dict[str, int] = {}  # user texts, and when each was new
        self._asked_at = 0  # when the text of the nearest user row was new
        self._words: dict[
            tuple[str, str], tuple[int, int]
        ] = {}  # when they counted last, and for which dispatch
        self._said_in: dict[str, str] = {}  # the session in which a text counted last
        self._many: set[str] = set()  # texts that stand in several rows
        self._doubled_at = 0
        self._rewritten: set[str] = set()  # texts that stand in rows which were written again, or no more
        self._copies: list[Path] = []
        self.profile.runtime(
            state="idle", phase="standby", checkpointStatus="none", currentTask=None, lastCheckIn=self._iso()
        )
        self.profile.session("main", at=self._minutes())

    def close(self) -> None:
        """As the agent closes."""
        self.profile.close()

    def looked_at(self) -> None:
        """Somebody has looked at all that is there."""
        self._unseen = self._unseen_dispatch = False

    def step(self) -> None:
        """Something happens, if it can."""
        steps, weights = zip(*_STEPS, strict=True)
        chosen = self.world.random.choices(steps, weights)[0]
        self.world.wait(1_000, 90_000)
        self.doing = chosen.__name__.strip("_")
        if chosen(self) is not False:
            self.story.append(f"{self._minutes():.2f} {self.doing}{self.told}")
        self.told = ""

    # Times and rows

    def _minutes(self) -> float:
        return (self.world.now / 1000 - float(BUILD.T0)) / 60

    def _iso(self) -> str:
        return str(BUILD.iso(self._minutes()))

    def _say(self, role: str, content: str, **extra: object) -> int:
        self._unseen = True
        self.told += f" | {role}: {content[-60:]!r}"
        extra.setdefault("message_uid", f"uid-{self.world.name()}")
        return int(self.profile.say(role, content, self._minutes(), self._session, **extra))

    def _stored(self, text: str) -> str:
        if self.world.random.random() < 0.15:
            return "\0json:" + json.dumps([{"type": "text", "text": text}])
        return text

    def _user(self, text: str) -> None:
        self._say("user", self._stored(text))
        if text not in self._texts:
            self._sight += 1
            self._texts[text] = self._sight
        self._asked_at = self._texts[text]

    def _seen(self) -> None:
        """What is destroyed now was looked at before."""
        if self._unseen:
            self.world.look()

    # Dispatches

    def _dispatch(self) -> bool | None:
        if len(self._queue) > 2:
            return False
        if self._unseen_dispatch:
            self.world.look()
        given, text = self._task()
        self._write_dispatch(given)
        if self.world.random.random() < 0.5 and self.style == "one-line":
            self._delivered()
        self._queue.append((given, text))
        return None

    def _task(self, new: bool = False) -> tuple[Given, str]:
        random, last = self.world.random, self.given[-1] if self.given else None
        again = not new and last is not None and not self._open and not self._queue and random.random() < 0.25
        if again and last is not None:
            given = msgspec.structs.replace(last, at=self.world.now, number=len(self.given) + 1)
        else:
            name = self.world.name()
            same = last is not None and random.random() < 0.3
            mission = last.mission if same and last else f"mission-walk{name:05d}"
            task = f"Look after the {random.choice(_THINGS)} number {name}."
            given = Given(mission, f"assign-walk{name:05d}", task, self.world.now, len(self.given) + 1)
        return given, self._prompt(given)

    def _prompt(self, given: Given) -> str:
        if self.style == "one-line":
            return ONE_LINE
        text = given.task
        if self.style == "form" or self.world.random.random() < 0.3:
            text = str(BUILD.prompt(given.task))
        newest = {one.task: one for one in self.given}
        old = [one.task for one in newest.values() if one.number in self._answered and one.task != given.task]
        if old and self.world.random.random() < 0.4:
            text = "## Memory\n" + "\n".join(f"- {task}" for task in old[-3:]) + "\n\n" + text
        return (
            text
            if text not in self._rewritten
            else f"{text}\n\nOnce more, for the {self.world.name()}th time."
        )

    def _write_dispatch(self, given: Given, early: Sequence[Answer] = ()) -> None:
        """`runtime.json` says so; what stands in the chat `early` answers it."""
        again = bool(self.given) and self.given[-1].assignment == given.assignment
        if again:
            # That the task ended, and that it began once more, are states that nothing else tells of.
            self.world.glance()
        self.given.append(given)
        self.profile.dispatch(given.task, given.mission, given.assignment, self._minutes())
        self._open = self._unseen_dispatch = True
        self.told += f" | {given}"
        for answer in early:
            self._count(msgspec.structs.replace(answer, owner=given))
        if again:
            self.world.glance()

    def _delivered(self) -> None:
        """The dispatch's result: its time is written once more."""
        self.world.wait(500, 8_000)
        self.profile.runtime(
            lastDispatchAt=self.world.now, lastDispatchResult="Delivered to tmux", lastCheckIn=self._iso()
        )

    def _take_up(self) -> bool | None:
        if not self._queue:
            return False
        given, text = self._queue.pop(0)
        self._begin(given, text)
        return None

    def _begin(self, given: Given, text: str) -> None:
        text = (
            text
            if text not in self._rewritten or self.style == "one-line"
            else f"{text}\n\n({self.world.name()})"
        )
        self._user(text)
        self._current = given
        if self.style != "one-line":
            self._adrift = False

    def _quick(self) -> bool | None:
        """Prompt and answer first, then the result of the dispatch."""
        if self._queue or self.style == "one-line":
            return False
        if self._unseen_dispatch:
            self.world.look()
        given, text = self._task()
        self._write_dispatch(given)
        self.world.wait(200, 3_000)
        self._begin(given, text)
        self.world.wait(500, 20_000)
        state = self._answer_as(self.world.random.choice(("DONE", "IN_PROGRESS", "BLOCKED")))
        self._maybe_look()
        if self.world.random.random() < 0.4:
            # A one-shot: its checkpoint was written before the result.
            self._write_raw(self._answers[-1])
            self._maybe_look()
            self.profile.runtime(state="executing", checkpointStatus="in_progress", phase=state.lower())
            self.profile.runtime(
                lastDispatchAt=self.world.now, lastDispatchMode="oneshot", lastCheckIn=self._iso()
            )
            self._maybe_look()
            self._write_raw(self._answers[-1])
        else:
            self._delivered()
        return None

    def _deliver_first(self) -> bool | None:
        """The prompt, perhaps the answer too, stands in the chat before `runtime.json` says anything."""
        if self._queue or self.style == "one-line":
            return False
        over = bool(self.given) and self.given[-1].number in self._answered
        if self.style == "raw" and (self.world.watched or (self._unseen and not over)):
            return False
        if self._unseen_dispatch:
            self.world.look()
        given, text = self._task(new=not over)
        seen = over or "Required Checkpoint Format" in text
        self._current = None
        self._begin(given, text)
        if seen:
            self._maybe_look()
        early: list[Answer] = []
        self.world.wait(500, 15_000)
        if self.world.random.random() < 0.6:
            early.append(self._early_answer(given))
            if seen:
                self._maybe_look()
            self.world.wait(500, 15_000)
        given = msgspec.structs.replace(given, at=self.world.now)
        self._write_dispatch(given, early)
        self._current = given
        self._maybe_look()
        return None

    def _early_answer(self, given: Given) -> Answer:
        """New words; or, where the same task is given once more, perhaps those of the last answer."""
        last = self._answers[-1] if self._answers else None
        again = self.given and self.given[-1].assignment == given.assignment
        if last is None or not again or last.owner is not self.given[-1]:
            return self._new_early_answer(given)
        if self._said_in[last.text] != self._session:
            return self._new_early_answer(given)
        if len(last.blocks) > 1 or last.text in self._rewritten or self.world.random.random() < 0.5:
            return self._new_early_answer(given)
        self._say("assistant", self._stored(last.text))
        self._many.add(last.text)
        return last

    def _new_early_answer(self, given: Given) -> Answer:
        return self._message(given, self.world.random.choice(("DONE", "IN_PROGRESS")))

    def _maybe_look(self) -> None:
        if self.world.random.random() < 0.4:
            self.world.glance()

    # What the worker says

    def _owner(self) -> Given | None:
        if self._adrift:
            return self.given[-1] if self.given else None
        return self._current

    def _answer(self) -> bool | None:
        if self._owner() is None:
            return False
        self._answer_as(self.world.random.choice(_STATES))
        return None

    def _answer_as(self, state: str) -> str:
        owner = self._owner()
        assert owner is not None
        self._count(self._message(owner, state))
        return state

    def _message(self, owner: Given, state: str) -> Answer:
        number = self.world.name()
        blocks: tuple[tuple[str, str], ...] = ((state, f"Piece {number} of the work"),)
        if self.world.random.random() < 0.1:
            blocks = (("IN_PROGRESS", f"First half of piece {number}"), *blocks)
        texts = [self._block(*one) for one in blocks]
        text = "Here it is.\n\n" + "\n\nAnd then:\n\n".join(texts)
        self._say("assistant", self._stored(text))
        return Answer(text, blocks, owner)

    def _block(self, state: str, result: str) -> str:
        blocker = f"Nobody has the key for {result}" if state in ("BLOCKED", "NEEDS_INPUT") else "none"
        text = str(BUILD.block(state, result, blocker=blocker, next_action=f"Go on after {result}"))
        return str(BUILD.bold(text)) if self.world.random.random() < 0.2 else text

    def _count(self, answer: Answer) -> None:
        self._answers.append(answer)
        self._said_in[answer.text] = self._session
        for state, result in answer.blocks:
            self._sight += 1
            self._words[state, result] = (self._sight, answer.owner.number)
            self.said.append(Said(answer.owner.mission, answer.owner.assignment, state, result))
            if state in TERMINAL:
                self._answered.add(answer.owner.number)
            if state == "HANDOFF":
                self._asked.discard(answer.owner.mission)

    def _repeat(self) -> bool | None:
        """The words of an earlier answer once more; whether they count, the nearest user row says."""
        owner = self._owner()
        if owner is None or not self._answers:
            return False
        old = self.world.random.choice(self._answers[-3:])
        sight, number = max(self._words[one] for one in old.blocks)
        asked = self._asked_at > sight
        later = number != owner.number
        if len(old.blocks) > 1 or (later and (not asked and old.text in self._rewritten)):
            return False
        if later and owner.number < number:
            return False  # an earlier dispatch's words for a later one, only so
        if asked and old.text in self._many and self._asked_at <= self._doubled_at:
            return False  # it may be one more copy
        self._say("assistant", self._stored(old.text))
        self._many.add(old.text)
        if asked or (later and self._said_in[old.text] == self._session):
            self._count(msgspec.structs.replace(old, owner=owner))
        return None

    def _remark(self) -> bool | None:
        known = [text for text in self._texts if text.startswith("Tell me") and text not in self._rewritten]
        if known and self.world.random.random() < 0.3:
            self._user(self.world.random.choice(known))
        else:
            self._user(f"Tell me how it goes, for the {self.world.name()}th time.")
        return None

    def _noise(self) -> None:
        """Nothing of this is a checkpoint."""
        random, block = self.world.random, BUILD.block("DONE", f"Somebody's piece {self.world.name()}")
        match random.randrange(7):
            case 0:
                self._say("tool", "from an old report:\n" + block)
            case 1:
                self._say("system", "Checkpoints look like this:\n\n" + block)
            case 2:
                self._say("assistant", "I shall answer in this form:\n\n" + BUILD.FORM)
            case 3:
                self._say("assistant", block.split("BLOCKER")[0], finish_reason="length")
            case 4:
                self._say(
                    "assistant",
                    "[CONTEXT COMPACTION — REFERENCE ONLY] Before:\n\n" + block,
                    _compressed_summary=1,
                )
            case 5:
                self._say("assistant", "", tool_calls="[]")
            case _:
                name = f"cron_digest_{self.world.name()}"
                self.profile.session(name, random.choice(("cron", "subagent")), at=self._minutes())
                self.profile.say("user", "Close with a checkpoint.", self._minutes(), name)
                self.profile.say("assistant", block, self._minutes(), name)

    # Lifecycle

    def _handoff_request(self) -> bool | None:
        owner = self._owner()
        if owner is None or owner is not self.given[-1] or self._unseen_dispatch:
            return False
        self._user(BUILD.HANDOFF_REQUEST + f"\n\nFor the {self.world.name()}th time.")
        if owner.mission not in self._asked:
            self._asked.add(owner.mission)
            self.requested.append(owner.mission)
        return None

    def _resume(self) -> bool | None:
        """A restart of the agent: a new session, in which no prompt stands."""
        if (
            self._queue
            or self._owner() is None
            or self._owner() is not self.given[-1]
            or self._unseen_dispatch
        ):
            return False
        assert self._owner() is not None
        mission = self.given[-1].mission
        self._session = f"after-restart-{self.world.name()}"
        self.profile.session(self._session, "tui", at=self._minutes())
        self._user(f"RESUME_AFTER_HANDOFF. Read your handoff. Time {self.world.name()}.")
        self._asked.discard(mission)
        self._adrift, self._current = True, None
        return None

    # Rows that are written again

    def _active(self) -> list[tuple[Any, ...]]:
        columns = "id, role, content, timestamp, finish_reason" + (
            ", message_uid" if self.profile.schema == 31 else ", NULL"
        )
        active = " AND active = 1" if "active" in self.profile.columns else ""
        sql = f"SELECT {columns} FROM messages WHERE session_id = ?{active} ORDER BY id"
        return list(self.profile.con.execute(sql, (self._session,)))

    def _copy(self, rows: list[tuple[Any, ...]], times: str, uids: bool = False) -> None:
        self._unseen = True
        for n, (_, role, content, timestamp, finish, uid) in enumerate(rows, 1):
            at = (timestamp - BUILD.T0) / 60 if times == "old" else self._minutes() + n / 60_000
            self.profile.say(
                role, content, at, self._session, message_uid=uid if uids else None, finish_reason=finish
            )
        self._touch()

    def _touch(self) -> None:
        self._rewritten |= set(self._texts) - {ONE_LINE}
        self._rewritten |= {answer.text for answer in self._answers}

    def _tail(self) -> list[tuple[Any, ...]]:
        """The newest rows; never without the nearest user row, nor without one that nobody has looked at."""
        rows = self._active()
        user = max((n for n, row in enumerate(rows) if row[1] == "user"), default=0)
        return rows[self.world.random.randint(0, user) :]

    def _compact(self) -> bool | None:
        """A summary, and copies of the newest rows: in place, by deleting, or in a session that goes on."""
        self._seen()
        rows = self._active()
        if not rows:
            return False
        tail, random, con = self._tail(), self.world.random, self.profile.con
        kept = "compacted" in self.profile.columns
        manner = random.choice(
            ("delete", "rotate", "archive" if kept else "delete", "archive" if kept else "delete")
        )
        if manner == "rotate":
            self._session_goes_on()
        con.execute("BEGIN IMMEDIATE")
        if manner == "delete":
            con.execute("DELETE FROM messages WHERE session_id = ?", (self._session,))
        elif manner == "archive":
            con.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1",
                (self._session,),
            )
        carried = manner == "archive" and self.profile.schema == 31 and random.random() < 0.6
        if carried:
            ids = [row[0] for row in tail]
            con.executemany("UPDATE messages SET compacted = 0 WHERE id = ?", [(id,) for id in ids])
        self._summary(tail)
        self._copy(tail, "old" if carried or random.random() < 0.3 else "new", uids=carried)
        con.execute("COMMIT")
        return None

    def _summary(self, tail: list[tuple[Any, ...]]) -> None:
        quoted = BUILD.block("DONE", f"A summary of piece {self.world.name()}")
        text = f"[CONTEXT COMPACTION — REFERENCE ONLY] What happened before:\n\n{quoted}\n\nThe rest is open."
        plain = [
            n for n, row in enumerate(tail) if row[1] != "tool" and not str(row[2]).startswith(("\0", "["))
        ]
        if plain and self.world.random.random() < 0.4:
            # Merged into a row that is carried.
            id, role, content, *rest = tail[plain[0]]
            if self.world.random.random() < 0.5:
                content = f"{text}\n--- END OF CONTEXT SUMMARY ---\n\n{content}"
            else:
                content = f"[PRIOR CONTEXT — old]\n{content}\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n{text}"
            tail[plain[0]] = (id, role, content, *rest)
        else:
            role = self.world.random.choice(("user", "assistant"))
            self._say(role, text, _compressed_summary=1)

    def _session_goes_on(self) -> None:
        child = f"child-{self.world.name()}"
        self.profile.con.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?",
            (self.world.now / 1000, self._session),
        )
        self.profile.session(child, at=self._minutes(), parent=self._session)
        self._session = child

    def _double(self) -> None:
        """A bug writes rows again, times and all."""
        rows = self._active()
        if self._unseen and self.style == "one-line":
            self.world.look()
        for _ in range(82 if self.world.random.random() < 0.03 and len(rows) < 30 else 1):
            self._copy(rows, "old")
        self._many |= {answer.text for answer in self._answers}
        self._doubled_at = self._sight

    def _retry(self) -> bool | None:
        """The last answers are taken back, and what was before is written again."""
        self._seen()
        rows = self._active()
        user = max((n for n, row in enumerate(rows) if row[1] == "user"), default=-1)
        if user < 0:
            return False
        con = self.profile.con
        con.execute("BEGIN IMMEDIATE")
        con.execute("DELETE FROM messages WHERE session_id = ?", (self._session,))
        self._copy(rows[: user + 1], "new")
        con.execute("COMMIT")
        return None

    def _rewind(self) -> bool | None:
        """The newest answer is taken back. It was said, if somebody has seen it."""
        self._seen()
        rows = [row for row in self._active() if row[1] == "assistant"]
        if not rows:
            return False
        self.profile.rewind(rows[-1][0])
        self._touch()
        return None

    def _import(self) -> None:
        """The session once more, as another one that nobody continues."""
        self._seen()
        rows, here = self._active(), self._session
        lifecycle = any("HANDOFF" in str(row[2]) for row in rows if row[1] == "user")
        self._session = f"imported-{self.world.name()}"
        self.profile.session(self._session, at=self._minutes())
        # A request for a handoff with a new time, in a new session, is a new one.
        self._copy(rows, "old" if lifecycle or self._many else self.world.random.choice(("old", "new")))
        self._session = here

    # Databases

    def _set_aside(self) -> None:
        """A copy of the database, as backups make them."""
        self.profile.close()
        if self.profile.db.exists():
            copy = self.folder / f"backup-{self.world.name()}"
            # Its log is part of it, where somebody looked while the agent closed.
            with closing(sqlite3.connect(copy)) as to:
                self.profile.con.backup(to)
            self._copies.append(copy)

    def _new_database(self) -> None:
        self._seen()
        self.profile.new_database()
        (self.folder / "state.db.bak").unlink()
        self._start_over()
        self.profile.session(self._session, at=self._minutes())

    def _restore(self) -> bool | None:
        if not self._copies:
            return False
        self._seen()
        self.profile.close()
        copy = self.world.random.choice(self._copies)
        if self.world.random.random() < 0.5:
            with closing(sqlite3.connect(copy)) as old:
                old.backup(self.profile.con)  # into the same file
        else:
            aside = self.folder / "state.db.restored"
            shutil.copyfile(copy, aside)
            for side in ("-wal", "-shm", "-journal"):
                Path(f"{self.profile.db}{side}").unlink(missing_ok=True)
            aside.replace(self.profile.db)
        self._start_over()
        self.profile.session(self._session, at=self._minutes())
        return None

    def _start_over(self) -> None:
        """The agent knows of no task any more; what was queued is lost with it."""
        self._session = f"session-{self.world.name()}"
        self._queue.clear()
        self._current, self._asked_at, self._unseen = None, 0, True
        self._adrift = True
        self._touch()

    # The control plane

    def _right_raw(self) -> bool | None:
        mine = [one for one in self._answers if self.given and one.owner is self.given[-1]]
        if not mine or mine[-1].blocks[-1][0] == "NEEDS_REVIEW":
            return False
        self._write_raw(mine[-1])
        return None

    def _false_raw(self) -> bool | None:
        """The answer to an earlier dispatch is taken for that to the current one."""
        others = [one for one in self._answers if one.owner.number < self.given[-1].number]
        now = {words for words, (_, number) in self._words.items() if number == self.given[-1].number}
        if not others or others[-1].blocks[-1][0] == "NEEDS_REVIEW" or now & set(others[-1].blocks):
            return False
        self._write_raw(others[-1])
        return None

    def _write_raw(self, answer: Answer) -> None:
        state, result = answer.blocks[-1]
        blocker = f"Nobody has the key for {result}" if state in ("BLOCKED", "NEEDS_INPUT") else None
        self.profile.runtime(
            state=_RUNTIME.get(state, "executing"),
            phase=state.lower(),
            checkpointStatus=state.lower(),
            needsHuman=state == "NEEDS_INPUT",
            lastCheckIn=self._iso(),
            lastOutputAt=self.world.now,
            lastSummary=result,
            lastResult=result,
            lastControlMessage=None,
            nextAction=f"Go on after {result}",
            blockedReason=blocker,
            checkpointRaw=answer.text,
            # Where the start of the dispatch was not seen, this shows its task.
            **({} if state == "IN_PROGRESS" or self._unseen_dispatch else {"currentTask": None}),
        )
        self._open = state not in TERMINAL

    def _timeout(self) -> bool | None:
        if not self._open:
            return False
        if self.world.random.random() < 0.7:
            self.profile.poll_timeout(self._minutes())
            self._open = False
        else:
            self.profile.runtime(
                state="waiting",
                checkpointStatus="needs_input",
                blockedReason=STALE,
                lastCheckIn=self._iso(),
                lastOutputAt=self.world.now,
                needsHuman=False,
            )
        return None

    def _stop(self) -> bool | None:
        if not self.given or self._unseen_dispatch:
            return False
        self.profile.runtime(
            state="idle", phase="stopped", checkpointStatus="none", currentTask=None,
            lastDispatchResult="Stopped via UI", lastOutputAt=self.world.now,
        )  # fmt: skip
        self._open = False
        return None

    def _reset(self) -> bool | None:
        if not self.given or self._unseen_dispatch:
            return False
        self.profile.runtime(
            state="idle", phase="cancelled", checkpointStatus="none", currentTask=None, currentMissionId=None,
            currentAssignmentId=None, checkpointRaw=None, lastControlMessage="Reset by operator: test",
            cancelledAt=self._iso(), cancelledBy="operator", cancellationReason="test", lastCheckIn=self._iso(),
        )  # fmt: skip
        self._open = False
        return None

    def _patch(self) -> None:
        """Changes that say nothing."""
        match self.world.random.randrange(4):
            case 0:
                self.profile.runtime(lastCheckIn=self._iso())
            case 1:
                self.profile.runtime(activeTool="terminal", lastOutputAt=self.world.now)
            case 2:
                self.profile.runtime(notifySessionKey=f"main-{self.world.name()}", lastNotifiedAt=self._iso())
            case _:
                self.profile.runtime(orchestratorProcessedRaw=f"{self.world.name()}")


_STEPS: list[tuple[Callable[[Life], bool | None], float]] = [
    (Life._dispatch, 6),
    (Life._take_up, 8),
    (Life._quick, 2),
    (Life._deliver_first, 2),
    (Life._answer, 10),
    (Life._repeat, 4),
    (Life._remark, 4),
    (Life._noise, 4),
    (Life._handoff_request, 1),
    (Life._resume, 0.6),
    (Life._compact, 2.5),
    (Life._double, 1),
    (Life._retry, 1),
    (Life._rewind, 0.7),
    (Life._import, 0.7),
    (Life._set_aside, 0.7),
    (Life._new_database, 0.4),
    (Life._restore, 0.5),
    (Life._right_raw, 4),
    (Life._false_raw, 3),
    (Life._timeout, 3),
    (Life._stop, 0.4),
    (Life._reset, 0.4),
    (Life._patch, 3),
]
