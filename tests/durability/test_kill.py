"""Killed at any point: nothing is lost, nothing is doubled; docs/architecture.md, "Durability".

The child process ends at the point without any clean-up, as for SIGKILL: what it had written stands, what it had not
is gone. Then the turn runs again, and everything must be as if nothing had happened.
"""

from pathlib import Path

import pytest

from swarmmemd.recall.verify import verify
from tests.support.faults import KILLED, From, calls_of, hooked, in_child, kill, torn
from tests.support.trees import Home, Undisturbed, story


def _calls_of_steps(base: Path) -> list[int]:
    home, counts = Home(base), []
    for content in story():
        home.put(content)
        counts.append(len(calls_of(home.turn)))
    return counts


def _killed_at(home: Home, point: int) -> bool:
    def work() -> None:
        with hooked(From(point, kill)):
            home.turn()

    status = in_child(work)
    assert status in (0, KILLED)
    return status == KILLED


def _holds(home: Home, undisturbed: Undisturbed, step: int, where: str) -> None:
    assert home.files() == undisturbed.files[step], where
    assert home.journal() == undisturbed.journals[step], where
    assert all(applied == 1 for *_, applied in home.rows()), where
    assert verify(home.config).findings == [], where


@pytest.mark.parametrize("journal", ["kept", "deleted"])
def test_killed_at_every_call_of_every_turn(
    quick_path: Path, undisturbed: Undisturbed, journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run number n kills each turn of the story at its n-th call, and each time begins again."""
    counts = _calls_of_steps(quick_path / "counted")
    kills = deletions = 0
    for point in range(max(counts)):
        home = Home(quick_path / f"run-{point}")
        for step, content in enumerate(story()):
            home.put(content, in_place=bool(point % 2))
            kills += _killed_at(home, point)
            if journal == "deleted" and home.events().exists() and home.events().read_bytes():
                home.delete_journal()
                deletions += 1
            home.turn()
            _holds(home, undisturbed, step, f"point {point} of step {step}")
    with capsys.disabled():
        print(f" [{kills} kills, {deletions} journals deleted]", end="")
    assert kills == sum(counts)


def test_killed_again_at_the_same_call_of_the_recovery(quick_path: Path, undisturbed: Undisturbed) -> None:
    """A machine that dies at each start, one call later each time, comes to the end."""
    home = Home(quick_path / "home")
    for step, content in enumerate(story()):
        home.put(content)
        point = 0
        while _killed_at(home, point):
            point += 1
        assert point > 7
        _holds(home, undisturbed, step, f"step {step}")


@pytest.mark.parametrize("name", ["2026-05-04.md", "2026-05-05.md", "SUMMARY.md", "events.jsonl"])
@pytest.mark.parametrize("cut", [1, 7, 64, 200])
def test_killed_in_the_middle_of_a_write(
    tmp_path: Path, undisturbed: Undisturbed, name: str, cut: int
) -> None:
    home, kills = Home(tmp_path / "home"), 0

    def work() -> None:
        with hooked(torn(cut, name)):
            home.turn()

    for step, content in enumerate(story()):
        home.put(content)
        kills += in_child(work) == KILLED
        home.turn()
        _holds(home, undisturbed, step, f"step {step}")
    assert kills


def test_killed_while_several_turns_share_one_journal_commit(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    """What was applied is marked with the next commit: a daemon that dies before it applies once more."""
    home = Home(tmp_path / "home")

    def work() -> None:
        with home.tree() as tree:
            for content in story():
                home.put(content)
                tree.discover()
                tree.everything()
            kill("", "")

    assert in_child(work) == KILLED
    assert any(applied == 0 for *_, applied in home.rows())
    home.turn()
    _holds(home, undisturbed, -1, "after the restart")
