"""What new rows of the chat mean: checkpoints, each once and on its own dispatch, and the lifecycle.

Rows come back with new ids and times after a compaction, a retry or an import, and a worker answers minutes
after the next dispatch was written. So what counts is what is new to the chat, and whose prompt stands before
it. docs/contracts.md, "The chat".
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from swarmmemd.derive.blocks import block_key, checkpoint, occurrence_after, said_before
from swarmmemd.derive.draft import Draft
from swarmmemd.derive.prompts import LATE_DISPATCH, Token, answered_before, meant, token
from swarmmemd.derive.whose import current_at, find, is_further, key_of
from swarmmemd.fold import CHAT
from swarmmemd.identity import digest, event_id
from swarmmemd.model import Checkpoint, EventType, MissionId
from swarmmemd.observation import Chat, Message, Runtime
from swarmmemd.state import (
    Asked,
    ChatState,
    Dispatch,
    Fact,
    Floor,
    Glance,
    Heard,
    Held,
    Prompt,
    Said,
    WorkerState,
)

HOLD = LATE_DISPATCH
"""ms that a row waits for its dispatch, from first sight."""
_ON_ITS_WAY = 600_000
_SESSIONS_KEPT = 32
_V = TypeVar("_V")


def floor(state: WorkerState | None, runtime: Runtime | None, at: int) -> Floor:
    """Where reading of a chat begins that was never read, at a look at `at`.

    At first meeting that is the dispatch which `runtime.json` shows: what was before is past. After the journal
    was lost it is a while before the newest event, as an answer may have been on its way. Once known it stays.
    """
    if state is not None and state.floor is not None:
        return state.floor
    if state is not None and not state.look.met and state.missions:
        newest = max(mission.updated for mission in state.missions.values())
        return Floor(newest - _ON_ITS_WAY, newest)
    times = [d.at for d in state.dispatches if d.mission == _current(state)] if state else []
    if runtime is not None:
        # Of an idle worker that was never dispatched, what came after its last check-in is news.
        times.append(runtime.dispatch_at or runtime.check_in or runtime.written)
    return Floor(min((at, *times)) - LATE_DISPATCH, 0)


def _current(state: WorkerState) -> MissionId | None:
    return state.current.mission if state.current else None


def begin(draft: Draft, chat: Chat) -> None:
    """Takes over which file it is. In another file, or another generation of one, the old row ids say nothing."""
    known = draft.state.chat
    if known is None:
        fresh = ChatState(file=chat.file, since=chat.since, until=chat.until, base=chat.newest)
    elif chat.restarted:
        fresh = replace(
            known,
            file=chat.file,
            generation=known.generation + 1,
            cursor=0,
            base=chat.newest,
            held=None,
            asked={},
        )
    else:
        return
    draft.state = replace(draft.state, chat=fresh)


def keys(message: Message) -> tuple[str, ...]:
    """The keys under which the texts of the message are known."""
    return (*_uid(message), *_texts(message))


def _uid(message: Message) -> tuple[str, ...]:
    return (f"m:{message.uid}",) if message.uid else ()


def _texts(message: Message) -> tuple[str, ...]:
    return (_user_key(message.text),) if message.user else tuple(map(block_key, message.blocks))


def _user_key(text: str) -> str:
    return f"u:{digest(text)}"


def look_at_chat(draft: Draft, chat: Chat, messages: Sequence[Message]) -> bool:
    """Adds what the messages say. False where one of them has to wait: it and those after it are read again."""
    reading = _Reading(draft, chat)
    known_by = [_known_by(message) for message in messages]
    draft.expect_heard([key for texts, names in known_by for key in (*texts, *names)])
    rows = zip(messages, known_by, strict=True)
    waits = next(
        (message for message, (texts, names) in rows if not reading.read(message, texts, names)), None
    )
    reading.leave(None if waits is None else waits.row)
    return waits is None


def _known_by(message: Message) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the texts of a row are known by, and what the row itself is, whatever its id: the agent's name for it, and
    its text, time and line of sessions."""
    texts = _texts(message)
    whole = " ".join((str(message.at), message.line, *texts))
    return texts, (*_uid(message), "r:" + digest(whole))


