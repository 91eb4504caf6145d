"""The server beside the daemon as a process: what becomes of either when the other is killed, stopped or changed."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from swarmmemd.config import Api as Where
from swarmmemd.config import Config, Redact
from swarmmemd.errors import StorageError
from swarmmemd.log import File, Log, configure
from swarmmemd.logfile import LogFile
from swarmmemd.web.beside import Beside
from swarmmemd.web.pipe import config_in, line_of
from swarmmemd.web.server import Server
from tests.support.api import SERVED, api_of
from tests.support.daemon import Daemon, Home, answered, dispatched, running, until

MEMORY = "/api/swarm-memory"
SEARCH = "/api/swarm-memory/search"
_ANYWHERE, _PLAIN = Where(), Redact()


def server_of(daemon: Daemon) -> int:
    """The process of the server, the only one that a daemon starts."""
    done = subprocess.run(
        ["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True, check=False
    )
    (found,) = done.stdout.split()
    return int(found)


def is_there(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def troubles(home: Home) -> str:
    """What `status` says is wrong with the API."""
    return " ".join(one["reason"] for one in home.figures()["troubles"] if one["what"] == "api")


# Killed and stopped


def test_a_server_that_is_killed_is_started_again_and_said_once(home: Home) -> None:
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    with running(home, *SERVED) as daemon:
        first = api_of(home).address
        killed = server_of(daemon)
        os.kill(killed, signal.SIGKILL)
        until(lambda: "killed by signal 9" in troubles(home), "the trouble in status")
        assert not is_there(killed)
        assert home.figures()["api"] is None
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]
        until(lambda: home.figures()["api"], "the next server")
        assert api_of(home).get(MEMORY, kind="shared")["ok"]
        until(lambda: daemon.logged("recovered", what="api"), "the end of the trouble")
        assert len(daemon.logged("failing", what="api")) == 1
        assert [line["address"] for line in daemon.logged("serving")] == [first, home.figures()["api"]]


def test_no_server_outlives_a_daemon_that_is_killed(home: Home) -> None:
    with running(home, *SERVED) as daemon:
        port, server = api_of(home).port, server_of(daemon)
        with api_of(home).stream():
            daemon.kill()
            until(lambda: not is_there(server), "the server to end")
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))


def test_a_server_that_stands_still_holds_up_neither_recording_nor_the_end(home: Home) -> None:
    with running(home, *SERVED) as daemon:
        api_of(home)
        server = server_of(daemon)
        os.kill(server, signal.SIGSTOP)
        home.write("builder-1", dispatched("mission-1", "Build the shed"))
        home.looked_at()
        assert home.types() == ["mission-start", "dispatch"]
        daemon.signal(signal.SIGHUP)
        until(lambda: daemon.logged("configuration reloaded"), "the reload")
        assert daemon.stop() == 0
        assert not is_there(server)


def test_signals_to_the_group_are_the_daemon_s_to_answer(home: Home) -> None:
    with running(home, *SERVED) as daemon:
        api = api_of(home)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(server_of(daemon), number)
        assert api.get(MEMORY, kind="shared")["ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_the_server_has_neither_the_supervisor_s_ear_nor_a_file_of_the_daemon_s(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised = {"NOTIFY_SOCKET": str(home.root / "nobody"), "WATCHDOG_USEC": "60000000"}
    monkeypatch.setattr(home, "environment", lambda: {**Home.environment(home), **supervised})
    with running(home, *SERVED) as daemon:
        api_of(home)
        server = Path(f"/proc/{server_of(daemon)}")
        names = {pair.partition("=")[0] for pair in (server / "environ").read_text().split("\0")}
        assert names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} == set()
        assert {"HOME", "PATH"} <= names
        held = set()
        for one in (server / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                held.add(os.readlink(one))
        assert not {one for one in held if one.startswith(str(home.state)) and "journal" not in one}
        assert (server / "cgroup").read_text() == Path(f"/proc/{daemon.process.pid}/cgroup").read_text()


# Another configuration


def test_a_hang_up_reaches_the_server(home: Home) -> None:
    """A secret that a new pattern names is not shown any more, and who is no worker any more is not known. Nobody who
    listens is sent away for that."""
    for worker in ("builder-1", "painter-2"):
        home.write(worker, dispatched("mission-1", "Paint it in blueberry"))
    file = home.root / "config.yaml"
    file.write_text("api: {enabled: true, listen: '127.0.0.1:0'}\n")
    with running(home, "--config", str(file)) as daemon:
        home.looked_at()
        api = api_of(home)

        def found() -> str:
            return json.dumps(api.get(SEARCH, scope="all", q="paint")["results"])

        assert "blueberry" in found()
        with api.stream(after=0) as events:
            file.write_text("redact: {patterns: ['blueberr[y]']}\nworkers: {exclude: ['painter-*']}\n")
            daemon.signal(signal.SIGHUP)
            until(lambda: "painter-2" not in found(), "the server to take it over")
            assert "builder-1" in found()
            assert "blueberry" not in found()
            assert api.ask("GET", MEMORY, workerId="painter-2", kind="mission").code == 404
            home.write("builder-1", answered("mission-1", "It is painted"))
            assert "It is painted" in [next(events)["summary"] for _ in range(5)]


# A server that cannot start


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log that nobody reads."""
    (tmp_path / "log").mkdir()
    return configure("info", [File(LogFile(tmp_path / "log" / "a.log", 1, 1 << 20))])


