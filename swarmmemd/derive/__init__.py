"""Derivation: (State, Observation) -> events and the next State. Pure: no I/O, clock or log.

A new kind of event is found in one of the modules here and folded in `swarmmemd.fold`.
docs/architecture.md, "One turn"; docs/contracts.md, "Events".
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from swarmmemd.derive.chat import HOLD, begin, floor, look_at_chat
from swarmmemd.derive.draft import Draft, Expect, HeardOf, Known, Recall, Safe, Version
from swarmmemd.derive.handoffs import look_at_handoffs, render_missing
from swarmmemd.derive.ledger import close_missions, open_missions
from swarmmemd.derive.posts import look_at_posts
from swarmmemd.derive.runtime import blocked_at, judge, learn, take_up
from swarmmemd.derive.transcripts import look_at_transcripts
from swarmmemd.model import Event, MissionId
from swarmmemd.observation import Chat, Message, Observation, Runtime
from swarmmemd.state import Heard, MissionState, WorkerState

__all__ = ["HOLD", "Derived", "HeardOf", "Known", "Recall", "Safe", "Version", "derive", "floor"]


def _nothing(key: object) -> None:
    """Nothing was heard before."""


def _none(missions: object) -> Mapping[MissionId, MissionState]:
    """No mission rests."""
    return {}


class Derived(msgspec.Struct, frozen=True):
    """What one look has shown: the events that are new, in order, and the state after them."""

    state: WorkerState
    events: tuple[Event, ...]
    versions: tuple[Version, ...] = ()
    """New versions of handoffs."""
    refused: Mapping[str, str] = {}
    """Handoff files that cannot be used, and why."""
    rejected: Mapping[str, str] = {}
    """Posts that cannot be taken, by their ids, and why."""
    heard: Mapping[str, Heard] = {}
    """What is known now of texts of the chat, by their keys."""
    recalled: Mapping[MissionId, MissionState] = {}
    """Missions that came back into the state, as they were."""


def derive(
    state: WorkerState,
    seen: Observation,
    known: Known,
    safe: Safe = str,
    heard: HeardOf = _nothing,
    expect: Expect = _nothing,
    recall: Recall = _none,
) -> Derived:
    """The events between what was recorded (`state`) and what is there now (`seen`).

    `known` tells whether an event of this id was recorded before. A part of `seen` that could not be read
    changes nothing. `safe` is what is done to each text of an event, after its id is made from the whole one.
    `heard` tells what is known of a text of the chat; `expect` hears before of the keys it will be asked for.
    `recall` gives the missions that rest, which are not in `state`.
    """
    draft = Draft(state, seen, known, safe, heard, expect, recall)
    view = seen.runtime if isinstance(seen.runtime, Runtime) else None
    draft.state = replace(draft.state, floor=floor(state, view, seen.at))
    open_missions(draft)
    if seen.chat is not None:
        begin(draft, seen.chat)
    if view is None:
        _read(draft, seen.chat)
    else:
        _look_at_both(draft, view, seen.chat)
    look_at_transcripts(draft, seen.transcripts)
    look_at_posts(draft, seen.posts)
    close_missions(draft)
    look_at_handoffs(draft)
    render_missing(draft)
    return Derived(
        state=draft.state,
        events=tuple(draft.events),
        versions=tuple(draft.versions),
        refused=draft.refused,
        rejected=draft.rejected,
        heard=draft.newly_heard,
        recalled=draft.missions.recalled,
    )


def _look_at_both(draft: Draft, view: Runtime, chat: Chat | None) -> None:
    """The dispatch first, then what the worker answered, then what the control plane made of it. Its block takes
    its place among the answers by their times."""
    draft.unread = chat.messages if chat else ()
    started = take_up(draft, view)
    before, after = _around(chat, blocked_at(draft, view))
    done = _read(draft, chat, before)
    draft.unread = after if done else draft.unread
    judge(draft, view, started)
    if done and after:
        _read(draft, chat, after)
    learn(draft, view)


def _around(chat: Chat | None, at: int | None) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages before the first checkpoint that is younger than `at`, and those from it on."""
    messages = chat.messages if chat else ()
    later = (n for n, message in enumerate(messages) if at is not None and message.blocks and message.at > at)
    first = next(later, len(messages))
    return messages[:first], messages[first:]


def _read(draft: Draft, chat: Chat | None, messages: tuple[Message, ...] | None = None) -> bool:
    """Reads the messages, by default all. False where one of them has to wait."""
    if chat is None:
        return True
    return look_at_chat(draft, chat, chat.messages if messages is None else messages)
