"""The sweep's question to the handoffs of one worker: does a stat show anything that the last look did not?"""

from pathlib import Path

import pytest

from swarmmemd.model import WorkerId
from swarmmemd.sources.handoffs import HandoffSource

_LATER = 4_000_000_000.0
"""A wall clock at which every file has stood still."""


class Stage:
    """A worker's folder, and the shared one."""

    def __init__(self, folder: Path) -> None:
        self.profile, self.shared = folder / "profile", folder / "shared"
        self.latest = self.profile / "memory" / "handoffs" / "latest.md"
        self.copy = self.shared / "handoffs" / "swarm" / "painter-1-latest.md"
        for file in (self.latest, self.copy):
            file.parent.mkdir(parents=True)
        self.source = HandoffSource(self.profile, self.shared, WorkerId("painter-1"))

    def look(self) -> list[str]:
        """The paths that two looks, half a second apart, give."""
        files = (*self.source.look(100.0, _LATER), *self.source.look(100.5, _LATER))
        return sorted(file.path for file in files)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_nothing_there_is_nothing_changed(stage: Stage) -> None:
    assert not stage.source.changed()
    assert stage.look() == []


def test_a_new_file_is_a_change_until_it_was_looked_at(stage: Stage) -> None:
    stage.latest.write_text("# Handoff\n")
    stage.copy.write_text("# Handoff\n")
    assert stage.source.changed()
    assert stage.look() == ["handoffs/swarm/painter-1-latest.md", "memory/handoffs/latest.md"]
    assert not stage.source.changed()


@pytest.mark.parametrize("which", ["latest", "copy"])
def test_a_file_that_is_gone_is_a_change_until_it_was_looked_at(stage: Stage, which: str) -> None:
    file: Path = getattr(stage, which)
    file.write_text("# Handoff\n")
    stage.look()
    file.unlink()
    assert stage.source.changed()
    stage.look()
    assert not stage.source.changed()


def test_a_folder_that_is_a_link_is_told_and_not_looked_into(stage: Stage, tmp_path: Path) -> None:
    stage.latest.write_text("# Handoff\n")
    stage.latest.parent.rename(tmp_path / "elsewhere")
    stage.latest.parent.symlink_to(tmp_path / "elsewhere")
    assert stage.look() == []
    assert stage.source.troubles == {"memory/handoffs": "a link, not followed"}
    assert not stage.source.changed()


def test_a_memory_that_is_a_link_is_told_and_not_looked_into(stage: Stage, tmp_path: Path) -> None:
    stage.latest.write_text("# Handoff\n")
    (stage.profile / "memory").rename(tmp_path / "elsewhere")
    (stage.profile / "memory").symlink_to(tmp_path / "elsewhere")
    assert stage.look() == []
    assert stage.source.troubles == {"memory": "a link, not followed"}
    assert not stage.source.changed()
