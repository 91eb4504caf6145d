"""A daemon on a temporary home, as a process: started, asked, killed, and what it left behind."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from swarmmemd.inbox import Request, ask
from swarmmemd.journal import Filter, Follower
from swarmmemd.record import encode
from tests.support import stopping

PATIENCE = 20.0
"""Seconds that a test waits for what must come, on a machine that is busy with other tests."""
_POLL = 0.005


class Process(Protocol):
    """What is needed of `subprocess.Popen`."""

    pid: int

    def poll(self) -> int | None:
        """The exit code; None while it runs."""

    def send_signal(self, sig: int) -> None:
        """Sends a signal."""


STARTED: list[Process] = []
"""Every daemon that was started: the fixtures look that none is left."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", "swarmmemd.cli.run", "swarmmemd.service", __name__])
_FORKING = threading.Lock()


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Waits until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(_POLL)


class Forked:
    """A process that is forked from one which has imported everything: a tenth of the cost of a new Python."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        with _FORKING:
            self._process = _FORKS.Process(target=_in_child, args=(arguments, environment, log), daemon=True)
            self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with _FORKING:
            return self._process.exitcode

    def send_signal(self, sig: int) -> None:
        """Sends a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def _in_child(arguments: list[str], environment: dict[str, str], log: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.exit(stopping.main(arguments))


class Home:
    """A home with nothing in it, and the commands that run in it. All roots but the state have their defaults."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.profiles = root / ".hermes" / "profiles"
        self.workspace = root / "hermes-workspace"
        self.shared = root / ".openclaw" / "workspace" / "memory"
        self.state = root / "state"
        self.ledger = self.workspace / ".runtime" / "swarm-missions.json"
        for folder in (self.profiles, self.ledger.parent, self.shared):
            folder.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        """That of the tests, with this home, and without what would configure swarmmemd."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SWARMMEMD_", "HERMES_", "XDG_")) and name != "NOTIFY_SOCKET"
        }
        return {**kept, "HOME": str(self.root), "COLUMNS": "120"}

    def arguments(self, *arguments: str) -> list[str]:
        """The command line of a command on this home."""
        return [sys.executable, "-m", "swarmmemd", "--state-dir", str(self.state), *arguments]

    def command(self, *arguments: str, seconds: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end."""
        return subprocess.run(
            self.arguments(*arguments),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def runtime(self, worker: str) -> Path:
        """Where the worker's `runtime.json` is."""
        return self.profiles / worker / "runtime.json"

    def write(self, worker: str, content: object) -> None:
        """Puts a worker's `runtime.json` in place by rename: a mapping as JSON, or bytes."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        put_file(self.runtime(worker), data)

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """All events in recording order, as lines of `events.jsonl` with `seq`."""
        follower = Follower(self.state / "journal.db")
        try:
            found = follower.events(Filter(), after, limit=100_000)
        finally:
            follower.close()
        return [{**json.loads(encode(one.event)), "seq": one.seq} for one in found]

    def types(self, worker: str | None = None) -> list[str]:
        """The types of the events in recording order."""
        return [event["type"] for event in self.events() if worker in (None, event["workerId"])]

    def mission(self, worker: str, mission: str) -> Path:
        """The folder of a worker's mission."""
        return self.profiles / worker / "memory" / "missions" / mission

    def status_of(self, worker: str, mission: str) -> str | None:
        """The word in `SUMMARY.md`; None where there is no file."""
        path = self.mission(worker, mission) / "SUMMARY.md"
        if not path.exists():
            return None
        found = re.search(r"^- Status: (\S+)$", path.read_text(), re.MULTILINE)
        return found[1] if found else ""

    def backlog(self) -> tuple[int, int]:
        """How many events are not in their files yet, and how many have no place any more."""
        follower = Follower(self.state / "journal.db")
        try:
            return follower.backlog()
        finally:
            follower.close()

    def figures(self) -> dict[str, Any]:
        """What the daemon wrote into `status.json`; nothing where there is none."""
        try:
            found: dict[str, Any] = json.loads((self.state / "status.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def looked_at(self) -> None:
        """Waits until the running daemon has looked at everything: what `swarmmemd once` asks for."""
        assert ask(self.state, Request("once"), PATIENCE) is not None

    def drop_journal(self) -> None:
        """Deletes the journal's files."""
        for path in self.state.glob("journal.db*"):
            path.unlink()


class Daemon:
    """One process of `swarmmemd run`."""

    def __init__(self, home: Home, *arguments: str, plant: Sequence[str] = (), forked: bool = False) -> None:
        """Starts it. `plant` are options of stopping.py, for one that dies or is refused something."""
        self.home = home
        self.log = home.root / f"daemon-{len(list(home.root.glob('daemon-*.log')))}.log"
        self.log.touch()
        command = ["--state-dir", str(home.state), "run", "--log-format", "json", *arguments]
        self.process: Process
        if forked:
            self.process = Forked([*plant, "--", *command], home.environment(), self.log)
        else:
            module = ["tests.support.stopping", *plant, "--"] if plant else ["swarmmemd"]
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", *module, *command], env=home.environment(), stdout=log, stderr=log
                )
        STARTED.append(self.process)

    def ready(self) -> "Daemon":
        """Waits until `swarmmemd status` would exit 0: the lock is held and the watches are up."""

        def up() -> bool:
            code = self.process.poll()
            assert code is None, f"it ended with {code}: {self.log.read_text()[-2000:]}"
            figures = self.home.figures()
            return figures.get("pid") == self.process.pid and bool(figures.get("running"))

        until(up, "the daemon to be ready")
        return self

    def ended(self, seconds: float = PATIENCE) -> int:
        """Its exit code, once it has ended by itself or by a signal."""
        until(lambda: self.process.poll() is not None, "the daemon to end", seconds)
        return self.process.poll() or 0

    def running(self) -> bool:
        """Whether the process is there."""
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def stop(self, seconds: float = PATIENCE) -> int:
        """SIGTERM; its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended(seconds)

    def kill(self) -> None:
        """SIGKILL."""
        self.signal(signal.SIGKILL)
        self.ended()

    def logged(self, event: str | None = None, **fields: object) -> list[dict[str, Any]]:
        """Its log lines so far, those with this event and these fields."""
        lines = self.log.read_text().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [
            line
            for line in found
            if event in (None, line["event"]) and all(line.get(key) == value for key, value in fields.items())
        ]


@contextmanager
def running(home: Home, *arguments: str, plant: Sequence[str] = (), forked: bool = False) -> Iterator[Daemon]:
    """A ready daemon; stopped at the end, where it was not ended before."""
    daemon = Daemon(home, *arguments, plant=plant, forked=forked)
    try:
        yield daemon.ready()
        if daemon.running():
            assert daemon.stop() == 0
    finally:
        daemon.kill()


def put_file(path: Path, data: bytes) -> None:
    """Puts a file in place by rename, its folder where that is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.new")
    aside.write_bytes(data)
    aside.replace(path)


def dispatched(mission: str, task: str = "Paint the fence", **fields: object) -> dict[str, object]:
    """A `runtime.json` as the control plane leaves it when it dispatches."""
    return {
        "state": "executing",
        "phase": "dispatched",
        "checkpointStatus": "in_progress",
        "currentTask": task,
        "currentMissionId": mission,
        "currentAssignmentId": f"assign-{mission}",
        "lastDispatchAt": 1_777_000_000_000,
        "lastCheckIn": "2026-04-24T03:06:40.000Z",
        **fields,
    }


def answered(mission: str, result: str, state: str = "DONE", **fields: object) -> dict[str, object]:
    """The same after the worker's answer, with a block."""
    word = state.lower()
    block = (
        f"STATE: {state}\nFILES_CHANGED: none\nCOMMANDS_RUN: none\nRESULT: {result}\n"
        f"BLOCKER: {result if state == 'BLOCKED' else 'none'}\nNEXT_ACTION: none"
    )
    return {
        **dispatched(mission),
        "phase": word,
        "checkpointStatus": word,
        "lastOutputAt": 1_777_000_060_000,
        "lastCheckIn": "2026-04-24T03:07:40.000Z",
        "lastResult": result,
        "blockedReason": result if state == "BLOCKED" else None,
        "checkpointRaw": block,
        **fields,
    }
