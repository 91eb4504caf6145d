"""Appending once, on real files beside another writer; docs/architecture.md, "Idempotent append"."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from swarmmemd.model import MissionId
from swarmmemd.tree import Tree
from tests.support.faults import KILLED, hooked, in_child, kill, torn
from tests.support.trees import CASES, WORKER, Home, Kept, Undisturbed, story

BESIDE = CASES / "memory" / "beside"
SETTLE = 0.4


class Case:
    """One folder of `cases/memory/beside`, played in a home."""

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self._folder = BESIDE / name
        self.expected = yaml.safe_load((self._folder / "expected.yaml").read_text("utf-8"))
        self.mission = MissionId(self.expected["mission"])
        self.events = home.events(self.mission)

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def runtime(self, name: str) -> None:
        self.home.put(self.read(name))

    def append(self, name: str) -> None:
        """As the other writer does it: the folder made when missing, one append."""
        self.events.parent.mkdir(parents=True, exist_ok=True)
        with self.events.open("ab") as file:
            file.write(self.read(name))

    def stands(self) -> bytes:
        return self.events.read_bytes()

    def lines(self, *types: str) -> bytes:
        """The recorded lines of these types, as they stand in `events.jsonl`."""
        return b"".join(line for type, line, _ in self.home.rows() if type in types)

    def ends_well(self) -> None:
        """What `expected.yaml` says of the events and of the bullets under Checkpoints."""
        rows = self.home.rows()
        assert [type for type, *_ in rows] == [event["type"] for event in self.expected["events"]]
        assert all(applied == 1 for *_, applied in rows)
        for (_, line, _), event in zip(rows, self.expected["events"], strict=True):
            assert event.get("summary", "").casefold() in line.decode().casefold()
            assert f'"state":"{event["state"]}"' in line.decode() if "state" in event else True
        said = b"fence is closed"
        summary = self.home.summary(self.mission).read_bytes()
        bullets = [line for line in summary.split(b"\n") if line.startswith(b"- 2026-") and said in line]
        assert len(bullets) == 1
        episodes = self.home.memory() / "episodes" / "2026-05-04.md"
        assert episodes.read_bytes().count(b"- Result: The fence is closed") == 1


def _settled(case: Case, tree: Tree, most: int = 4) -> None:
    """Turns until nothing stands in the way; what is waited for is another writer, and no fault."""
    worker = tree.turns.workers[WORKER]
    for _ in range(most):
        tree.everything()
        if not worker.obstacles:
            return
        (obstacle,) = worker.obstacles
        assert obstacle.expected
        assert 0 < obstacle.retry <= SETTLE + 1e-6
        case.home.hands.move(worker.memory.after - case.home.hands.now)
    raise AssertionError(worker.obstacles)


def test_foreign_line_earlier(home: Home) -> None:
    case = Case(home, "foreign-line-earlier")
    case.runtime("idle.json")
    with home.tree() as tree:
        tree.everything()
        case.append("foreign.jsonl")
        case.runtime("dispatched.json")
        tree.everything()
        assert case.stands() == case.read("foreign.jsonl")
        case.runtime("done.json")
        tree.everything()
    assert case.stands() == case.read("foreign.jsonl") + case.lines("checkpoint", "complete")
    case.ends_well()


def test_foreign_line_later(home: Home) -> None:
    case = Case(home, "foreign-line-later")
    case.runtime("dispatched.json")
    with home.tree() as tree:
        tree.everything()
        case.runtime("done.json")
        tree.everything()
        after = case.stands()
        case.append("foreign.jsonl")
        tree.everything()
    assert case.stands() == after + case.read("foreign.jsonl")
    before, tree_before = home.journal(), home.files()
    home.delete_journal()
    home.turn()
    assert case.stands() == after + case.read("foreign.jsonl")
    assert home.journal() == before
    assert home.files() == tree_before
    case.ends_well()


def test_foreign_torn_tail(home: Home) -> None:
    case = Case(home, "foreign-torn-tail")
    case.runtime("dispatched.json")
    with home.tree() as tree:
        tree.everything()
        after, foreign = case.stands(), case.read("foreign-torn.jsonl")
        case.append("foreign-torn.jsonl")
        case.runtime("done.json")
        for _ in range(4):
            tree.everything()
            assert case.stands() == after + foreign, "nothing before it has stood still"
            home.hands.move(0.099)
        home.hands.move(0.1)
        _settled(case, tree)
    assert case.stands() == after + foreign + b"\n" + case.lines("checkpoint", "complete")
    case.ends_well()


def test_foreign_slow_writer(home: Home) -> None:
    case = Case(home, "foreign-slow-writer")
    case.runtime("dispatched.json")
    with home.tree() as tree:
        tree.everything()
        after = case.stands()
        case.append("foreign-1.txt")
        case.runtime("done.json")
        assert tree.everything().obstacles
        home.hands.move(SETTLE / 2)
        case.append("foreign-2.txt")
        _settled(case, tree)
    foreign = case.read("foreign-1.txt") + case.read("foreign-2.txt")
    assert case.stands() == after + foreign + case.lines("checkpoint", "complete")
    case.ends_well()


def test_a_writer_that_goes_on_again_and_again_is_waited_for(home: Home) -> None:
    """Byte by byte, each within the settle time of the one before: no line break comes between."""
    case = Case(home, "foreign-slow-writer")
    case.runtime("dispatched.json")
    with home.tree() as tree:
        tree.everything()
        after = case.stands()
        foreign = case.read("foreign-1.txt") + case.read("foreign-2.txt")
        case.append("foreign-1.txt")
        case.runtime("done.json")
        for byte in case.read("foreign-2.txt"):
            tree.everything()
            assert tree.turns.workers[WORKER].obstacles
            home.hands.move(SETTLE * 0.9)
            with case.events.open("ab") as file:
                file.write(bytes([byte]))
        _settled(case, tree)
    assert case.stands() == after + foreign + case.lines("checkpoint", "complete")


@pytest.mark.parametrize("cut", [1, 7, 64, -2, -1])
def test_own_torn_tail(home: Home, cut: int) -> None:
    case = Case(home, "own-torn-tail")
    assert cut in case.expected["cut"]
    case.runtime("dispatched.json")
    home.turn()
    after = case.stands()
    case.runtime("done.json")
    line = _next_line(home)
    size = cut if cut > 0 else len(line) + cut

    def work() -> None:
        with hooked(torn(size, "events.jsonl")):
            home.turn()

    assert in_child(work) == KILLED
    assert case.stands() == after + line[:size]
    home.turn()
    assert case.stands() == after + case.lines("checkpoint", "complete")
    case.ends_well()


def _next_line(home: Home) -> bytes:
    """The checkpoint line that the next turn will write, found out in a child that dies before it writes it."""

    def work() -> None:
        with hooked(torn(0, "events.jsonl")):
            home.turn()

    kept = Kept(home)
    assert in_child(work) == KILLED
    (line,) = [line for type, line, _ in home.rows() if type == "checkpoint"]
    kept.put_back()
    return line


@pytest.mark.parametrize("name", ["events.jsonl", "2026-05-04.md", "2026-05-05.md"])
def test_own_torn_tail_at_every_byte(quick_path: Path, undisturbed: Undisturbed, name: str) -> None:
    """Killed in the last append of the story, at each byte of what is appended."""
    step = 3 if name == "2026-05-04.md" else 4
    home = Home(quick_path / "home")
    for content in story()[:step]:
        home.put(content)
        home.turn()
    path = next(home.memory().rglob(name), None)
    before = path.read_bytes() if path else b""
    home.put(story()[step])

    def work() -> None:
        with hooked(torn(0, name)):
            home.turn()

    assert in_child(work) == KILLED
    path = next(home.memory().rglob(name))
    whole = undisturbed.files[step][str(path.relative_to(home.memory()))]
    assert whole.startswith(before)
    assert path.read_bytes() == before
    kept = Kept(home)
    for size in range(len(before), len(whole) + 1):
        kept.put_back()
        path.write_bytes(whole[:size])
        home.turn()
        assert home.files() == undisturbed.files[step], f"{size - len(before)} bytes"
        assert home.journal() == undisturbed.journals[step]


def _told_beside(home: Home, tails: Sequence[bytes]) -> None:
    """The story with these bytes appended by somebody else after each step."""
    with_tails = iter([*tails, *[b""] * len(story())])
    for content in story():
        home.put(content)
        with home.tree() as tree:
            for _ in range(3):
                tree.everything()
                home.hands.move(1.0)
        with home.events().open("ab") as file:
            file.write(next(with_tails))


@pytest.mark.parametrize(
    "tail",
    [b"{", b"\xff\xfe", b"\0" * 300, b"\n\n", b'{"at":"2026', b"no json\n", b'{"id":"ev_', b"\r\n"],
    ids=["brace", "no UTF-8", "NULs", "empty lines", "like ours", "prose", "an id", "CRLF"],
)
def test_our_lines_are_whole_whatever_others_append(
    home: Home, undisturbed: Undisturbed, tail: bytes
) -> None:
    _told_beside(home, [tail] * len(story()))
    ours = undisturbed.journals[-1]
    assert home.journal() == ours
    stands = home.events().read_bytes()
    lines = [line + b"\n" for line in stands.split(b"\n")]
    assert [line for line in lines if line in ours] == ours
    assert stands.count(tail) >= len(story()) if tail != b"\n\n" else True
    home.delete_journal()
    home.turn()
    assert home.journal() == ours
    assert home.events().read_bytes() == stands


def test_the_file_is_replaced_by_one_with_the_same_lines(home: Home, undisturbed: Undisturbed) -> None:
    """As editors and `git checkout` do: another inode, the same bytes; then one with less."""
    for content in story():
        home.put(content)
        home.turn()
        aside = home.events().with_name("aside")
        aside.write_bytes(home.events().read_bytes())
        aside.replace(home.events())
    assert home.files() == undisturbed.files[-1]


def test_a_glued_line_of_the_other_writer_is_left_alone(home: Home) -> None:
    """`events-glued.jsonl` as it stands on disk before the daemon comes: kept, and ours come after it."""
    home.put({"workerId": "builder-1", "state": "idle", "checkpointStatus": "none"})
    mission = MissionId("mission-mo4d0030-aaaaaa")
    for name in ("events-glued.jsonl", "events.jsonl"):
        path = home.events(mission)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((CASES / "memory" / name).read_bytes())
        home.delete_journal()
        home.turn()
        home.turn()
        assert path.read_bytes() == (CASES / "memory" / name).read_bytes()
        assert home.types()[:2] == ["mission-start", "dispatch"]
        assert home.types()[-1] == "blocked"


def test_dying_is_not_part_of_the_hook() -> None:
    """The hook that kills ends the process at once, whatever would catch an exception."""

    def work() -> None:
        try:
            kill("", "")
        finally:
            raise AssertionError("never reached")

    assert in_child(work) == KILLED
