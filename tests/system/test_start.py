"""What a command that has to be quick brings into its process, by what the process itself says."""

import subprocess
from pathlib import Path

import pytest

from tests.support.daemon import Home, dispatched

HEAVY = frozenset(
    {
        *(
            "asyncio",
            "anyio",
            "http",
            "http.client",
            "ssl",
            "_ssl",
            "email",
            "urllib.request",
            "socketserver",
        ),
        *("starlette", "uvicorn", "watchdog", "structlog", "rich", "yaml", "platformdirs", "ctypes"),
        *("logging", "concurrent.futures", "multiprocessing", "importlib.metadata", "importlib.resources"),
        *("click.shell_completion", "difflib", "tempfile", "shutil", "subprocess", "plistlib", "dataclasses"),
    }
)
"""What none of these commands needs."""
COMMANDS = {
    ("--version",): {"msgspec", "sqlite3", "hashlib", "json", "swarmmemd.config.values"},
    ("search", "shed"): {"sqlite3", "hashlib", "json", "swarmmemd.journal", "swarmmemd.redact"},
    ("status",): {"swarmmemd.redact", "swarmmemd.recall"},
    ("tail",): {"swarmmemd.redact", "swarmmemd.recall"},
    ("resume", "builder-1"): {"sqlite3", "swarmmemd.journal"},
    ("note", "The saw is blunt", "--worker", "builder-1"): {
        "sqlite3",
        "swarmmemd.journal",
        "swarmmemd.redact",
    },
}
"""Each with what it does not need beside that."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A worker that has told something, and no daemon."""
    home = Home(tmp_path_factory.mktemp("told") / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    assert home.command("once").returncode == 0
    return home


def imported(home: Home, *arguments: str) -> set[str]:
    """The modules that a command imports, as its interpreter counts them."""
    done = subprocess.run(
        home.arguments(*arguments),
        env={**home.environment(), "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_quick_command_imports_nothing_heavy(told: Home, command: tuple[str, ...]) -> None:
    found = imported(told, *command)
    assert "swarmmemd.cli.main" in found
    assert found & (HEAVY | COMMANDS[command]) == set()


def test_a_search_with_an_index_needs_nothing_of_the_journal(told: Home, tmp_path: Path) -> None:
    """What a keeper of the index needs beside SQLite, a search does not."""
    from swarmmemd.config import Config
    from swarmmemd.layout import SEARCH
    from swarmmemd.recall.indexing import Indexer
    from swarmmemd.recall.seal import seal

    config = Config(
        profiles_root=told.profiles,
        workspace_root=told.workspace,
        shared_root=told.shared,
        state_dir=told.state,
    )
    index = Indexer(told.state / SEARCH)
    index.update(config)
    assert index.settle()
    index.close()
    seal(config)
    found = imported(told, "search", "shed")
    assert "swarmmemd.recall.index" in found
    assert found & {*HEAVY, "hashlib", "_hashlib", "swarmmemd.journal"} == set()
