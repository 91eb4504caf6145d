"""A chat that is locked while its owner commits: what it says is waited for, and not for long."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from swarmmemd.tree import Tree
from tests.support.chats import BUILD
from tests.support.trees import WORKER, Hands, Home

_LATE = BUILD.block("DONE", "The floor is level")


def _two_dispatches(profile: Any, tree: Tree) -> None:
    """The worker answers the first when the second is dispatched, and the control plane takes that for the second's."""
    profile.dispatch("Pour the floor", "mission-a", "assign-a", at=0)
    tree.discover()
    profile.session("main")
    profile.say("user", BUILD.prompt("Pour the floor"), 0.1)
    tree.everything()
    profile.dispatch("Pour the wall", "mission-b", "assign-b", at=10)
    tree.everything()
    profile.say("assistant", _LATE, 11)
    profile.runtime_done(_LATE, "The floor is level", 11.1)


def _answers(home: Home) -> list[str]:
    lines = (json.loads(line) for line in home.journal())
    return [line["missionId"] for line in lines if line["type"] == "checkpoint"]


def test_a_message_waits_while_the_owner_commits(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.hands = Hands(BUILD.ms(20) / 1000)
    with BUILD.Profile(home.profiles / WORKER, 19, "delete") as profile, home.tree() as tree:
        _two_dispatches(profile, tree)
        with closing(sqlite3.connect(profile.db, isolation_level=None)) as owner:
            owner.execute("BEGIN EXCLUSIVE")
            tree.everything()
            assert _answers(home) == []
            owner.execute("COMMIT")
        home.hands.move(0.1)
        tree.everything()
        assert _answers(home) == ["mission-a"]


def test_a_chat_that_stays_locked_holds_nothing_up(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.hands = Hands(BUILD.ms(20) / 1000)
    with BUILD.Profile(home.profiles / WORKER, 19, "delete") as profile, home.tree() as tree:
        _two_dispatches(profile, tree)
        with closing(sqlite3.connect(profile.db, isolation_level=None)) as owner:
            owner.execute("BEGIN EXCLUSIVE")
            tree.everything()
            home.hands.move(2.0)
            tree.everything()
            assert _answers(home) == ["mission-b"]
            owner.execute("COMMIT")
