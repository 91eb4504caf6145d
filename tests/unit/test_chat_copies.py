"""Copies of copies, rows in other conversations, and what `runtime.json` says before the chat was judged.

docs/contracts.md, "The chat". The rules that the scenarios of tests/cases/statedb hold are not repeated here.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from swarmmemd.checkpoint import parse
from swarmmemd.derive import derive
from swarmmemd.model import Event, EventId, EventType, WorkerId
from swarmmemd.observation import Chat, ChatFile, Message, Observation, Runtime
from swarmmemd.state import Heard, WorkerState

ME = WorkerId("builder-1")
MINUTE = 60_000
START = 1_777_885_200_000
LINE = "Read swarm-task.md and do what it says."
A, B = "mission-a", "mission-b"
_FILE = ChatFile(1, 2, 0)


def at(minute: float) -> int:
    return START + round(minute * MINUTE)


def block(state: str = "IN_PROGRESS", result: str = "still soft") -> str:
    return (
        f"STATE: {state}\nFILES_CHANGED: none\nCOMMANDS_RUN: none\nRESULT: {result}\nBLOCKER: none\n"
        "NEXT_ACTION: none"
    )


class Worker:
    """One worker before the derivation: its rows and its `runtime.json` are put in front of it."""

    def __init__(self) -> None:
        self.state = WorkerState(worker=ME)
        self.events: list[Event] = []
        self._heard: dict[str, Heard] = {}
        self._tasks: dict[tuple[str | None, int], str] = {}
        self._row = 0

    def user(self, text: str, minute: float, session: str = "main") -> Message:
        self._row += 1
        return Message(row=self._row, session=session, line=session, at=at(minute), user=True, text=text)

    def answer(self, text: str, minute: float, session: str = "main") -> Message:
        self._row += 1
        return Message(
            row=self._row,
            session=session,
            line=session,
            at=at(minute),
            user=False,
            text="",
            blocks=parse(text, ME),
        )

    def look(
        self, minute: float, *messages: Message, runtime: Runtime | None = None, gone: Sequence[int] = ()
    ) -> list[tuple[str | None, str]]:
        """The checkpoints that the look brings: mission and result."""
        chat = Chat(file=_FILE, messages=messages, cursor=self._row, gone=frozenset(gone), since=START)
        chat = replace(chat, prompts={m.row: m for m in messages if m.user})
        tasks = tuple(self._tasks.get((d.mission, d.number), "") for d in self.state.dispatches)
        seen = Observation(at=at(minute), runtime=runtime, chat=chat, tasks=tasks)
        found = derive(self.state, seen, self._known, heard=self._heard.get)
        self.state, self._heard = found.state, {**self._heard, **found.heard}
        self.events += found.events
        for event in found.events:
            if event.type is EventType.DISPATCH:
                number = next(
                    d.number for d in reversed(found.state.dispatches) if d.mission == event.mission
                )
                self._tasks[event.mission, number] = str(event.detail.get("task") or "")
        checkpoints = [event for event in found.events if event.type is EventType.CHECKPOINT]
        return [(event.mission, str(event.detail["result"])) for event in checkpoints]

    def _known(self, id: EventId) -> bool:
        return any(event.id == id for event in self.events)


def dispatched(mission: str, task: str, minute: float, **more: object) -> Runtime:
    runtime = Runtime(
        phase="dispatched",
        status="in_progress",
        task=task,
        mission=mission,  # type: ignore[arg-type]
        dispatch_at=at(minute),
        check_in=at(minute),
        written=at(minute),
    )
    return replace(runtime, **more)


def done(mission: str, task: str, dispatch: float, raw: str, minute: float) -> Runtime:
    """A message taken for the answer to the dispatch of that minute."""
    result = parse(raw, ME)[0].result
    return dispatched(
        mission, task, dispatch, phase="done", status="done", raw=raw, result=result, check_in=at(minute),
        output_at=at(minute), written=at(minute),
    )  # fmt: skip


def _soft_twice(worker: Worker) -> list[Message]:
    """The same words twice by the worker's own, then the next dispatch."""
    first = [worker.user(LINE, 0.1), worker.answer(block(), 3), worker.answer(block(), 5)]
    assert worker.look(6, *first, runtime=dispatched(A, "Pour the floor", 0)) == [(A, "still soft")]
    assert worker.look(11, runtime=dispatched(B, "Pour the wall", 10)) == []
    return first


def test_each_of_several_rows_with_the_same_words_has_its_copy() -> None:
    worker = Worker()
    old = [message.row for message in _soft_twice(worker)]
    copies = worker.user(LINE, 12), worker.answer(block(), 12.01), worker.answer(block(), 12.02)
    assert worker.look(13, *copies, gone=old) == []


