"""What others tell: checked, left in the inbox, and answered once it is in its files. docs/api.md, "Posting"."""

from typing import Any

from starlette.requests import Request

from swarmmemd.web.answers import Refusal
from swarmmemd.web.reading import Reading


class Posting:
    """Takes posts."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def take(self, request: Request) -> dict[str, Any]:
        """Not there yet."""
        raise Refusal(503, "Posts are not taken yet")