class _Reading:
    """The chat while it is read: who was asked what last. Lives for one look."""

    def __init__(self, draft: Draft, chat: Chat) -> None:
        self._draft, self._chat = draft, chat
        assert draft.state.chat is not None
        self._state: ChatState = draft.state.chat
        self._sights = self._state.sights
        self._asked = dict(self._state.asked)
        self._prompts = dict(self._state.prompts)
        self._held = self._state.held
        self._said = draft.state.said
        self._glances = _glances(self._held, Glance(chat.cursor, draft.seen.at))
        self._newest = max((message.at for message in chat.messages), default=0)

    def leave(self, waits: int | None) -> None:
        """Keeps how far it was read."""
        chat = replace(
            self._state,
            cursor=self._chat.cursor if waits is None else waits - 1,
            mark=self._chat.mark,
            sights=self._sights,
            held=None if waits is None else self._waiting(waits),
            asked=_newest(self._asked),
            prompts=_newest(self._prompts),
        )
        self._draft.state = replace(self._draft.state, chat=chat, said=self._said)

    def read(self, message: Message, texts: tuple[str, ...], names: tuple[str, ...]) -> bool:
        """Judges one message, known by these. False where it has to wait for its dispatch."""
        again = self._is_row_again(message, names)
        if message.user:
            if not self._user(message, texts[0], again):
                return False
        elif not all(self._block(message, *one, again) for one in zip(message.blocks, texts, strict=True)):
            return False
        if not again:
            for name in names:
                self._note(name, self._sight(message))
        return True

    # What is known

    def _is_row_again(self, message: Message, names: tuple[str, ...]) -> bool:
        """Whether a known row stands there once more, under another id. A bug doubles rows, times and all."""
        here = message.row, self._state.generation
        known = map(self._draft.heard, names)
        return any(one is not None and (one.row, one.generation) != here for one in known)

    def _sight(self, message: Message) -> Heard:
        """The message as one that was never seen before."""
        self._sights += 1
        return Heard(
            first=self._sights,
            last=self._sights,
            row=message.row,
            session=message.session,
            at=message.at,
            generation=self._state.generation,
            seen=self._sights,
        )

    def _seen_again(self, known: Heard, message: Message) -> Heard:
        """One more row with a known text, which does not count."""
        return replace(
            known,
            row=message.row,
            session=message.session,
            at=message.at,
            generation=self._state.generation,
            seen=self._sights,
            rows=known.rows + 1,
        )

    def _note(self, key: str, heard: Heard) -> None:
        self._draft.note_heard(key, heard)

    def _stands(self, row: int, generation: int) -> bool:
        return generation == self._state.generation and row not in self._chat.gone

    def _asked_since(self, session: str, sight: int) -> bool:
        """Whether the nearest user row of the session, if it still stands, is a text that was new since then."""
        asked = self._asked.get(session)
        return asked is not None and asked.first > sight and asked.row not in self._chat.gone

    def _copied(self, message: Message, known: Heard, again: bool) -> Heard | None:
        """What is known of the text where the row is an old one that was written again; None where it is not.

        `again`: it is a known row, whatever its id. Otherwise the old row stands no more, or in an earlier session,
        and nobody said anything new meanwhile. The text can have stood in several rows, and each has a copy.
        """
        moved = known.session != message.session and self._same_line(known, message)
        elsewhere = known.session != message.session and not moved
        if elsewhere and (again or message.at <= known.at):
            return known  # written into another conversation
        left = moved or not self._stands(known.row, known.generation)
        asked = self._asked_since(message.session, known.seen)
        if not again and (asked or not (left or known.copies)):
            return None
        here = self._seen_again(known, message)
        if left:
            return replace(here, seen=known.seen, copied=True, copies=known.rows - 1, rows=1)
        if known.copies and not asked:
            return replace(here, seen=known.seen, copies=known.copies - 1)
        return here

    def _same_line(self, known: Heard, message: Message) -> bool:
        return known.session == message.line or (message.line != message.session)

    def _is_base(self, message: Message) -> bool:
        """Whether the row is of the past. Of what came since, the clock may say what it will."""
        return message.row <= self._state.base and message.at < self._state.since

    # User rows

    def _user(self, message: Message, key: str, again: bool) -> bool:
        known = self._draft.heard(key)
        copied = self._copied(message, known, again) if known is not None else None
        if copied is None and self._may_be_early(message, known):
            return False
        if copied is not None and known is not None:
            heard = copied
            self._follow(message, known)
        else:
            heard = self._sight(message) if known is None else self._seen_again(known, message)
            heard = self._prompt(message, known, heard)
            said = token(message.text)
            if said is not None and not self._is_base(message):
                self._lifecycle(message, said)
        self._note(key, heard)
        self._put_last(self._asked, message.session, Asked(message.row, heard.first))
        return True

    def _may_be_early(self, message: Message, known: Heard | None) -> bool:
        """Whether the row may be the prompt of a dispatch that is not written yet, though it bears no form: the last
        one is over, and this is none of its prompts. A chat that went on for a minute had no such prompt."""
        last = self._draft.state.current
        if last is None or not (last.answered or last.ended) or self._newest - message.at > LATE_DISPATCH:
            return False
        if token(message.text) or self._is_base(message):
            return False
        found = meant(message, self._draft.state.dispatches, self._draft.tasks)
        if found is None:
            early = known is None
        elif not found.sure:
            early = known is not None  # behind a new one the checkpoint waits
        else:
            early = not self._is_prompt_of(found.dispatch, message, known)
        return early and self._waits(message)

    def _is_prompt_of(self, dispatch: Dispatch | None, message: Message, known: Heard | None) -> bool:
        if dispatch is None or answered_before(dispatch, message):
            return False
        return known is None or is_further(self._draft.state, dispatch, known)

    def _follow(self, message: Message, known: Heard) -> None:
        """The copy of a prompt stands for it: the old row may be gone."""
        prompt = self._prompts.get(message.line)
        if prompt is not None and prompt.row == known.row:
            self._prompts[message.line] = replace(prompt, row=message.row)

    def _prompt(self, message: Message, known: Heard | None, heard: Heard) -> Heard:
        """Notes a prompt. A known text is one again only after a further dispatch of its task."""
        found = meant(message, self._draft.state.dispatches, self._draft.tasks)
        if found is None or (found.dispatch is None and token(message.text)):
            return heard
        dispatch = found.dispatch
        if known is not None and (dispatch is None or not is_further(self._draft.state, dispatch, known)):
            return heard
        mission, number = key_of(dispatch)
        prompt = Prompt(
            row=message.row, at=message.at, mission=mission, number=number, pending=not found.sure
        )
        self._put_last(self._prompts, message.line, prompt)
        return replace(heard, mission=mission, number=number)

    def _lifecycle(self, message: Message, said: Token) -> None:
        then = current_at(self._draft.state, message.at)
        dispatch = self._of_prompt(self._known_prompt(message)) or then
        mission = self._draft.missions.get(dispatch.mission) if dispatch and dispatch.mission else None
        if dispatch is None:
            return
        if said is Token.HANDOFF:
            type, summary = EventType.HANDOFF_REQUESTED, "Handoff requested"
            told = mission is not None and mission.handoff_asked
        else:
            type, summary = EventType.RESUME, "Resumed after handoff"
            told = mission is not None and mission.fact is Fact.RESUMED
        if told:
            return
        worker, occurrence = self._draft.state.worker, 1
        while self._draft.has(event_id(worker, dispatch.mission, dispatch.number, type, (), occurrence)):
            if not self._is_fresh(message):
                return
            occurrence += 1
        at = self._draft.capped(message.at)
        self._draft.once(
            type, dispatch, (), at=at, summary=summary, detail={"origin": CHAT}, occurrence=occurrence
        )

    # Checkpoints

    def _block(self, message: Message, block: Checkpoint, key: str, again: bool) -> bool:
        known = self._draft.heard(key)
        copied = self._copied(message, known, again) if known is not None else None
        if copied is not None:
            self._note(key, copied)
            return True
        if self._is_base(message):
            self._note(key, self._sight(message) if known is None else self._seen_again(known, message))
            return True
        prompt, then = self._known_prompt(message), current_at(self._draft.state, message.at)
        if known is None and then is not None and self._shown_before(prompt, then, block):
            self._note(key, replace(self._sight(message), mission=then.mission, number=then.number, count=1))
            return True
        asked = known is None or self._asked_since(message.session, known.last)
        if asked and self._must_wait(message, prompt, then):
            return False
        dispatch = self._of_prompt(prompt) or then
        if known is not None and not asked and not self._after_dispatch(message, known, dispatch):
            if known.session == message.session:
                self._note(key, self._seen_again(known, message))
            return True
        self._counts(message, block, key, dispatch, known)
        return True

    def _counts(
        self, message: Message, block: Checkpoint, key: str, dispatch: Dispatch | None, known: Heard | None
    ) -> None:
        heard = self._sight(message)
        if known is not None and self._stands(known.row, known.generation):
            heard = replace(heard, rows=known.rows + 1)
        if dispatch is None:
            self._note(key, heard)  # an answer to nothing that is known
            return
        draft, mine = self._draft, key_of(dispatch)
        count = 1
        if known is not None and (known.number == 0 or (known.mission, known.number) == mine):
            fresh = self._is_fresh(message)
            count = occurrence_after(draft, dispatch, block, known.count) if fresh else known.count + 1
        at = draft.capped(message.at)
        checkpoint(draft, dispatch, block, at=at, origin=CHAT, occurrence=count)
        first = known.first if known else heard.first
        self._note(key, replace(heard, first=first, mission=mine[0], number=mine[1], count=count))
        if mine == key_of(draft.state.current):
            self._said = Said(*mine, block)

    def _shown_before(self, prompt: Prompt | None, then: Dispatch, block: Checkpoint) -> bool:
        """Whether no prompt tells whose the block is, and `runtime.json` showed it as the answer to the dispatch that
        was current then before the chat did."""
        told = prompt is not None and not prompt.pending
        return not told and said_before(self._draft, then, block)

    def _after_dispatch(self, message: Message, known: Heard, dispatch: Dispatch | None) -> bool:
        """Whether a block that nobody asked for anew answers a dispatch that came since it counted."""
        if dispatch is None or not is_further(self._draft.state, dispatch, known):
            return False
        stands = self._stands(known.row, known.generation)
        here = stands and known.session == message.session and not known.copied
        return here and known.at < message.at

    def _must_wait(self, message: Message, prompt: Prompt | None, then: Dispatch | None) -> bool:
        """Whether the prompt before the block may be that of a dispatch that is not written yet."""
        pending = prompt.pending if prompt else then is None
        if not pending:
            return False
        if self._waits(message):
            return True
        if prompt is not None:
            self._prompts[message.line] = replace(prompt, pending=False)
        return False

    def _waits(self, message: Message) -> bool:
        """Whether the row was seen for the first time less than a minute ago."""
        return abs(self._draft.seen.at - self._waiting(message.row).since) < HOLD

    def _waiting(self, row: int) -> Held:
        glances = tuple(glance for glance in self._glances if glance.row >= row)
        return Held(row, glances[0].at, glances)

    # Whose it is

    def _of_prompt(self, prompt: Prompt | None) -> Dispatch | None:
        return find(self._draft.state, (prompt.mission, prompt.number)) if prompt else None

    def _known_prompt(self, message: Message) -> Prompt | None:
        """The prompt of the line; one whose dispatch was not known is compared with those known now."""
        prompt = self._prompts.get(message.line)
        text = self._chat.prompts.get(prompt.row) if prompt and prompt.pending else None
        if prompt is None or text is None:
            return prompt
        found = meant(text, self._draft.state.dispatches, self._draft.tasks)
        if found is not None and found.sure:
            mission, number = key_of(found.dispatch)
            prompt = replace(prompt, mission=mission, number=number, pending=False)
            self._prompts[message.line] = prompt
        return prompt

    def _is_fresh(self, message: Message) -> bool:
        """Whether the row is newer than all that can have been recorded before the journal was lost."""
        return message.at > self._state.until

    @staticmethod
    def _put_last(known: dict[str, _V], key: str, value: _V) -> None:
        known.pop(key, None)
        known[key] = value


def _glances(held: Held | None, now: Glance) -> tuple[Glance, ...]:
    """The glances at the chat since something waits, each further than those before."""
    before = held.glances if held else ()
    return before if before and before[-1].row >= now.row else (*before, now)


def _newest(known: Mapping[str, _V]) -> dict[str, _V]:
    return dict(list(known.items())[-_SESSIONS_KEPT:])
