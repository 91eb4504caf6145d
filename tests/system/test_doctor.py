"""`swarmmemd doctor`: each fault that is planted is named, and nothing else; a healthy installation has none."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

import swarmmemd
from swarmmemd.config import Account, load
from swarmmemd.doctor import NAMES, Finding, Patient, admit, examine, self_test
from swarmmemd.errors import NoManagerError
from swarmmemd.install import unit
from swarmmemd.install.overview import overview
from swarmmemd.install.supervised import Supervised
from swarmmemd.install.systemd import Systemd
from swarmmemd.standing import standing
from tests.support.daemon import STARTED, Daemon, Home, answered, dispatched, running, until

_PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


class Planned(Systemd):
    """systemd that says what it is told to."""

    told: Supervised | None = None

    def look(self) -> Supervised:
        """What was planned."""
        if self.told is None:
            raise NoManagerError("there is no bus")
        return self.told


class Clinic:
    """An installation that is well, but for what a test does to it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.manager = Planned(home.root)
        self.script = str(Path(sys.prefix) / "bin" / "swarmmemd")
        self.argv = (self.script, "run", "--supervisor", "systemd")
        self.flags: dict[str, object] = {"state_dir": str(home.state)}
        self.kernel = home.root / "inotify"
        self.kernel.mkdir()
        for name in ("max_user_watches", "max_user_instances"):
            (self.kernel / name).write_text("100000\n")
        self.manager.path.parent.mkdir(parents=True)
        self.manager.path.write_text(unit.marked_unit(self.argv))
        self.tell(pid=self.pid())

    def pid(self) -> int:
        """The process that holds the lock."""
        holder = standing(self.home.state).holder
        return holder.pid if holder else 0

    def tell(self, **fields: object) -> None:
        """What the manager says, apart from all being well."""
        well: dict[str, object] = {"loaded": True, "enabled": True, "active": "active", "stays": True}
        self.manager.told = msgspec.convert({"manager": "systemd", **well, **fields}, Supervised)

    def patient(self, patience: float = 20.0) -> Patient:
        """All of it, gathered."""
        loaded = load(self.flags, {"HOME": str(self.home.root)}, Account(self.home.root))
        seen = overview(self.manager, self.argv, standing(self.home.state))
        found = admit(loaded, seen, self.home.root, self.manager.shadow, self.home.state, patience)
        return msgspec.structs.replace(
            found, kernel=self.kernel, system_unit=self.home.root / "system.service"
        )

    def names(self, patience: float = 20.0) -> list[str]:
        """What is found. Every finding has a name of the list and a mend."""
        found = examine(self.patient(patience))
        assert all(one.name in NAMES and one.mend for one in found), found
        return [one.name for one in found]