def config_of(folder: Path, api: Where = _ANYWHERE, redact: Redact = _PLAIN) -> Config:
    """A configuration with all roots in a folder that is there."""
    roots = {name: folder / name for name in ("profiles_root", "workspace_root", "shared_root", "state_dir")}
    for root in roots.values():
        root.mkdir(exist_ok=True)
    return Config(
        profiles_root=roots["profiles_root"],
        workspace_root=roots["workspace_root"],
        shared_root=roots["shared_root"],
        state_dir=roots["state_dir"],
        api=api,
        redact=redact,
    )


def instead(monkeypatch: pytest.MonkeyPatch, folder: Path, does: str) -> None:
    """Puts a shell script in the place of the interpreter that the server is started with."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


@contextmanager
def tended(config: Config, log: Log) -> Iterator[tuple[Beside, float]]:
    """What looks after the server, and the time at which it began."""
    began = time.monotonic()
    with Beside(config, log) as beside:
        yield beside, began


def test_an_interpreter_that_is_gone_is_looked_for_again_and_again(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    config = config_of(tmp_path, api=Where(listen="127.0.0.1:0"))
    with tended(config, log) as (beside, began):
        assert str(tmp_path / "python") in str(beside.trouble)
        beside.tend(began + 3)
        instead(monkeypatch, tmp_path, f'exec {real} "$@"')

        def serves() -> bool:
            beside.tend(began + 7)
            return beside.address is not None

        until(serves, "the server")
        assert beside.trouble is None


def test_a_server_that_ends_at_once_is_started_less_and_less_often(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, tmp_path, f"echo >> {tmp_path}/starts; exit 1")
    starts: list[int] = []
    with tended(config_of(tmp_path), log) as (beside, began):
        for second in range(200):
            starts += [second] * (beside._process is not None and second not in starts)
            if beside._process is not None:
                beside._process.wait()
            beside.tend(began + second)
            assert beside.trouble == "the server ended before it listened"
    between = [after - before for before, after in pairwise(starts)]
    assert between[:4] == sorted(between[:4])
    assert (between[0] < 10, max(between) > 55, len(starts) < 9) == (True, True, True)
    assert len((tmp_path / "starts").read_text()) == len(starts)


def test_a_daemon_with_very_many_open_files_hears_the_server(tmp_path: Path, log: Log) -> None:
    many = 1100  # more than `select` can count
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], many + 200), before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(many)]
    try:
        with tended(config_of(tmp_path, api=Where(listen="127.0.0.1:0")), log) as (beside, began):

            def serves() -> bool:
                beside.tend(began)
                return beside.address is not None

            until(serves, "the server")
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_half_a_word_of_the_server_holds_up_nobody(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    instead(monkeypatch, tmp_path, f"printf '{{\"address\":'; touch {said}; cat > /dev/null")
    with tended(config_of(tmp_path), log) as (beside, began):
        until(said.exists, "half a word")
        beside.tend(began + 11)
        assert beside.trouble == "the server has not answered yet"


def test_what_the_server_does_not_read_holds_up_nobody_and_comes_whole(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    instead(monkeypatch, tmp_path, f"read go < {gate}; exec cat > {tmp_path}/heard")
    allow = tuple(f"not-a-secret-{number:06}" for number in range(20_000))
    first = config_of(tmp_path, redact=Redact(allow=allow))
    second = config_of(tmp_path, redact=Redact(patterns=("blueberry",)), api=Where(enabled=True))
    heard = tmp_path / "heard"
    with tended(first, log) as (beside, began):
        beside.reconfigure(second)
        beside.tend(began + 20)
        assert beside.trouble == "the server has not answered yet"
        gate.write_text("go\n")

        def lines() -> list[bytes]:
            beside.tend(began + 20)
            return heard.read_bytes().split(b"\n") if heard.exists() else []

        until(lambda: len(lines()) == 3, "both lines")
        told = [config_in(line) for line in lines()[:2]]
    assert told[0] == first
    assert told[1].redact == second.redact
    assert told[1].api == first.api  # takes a restart


def test_a_folder_that_is_no_utf_8_reaches_the_server(tmp_path: Path) -> None:
    odd = msgspec.structs.replace(config_of(tmp_path), state_dir=Path("/a\udcff b%"))
    assert config_in(line_of(odd)) == odd


def test_an_extra_that_is_gone_is_said_in_a_line(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lib" / "starlette").mkdir(parents=True)
    (tmp_path / "lib" / "starlette" / "__init__.py").write_text("raise ImportError('no starlette')\n")
    real = sys.executable
    instead(monkeypatch, tmp_path, f'PYTHONPATH={tmp_path}/lib exec {real} "$@"')
    with tended(config_of(tmp_path), log) as (beside, began):

        def told() -> bool:
            beside.tend(began + 1)
            return beside.trouble is not None

        until(told, "the trouble")
        assert str(beside.trouble).startswith("the program has changed, start the daemon again: no starlette")
    assert capfd.readouterr().err == ""


def test_a_server_that_ends_takes_no_other_s_socket_away(tmp_path: Path) -> None:
    """While it still answers who is connected, the next one may listen at the same path."""
    path = tmp_path / "s"
    config = config_of(tmp_path, api=Where(listen=f"unix:{path}"))
    with Server(config, holds_lock=True) as first, socket.socket(socket.AF_UNIX) as held:
        held.connect(str(path))
        held.sendall(b"GET /healthz HTTP/1.1\r\n")  # a request without an end
        first.stop()
        made: list[Server] = []

        def listens() -> bool:
            try:
                made.append(Server(config, holds_lock=True))
            except StorageError:
                return False
            return True

        until(listens, "the second to listen")
        with made[0]:
            first.wait()
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(str(path))
        assert not path.exists()
