"""Who is believed to be gone, and when that is looked at again."""

from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

from swarmmemd.model import WorkerId
from swarmmemd.service.members import Members
from swarmmemd.service.running import Running
from swarmmemd.tree import Found

GONE = WorkerId("builder-1")


def members(*looks: Found) -> Members:
    """Members of a tree that shows this, look after look, at one moment."""
    found = iter(looks)
    plan = MagicMock(armed=frozenset())
    tree = SimpleNamespace(discover=lambda: next(found))
    running = SimpleNamespace(
        now=lambda: 100.0, plan=plan, tree=tree, troubles=MagicMock(), schedule=MagicMock()
    )
    return Members(cast(Running, running))


def test_a_missing_profile_is_looked_for_again() -> None:
    watched = members(Found(gone=frozenset({GONE})))
    watched.refresh()
    assert watched.next_retirement() == 101.0


def test_nobody_is_missing_while_the_root_cannot_be_listed() -> None:
    """A time that stands in the past would be waited for without end: the loop turned and turned."""
    watched = members(Found(gone=frozenset({GONE})), Found(trouble="no such file or directory"))
    watched.refresh()
    watched.refresh()
    assert watched.next_retirement() is None
