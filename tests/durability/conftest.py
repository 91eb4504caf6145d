"""Every test of this folder leaves the seam as it found it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarmmemd.seam import seam
from tests.support.trees import Home, Undisturbed

_MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def _seam_restored() -> Iterator[None]:
    before = seam.call
    yield
    seam.call = before


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder where fsync costs little, if there is one: for tests with hundreds of turns, which ask in what
    order the calls come and not what the disk does."""
    if not (_MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="swarmmemd-test-", dir=_MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The story without faults."""
    return Undisturbed(tmp_path_factory.mktemp("undisturbed") / "home")
