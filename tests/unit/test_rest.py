"""Missions at rest: what is derived is the same, whether a state lets go of them at each turn or never.

docs/architecture.md, "State".
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swarmmemd.checkpoint import parse
from swarmmemd.handoff import sha256
from swarmmemd.model import Absent, AssignmentId, EventId, EventType, MissionId, Unreadable, WorkerId
from swarmmemd.observation import (
    Chat,
    ChatFile,
    HandoffFile,
    Ledger,
    LedgerAssignment,
    LedgerMission,
    LedgerState,
    Message,
    Observation,
    Post,
    Runtime,
    TranscriptPosition,
    TranscriptText,
)
from swarmmemd.rest import rests, without_resting
from swarmmemd.state import Dispatch, Floor, Heard, MissionState, WorkerState
from tests.support.cases import LATER, START, Scene, sequence, sequence_names
from tests.support.cases import Sequence as Case
from tests.support.resting import Twins

ME = WorkerId("builder-1")
MISSIONS = [MissionId(f"mission-{letter}") for letter in "abcde"]
OVER = "mission-z"
SECOND, MINUTE = 1000, 60_000
FILE = ChatFile(1, 2, 3)


def block(state: str, result: str) -> str:
    return (
        f"STATE: {state}\nFILES_CHANGED: a.py\nCOMMANDS_RUN: make\nRESULT: {result}\n"
        "BLOCKER: none\nNEXT_ACTION: rest"
    )


class Swarm:
    """The sources of one worker as they are written, step by step, and the looks at them."""

    def __init__(self) -> None:
        self.twins = Twins(ME)
        self.now = START
        self._seen: dict[str, Any] = {}
        self._ledger: dict[MissionId, LedgerMission] = {}
        self._shown = self._before = None
        self._dirty = False
        self._rows = self._posts = 0
        self._task: str | None = None
        self._mission: MissionId | None = None
        self._ids: set[EventId] = set()
        self._heard: dict[str, Heard] = {}
        self._tasks: list[str] = []
        self._looked: Ledger | None = None
        self._read: Ledger | None = None

    # What is written

    def dispatch(self, mission: int, task: str) -> None:
        self._task, self._mission = task, MISSIONS[mission]
        self._seen["runtime"] = Runtime(
            phase="dispatched",
            status="in_progress",
            task=task,
            mission=self._mission,
            assignment=AssignmentId("as-1"),
            dispatch_at=self.now,
            check_in=self.now,
            written=self.now,
        )

    def answer(self, state: str, result: str) -> None:
        self._seen["runtime"] = Runtime(
            phase=state.lower(),
            status=state.lower(),
            mission=self._mission,
            assignment=AssignmentId("as-1"),
            check_in=self.now,
            output_at=self.now,
            result=result,
            next_action="rest",
            raw=block(state, result),
            written=self.now,
        )

    def unreadable(self, absent: bool) -> None:
        self._seen["runtime"] = Absent() if absent else Unreadable("cut off")

    def ledger(self, mission: int, state: LedgerState, named: bool, dated: bool) -> None:
        id = MISSIONS[mission]
        work = (LedgerAssignment(AssignmentId("as-1"), ME if named else WorkerId("other-1"), "Work"),)
        self._ledger[id] = LedgerMission(id, f"Of {id}", state, START, self.now if dated else None, work)
        self._published()

    def ledger_loses(self, mission: int) -> None:
        self._ledger.pop(MISSIONS[mission], None)
        self._published()

    def _published(self) -> None:
        own = tuple(m for m in self._ledger.values() if m.assignments[0].worker == ME)
        self._read = Ledger(dict(self._ledger), {ME: own})

    def prompt(self, text: str, ago: int) -> None:
        self._row(user=True, text=text, at=self.now - ago * MINUTE)

    def say(self, state: str, result: str, ago: int) -> None:
        blocks = parse(block(state, result), ME)
        self._row(user=False, text=block(state, result), blocks=blocks, at=self.now - ago * MINUTE)

    def _row(self, **fields: Any) -> None:
        self._rows += 1
        message = Message(**{"row": self._rows, "session": "main", "line": "main", "at": self.now, **fields})
        self._seen.setdefault("messages", []).append(message)

    def post(self, type: EventType, mission: int | None, text: str, state: str | None) -> None:
        self._posts += 1
        whose = None if mission is None else MISSIONS[mission]
        detail = {"state": state} if state else {}
        post = Post(
            id=f"post-{self._posts}",
            at=self.now,
            worker=ME,
            type=type,
            text=text,
            mission=whose,
            detail=detail,
        )
        self._seen.setdefault("posts", []).append(post)

    def handoff(self, named: int | None, heading: str, text: str, local: bool) -> None:
        data = f"{heading}\n\n## Next exact action\n\n{text}\n".encode()
        name = None if named is None else MISSIONS[named]
        path = f"memory/handoffs/{name or 'latest'}.md" if local else f"handoffs/swarm/{ME}-latest.md"
        file = HandoffFile(
            path=path,
            local=local,
            named=name if local else None,
            data=data,
            sha256=sha256(data),
            written=self.now,
        )
        self._seen.setdefault("handoffs", []).append(file)

    def transcript(self, state: str, result: str) -> None:
        position = TranscriptPosition(device=1, inode=1, offset=self.now, head_size=0, head="", tail="")
        text = TranscriptText(
            path="logs/a.log", text=block(state, result), written=self.now, position=position, whole=True
        )
        self._seen.setdefault("transcripts", []).append(text)

    # Looks

    def look(self) -> None:
        self.now += SECOND
        seen, self._seen = self._seen, {}
        messages = tuple(seen.pop("messages", ()))
        chat = Chat(file=FILE, messages=messages, cursor=self._rows, newest=self._rows) if messages else None
        found = self.twins.look(
            Observation(
                at=self.now,
                runtime=seen.get("runtime"),
                ledger=self._read,
                ledger_news=self._read.news_since(self._looked) if self._read and self._looked else None,
                chat=chat,
                handoffs=tuple(seen.get("handoffs", ())),
                posts=tuple(seen.get("posts", ())),
                transcripts=tuple(seen.get("transcripts", ())),
                tasks=tuple(self._tasks[-len(self.twins.whole.dispatches) :]),
            ),
            self._ids.__contains__,
            self._heard.get,
        )
        self._looked = self._read
        self._ids |= {event.id for event in found.events}
        self._heard |= found.heard
        self._tasks += [str(e.detail.get("task") or "") for e in found.events if e.type == "dispatch"]

    def restart(self) -> None:
        self.twins.restart()
        self._looked = None

    def later(self, minutes: int) -> None:
        self.now += minutes * MINUTE


NUMBERS = st.integers(0, len(MISSIONS) - 1)
"""Of missions."""
STATES = st.sampled_from(("DONE", "BLOCKED", "HANDOFF", "IN_PROGRESS"))
TASKS = st.sampled_from(("Lay", "Paint"))
RESULTS = st.sampled_from(("first", "second"))
HEADINGS = st.sampled_from(
    [
        "# Handoff",
        "Notes",
        f"# Handoff — {ME}",
        *(f"# Handoff — {ME} — {mission}" for mission in MISSIONS[:3]),
        *(f"# Handoff — {mission}" for mission in MISSIONS[:3]),
    ]
)
TALK = st.sampled_from(("CONTEXT_HANDOFF_REQUIRED", "RESUME_AFTER_HANDOFF", "And the roof?"))
POSTED = st.sampled_from(
    (
        EventType.NOTE,
        EventType.CHECKPOINT,
        EventType.BLOCKED,
        EventType.COMPLETE,
        EventType.DISPATCH,
        EventType.MISSION_START,
        EventType.RESUME,
    )
)


def move(name: str, *values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *values)


MOVES = st.one_of(
    move("dispatch", NUMBERS, TASKS),
    move("dispatch", NUMBERS, TASKS),
    move("answer", STATES, RESULTS),
    move("unreadable", st.booleans()),
    move("ledger", NUMBERS, st.sampled_from(list(LedgerState)), st.booleans(), st.booleans()),
    move("ledger", NUMBERS, st.sampled_from(list(LedgerState)), st.booleans(), st.booleans()),
    move("ledger_loses", NUMBERS),
    move("prompt", st.one_of(TASKS, TALK), st.integers(0, 6)),
    move("say", STATES, RESULTS, st.integers(0, 6)),
    move("post", POSTED, st.one_of(st.none(), NUMBERS), RESULTS, st.one_of(st.none(), STATES)),
    move("handoff", st.one_of(st.none(), NUMBERS), HEADINGS, RESULTS, st.booleans()),
    move("transcript", STATES, RESULTS),
    move("restart"),
    move("later", st.integers(1, 5)),
)


def played(story: Sequence[tuple[Any, ...]]) -> Swarm:
    """The story, with a look at its end. Each look compares the two states."""
    swarm = Swarm()
    for name, *values in [*story, ("look",)]:
        getattr(swarm, name)(*values)
    return swarm


@given(st.booleans(), st.lists(st.tuples(MOVES, st.integers(0, 3)), min_size=5, max_size=25))
@settings(deadline=None, max_examples=300)
def test_whatever_is_seen_a_state_that_lets_go_tells_the_same(
    worked: bool, story: list[tuple[Any, int]]
) -> None:
    """Also after two missions that rest. One move in four is seen together with the next."""
    moves = [one for move, glance in story for one in ((move, ("look",)) if glance else (move,))]
    played([*(finished(0, 1, 2) if worked else ()), *moves])


def finished(*missions: int) -> list[tuple[Any, ...]]:
    """Each mission is dispatched and done."""
    moves: list[tuple[Any, ...]] = []
    for mission in missions:
        moves += [("later", 2), ("dispatch", mission, "Lay"), ("look",), ("later", 1)]
        moves += [("answer", "DONE", "first"), ("look",)]
    return moves


def opened(mission: int, state: LedgerState = LedgerState.EXECUTING, dated: bool = True) -> tuple[Any, ...]:
    return ("ledger", mission, state, True, dated)


ASKED = "CONTEXT_HANDOFF_REQUIRED"
RARE: dict[str, list[tuple[Any, ...]]] = {
    "work that only the ledger gave": [
        *(opened(0), ("look",), ("later", 1), opened(1), ("look",), ("ledger_loses", 0), ("look",)),
        *(("post", EventType.NOTE, 2, "first", None), ("look",), ("transcript", "DONE", "first")),
    ],
    "two handoffs at once of what the ledger has closed": [
        *(opened(0, LedgerState.COMPLETE), opened(1, LedgerState.COMPLETE), *finished(3)),
        *(("handoff", m, f"# Handoff — {ME} — {MISSIONS[m]}", "first", True) for m in (0, 1)),
        *(("look",), ("later", 1)),
        ("post", EventType.NOTE, 2, "first", None),
    ],
    "the ledger has closed it once more": [
        *(opened(0), ("look",), ("later", 1), opened(0, LedgerState.COMPLETE), ("look",), ("later", 1)),
        *(("dispatch", 0, "Lay"), ("look",), ("later", 1), ("dispatch", 1, "Lay"), ("look",), ("later", 1)),
        opened(0, LedgerState.COMPLETE),
    ],
    "a handoff that was asked for": [
        *(("dispatch", 0, "Lay"), ("look",), ("prompt", ASKED, 0), ("look",), ("later", 3)),
        *(("dispatch", 1, "Lay"), ("look",), ("later", 1), ("prompt", "And the roof?", 0), ("look",)),
        ("prompt", ASKED + " please", 4),
    ],
}


@pytest.mark.parametrize("name", RARE)
def test_what_seldom_happens_is_told_alike(name: str) -> None:
    played(RARE[name])


NAMING: dict[str, list[tuple[Any, ...]]] = {
    "another dispatch": [("dispatch", 0, "Paint"), ("look",), ("answer", "DONE", "second")],
    "a note": [("post", EventType.NOTE, 0, "first", None)],
    "a checkpoint": [("post", EventType.CHECKPOINT, 0, "second", "IN_PROGRESS")],
    "a posted dispatch": [("post", EventType.DISPATCH, 0, "Paint", None)],
    "that it is complete": [("post", EventType.COMPLETE, 0, "first", None)],
    "the ledger": [("ledger", 0, LedgerState.COMPLETE, True, True)],
    "the ledger opens it": [
        ("ledger", 0, LedgerState.EXECUTING, True, True),
        ("look",),
        ("transcript", "DONE", "x"),
    ],
    "a file of its name": [("handoff", 0, "Notes", "first", True)],
    "a heading": [("handoff", None, f"# Handoff — {MISSIONS[0]}", "first", True)],
    "a late answer in the chat": [("say", "IN_PROGRESS", "late", 6)],
}


@pytest.mark.parametrize("name", NAMING)
@pytest.mark.parametrize("started_again", [False, True])
def test_what_names_a_mission_brings_it_back(name: str, started_again: bool) -> None:
    before = finished(0, 1, 2)
    assert MISSIONS[0] not in played(before).twins.state.missions
    again: list[tuple[Any, ...]] = [("restart",)] if started_again else []
    swarm = played([*before, *again, *NAMING[name]])
    assert swarm.twins.rested >= 1


def test_what_is_held_does_not_grow() -> None:
    swarm = played(finished(*[number % len(MISSIONS) for number in range(40)]))
    assert len(swarm.twins.whole.missions) == len(MISSIONS)
    assert list(swarm.twins.state.missions) == [MISSIONS[39 % len(MISSIONS)]]


@pytest.mark.parametrize("name", sequence_names())
def test_every_sequence_is_told_alike(name: str) -> None:
    case: Case = sequence(name)
    twins, scene, ids = Twins(case.worker), Scene(), set[EventId]()
    before: Ledger | None = None
    for number, step in enumerate(case.steps):
        scene.put(step)
        for _ in range(2):
            seen = Observation(
                at=LATER + number * SECOND,
                runtime=scene.runtime,
                ledger=scene.ledger,
                ledger_news=scene.ledger.news_since(before) if scene.ledger and before else None,
            )
            ids |= {event.id for event in twins.look(seen, ids.__contains__).events}
            before = scene.ledger
        if number % 2:
            twins.restart()
            before = None


# What rests

DONE = MissionState(mission=MISSIONS[0], closed=True)
KNOWN = WorkerState(worker=ME, floor=Floor(0, 0), missions={DONE.mission: DONE})


def test_a_mission_that_nothing_holds_rests() -> None:
    assert rests(KNOWN, DONE)
    assert without_resting(KNOWN).missions == {}


def test_before_the_first_look_nothing_rests() -> None:
    assert not rests(replace(KNOWN, floor=None), DONE)


def test_what_is_current_does_not_rest() -> None:
    dispatch = Dispatch(mission=DONE.mission, assignment=None, number=1, at=START, task="")
    other = replace(dispatch, mission=MISSIONS[1])
    assert not rests(replace(KNOWN, dispatches=(dispatch,)), DONE)
    assert rests(replace(KNOWN, dispatches=(dispatch, other)), DONE)
    assert not rests(replace(KNOWN, handed_off=DONE.mission), DONE)


def test_what_the_ledger_holds_open_or_says_anew_does_not_rest() -> None:
    def ledger(state: LedgerState) -> Ledger:
        return Ledger({DONE.mission: LedgerMission(DONE.mission, "", state, None, None, ())}, {})

    assert not rests(KNOWN, replace(DONE, ledger=LedgerState.REVIEWING))
    complete = replace(DONE, ledger=LedgerState.COMPLETE)
    assert rests(KNOWN, complete, ledger(LedgerState.COMPLETE))
    assert not rests(KNOWN, complete, ledger(LedgerState.EXECUTING))
    assert not rests(KNOWN, DONE, ledger(LedgerState.COMPLETE))
