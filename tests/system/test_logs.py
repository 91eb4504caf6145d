"""The log: bounded on disk, with priorities for journald, followed over its rotation."""

import json
import os
import stat
import subprocess
import threading
from itertools import islice
from pathlib import Path

import pytest

from swarmmemd.durable import shorten
from swarmmemd.log import File, Stream, configure, prioritised
from swarmmemd.logfile import NAME, LogFile, name_of
from swarmmemd.recall.logs import follow, newest
from tests.support.daemon import Home, dispatched, running, until


def total(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_hundred_megabytes_stay_within_what_is_configured(tmp_path: Path) -> None:
    files, size = 5, 5 << 20
    log_file = LogFile(tmp_path / "log", files, size)
    log = configure("info", [File(log_file)])
    text = "x" * 65_536
    for number in range((100 << 20) // len(text)):
        log.warning("forced", number=number, text=text)
    log_file.close()
    assert total(tmp_path / "log") <= files * size
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == [name_of(n) for n in range(files)]
    assert json.loads(newest(tmp_path / "log", 1)[0])["number"] == number
    assert stat.S_IMODE((tmp_path / "log" / NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("files", [1, 2, 3])
def test_the_newest_lines_are_kept_in_order(tmp_path: Path, files: int) -> None:
    log_file = LogFile(tmp_path, files, 100)
    for number in range(50):
        log_file.write(f"line {number:02}")
    log_file.write("long" * 100)
    log_file.write("last")
    kept = newest(tmp_path, 1000)
    assert kept[-1] == "last"
    assert total(tmp_path) <= files * 100
    if files > 1:
        assert kept[-2] == ("long" * 100)[:99]
    assert newest(tmp_path, 0) == []


def test_a_disk_that_refuses_the_log_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no folder")
    log_file = LogFile(tmp_path / "log", 2, 1000)
    log_file.write("lost")
    (tmp_path / "log").unlink()
    log_file.write("kept")
    assert newest(tmp_path / "log", 10) == ["kept"]


def test_the_log_is_followed_over_its_rotation(tmp_path: Path) -> None:
    found: list[str] = []
    ready = threading.Event()
    log_file = LogFile(tmp_path, 50, 200)
    log_file.write("before")

    def read() -> None:
        lines = follow(tmp_path, poll=0.005)
        ready.set()
        found.extend(islice(lines, 40))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    ready.wait(20)
    # It begins at the end of the file, wherever that is when it looks first.
    for number in range(1000):
        if not reader.is_alive():
            break
        log_file.write(f"line {number:03}")
        reader.join(0.01)
    reader.join(20)
    first = int(found[0].split()[1])
    assert found == [f"line {number:03}" for number in range(first, first + 40)]


def test_every_line_has_its_priority() -> None:
    assert prioritised("one\n  two", "error") == "<3>one\n<3>  two\n"
    assert prioritised("well", "info") == "<6>well\n"


def test_journald_gets_priorities_and_nobody_else(home: Home, tmp_path: Path) -> None:
    home.write("w1", b"[1]")
    for connected in (True, False):
        said = tmp_path / f"said-{connected}"
        with said.open("wb") as err:
            found = os.fstat(err.fileno())
            journal = f"{found.st_dev}:{found.st_ino if connected else 1}"
            daemon = subprocess.Popen(
                home.arguments("run", "--api-listen", "nowhere"),
                env={**home.environment(), "JOURNAL_STREAM": journal},
                stderr=err,
            )
            assert daemon.wait(60) == 78
        lines = said.read_text().splitlines()
        assert lines
        assert all(line.startswith("<3>") for line in lines) is connected


def test_the_daemon_leaves_its_log_and_the_command_shows_it(home: Home) -> None:
    home.write("w1", dispatched("m1"))
    with running(home, forked=True) as daemon:
        until(lambda: home.types() == ["mission-start", "dispatch"], "the events")
        until(lambda: daemon.logged("recorded", type="dispatch"), "the line on stderr")
    shown = home.command("service", "logs")
    assert shown.returncode == 0
    assert "recorded  seq=2  type=dispatch  worker=w1" in shown.stdout
    raw = [
        json.loads(line) for line in home.command("service", "logs", "--json", "-n", "3").stdout.splitlines()
    ]
    assert len(raw) == 3
    assert raw[-1]["event"] == "stopped"
    assert home.command("service", "logs", "-n", "1").stdout.count("\n") == 1
    none = home.command("service", "logs", "-n", "0")
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "")


def test_an_old_log_is_not_shown_for_what_journald_has_now(home: Home) -> None:
    (home.state / "log").mkdir(parents=True)
    (home.state / "log" / NAME).write_text('{"event": "long ago"}\n')
    fake = home.root / "bin" / "journalctl"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "journald has it: $@"\n')
    fake.chmod(0o755)
    home.environment = lambda: {  # type: ignore[method-assign]
        **Home.environment(home),
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
    }
    shown = home.command("service", "logs", "--supervisor", "systemd", "--log-files", "0", "-n", "3")
    assert shown.stdout.startswith("journald has it: --user --unit=swarmmemd.service --lines=3")
    assert "long ago" in home.command("service", "logs", "--supervisor", "systemd").stdout


def test_without_files_there_is_none(home: Home) -> None:
    with running(home, "--log-files", "0", forked=True):
        pass
    assert not (home.state / "log").exists()


def test_under_launchd_stderr_tells_of_the_start_only_and_an_old_crash_log_is_emptied(home: Home) -> None:
    crashes = home.root / "crashes.log"
    crashes.write_bytes(b"x" * ((1 << 20) + 1))
    with crashes.open("ab") as err:
        daemon = subprocess.Popen(
            home.arguments("run", "--supervisor", "launchd"),
            env={**home.environment(), "SWARMMEMD_CRASH_LOG": str(crashes)},
            stderr=err,
        )
        try:
            until(lambda: home.figures().get("running"), "the daemon")
        finally:
            daemon.terminate()
            assert daemon.wait(60) == 0
    lines = [json.loads(line) for line in crashes.read_text().splitlines()]
    # A line before each root: where macOS waits for consent, the last one says for which.
    assert [(line["event"], line["root"]) for line in lines] == [
        ("opening", root) for root in ("state_dir", "profiles_root", "shared_root", "workspace_root")
    ]
    assert "ready" in (home.state / "log" / NAME).read_text()


def test_only_the_file_that_was_named_is_emptied(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"x" * 100)
    other.write_bytes(b"y" * 100)
    with one.open("ab") as file:
        shorten(file.fileno(), str(other), 10)
        shorten(file.fileno(), str(tmp_path / "none"), 10)
        shorten(file.fileno(), str(one), 100)
        assert one.stat().st_size == 100
        shorten(file.fileno(), str(one), 99)
    assert (one.stat().st_size, other.stat().st_size) == (0, 100)


def test_log_lines_have_the_priority_of_their_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "said").open("w") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        log = configure("debug", [Stream("auto", stream)])
        log.debug("one")
        log.info("two")
        log.warning("three")
        log.error("four", text="two\nlines")
    lines = (tmp_path / "said").read_text().splitlines()
    assert [line[:3] for line in lines] == ["<7>", "<6>", "<4>", "<3>"]
    assert json.loads(lines[3][3:])["text"] == "two\nlines"
