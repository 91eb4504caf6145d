"""A worker's state from the lines of its `events.jsonl` files: the start without a journal. Pure.

Own lines count by their id, another writer's by what they say. docs/architecture.md, "Without a journal".
"""

import re
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from swarmmemd.fold import CONTROL_PLANE, checkpoint_lines, event_state, fold, number_of
from swarmmemd.foreign import Foreign, gist, in_time, said_digest, values
from swarmmemd.identity import digest, event_id
from swarmmemd.model import BLOCKING, Event, EventType, MissionId, WorkerId, checkpoint_state, parse_iso
from swarmmemd.render.markdown import bullet
from swarmmemd.state import Dispatch, Look, WorkerState

Line = Event | Foreign

_Told = tuple[MissionId, str]
_BULLET = re.compile(r"- (?P<at>[0-9T:.-]{23}Z): (?P<state>[A-Z_]+) — (?P<text>.*)")


def remember(
    worker: WorkerId, files: Iterable[tuple[MissionId, Iterable[Line]]]
) -> tuple[WorkerState, tuple[Event, ...]]:
    """The state that the lines of all missions add up to, and the events that they tell of, each once.

    Lines of one file keep their order; those of several are merged by their times.
    """
    memory = _Memory(worker)
    merged: list[tuple[int, int, MissionId, Line]] = []
    for mission, lines in files:
        latest = 0
        for line in lines:
            latest = max(latest, line.at)
            merged.append((latest, len(merged), mission, line))
    for _, _, mission, line in sorted(merged, key=lambda item: item[:2]):
        if isinstance(line, Event):
            memory.own(line)
        elif line.mission == mission:
            memory.foreign(line, mission)
    return memory.state, tuple(memory.events)


def bullets_before(
    events: Iterable[Event], bullets: Iterable[tuple[MissionId, str]]
) -> list[tuple[MissionId, str]]:
    """Those bullets under Checkpoints of `SUMMARY.md` that were ours, though no event has these words and this time.

    An event for which another writer's line stands is read back with the time and the words of that line. The
    bullet still has those that the event was recorded with.
    """
    mine = [
        (event.mission, bullet(line)) for event in events if event.mission for line in checkpoint_lines(event)
    ]
    known, stand = set(mine), dict.fromkeys(bullets)
    left: dict[_Told, list[tuple[int, tuple[MissionId, str]]]] = {}
    for one in stand:
        if one not in known and (told := _told(*one)):
            left.setdefault(told[0], []).append((told[1], one))
    found = []
    for told in (_told(*one) for one in mine if one not in stand):
        twins = left.get(told[0], []) if told else []
        twin = next((twin for twin in twins if told and in_time(told[1], twin[0])), None)
        if twin is not None:
            twins.remove(twin)
            found.append(twin[1])
    return found


def _told(mission: MissionId, line: str) -> tuple[_Told, int] | None:
    """What a bullet says, and at which time; None for one of another shape."""
    found = _BULLET.fullmatch(line)
    at = parse_iso(found["at"]) if found else None
    if found is None or at is None:
        return None
    return (mission, said_digest(checkpoint_state(found["state"]), found["text"])), at