def test_doubled_rows_behind_a_new_question_have_copies_too() -> None:
    worker = Worker()
    rows = worker.user(LINE, 0.1), worker.answer(block(), 3), worker.user("And now?", 4)
    assert worker.look(5, *rows, runtime=dispatched(A, "Pour the floor", 0)) == [(A, "still soft")]
    doubled = worker.user(LINE, 0.1), worker.answer(block(), 3), worker.user("And now?", 4)
    assert worker.look(6, *doubled) == []
    gone = [message.row for message in (*rows, *doubled)]
    copies = worker.answer(block(), 7), worker.user("And now?", 7.01), worker.answer(block(), 7.02)
    assert worker.look(8, *copies, gone=gone) == []


def test_words_repeated_after_a_new_question_and_its_compaction_count() -> None:
    worker = Worker()
    rows = worker.user(LINE, 0.1), worker.answer(block(), 3), worker.user("And now?", 4)
    worker.look(5, *rows, runtime=dispatched(A, "Pour the floor", 0))
    copies = worker.user(LINE, 6), worker.answer(block(), 6.01), worker.user("And now?", 6.02)
    assert worker.look(7, *copies, gone=[message.row for message in rows]) == []
    assert worker.look(9, worker.answer(block(), 8)) == [(A, "still soft")]


def test_rows_in_another_conversation_hide_no_copy_in_their_own() -> None:
    worker = Worker()
    _soft_twice(worker)
    there = [worker.answer(block(), 12 + n / 100, "imported") for n in range(2)]
    assert worker.look(13, *there) == []
    assert worker.look(15, worker.user("And now?", 14)) == []
    assert worker.look(16, worker.answer(block(), 3), worker.answer(block(), 5)) == []


def test_a_request_that_was_written_into_another_conversation_is_none() -> None:
    worker, request = Worker(), "CONTEXT_HANDOFF_REQUIRED. Stop here."
    rows = worker.user(LINE, 0.1), worker.user(request, 3), worker.answer(block("HANDOFF", "half"), 4)
    worker.look(5, *rows, runtime=dispatched(A, "Pour the floor", 0))
    worker.look(6, worker.user(request, 3, "imported"))
    worker.look(11, worker.user(request, 10, "next"))
    asked = [event.at for event in worker.events if event.type is EventType.HANDOFF_REQUESTED]
    assert asked == [at(3), at(10)]


def test_a_missed_dispatch_is_known_before_the_chat_is_read() -> None:
    """Its first sight is a late answer to the dispatch before, taken for its own."""
    worker, late = Worker(), block("DONE", "The floor is level")
    worker.look(1, worker.user("Pour the floor", 0.1), runtime=dispatched(A, "Pour the floor", 0))
    taken = done(B, "Pour the wall", 10, late, 12)
    assert worker.look(13, worker.answer(late, 11), runtime=taken) == [(A, "The floor is level")]
    assert [event.mission for event in worker.events if event.type is EventType.DISPATCH] == [A, B]


def test_an_answer_that_waits_for_its_dispatch_is_not_given_away() -> None:
    """Its prompt carries an old task, so it may belong to a dispatch that is on its way."""
    worker, answer = Worker(), block("DONE", "The wall stands")
    form = "Pour the wall\n\n## Required Checkpoint Format\n"
    worker.look(1, runtime=dispatched(A, "Pour the wall", 0))
    assert worker.look(3, worker.answer(block("DONE", "The form stands"), 2)) == [(A, "The form stands")]
    worker.look(11, runtime=dispatched(B, "Pour the roof", 10))
    rows = worker.user(form, 12), worker.answer(answer, 14)
    assert worker.look(14.5, *rows, runtime=done(B, "Pour the roof", 10, answer, 14.2)) == []
    assert worker.look(16, rows[1]) == [(A, "The wall stands")]


def test_a_prompt_that_is_taken_up_after_the_timeout_holds_nothing() -> None:
    """Its task is known, and nobody has answered it yet."""
    worker, form = Worker(), "Pour the wall\n\n## Required Checkpoint Format\n"
    worker.look(1, runtime=dispatched(A, "Pour the wall", 0))
    timeout = "No fresh checkpoint before poll timeout."
    blocked = {"phase": "blocked", "status": "blocked", "blocked_reason": timeout, "check_in": at(2)}
    worker.look(3, runtime=dispatched(A, "Pour the wall", 0, **blocked))
    worker.look(11, runtime=dispatched(B, "Pour the roof", 10))
    rows = worker.user(form, 12), worker.answer(block("DONE", "The wall stands"), 14)
    assert worker.look(14.5, *rows) == [(A, "The wall stands")]


def test_one_event_where_runtime_showed_it_first_and_no_prompt_tells() -> None:
    worker, answer = Worker(), block("DONE", "The wall stands")
    worker.look(1, runtime=dispatched(A, "Pour the wall", 0))
    assert worker.look(5, runtime=done(A, "Pour the wall", 0, answer, 4)) == [(A, "The wall stands")]
    assert worker.look(7, worker.answer(answer, 3.9)) == []


