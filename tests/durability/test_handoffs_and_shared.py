"""Handoffs, archive and identity files over one open tree, a clock that moves when told, real files.

docs/contracts.md, "Handoffs" and "Shared memory".
"""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from swarmmemd.durable import TEMPORARY
from swarmmemd.handoff import sha256
from swarmmemd.journal import Follower, KeptHandoff
from swarmmemd.layout import JOURNAL
from swarmmemd.model import MissionId, WorkerId
from swarmmemd.recall.verify import verify
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import PORTION, safe_lines
from swarmmemd.tree import Tree
from swarmmemd.turn import Report
from tests.support.faults import KILLED, From, calls_of, failing, hooked, in_child, kill
from tests.support.trees import MISSION, WORKER, Home, answered, dispatched

_AGO = 1_777_870_000
_NOTE = json.dumps({"at": "2026-05-05T09:00:00.000Z", "type": "note", "summary": "A line of another program"})


@pytest.fixture
def tree(home: Home) -> Iterator[Tree]:
    """The opened tree of a worker that was dispatched and met."""
    home.put(dispatched())
    with home.tree() as opened:
        opened.everything()
        yield opened


class Places:
    """Where the handoffs of the worker stand."""

    def __init__(self, home: Home) -> None:
        self.folder = home.memory() / "handoffs"
        self.latest = self.folder / "latest.md"
        self.local = self.folder / f"{MISSION}.md"
        self.mission = home.events().with_name("handoff.md")
        self.shared = home.shared / "handoffs" / "swarm" / f"{WORKER}-latest.md"


def own(text: str, mission: str = MISSION) -> bytes:
    """A handoff by the specification's template."""
    return f"# Handoff — {WORKER} — {mission}\n\n## Next exact action\n\n{text}\n".encode()


def generated(text: str) -> bytes:
    """One by the control plane's template."""
    return f"# Handoff — {WORKER}\n\nMission: {MISSION}\n\n## Next action\n\n{text}\n".encode()