@pytest.fixture
def ill(home: Home) -> Clinic:
    """Installed and well, but the daemon is down."""
    home.write("w1", answered("m1", "Done", "IN_PROGRESS"))
    assert home.command("once").returncode == 0
    return Clinic(home)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Installed, and a daemon runs."""
    home = Home(tmp_path_factory.mktemp("clinic") / "home")
    home.write("w1", dispatched("m1"))
    with running(home, forked=True) as daemon:
        STARTED.remove(daemon.process)  # it outlives a test
        until(lambda: home.types() == ["mission-start", "dispatch"], "the first events")
        yield Clinic(home)


def test_a_healthy_installation_has_no_finding(clinic: Clinic) -> None:
    assert examine(clinic.patient()) == []


# Faults beside a running daemon; each is taken back


def _edit(path: Path, change: Callable[[str], str]) -> Callable[[], object]:
    kept = path.read_text()
    path.write_text(change(kept))
    return lambda: path.write_text(kept)


def _make(path: Path, text: str = "x", mode: int = 0o600) -> Callable[[], object]:
    made = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)

    def take_back() -> None:
        path.unlink()
        if made:
            path.parent.rmdir()

    return take_back


def _mode(path: Path, mode: int) -> Callable[[], object]:
    kept = path.stat().st_mode & 0o777
    path.chmod(mode)
    return lambda: path.chmod(kept)


def _told(clinic: Clinic, **fields: object) -> Callable[[], object]:
    kept = clinic.manager.told
    clinic.tell(**{"pid": clinic.pid(), **fields})
    return lambda: setattr(clinic.manager, "told", kept)


def _bus(clinic: Clinic) -> Callable[[], object]:
    kept, clinic.manager.told = clinic.manager.told, None
    return lambda: setattr(clinic.manager, "told", kept)


def _asks_elsewhere(clinic: Clinic) -> Callable[[], object]:
    clinic.flags["workspace_root"] = str(clinic.home.root / "elsewhere")
    return lambda: clinic.flags.pop("workspace_root")


def _link(clinic: Clinic) -> Callable[[], object]:
    path = clinic.home.profiles / "w1" / "memory" / "notes.md"
    path.symlink_to("/etc/hostname")
    return path.unlink


def _dangling(clinic: Clinic) -> Callable[[], object]:
    clinic.manager.shadow.parent.mkdir(parents=True)
    clinic.manager.shadow.symlink_to("/gone")

    def take_back() -> None:
        clinic.manager.shadow.unlink()
        clinic.manager.shadow.parent.rmdir()

    return take_back


def _unit_of(script: str) -> Callable[[Clinic], Callable[[], object]]:
    def plant(clinic: Clinic) -> Callable[[], object]:
        text = unit.marked_unit((script.format(home=clinic.home.root), *clinic.argv[1:]))
        return _edit(clinic.manager.path, lambda _: text)

    return plant


def _old_program(clinic: Clinic) -> Callable[[], object]:
    take_back = _make(clinic.home.root / "old" / "swarmmemd", "#!/bin/sh\necho swarmmemd 0.0.1\n", 0o755)
    put_back = _unit_of("{home}/old/swarmmemd")(clinic)
    return lambda: (take_back(), put_back())


def _state(clinic: Clinic) -> Path:
    return clinic.home.state


PLANTED: dict[str, tuple[str, Callable[[Clinic], Callable[[], object]]]] = {
    "a state folder that others can read": ("state-mode", lambda c: _mode(_state(c), 0o755)),
    "a token that others can read": ("token-mode", lambda c: _make(_state(c) / "token", mode=0o644)),
    "a request that was refused": ("rejected", lambda c: _make(_state(c) / "inbox/rejected/a.reason")),
    "a log of an earlier, larger setting": (
        "log-size",
        lambda c: _make(_state(c) / "log/old.log", "x" * ((25 << 20) + 1)),
    ),
    "shared memory of a newer workspace": (
        "memory-elsewhere",
        lambda c: _make(c.home.workspace / "memory" / "x.md"),
    ),
    "memory in a place that nobody reads": (
        "wrong-place",
        lambda c: _make(c.home.root / ".openclaw/profiles/w1/memory/x.md"),
    ),
    "a link among the memory files": ("link", _link),
    "a unit edited by hand": ("definition-edited", lambda c: _edit(c.manager.path, lambda t: t + "# mine\n")),
    "a unit of somebody else": (
        "definition-foreign",
        lambda c: _edit(c.manager.path, lambda _: unit.unit(unit.words(c.argv))),
    ),
    "a program that was removed": ("program-broken", _unit_of("{home}/gone/swarmmemd")),
    "a program of another version": ("program-version", _old_program),
    "an older unit that wins": ("older-unit", lambda c: _make(c.manager.shadow)),
    "a service of the whole system": ("two-scopes", lambda c: _make(c.home.root / "system.service")),
    "a definition that the manager does not know": ("not-loaded", lambda c: _told(c, loaded=False)),
    "an older unit that is a dangling link": ("older-unit", _dangling),
    "a service that is not enabled": ("not-enabled", lambda c: _told(c, enabled=False)),
    "a unit that was not read again": ("reload", lambda c: _told(c, outdated=True)),
    "a user whose services end at logout": ("linger", lambda c: _told(c, stays=False)),
    "a manager that gave up": (
        "failed",
        lambda c: _told(c, active="failed", gave_up=True, last_exit=74, result="exit-code"),
    ),
    "no bus to the manager": ("no-manager", _bus),
    "few watches": ("inotify", lambda c: _edit(c.kernel / "max_user_watches", lambda _: "128")),
    "a daemon of another version": (
        "version",
        lambda c: _edit(
            _state(c) / "holder.json", lambda t: t.replace(f'"{swarmmemd.__version__}"', '"0.0.1"')
        ),
    ),
    "a daemon with other folders": ("other-roots", _asks_elsewhere),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_named(clinic: Clinic, fault: str) -> None:
    name, plant = PLANTED[fault]
    take_back = plant(clinic)
    try:
        found = clinic.names()
    finally:
        take_back()
    # A program of another place is another definition too.
    assert set(found) - {"definition-outdated"} == {name}


def test_a_source_that_cannot_be_read_is_told_as_the_daemon_sees_it(clinic: Clinic) -> None:
    clinic.home.write("w2", b"{ half")
    until(lambda: "trouble" in clinic.names(), "the trouble")
    (clinic.home.profiles / "w2" / "runtime.json").unlink()
    (clinic.home.profiles / "w2").rmdir()
    until(lambda: clinic.names() == [], "it to be well again")


# Faults of a daemon that is down, or hangs


def test_a_service_that_does_not_run(ill: Clinic) -> None:
    assert ill.names() == ["not-running"]
    (ill.home.state / "last-exit.json").write_text('{"exit": 75, "reason": "Held", "mend": "Stop the other"}')
    found = examine(ill.patient())
    assert [(one.name, one.mend) for one in found] == [("last-exit", "Stop the other")]


def test_a_journal_that_is_damaged_or_newer(ill: Clinic) -> None:
    journal = ill.home.state / "journal.db"
    with closing(sqlite3.connect(journal)) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version + 1}")
    assert set(ill.names()) == {"journal", "not-running"}
    for path in ill.home.state.glob("journal.db*"):
        path.unlink()
    journal.write_bytes(b"no database" * 100)
    assert set(ill.names()) == {"journal", "not-running"}


def test_a_service_with_another_state_folder(ill: Clinic) -> None:
    ill.tell(pid=os.getpid())
    assert ill.names() == ["other-state"]
    assert str(ill.home.state) in examine(ill.patient())[0].what


def test_a_journal_that_cannot_be_opened(ill: Clinic) -> None:
    journal = ill.home.state / "journal.db"
    for path in ill.home.state.glob("journal.db*"):
        path.unlink()
    journal.mkdir()
    found = {one.name: one.what for one in examine(ill.patient())}
    assert found.keys() == {"journal", "not-running"}
    assert str(journal) in found["journal"]


def test_a_link_in_the_state_folder(ill: Clinic) -> None:
    (ill.home.state / "inbox").symlink_to("inbox")
    assert set(ill.names()) == {"link", "not-running"}


def test_files_that_go_while_doctor_looks_are_no_finding(clinic: Clinic) -> None:
    """The daemon replaces files all the time."""
    folder = clinic.home.profiles / "w1" / "memory"
    kept = Path.lstat

    def gone(path: Path) -> os.stat_result:
        if path.parent == folder:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return kept(path)

    with patch.object(Path, "lstat", gone):
        assert clinic.names() == []


def test_a_clock_that_was_set_back(ill: Clinic) -> None:
    with closing(sqlite3.connect(ill.home.state / "journal.db")) as db:
        db.create_function("later", 1, lambda line: re.sub(rb'"at":"\d{4}', b'"at":"2999', bytes(line)))
        db.execute("UPDATE event SET line = later(line)")
        db.commit()
    assert set(ill.names()) == {"clock", "not-running"}


def test_a_root_that_is_missing_or_no_folder(ill: Clinic) -> None:
    ill.home.profiles.rename(ill.home.root / "kept")
    assert set(ill.names()) == {"profiles-missing", "not-running"}
    ill.home.profiles.write_text("no folder")
    assert set(ill.names()) == {"root-denied", "not-running"}


def test_a_full_disk(ill: Clinic) -> None:
    small = ill.home.root / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system of its own: {mounted.stderr.decode().strip()}")
    try:
        ill.flags["shared_root"] = str(small / "shared")
        assert set(ill.names()) == {"space", "not-running"}
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_daemon_that_hangs(home: Home) -> None:
    daemon = Daemon(home, forked=True).ready()
    try:
        clinic = Clinic(home)
        daemon.signal(signal.SIGSTOP)
        assert clinic.names(patience=0.3) == ["silent"]
        figures = home.state / "status.json"
        figures.write_text(re.sub(r'"written":"\d{4}', '"written":"2020', figures.read_text()))
        assert set(clinic.names(patience=0.3)) == {"silent", "figures-old"}
    finally:
        daemon.kill()


# The self-test, and the command


def test_the_probe_goes_through_and_a_broken_program_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert self_test() == []
    monkeypatch.setattr(sys, "executable", "/bin/false")
    found = self_test()
    assert [(type(one), one.name) for one in found] == [(Finding, "self-test")]


def test_without_room_for_a_temporary_folder_the_self_test_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert [(one.name, bool(one.mend)) for one in self_test()] == [("self-test", True)]


def test_the_command_says_it_to_people_and_programs(home: Home) -> None:
    done = home.command("doctor", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["schema"], told["ok"]) == (1, 1, False)
    assert "not-running" in [one["name"] for one in told["findings"]]
    home.environment = lambda: {**Home.environment(home), "SWARMMEMD_LOG_LEVEL": "loud"}  # type: ignore[method-assign]
    done = home.command("doctor", "--no-self-test")
    assert done.returncode == 1
    assert done.stdout.startswith("problem  configuration: log.level: environment SWARMMEMD_LOG_LEVEL")
    assert "not-running: No daemon runs" in done.stdout, (
        "what needs no configuration is looked at all the same"
    )
    assert done.stderr == ""


def test_with_a_configuration_that_cannot_be_used_service_and_daemon_are_looked_at(ill: Clinic) -> None:
    ill.tell(active="failed", last_exit=78, result="exit-code")
    (ill.home.state / "last-exit.json").write_text('{"exit": 78, "reason": "log.level", "mend": "Mend it"}')
    without = msgspec.structs.replace(ill.patient(), loaded=None)
    assert [one.name for one in examine(without)] == ["last-exit", "failed"]


def test_what_ended_the_daemon_has_a_mend_also_where_it_named_none(ill: Clinic) -> None:
    (ill.home.state / "last-exit.json").write_text('{"exit": 78, "reason": "log.level: loud", "mend": ""}')
    assert ill.names() == ["last-exit"]


def test_a_configuration_that_was_not_taken_over_is_not_said_to_mend_itself(home: Home) -> None:
    file = home.root / "config.yaml"
    file.write_text("log: {level: info}\n")
    with running(home, "--config", str(file)) as daemon:
        file.write_text("log: {level: loud}\n")
        daemon.signal(signal.SIGHUP)
        clinic = Clinic(home)
        until(lambda: "trouble" in clinic.names(), "the trouble")
        mends = [one.mend for one in examine(clinic.patient()) if one.name == "trouble"]
        assert "service restart" in mends[0]
        assert "by itself" not in mends[0]


def test_doctor_changes_nothing(home: Home) -> None:
    before = sorted(os.walk(home.root))
    home.command("doctor")
    assert sorted(os.walk(home.root)) == before


def test_the_page_explains_every_finding() -> None:
    section = _PAGE.read_text().partition("## What doctor finds")[2].partition("\n## ")[0]
    names = [
        name
        for row in re.findall(r"^\| (`[^|]+) \|", section, re.M)
        for name in re.findall(r"`([\w-]+)`", row)
    ]
    assert sorted(names) == sorted(NAMES)
