"""A finding: what, where, and how to mend it."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """`name` is stable, one of docs/operations.md, "What doctor finds". A note is nothing to mend."""

    name: str
    level: Literal["problem", "warning", "note"]
    what: str
    mend: str = ""