def put(path: Path, data: bytes, at: int = _AGO) -> None:
    """Puts a file in place that was written long ago: it stands still."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (at, at))


def look(home: Home, tree: Tree) -> Report:
    """Looks until what is new has stood still and was written."""
    for _ in range(3):
        report = tree.everything()
        home.hands.move(70.0)
    return report


def written(home: Home) -> list[str]:
    """The paths of the `handoff-written` events."""
    lines = [json.loads(line) for type, line, _ in home.rows() if type == "handoff-written"]
    return [line["event"]["path"] for line in lines]


def history(home: Home) -> list[KeptHandoff]:
    """Every version in the journal."""
    with closing(Follower(home.state / JOURNAL)) as follower:
        return follower.handoffs(WORKER)


def test_names_that_are_no_utf8_are_no_handoffs(home: Home, tree: Tree) -> None:
    places = Places(home)
    for name in (b"caf\xe9.md", b"a b.md", b"\xff\xfe"):
        put(places.folder / os.fsdecode(name), b"notes\n")
    (home.profiles / os.fsdecode(b"caf\xe9")).mkdir()
    (home.profiles / os.fsdecode(b"caf\xe9") / "runtime.json").write_text("{}")
    put(places.latest, own("Go on"))
    look(home, tree)
    assert tree.problems() == ()
    assert places.local.read_bytes() == own("Go on")
    assert written(home) == ["memory/handoffs/latest.md"]


@pytest.mark.parametrize("rest", ["half", "Next exact action\n\n..."])
def test_a_refused_file_at_the_place_of_a_handoff_stops_nothing(home: Home, tree: Tree, rest: str) -> None:
    places, half = Places(home), f"# Handoff — {WORKER} — {MISSION}\n\n## {rest}".encode()
    put(places.local, half)
    look(home, tree)
    assert any("handoffs/mission-" in problem for problem in tree.problems())
    home.put(answered("work", "HANDOFF", "Half is laid"))
    look(home, tree)
    rendered = places.local.read_bytes()
    assert b"Half is laid" in rendered
    assert places.mission.read_bytes() == places.shared.read_bytes() == rendered
    assert "HANDOFF" in home.summary().read_text()
    assert all(applied for *_, applied in home.rows())
    put(places.latest, own("Lay the rest"))
    look(home, tree)
    for path in (places.local, places.mission, places.shared):
        assert path.read_bytes() == own("Lay the rest"), path
    assert tree.problems() == ()
    assert next((one.author, one.text) for one in history(home)) == ("refused", half)
    assert written(home) == ["memory/handoffs/latest.md"]


def test_what_is_no_handoff_of_the_worker_keeps_no_place_in_the_shared_folder(home: Home, tree: Tree) -> None:
    places, other = Places(home), own("Not mine").replace(WORKER.encode(), b"scout-2")
    put(places.shared, other)
    look(home, tree)
    assert any("it is a handoff of scout-2" in problem for problem in tree.problems())
    put(places.latest, own("Lay the rest"))
    home.put(answered("done", "DONE", "All is laid"))
    look(home, tree)
    assert places.shared.read_bytes() == own("Lay the rest")
    assert (home.shared / "swarm" / "missions" / MISSION / "manifest.json").exists()
    assert tree.problems() == ()


def test_why_a_file_is_refused_is_known_after_a_start(home: Home) -> None:
    home.put(dispatched())
    for _ in range(2):
        with home.tree() as tree:
            tree.everything()
            put(Places(home).latest, own("Not mine").replace(WORKER.encode(), b"scout-2"))
            look(home, tree)
            assert any("it is a handoff of scout-2" in problem for problem in tree.problems())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_shared_folder_that_refuses_for_a_while_gets_the_handoff(
    home: Home, tree: Tree, number: int
) -> None:
    places = Places(home)
    put(places.latest, own("Go on"))
    for _ in range(5):
        with hooked(From(0, failing(number), 1000, lambda call, name: name == places.shared.name)):
            tree.everything()
        home.hands.move(70.0)
    assert places.local.read_bytes() == own("Go on")
    assert not places.shared.exists()
    assert [problem for problem in tree.problems() if os.strerror(number) in problem]
    look(home, tree)
    assert places.shared.read_bytes() == own("Go on")
    assert tree.problems() == ()


def _turns(home: Home) -> None:
    with home.tree() as tree:
        look(home, tree)


def _with_own(base: Path, displaced: bool) -> Home:
    """The worker has written its handoff; where `displaced`, it stood in the shared folder, and no more."""
    home = Home(base)
    home.put(dispatched())
    home.turn()
    put(Places(home).latest, own("Go on"))
    if displaced:
        _turns(home)
        put(Places(home).shared, generated("Theirs"))
    return home


@pytest.mark.parametrize("displaced", [False, True])
def test_killed_at_any_call_the_handoff_comes_and_is_restored_once(quick_path: Path, displaced: bool) -> None:
    counted = _with_own(quick_path / "counted", displaced)
    for point in range(len(calls_of(partial(_turns, counted)))):
        home = _with_own(quick_path / f"run-{point}", displaced)
        with hooked(From(point, kill)):
            assert in_child(partial(_turns, home)) == KILLED
        _turns(home)
        shared, restored = Places(home).shared, []
        assert shared.read_bytes() == own("Go on"), point
        for number in range(3):
            put(shared, generated(f"More of theirs {number}"), _AGO + number)
            _turns(home)
            restored.append(shared.read_bytes() == own("Go on"))
        assert restored == [not displaced, False, False], point


@pytest.mark.parametrize("lost", [False, True])
def test_a_text_from_the_shared_folder_that_the_worker_writes_at_home_is_its_own(
    home: Home, lost: bool
) -> None:
    places = Places(home)
    home.put(dispatched())
    home.turn()
    put(places.shared, own("Go on"), _AGO)
    _turns(home)
    put(places.latest, own("Go on"), _AGO + 1)
    if lost:
        home.delete_journal()
    _turns(home)
    put(places.shared, own("Somebody else's idea"), _AGO + 2)
    _turns(home)
    assert places.local.read_bytes() == own("Go on")
    assert places.mission.read_bytes() == own("Go on")
    assert written(home) == [f"handoffs/swarm/{WORKER}-latest.md"] * 2
    if not lost:
        assert history(home)[0].path == "memory/handoffs/latest.md"


def test_the_copy_of_a_shared_text_does_not_make_it_count_for_more(home: Home, tree: Tree) -> None:
    places = Places(home)
    for number in range(2):
        put(places.shared, own(f"Idea {number}"), _AGO + number)
        look(home, tree)
        look(home, tree)
        assert places.local.read_bytes() == own(f"Idea {number}")
    assert history(home)[0].path == f"handoffs/swarm/{WORKER}-latest.md"


_IN_THE_WAY: dict[str, Callable[[Home], Path]] = {
    "identity": lambda home: home.memory() / "IDENTITY.md",
    "summary of another mission": lambda home: home.summary(MissionId("mission-old")),
    "mirror": lambda home: Places(home).local,
    "handoff": lambda home: Places(home).mission,
}


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda path: os.symlink("/nowhere", path)])
@pytest.mark.parametrize("name", _IN_THE_WAY)
def test_one_stuck_file_stops_no_other(home: Home, name: str, plant: Callable[[Path], None]) -> None:
    stuck, places = _IN_THE_WAY[name](home), Places(home)
    (home.workspace / "swarm.yaml").write_text(f"workers:\n  - id: {WORKER}\n    name: Bo\n")
    home.put({**dispatched(), "currentMissionId": "mission-old"})
    with home.tree() as tree:
        stuck.parent.mkdir(parents=True, exist_ok=True)
        plant(stuck)
        tree.everything()
        home.put(dispatched("again"))
        put(places.latest, own("Go on"))
        look(home, tree)
        home.put(answered("done", "DONE", "All is laid"))
        look(home, tree)
        assert [problem for problem in tree.problems() if stuck.name in problem]
        done = {path: path.exists() for path in (home.memory() / "SOUL.md", places.local, places.mission)}
        assert all(there for path, there in done.items() if path != stuck)
        assert places.shared.read_bytes() == own("Go on")
        assert "All is laid" in home.summary().read_text()
        assert home.events().read_text().count('"complete"') == 1
        archive = home.shared / "swarm" / "missions" / MISSION
        assert "All is laid" in (archive / WORKER / "SUMMARY.md").read_text()
        (stuck.rmdir if stuck.is_dir() else stuck.unlink)()
    _turns(home)
    if name != "identity":
        assert stuck.exists(), "in its place once the way is free, also after a start"


_TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_a_text_that_is_known_never_stands_whole_in_the_shared_folder(home: Home, tree: Tree) -> None:
    places, older, newer = Places(home), own(f"Use {_TOKEN}"), own(f"Use {_TOKEN} and go on")
    for number, text in enumerate((older, newer)):
        put(places.latest, text, _AGO + number)
        look(home, tree)
    redacted = newer.replace(_TOKEN.encode(), b"[REDACTED:github-token]")
    assert places.shared.read_bytes() == redacted
    for number, text in enumerate((newer, older, newer, older)):
        put(places.shared, text, _AGO + number)
        look(home, tree)
        assert places.shared.read_bytes() == redacted
        assert places.local.read_bytes() == newer
    assert len(written(home)) == 2


@pytest.mark.parametrize("started_again", [False, True])
def test_changed_redaction_takes_effect(home: Home, started_again: bool) -> None:
    places, text = Places(home), own("Meet at Fort Lindwurm")
    kinds = {name: structs.replace(home.config.redact, **kinds) for name, kinds in _REDACTIONS.items()}
    shown = {"plain": text, "more": text.replace(b"Fort Lindwurm", b"[REDACTED:user]")}
    home.put(dispatched())
    home.turn()
    put(places.latest, text)
    _turns(home)
    for number, (name, local) in enumerate(
        (("more", text), ("plain", text), ("local", shown["more"]), ("plain", text))
    ):
        config = structs.replace(home.config, redact=kinds[name])
        if started_again:
            home.config = config
        with home.tree() as tree:
            tree.reconfigure(config)
            home.put(answered("work", "IN_PROGRESS", f"Now {number}"))
            look(home, tree)
            assert places.shared.read_bytes() == shown["plain" if name == "plain" else "more"], name
            assert places.mission.read_bytes() == local, name
            assert tree.problems() == ()
        home.config = config
    assert written(home) == ["memory/handoffs/latest.md"]


_REDACTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "more": {"patterns": ("Fort Lind[a-z]+",)},
    "local": {"patterns": ("Fort Lind[a-z]+",), "local": True},
}


def test_what_others_put_into_an_archive_is_left_alone(home: Home, tree: Tree) -> None:
    archive = home.shared / "swarm" / "missions" / MISSION
    for folder in (archive / WORKER / "notes", home.shared / "handoffs" / "swarm"):
        folder.mkdir(parents=True)
    left = [
        folder / f"{TEMPORARY}0123"
        for folder in (archive, archive / WORKER, home.shared / "handoffs" / "swarm")
    ]
    for path in (
        *left,
        archive / "README",
        archive / WORKER / os.fsdecode(b"caf\xe9"),
        archive / WORKER / "a.md",
    ):
        path.write_bytes(b"somebody's")
    (archive / "scout-2").symlink_to("/nowhere")
    (archive / WORKER / "link").symlink_to("/nowhere")
    put(Places(home).latest, own("Go on"))
    home.put(answered("done", "DONE", "All is laid"))
    look(home, tree)
    assert tree.problems() == ()
    found = json.loads((archive / "manifest.json").read_bytes())
    assert found["workers"] == [WORKER]
    assert [one["path"] for one in found["files"]] == [
        f"{WORKER}/{name}" for name in ("SUMMARY.md", "events.jsonl", "handoff.md")
    ]
    assert not [path for path in left if path.exists()]
    assert (archive / "README").read_bytes() == (archive / WORKER / "a.md").read_bytes() == b"somebody's"


def test_free_text_belongs_to_the_mission_whose_name_it_has(home: Home, tree: Tree) -> None:
    places, later = Places(home), MissionId("mission-later")
    free = {name: f"Notes in {name}\n".encode() for name in ("README", "mission-old", MISSION, later)}
    put(places.latest, own("Go on"))
    look(home, tree)
    for name, text in free.items():
        put(places.folder / f"{name}.md", text)
    put(places.folder / "notes.md", own("Notes under another name"))
    look(home, tree)
    assert places.mission.read_bytes() == free[MISSION]
    assert written(home) == ["memory/handoffs/latest.md", f"memory/handoffs/{MISSION}.md"]
    home.put({**dispatched("again"), "currentMissionId": later})
    look(home, tree)
    assert places.mission.read_bytes() == free[MISSION]
    assert home.events(later).with_name("handoff.md").read_bytes() == free[later]
    assert places.shared.read_bytes() == free[later]
    put(places.folder / "mission-new.md", own("Of a mission that nobody knows yet", "mission-new"))
    look(home, tree)
    assert len(written(home)) == 4
    assert not home.summary(MissionId("README")).exists()
    assert tree.problems() == ()


def test_one_text_at_home_and_in_the_shared_folder_is_the_one_at_home(home: Home) -> None:
    places = Places(home)
    put(places.shared, own("Go on"), _AGO)
    put(places.local, own("Go on"), _AGO + 1)
    home.put(dispatched())
    _turns(home)
    put(places.shared, own("Somebody else's idea"), _AGO + 2)
    _turns(home)
    assert written(home) == [f"memory/handoffs/{MISSION}.md", f"handoffs/swarm/{WORKER}-latest.md"]
    assert places.local.read_bytes() == own("Go on")


@pytest.mark.parametrize("lost", [False, True])
def test_old_handoffs_are_base_line_until_their_mission_is_the_workers(home: Home, lost: bool) -> None:
    places, old = Places(home), [MissionId("mission-old-1"), MissionId("mission-old-2")]
    for number, mission in enumerate(old):
        put(places.folder / f"{mission}.md", own(f"Old {number}", mission), _AGO + 5 + number)
    put(home.memory() / "session-snapshots" / "latest.md", own("Old too", "mission-old-3"), _AGO + 9)
    put(places.latest, own("Go on"), _AGO)
    home.put(dispatched())
    _turns(home)
    if lost:
        home.delete_journal()
        _turns(home)
    assert [path.name for path in (home.memory() / "missions").iterdir()] == [MISSION]
    assert places.shared.read_bytes() == own("Go on")
    assert written(home) == ["memory/handoffs/latest.md"]
    assert len(history(home)) == 4
    home.put({**dispatched("again"), "currentMissionId": old[0]})
    _turns(home)
    assert home.events(old[0]).with_name("handoff.md").read_bytes() == own("Old 0", old[0])
    assert {path.name for path in (home.memory() / "missions").iterdir()} == {MISSION, old[0]}
    assert places.shared.read_bytes() == own("Old 0", old[0])
    assert len(written(home)) == 2


@pytest.mark.parametrize("started_again", [False, True])
def test_a_changed_part_is_archived_again(home: Home, started_again: bool) -> None:
    home.put(dispatched())
    home.turn()
    home.put(answered("done", "DONE", "All is laid"))
    _turns(home)
    archive = home.shared / "swarm" / "missions" / MISSION
    before = {path: path.stat() for path in archive.rglob("*") if path.is_file()}
    with home.tree() as tree:
        look(home, tree)
        assert {path: path.stat() for path in before} == before
        if not started_again:
            _edit(home)
            look(home, tree)
    if started_again:
        _edit(home)
        _turns(home)
    copies = archive / WORKER
    assert "- Bigger stones" in (copies / "SUMMARY.md").read_text()
    assert (copies / "events.jsonl").read_bytes() == home.events().read_bytes()
    found = json.loads((archive / "manifest.json").read_bytes())
    for one in found["files"]:
        assert one["sha256"] == sha256((archive / one["path"]).read_bytes())
    after = (archive / "manifest.json").stat()
    _turns(home)
    assert (archive / "manifest.json").stat() == after


def test_a_daemon_killed_while_it_archives_again_leaves_no_copy_that_it_does_not_know(
    quick_path: Path,
) -> None:
    """Killed at each call of it, at the sweep as at a request by hand: the next run finishes, and all is as it says."""

    def archived(home: Home) -> None:
        home.put(dispatched())
        home.turn()
        home.put(answered("done", "DONE", "All is laid"))
        _turns(home)
        _edit(home)

    def swept(home: Home) -> None:
        with home.tree() as tree:
            look(home, tree)

    def asked(home: Home) -> None:
        with home.tree() as tree:
            tree.archive(MISSION)

    for how in (swept, asked):
        counted = Home(quick_path / how.__name__)
        archived(counted)
        for point in range(len(calls_of(partial(how, counted)))):
            home = Home(quick_path / f"{how.__name__}-{point}")
            archived(home)
            with hooked(From(point, kill)):
                in_child(partial(how, home))
            _turns(home)
            assert verify(home.config).findings == [], (how.__name__, point)


def test_a_long_file_of_events_is_archived_a_portion_a_turn(home: Home) -> None:
    """Another worker's turn comes in between. What is added meanwhile is in the copy too."""
    copy = _completed(home)
    before, secret = copy.read_bytes(), "".join(("hun", "ter", "27"))
    line = json.dumps({"at": "2026-05-05T09:00:00.000Z", "type": "note", "summary": f"password: {secret}"})
    _add(home, line, PORTION * 3 // len(line))
    with home.tree() as tree:
        tree.look_at_archives()
        tree.turns.look([WORKER])
        assert _reason(tree.turns.apply([WORKER], at_once=False)) == "it is being redacted"
        assert copy.read_bytes() == before
        _add(home, line, 1)
        (changed,) = tree.turns.apply([WORKER], at_once=False).obstacles[WORKER]
        assert (changed.reason, changed.retry) == ("it has changed meanwhile", 10.0)
        turns = 1
        while report := tree.turns.apply([WORKER], at_once=False).obstacles:
            assert [one.expected for one in report[WORKER]] == [True]
            turns += 1
    assert turns >= 5
    assert copy.read_bytes() == safe_lines(Redactor(), home.events().read_bytes())
    assert secret.encode() not in copy.read_bytes()
    assert verify(home.config).findings == []


def test_a_mission_that_is_at_work_again_is_archived_when_it_rests(home: Home) -> None:
    """Not for each of its events: that would cost as much as all of them. By then the archive is as it was."""
    copy = _completed(home)
    before = copy.read_bytes()
    with home.tree() as tree:
        for count in range(1, 4):
            home.put(dispatched(currentTask="More. " * count, lastDispatchAt=1_777_886_200_000 + count))
            tree.turns.look([WORKER])
            tree.turns.apply([WORKER], at_once=False)
            home.hands.move(50.0)
            assert copy.read_bytes() == before
        home.hands.move(70.0)
        assert not tree.turns.apply([WORKER], at_once=False).obstacles
        rested = copy.read_bytes()
        assert rested == home.events().read_bytes()
        home.put(answered("done", "DONE", "All is laid again"))
        tree.turns.look([WORKER])
        assert not tree.turns.apply([WORKER], at_once=False).obstacles
    assert copy.read_bytes() == home.events().read_bytes() != rested
    assert verify(home.config).findings == []


def test_a_long_mission_that_is_at_work_again_is_archived_in_one_rest(home: Home) -> None:
    copy = _completed(home)
    with home.tree() as tree:
        _add(home, _NOTE, PORTION * 3 // len(_NOTE))
        home.put(dispatched(currentTask="More.", lastDispatchAt=1_777_886_200_001))
        tree.turns.look([WORKER])
        tree.turns.apply([WORKER], at_once=False)
        home.hands.move(70.0)
        assert _turns_until_archived(tree, [WORKER]) < 10
    assert copy.read_bytes() == home.events().read_bytes()


def test_of_a_mission_of_several_workers_each_long_file_is_redacted_once(tmp_path: Path) -> None:
    other = WorkerId("builder-2")
    home = Home(tmp_path / "home", WORKER, other)
    for worker in (WORKER, other):
        home.put({**dispatched(), "workerId": worker}, worker)
    home.turn()
    for worker in (WORKER, other):
        home.put({**answered("done", "DONE", "All is laid"), "workerId": worker}, worker)
    _turns(home)
    with home.tree() as tree:
        for worker in (WORKER, other):
            _add(home, _NOTE, PORTION * 6 // len(_NOTE), worker)
        tree.look_at_archives()
        tree.turns.look([WORKER])
        assert _turns_until_archived(tree, [WORKER]) < 20
    for worker in (WORKER, other):
        copy = home.shared / "swarm" / "missions" / MISSION / worker / "events.jsonl"
        assert copy.read_bytes() == home.events(worker=worker).read_bytes()
    assert verify(home.config).findings == []


def test_the_part_of_a_worker_at_work_again_is_not_archived_for_another(tmp_path: Path) -> None:
    other = WorkerId("builder-2")
    home = Home(tmp_path / "home", WORKER, other)
    for worker in (WORKER, other):
        home.put({**dispatched(), "workerId": worker}, worker)
    home.turn()
    for worker in (WORKER, other):
        home.put({**answered("done", "DONE", "All is laid"), "workerId": worker}, worker)
    _turns(home)
    copies = {w: home.shared / "swarm" / "missions" / MISSION / w / "events.jsonl" for w in (WORKER, other)}
    before = copies[WORKER].read_bytes()
    with home.tree() as tree:
        home.put(dispatched(currentTask="More.", lastDispatchAt=1_777_886_200_001))
        tree.turns.look([WORKER, other])
        tree.turns.apply([WORKER], at_once=False)
        _add(home, _NOTE, 1, other)
        tree.look_at_archives()
        assert not tree.turns.apply([other], at_once=False).obstacles
        assert copies[other].read_bytes() == home.events(worker=other).read_bytes()
        assert copies[WORKER].read_bytes() == before
        home.hands.move(70.0)
        assert not tree.turns.apply([WORKER], at_once=False).obstacles
        assert copies[WORKER].read_bytes() == home.events().read_bytes() != before
    assert verify(home.config).findings == []


def test_a_start_does_not_wait_for_a_long_archive(home: Home) -> None:
    home.put(dispatched())
    home.turn()
    _add(home, _NOTE, PORTION * 3 // len(_NOTE))
    with home.tree() as tree:
        home.put(answered("done", "DONE", "All is laid"))
        tree.turns.look([WORKER])
    copy = home.shared / "swarm" / "missions" / MISSION / WORKER / "events.jsonl"
    with home.tree() as tree:
        assert home.types()[-1] == "complete"
        assert b"All is laid" in home.events().read_bytes()
        assert not copy.exists()
        tree.everything()
        assert copy.read_bytes() == home.events().read_bytes()


def test_a_handoff_is_put_back_while_a_mission_at_work_again_is_not_archived_yet(home: Home) -> None:
    home.put(dispatched())
    home.turn()
    places = Places(home)
    with home.tree() as tree:
        for text in ("First", "Second"):
            put(places.latest, own(text))
            look(home, tree)
        home.put(answered("done", "DONE", "All is laid"))
        look(home, tree)
        home.put(dispatched(currentTask="More.", lastDispatchAt=1_777_886_200_001))
        tree.turns.look([WORKER])
        assert tree.turns.apply([WORKER], at_once=False).obstacles
        put(places.shared, own("First"))
        tree.turns.look([WORKER])
        tree.turns.apply([WORKER], at_once=False)
        assert places.shared.read_bytes() == own("Second")


def _turns_until_archived(tree: Tree, workers: list[WorkerId]) -> int:
    turns = 1
    while turns < 100 and tree.turns.apply(workers, at_once=False).obstacles:
        turns += 1
    return turns


def _completed(home: Home) -> Path:
    """The worker's mission is complete; where its events are archived."""
    home.put(dispatched())
    home.turn()
    home.put(answered("done", "DONE", "All is laid"))
    _turns(home)
    return home.shared / "swarm" / "missions" / MISSION / WORKER / "events.jsonl"


def _add(home: Home, line: str, count: int, worker: WorkerId = WORKER) -> None:
    with home.events(worker=worker).open("a") as file:
        file.write(f"{line}\n" * count)


def _reason(report: Report) -> str:
    (found,) = report.obstacles[WORKER]
    return found.reason


def _edit(home: Home) -> None:
    """A person writes a decision, another program a line."""
    summary = home.summary()
    summary.write_text(summary.read_text().replace("## Decisions\n", "## Decisions\n\n- Bigger stones\n"))
    with home.events().open("ab") as file:
        file.write(b'{"at":"2026-05-05T09:00:00.000Z","type":"note","summary":"A line of another program"}\n')


def test_what_was_archived_is_redacted_anew(home: Home) -> None:
    home.put(dispatched())
    home.turn()
    home.put(answered("done", "DONE", "Fort Lindwurm is laid"))
    _turns(home)
    copy = home.shared / "swarm" / "missions" / MISSION / WORKER / "SUMMARY.md"
    assert "Fort Lindwurm" in copy.read_text()
    with home.tree() as tree:
        look(home, tree)
        redact = structs.replace(home.config.redact, patterns=("Fort Lind[a-z]+",))
        tree.reconfigure(structs.replace(home.config, redact=redact))
        look(home, tree)
    assert "Fort Lindwurm" not in copy.read_text()
