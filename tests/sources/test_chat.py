"""The reader of a chat database by itself, with a clock that the test turns. docs/contracts.md, "The chat"."""

import os
from pathlib import Path

import pytest

from swarmmemd.model import WorkerId
from swarmmemd.observation import Chat
from swarmmemd.sources.chat import ChatSource, Wanted
from swarmmemd.state import ChatState
from tests.support.chats import BUILD


@pytest.mark.parametrize("taken", [-0.01, 0.3, -0.03, -1.0])
def test_a_row_that_shows_later_and_changes_no_file_is_seen(tmp_path: Path, taken: float) -> None:
    """A second commit within one tick, or one that was still on its way to the disk."""
    profile = BUILD.Profile(tmp_path, 19, "delete")
    profile.session("main")
    profile.say("user", "One", 1)
    tick = profile.db.stat().st_mtime_ns
    source = ChatSource(tmp_path, WorkerId("builder-1"))
    first = source.look(Wanted(state=None, heard=lambda key: None), 100.0, tick / 1e9 - taken)
    assert isinstance(first, Chat)
    profile.say("user", "Two", 2)
    os.utime(profile.db, ns=(tick, tick))
    state = ChatState(file=first.file, cursor=first.cursor, base=first.newest)
    assert source.due is not None
    second = source.look(Wanted(state=state, heard=lambda key: None), source.due, tick / 1e9 + 0.05)
    assert isinstance(second, Chat)
    assert [message.text for message in second.messages] == ["Two"]
    profile.close()
