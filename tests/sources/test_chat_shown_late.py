"""A commit that its owner shows late: written into the files, and not to be seen yet. docs/contracts.md, "The chat"."""

import os
from pathlib import Path

from swarmmemd.model import WorkerId
from swarmmemd.observation import Chat
from swarmmemd.sources.chat import ChatSource, Wanted
from swarmmemd.sources.file import Unchanged
from tests.support.chats import BUILD


def test_what_no_stat_tells_is_found_by_looking_once_more(tmp_path: Path) -> None:
    profile = BUILD.Profile(tmp_path / "builder-1", journal="delete")
    profile.session("main", at=0)
    profile.say("user", "Lay the path", 1)
    source = ChatSource(tmp_path / "builder-1", WorkerId("builder-1"))
    wanted = Wanted(state=None, heard=lambda key: None)
    found = os.stat(source.path)
    now, wall = 100.0, found.st_mtime_ns / 1e9 + 0.1
    assert isinstance(source.look(wanted, now, wall), Chat)

    profile.say("assistant", BUILD.block("DONE", "The path is laid"), 2)
    os.utime(source.path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert not source.changed()
    assert source.look(wanted, now + 0.01, wall + 0.01) == Unchanged()
    seen = []
    for _ in range(3):
        assert source.due is not None
        now, wall = source.due, wall + source.due - now
        seen.append(source.look(wanted, now, wall))
    assert all(isinstance(chat, Chat) and len(chat.messages) == 2 for chat in seen)
    assert source.due is None
    profile.close()