class _Memory:
    def __init__(self, worker: WorkerId) -> None:
        self.state = WorkerState(worker=worker)
        self.events: list[Event] = []
        self._ids: set[str] = set()
        self._said: set[tuple[MissionId | None, int, str]] = set()

    def own(self, event: Event) -> None:
        if event.id in self._ids:
            return
        number = self._number(event)
        self._said.add((event.mission, number, gist(event)))
        self._add(event, number)

    def foreign(self, line: Foreign, mission: MissionId) -> None:
        """Takes over what no line before it has said."""
        number = number_of(self.state, mission)
        if self._tells_of_known(line, mission, number):
            return
        if line.type is EventType.DISPATCH:
            number += 1
        detail, words = _detail(line), _words(line)
        id = event_id(self.state.worker, mission, number, _type(line), words, 1)
        event = Event(
            id=id,
            at=line.at,
            type=_type(line),
            worker=self.state.worker,
            mission=mission,
            assignment=line.assignment,
            summary=line.text,
            detail=detail,
        )
        if id in self._ids:
            return
        self._add(event, number)
        if line.state is not None:
            self._heard(mission, number, said_digest(line.state, line.text))

    def _add(self, event: Event, number: int) -> None:
        self._ids.add(event.id)
        self.events.append(event)
        state = fold(self.state, event, number)
        self.state = replace(state, look=_learned(state.look, event))

    def _tells_of_known(self, line: Foreign, mission: MissionId, number: int) -> bool:
        known = self.state.missions.get(mission)
        if line.type is EventType.MISSION_START:
            return known is not None
        if line.type is EventType.COMPLETE:
            return known is not None and known.closed
        if line.type is EventType.DISPATCH:
            last = self._dispatch(mission, number)
            again = last is not None and last.ended and line.at > last.ended_at
            return last is not None and last.assignment == line.assignment and not again
        if line.state is not None:
            return (mission, number, said_digest(line.state, line.text)) in self._said
        return line.type is not EventType.HANDOFF_REQUESTED

    def _dispatch(self, mission: MissionId | None, number: int) -> Dispatch | None:
        of = (d for d in reversed(self.state.dispatches) if d.mission == mission and d.number == number)
        return next(of, None)

    def _heard(self, mission: MissionId, number: int, said: str) -> None:
        self._said.add((mission, number, said))

        def mark(dispatch: Dispatch) -> Dispatch:
            mine = dispatch.mission == mission and dispatch.number == number
            return replace(dispatch, said=(*dispatch.said, said)[-32:]) if mine else dispatch

        self.state = replace(self.state, dispatches=tuple(map(mark, self.state.dispatches)))

    def _number(self, event: Event) -> int:
        """Which dispatch of its mission an own event belongs to: the one whose number gives its id."""
        newest = number_of(self.state, event.mission)
        if event.type is EventType.DISPATCH:
            return newest + 1
        if event.type is EventType.MISSION_START:
            return 0
        words = _own_words(event)
        for number in range(newest, 0, -1):
            if event.id == event_id(event.worker, event.mission, number, event.type, words, 1):
                return number
        return newest


def _learned(look: Look, event: Event) -> Look:
    """What `runtime.json` showed when the event was derived, as far as the event tells."""
    if event.type is EventType.DISPATCH:
        return replace(look, status="in_progress", blocker="")
    state = event_state(event)
    if state is None or event.detail.get("origin") == CONTROL_PLANE:
        return look

    def text(key: str, before: str) -> str:
        value = event.detail.get(key)
        return digest(value) if isinstance(value, str) and value else before

    return replace(
        look,
        status=state.lower(),
        result=text("result", look.result),
        blocker=text("blocker", look.blocker),
        next_action=text("nextAction", look.next_action or "") or None,
    )


def _own_words(event: Event) -> tuple[str | None, ...]:
    detail = event.detail
    if event_state(event) is None:
        return (detail.get("kind"),) if detail.get("kind") else ()
    if detail.get("origin") == CONTROL_PLANE:
        return (CONTROL_PLANE, None, detail.get("blocker"), None)
    return (detail.get("state"), detail.get("result"), detail.get("blocker"), detail.get("nextAction"))


def _type(line: Foreign) -> EventType:
    """A foreign BLOCKED can stand in a line of type `checkpoint`; ours is `blocked`."""
    if line.state is None:
        return line.type
    return EventType.BLOCKED if line.state in BLOCKING else EventType.CHECKPOINT


def _detail(line: Foreign) -> dict[str, Any]:
    if line.state is not None:
        return values(line)
    if line.type is EventType.DISPATCH:
        task = line.detail.get("task")
        return {"task": task if isinstance(task, str) else line.text, "mode": None}
    return {}


def _words(line: Foreign) -> tuple[str | None, ...]:
    if line.state is None:
        return ()
    detail = values(line)
    return (detail["state"], detail["result"], detail["blocker"], detail["nextAction"])
