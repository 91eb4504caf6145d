"""What others tell: checked, left in the inbox, and answered once it is in its files. docs/api.md, "Posting"."""

import asyncio
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from swarmmemd.model import EventType, assignment_id, mission_id
from swarmmemd.web.answers import Refusal
from swarmmemd.web.gate import BODY_LIMIT, drain
from swarmmemd.web.reading import Reading

_BODY_SECONDS = 30.0
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
        body = msgspec.json.decode(data, type=Body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refusal(400, f"The body is not what is described at /openapi.json: {error}") from None
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
    return body


class Posting:
    """Takes posts."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def take(self, request: Request) -> dict[str, Any]:
        """Not there yet."""
        parse(await body_of(request))
        raise Refusal(503, "Posts are not taken yet")
