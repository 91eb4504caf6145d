"""The skill is true: each command in it runs; and it gets where it is wanted, once."""

import re
import shlex
from pathlib import Path

import pytest

from swarmmemd.skills import skill
from tests.support.daemon import Home, answered, dispatched

COMMANDS = [
    line
    for fence in re.findall(r"^```bash\n(.*?)^```$", skill(), flags=re.M | re.S)
    for line in fence.splitlines()
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A worker that was blocked once and has handed over."""
    home = Home(tmp_path_factory.mktemp("told") / "home")
    task = "Make the flaky parser test in foo/bar.py stable against the rate limit"
    home.write("builder-1", dispatched("mission-1", task, lastDispatchAt=1_779_000_000_000))
    assert home.command("once").returncode == 0
    late = {"lastOutputAt": 1_779_000_060_000, "lastCheckIn": "2026-05-17T06:41:00.000Z"}
    home.write("builder-1", answered("mission-1", "No parser here", "BLOCKED", **late))
    assert home.command("once").returncode == 0
    home.write("builder-1", answered("mission-1", "Handed over", "HANDOFF", lastOutputAt=1_779_000_120_000))
    assert home.command("once").returncode == 0
    return home


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 10
    assert all(command.startswith("swarmmemd ") for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_in_it_runs(told: Home, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (told.root / "handoff.md").write_text("The parser is where it was. Begin with foo/bar.py.\n")
    monkeypatch.chdir(told.root)
    arguments = shlex.split(command.replace("YOUR_ID", "builder-1"))[1:]
    done = told.command(*arguments)
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


def test_it_says_what_it_is() -> None:
    head = skill().split("---\n")[1]
    assert "\nname: swarm-memory\n" in f"\n{head}"
    assert re.search(r"^description: .{40,}$", head, flags=re.M)
    assert "memories/" in skill().partition("## What not to do")[2]


def installed(home: Home, worker: str) -> Path:
    return home.profiles / worker / "skills" / "swarm-memory" / "SKILL.md"


def test_show_prints_it(home: Home) -> None:
    assert home.command("skill", "show").stdout == skill()


def test_install_puts_it_into_the_workers_profiles(home: Home) -> None:
    for worker in ("builder-1", "painter-2"):
        home.write(worker, dispatched("mission-1"))
    (home.profiles / "private").mkdir()
    done = home.command("skill", "install", "--profiles", "build*")
    assert (done.returncode, done.stderr) == (0, "")
    assert installed(home, "builder-1").read_text().startswith(skill())
    assert not installed(home, "painter-2").exists()
    done = home.command("skill", "install")
    assert done.returncode == 0
    assert "builder-1/skills/swarm-memory: up to date" in done.stdout
    assert "painter-2/skills/swarm-memory: installed" in done.stdout
    assert not installed(home, "private").exists()


def test_install_keeps_what_somebody_has_changed(home: Home) -> None:
    home.write("builder-1", dispatched("mission-1"))
    assert home.command("skill", "install").returncode == 0
    path = installed(home, "builder-1")
    path.write_text(path.read_text().replace("Load", "Please load", 1))
    done = home.command("skill", "install")
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert "Please load" in path.read_text()
    assert home.command("skill", "install", "--force").returncode == 0
    assert path.read_text().startswith(skill())


def test_install_into_a_folder_and_through_no_link(home: Home) -> None:
    outside = home.root / "outside"
    outside.mkdir()
    assert home.command("skill", "install", "--dir", str(outside)).returncode == 0
    assert (outside / "swarm-memory" / "SKILL.md").exists()
    home.write("builder-1", dispatched("mission-1"))
    (home.profiles / "builder-1" / "skills").symlink_to(outside / "swarm-memory")
    done = home.command("skill", "install")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not (outside / "swarm-memory" / "swarm-memory").exists()


def test_install_without_a_worker_says_so(home: Home) -> None:
    done = home.command("skill", "install")
    assert (done.returncode, done.stdout) == (1, "")
    assert home.command("skill", "install", "--dir", "x", "--profiles", "y").returncode == 2
