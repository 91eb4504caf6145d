"""Whatever stands in a source: a value comes of it and no exception, and all stays in its place.

docs/contracts.md, "Bad input".
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarmmemd import inbox, layout
from tests.support.chats import BUILD
from tests.support.fuzzing import READERS, SLOW, slow
from tests.support.trees import WORKER, Home, answered, block, dispatched, tree_of

_SIZE = 64 * 1024
_HOSTILE = st.sampled_from(
    [
        "../../outside",
        "/etc/passwd",
        "..",
        ".",
        "a/b",
        "\0",
        "\ud800",
        "a" * 300,
        "-",
        "CON",
        "\n# x",
        "~",
        "%2e%2e",
    ]
)
_VALUES: st.SearchStrategy[Any] = st.one_of(
    _HOSTILE,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.just([[[[[{}]]]]]),
    st.just({"a": {"b": None}}),
)
_ROSTER = f"workers:\n  - id: {WORKER}\n    name: Builder\n    role: Builder\n    specialty: paths\n"


def _ledger() -> dict[str, Any]:
    assignment = {
        "id": "assign-1",
        "workerId": WORKER,
        "task": "Lay it",
        "state": "done",
        "dispatchedAt": 1777885200000,
    }
    said = {"stateLabel": "DONE", "result": "Laid", "raw": None}
    mission = {"id": "mission-1", "title": "Lay it", "state": "complete", "createdAt": 1, "updatedAt": 2}
    return {"version": 1, "missions": [{**mission, "assignments": [{**assignment, "checkpoint": said}]}]}


def _planted(document: Any, dice: st.DataObject) -> Any:
    """The document with one value somewhere in it that should not be there."""
    if isinstance(document, dict) and document and dice.draw(st.integers(0, 4)):
        key = dice.draw(st.sampled_from(sorted(document)))
        return {**document, key: _planted(document[key], dice)}
    if isinstance(document, list) and document and dice.draw(st.integers(0, 4)):
        return [_planted(document[0], dice), *document[1:]]
    return dice.draw(_VALUES)


def _broken(data: bytes, dice: st.DataObject) -> bytes:
    """The bytes as they are, cut, or with some bytes put into them."""
    way = dice.draw(st.sampled_from(["whole", "whole", "cut", "filled"]))
    at = dice.draw(st.integers(0, len(data)))
    if way == "cut":
        return data[:at]
    return data[:at] + dice.draw(st.binary(max_size=30)) + data[at:] if way == "filled" else data


def _json(document: Any, dice: st.DataObject) -> bytes:
    planted = _planted(document, dice) if dice.draw(st.booleans()) else document
    return _broken(json.dumps(planted).encode("utf-8", "surrogatepass"), dice)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=300))
@settings(max_examples=40, deadline=None)
def test_any_bytes(reader: str, data: bytes) -> None:
    READERS[reader](data)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", SLOW)
def test_what_is_made_to_be_slow_comes_to_an_end(reader: str, name: str) -> None:
    """How long 4 MiB take is measured by bench/fuzz.py."""
    READERS[reader](slow(name, _SIZE))


@pytest.fixture(scope="module")
def quick_folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="swarmmemd-test-", dir=where) as name:
        yield Path(name)


def _chat(profile: Path, text: str, role: str, number: int) -> None:
    with BUILD.Profile(profile, journal="delete") as chat:
        if not chat.con.execute("SELECT count(*) FROM sessions").fetchone()[0]:
            chat.session("main")
        chat.say_bytes(role, text.encode("utf-8", "surrogatepass").replace(b"\0", b""), number)


def _block(dice: st.DataObject) -> str:
    text = st.one_of(_HOSTILE, st.text(max_size=30), st.just("none"))
    state = dice.draw(st.sampled_from(["DONE", "BLOCKED", "IN_PROGRESS", "HANDOFF", "NEEDS_REVIEW", "?"]))
    return block(
        state, dice.draw(text), files=dice.draw(text), blocker=dice.draw(text), action=dice.draw(text)
    )


def _sources(home: Home, dice: st.DataObject, number: int) -> dict[str, Callable[[], object]]:
    """What can happen to each source."""
    profile = home.profiles / WORKER

    def put(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1777852800 + number, 1777852800 + number))

    def handoff() -> None:
        named = dice.draw(_HOSTILE)
        text = f"# Handoff — {dice.draw(st.sampled_from([WORKER, named]))} — {named}\n\n{_block(dice)}\n"
        put(profile / "memory" / "handoffs" / "latest.md", _broken(text.encode("utf-8", "replace"), dice))

    def runtime() -> None:
        some = dice.draw(
            st.sampled_from(
                [dispatched(), answered("done", "DONE", "Laid"), answered("work", "HANDOFF", "x")]
            )
        )
        home.put(_json(some, dice))

    return {
        "runtime.json": runtime,
        "ledger": lambda: put(layout.ledger(home.workspace), _json(_ledger(), dice)),
        "roster": lambda: put(layout.roster(home.workspace), _broken(_ROSTER.encode(), dice)),
        "chat": lambda: _chat(
            profile, _block(dice), dice.draw(st.sampled_from(["user", "assistant"])), number
        ),
        "handoff": handoff,
        "transcript": lambda: put(
            profile / "checkpoint.md", _broken(_block(dice).encode("utf-8", "replace"), dice)
        ),
        "request": lambda: put(home.state / "inbox" / f"{number}.request", _json({"ask": "once"}, dice)),
    }


def test_turns_over_any_sources(quick_folder: Path) -> None:
    """One swarm whose sources are broken again and again. Nothing outside the roots is touched, and no source."""
    home = Home(quick_folder / "home")
    outside = quick_folder / "outside"
    outside.mkdir()
    (outside / "private").write_text("mine")
    before = tree_of(outside)
    number = 0

    with home.tree() as tree:

        @given(dice=st.data())
        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        def broken_again(dice: st.DataObject) -> None:
            nonlocal number
            number += 1
            sources = _sources(home, dice, number)
            for name in dice.draw(st.lists(st.sampled_from(sorted(sources)), min_size=1, max_size=3)):
                sources[name]()
            given_bytes = _of_others(home)
            home.hands.move(61.0)
            report = tree.everything()
            assert report.failure is None
            tree.settle()
            for request, content in inbox.waiting(tree.state):
                if content is None:
                    inbox.reject(tree.state, request, "broken")
            assert _of_others(home) == given_bytes

        broken_again()
    assert tree_of(outside) == before
    assert sorted(path.name for path in quick_folder.iterdir()) == ["home", "outside"]
    assert sorted(path.name for path in home.base.iterdir()) == ["profiles", "shared", "state", "workspace"]
    assert [path.name for path in home.profiles.iterdir()] == [WORKER]


def _of_others(home: Home) -> dict[str, bytes]:
    """What is not ours to write."""
    own = tree_of(home.profiles / WORKER)
    return {path: data for path, data in own.items() if not path.startswith("memory/")} | tree_of(
        home.workspace
    )
