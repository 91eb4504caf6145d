"""What others tell: checked, left in the inbox, and answered once it is in its files. docs/api.md, "Posting"."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from swarmmemd import inbox, layout
from swarmmemd.fold import MIRRORED
from swarmmemd.instance import is_running
from swarmmemd.journal import Follower, numbered
from swarmmemd.model import Event, EventType, assignment_id, mission_id, utc_day
from swarmmemd.observation import Post
from swarmmemd.sources.document import with_whole_pairs
from swarmmemd.web.answers import Refusal
from swarmmemd.web.gate import BODY_LIMIT, drain
from swarmmemd.web.reading import Reading

_BODY_SECONDS = 30.0
_PATIENCE = 30.0
_POLL = 0.01
_LOOK = 1.0
"""Seconds between two looks whether the daemon still lives."""
_KINDS = ("mission", "episodic", "handoff")
_OWN = {
    "shared": "Shared memory has its own rules: handoffs and archives come there by themselves",
    "profile": "IDENTITY.md, SOUL.md and MEMORY.md belong to the worker and to people",
}


class Body(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a post, as the specification has it."""

    worker_id: str
    kind: str
    mission_id: str | None = None
    assignment_id: str | None = None
    event_type: str | None = None
    content: str | None = None
    event: dict[str, str | int | float | bool | None] | None = None
    mirror_shared: bool | None = None


async def body_of(request: Request) -> bytes:
    """The whole body. Raises `Refusal` where it is too large or does not come."""
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > BODY_LIMIT:
                    await drain(request.receive)
                    raise Refusal(413, "The body is larger than 1 MiB")
    except (TimeoutError, ClientDisconnect):
        raise Refusal(400, "The body did not come") from None
    return bytes(data)


def parse(data: bytes) -> Body:
    """The post in a body. Raises `Refusal`."""
    try:
        body = _decoded(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refusal(400, f"The body is not what is described at /openapi.json: {error}") from None
    _check_unique(data)
    if body.event and not all(
        -(2**63) <= value < 2**63 for value in body.event.values() if isinstance(value, int)
    ):
        raise Refusal(400, "A number in event is too large")
    if body.kind in _OWN:
        raise Refusal(400, _OWN[body.kind])
    if body.kind not in _KINDS:
        raise Refusal(400, f"kind must be one of {', '.join(_KINDS)}")
    if body.mission_id is None and body.kind != "episodic":
        raise Refusal(400, f"kind={body.kind} needs missionId")
    if body.mission_id is not None and mission_id(body.mission_id) is None:
        raise Refusal(400, "missionId is no mission id: letters, digits and _.:- , at most 128")
    if body.assignment_id is not None and assignment_id(body.assignment_id) is None:
        raise Refusal(400, "assignmentId is no assignment id: letters, digits and _.:- , at most 128")
    if body.event_type is not None and body.event_type not in set(EventType):
        raise Refusal(400, f"eventType must be one of {', '.join(EventType)}")
    if not (body.content or "").strip() and (body.kind == "handoff" or not body.event):
        raise Refusal(400, "content is empty: there is nothing to remember")
    if body.event_type == EventType.HANDOFF_WRITTEN and body.kind != "handoff":
        raise Refusal(400, "A handoff is posted with kind=handoff and its whole text")
    return body


def _decoded(data: bytes) -> Body:
    """A client that cuts a text within an emoji loses that, and not its post."""
    try:
        return msgspec.json.decode(data, type=Body)
    except msgspec.DecodeError:
        return msgspec.json.decode(with_whole_pairs(data), type=Body)


def _check_unique(data: bytes) -> None:
    """Raises `Refusal` where a name stands twice in an object: another program would read another post in it."""

    def object_of(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            raise Refusal(400, "A name stands twice in an object of the body")

    try:
        json.loads(data, object_pairs_hook=object_of, parse_int=str)
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is no JSON, or is nested too deeply") from None


class Posting:
    """Takes posts for the tree of one configuration."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._state = reading.config.state_dir

    async def take(self, request: Request) -> dict[str, Any]:
        """`POST /api/swarm-memory`: the answer, once it stands in its files. Raises `Refusal`."""
        body = parse(await body_of(request))
        post = await asyncio.to_thread(self._left, body)
        await self._recorded(post)
        return await asyncio.to_thread(self._answer, body, post)

    def _left(self, body: Body) -> Post:
        """Leaves it in the inbox, durably, if there is somebody to take it."""
        post = Post(
            id=inbox.new_id(),
            at=int(time.time() * 1000),
            worker=self._reading.known(body.worker_id),
            type=EventType.HANDOFF_WRITTEN
            if body.kind == "handoff"
            else EventType(body.event_type or "note"),
            text=body.content or "",
            mission=mission_id(body.mission_id),
            assignment=assignment_id(body.assignment_id),
            detail=_detail(body),
        )
        if is_running(self._state) is None:
            raise Refusal(503, "The daemon does not run, so nobody would record it. Nothing was kept")
        try:
            inbox.leave(self._state, post)
        except OSError as error:
            raise Refusal(503, f"It cannot be kept: {(error.strerror or str(error)).lower()}") from error
        return post

    async def _recorded(self, post: Post) -> None:
        """Waits until the daemon has taken it."""
        now = time.monotonic
        end, look = now() + _PATIENCE, now() + _LOOK
        while inbox.is_waiting(self._state, post.id):
            if now() > end or (now() > look and await asyncio.to_thread(is_running, self._state) is None):
                raise Refusal(
                    503,
                    "It is kept in the inbox and not recorded yet. Do not send it again",
                    kept=True,
                    id=post.id,
                )
            look = now() + _LOOK if now() > look else look
            await asyncio.sleep(_POLL)

    def _answer(self, body: Body, post: Post) -> dict[str, Any]:
        reason = inbox.why_rejected(self._state, post.id)
        if reason is not None:
            raise Refusal(409, f"It was rejected: {reason}")
        follower = Follower(self._state / layout.JOURNAL)
        try:
            id = follower.posted(post.worker, post.id)
            found = follower.event(id) if id else None
        finally:
            follower.close()
        answer = {"ok": True, "id": id or post.id, "workerId": post.worker, "kind": body.kind}
        answer["path"] = str(self._place(body, post, found.event if found else None))
        return {**answer, "event": numbered(found)} if found else answer

    def _place(self, body: Body, post: Post, event: Event | None) -> Path:
        """The file in which it stands."""
        mission = event.mission if event else post.mission
        if body.kind == "handoff" and mission is not None:
            place = layout.handoff(mission)
        elif mission is not None:
            place = layout.events(mission)
        else:
            place = layout.episode(utc_day(event.at if event else post.at))
        return place.below(layout.profile(self._reading.config.profiles_root, post.worker))


def _detail(body: Body) -> dict[str, str | int | float | None]:
    """The event's object as a post can hold it."""
    given = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in (body.event or {}).items()
    }
    return {**given, MIRRORED: 0} if body.kind == "handoff" and body.mirror_shared is False else given