def _soft_and_carried(worker: Worker) -> list[int]:
    """A checkpoint and a question, carried on by a compaction that keeps their times."""
    rows = worker.user(LINE, 0.1), worker.answer(block(), 3), worker.user("And now?", 4)
    worker.look(5, *rows, runtime=dispatched(A, "Pour the floor", 0))
    carried = worker.answer(block(), 3), worker.user("And now?", 4)
    assert worker.look(7, *carried, gone=[message.row for message in rows]) == []
    return [message.row for message in carried]


def test_a_row_that_was_carried_on_has_one_copy_only() -> None:
    worker = Worker()
    carried = _soft_and_carried(worker)
    again = worker.answer(block(), 10), worker.user("And now?", 10.01), worker.user("Well?", 10.02)
    assert worker.look(11, *again, gone=carried) == []
    assert worker.look(13, worker.answer(block(), 12)) == [(A, "still soft")]


def test_no_copy_comes_behind_a_question_that_is_newer_than_all_its_rows() -> None:
    worker = Worker()
    old = [message.row for message in _soft_twice(worker)]
    assert worker.look(13, question := worker.user("And now?", 12)) == []
    copies = worker.answer(block(), 14), worker.user("And now?", 14.01)
    assert worker.look(15, *copies, gone=[*old, question.row]) == []
    assert worker.look(17, worker.answer(block(), 16)) == [(B, "still soft")]


def _over(worker: Worker, task: str = "Pour the floor") -> None:
    rows = worker.user(task, 0.1), worker.answer(block("DONE", "It is level"), 3)
    worker.look(4, *rows, runtime=dispatched(A, task, 0))
    worker.look(4.5, runtime=done(A, task, 0, block("DONE", "It is level"), 4))


def test_a_raw_prompt_and_its_answer_stand_there_before_the_dispatch() -> None:
    worker, answer = Worker(), block("DONE", "The wall stands")
    _over(worker)
    rows = worker.user("Build the wall", 10), worker.answer(answer, 10.1)
    assert worker.look(10.2, *rows) == []
    assert worker.look(10.4, *rows, runtime=dispatched(B, "Build the wall", 10.3)) == [(B, "The wall stands")]


def test_the_same_task_and_the_same_answer_stand_there_before_the_dispatch() -> None:
    worker, answer = Worker(), block("DONE", "It is level")
    _over(worker)
    rows = worker.user("Pour the floor", 10), worker.answer(answer, 10.1)
    assert worker.look(10.2, *rows) == []
    again = dispatched(A, "Pour the floor", 10.3)
    assert worker.look(10.4, *rows, runtime=again) == [(A, "It is level")]


def test_a_remark_after_the_work_is_none_when_no_dispatch_comes() -> None:
    worker, answer = Worker(), block("DONE", "It is level, and dry")
    _over(worker)
    rows = worker.user("Dry it, too", 10), worker.answer(answer, 10.1)
    assert worker.look(10.2, *rows) == []
    assert worker.look(11.3, *rows) == [(A, "It is level, and dry")]


def test_a_remark_holds_nothing_that_came_a_minute_later() -> None:
    worker = Worker()
    _over(worker)
    rows = worker.user("Dry it, too", 10), worker.answer(block("DONE", "It is level, and dry"), 11.1)
    assert worker.look(11.2, *rows) == [(A, "It is level, and dry")]


def test_each_of_several_remarks_waits_since_it_was_seen_itself() -> None:
    worker, answer = Worker(), block("DONE", "It is level, and dry")
    _over(worker)
    first = worker.user("Dry it, too", 10)
    worker.look(10.1, first)
    second, said = worker.user("And sweep it", 10.3), worker.answer(answer, 10.4)
    assert worker.look(10.5, first, second, said) == []
    assert worker.look(11.2, first, second, said) == []
    assert worker.look(11.6, second, said) == [(A, "It is level, and dry")]


def test_a_remark_to_a_worker_at_work_holds_nothing() -> None:
    worker = Worker()
    worker.look(1, worker.user("Pour the floor", 0.1), runtime=dispatched(A, "Pour the floor", 0))
    rows = worker.user("Is it level?", 2), worker.answer(block(), 2.1)
    assert worker.look(2.2, *rows) == [(A, "still soft")]


def test_rows_that_are_doubled_behind_a_question_have_copies_behind_it() -> None:
    """Though an earlier compaction left some of their copies out."""
    worker = Worker()
    old = [message.row for message in _soft_twice(worker)]
    rows = worker.user(LINE, 0.1), worker.answer(block(), 3), worker.user("And now?", 12)
    assert worker.look(13, *rows, gone=old) == []
    doubled = worker.answer(block(), 3), worker.user("And now?", 12)
    assert worker.look(14, *doubled) == []
    gone = [message.row for message in (*rows, *doubled)]
    copies = [worker.answer(block(), 15), worker.user("And now?", 15.01), worker.answer(block(), 15.02)]
    assert worker.look(16, *copies, gone=gone) == []
