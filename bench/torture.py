"""The real daemon, killed at random on a small disk that gets full, while workers, people and another writer go on.

    python bench/torture.py --seconds 120 --seed 7 [--folder DIR]

It runs on a file system of its own, a small tmpfs, where mounting is permitted; else in a folder, and says why
nothing gets full. Workers dispatch, chat and hand over; people edit `SUMMARY.md`; another program appends to
`events.jsonl`. The daemon is killed at a random moment or at a random call, stopped for a while, ended in order, and
refused every thirtieth call. At the end there must be everything that was said, once, and `verify` must be clean.
Exits 1 where it is not.
"""

import argparse
import errno
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from swarmmemd.config import Config
from swarmmemd.errors import SwarmmemdError
from swarmmemd.inbox import Request, ask
from swarmmemd.model import iso
from swarmmemd.recall.verify import verify
from tests.support.chats import BUILD
from tests.support.daemon import Forked, Home, put_file

_WORKERS = 4
_SIZE = 64 << 20
_LULL = 0.03
_PATIENCE = 60.0

Fact = tuple[str, str, str, str]
"""Worker, mission, type, and what it says."""


def main() -> int:
    """Tortures, looks, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where it happens")
    parser.add_argument("--keep", action="store_true", help="leave the folder where something is wrong")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarmmemd-torture-", dir=given.folder) as name:
        base = Path(name).resolve()
        with disk(base) as (folder, why_not):
            torture = Torture(Home(folder / "home"), base, given.seed, why_not)
            torture.run(given.seconds)
            wrong = torture.wrong()
            if wrong and given.keep:
                kept = Path(tempfile.mkdtemp(prefix="swarmmemd-torture-kept-", dir=given.folder))
                shutil.copytree(base, kept, symlinks=True, dirs_exist_ok=True)
                print(f"kept: {kept}")
        torture.tell(wrong)
    return 1 if wrong else 0


@contextmanager
def disk(base: Path) -> Iterator[tuple[Path, str]]:
    """A small file system, and "", or a folder, and why it is none."""
    folder = base / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0700", "swarmmemd-torture", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        why_not = "" if done.returncode == 0 else done.stderr.strip() or f"mount ended with {done.returncode}"
    except OSError as error:
        why_not = str(error)
    try:
        yield folder, why_not
    finally:
        if not why_not:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


class Story:
    """What was said and done, by whom: what must be there at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.facts: Counter[Fact] = Counter()
        self.lines: dict[Path, list[str]] = {}
        self.bullets: dict[Path, list[str]] = {}
        self.missions: list[tuple[str, str]] = []
        self.last: dict[str, str] = {}
        """Mission to its newest checkpoint."""

    def fact(self, worker: str, mission: str, type: str, text: str) -> None:
        """This happened."""
        with self._lock:
            self.facts[worker, mission, type, text] += 1

    def begun(self, worker: str, mission: str) -> None:
        """The mission has files now: others can write into them."""
        with self._lock:
            self.missions.append((worker, mission))

    def wrote(self, where: dict[Path, list[str]], path: Path, text: str) -> None:
        """Somebody else wrote this line into that file."""
        with self._lock:
            where.setdefault(path, []).append(text)


class Torture:
    """One run. All that is random comes from the seed; what the threads make of it does not repeat exactly."""

    def __init__(self, home: Home, base: Path, seed: int, why_not: str) -> None:
        self.home, self.story = home, Story()
        self._base, self._seed, self._why_not = base, seed, why_not
        self._dice = random.Random(seed)
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._troubles: list[str] = []
        self.counts: Counter[str] = Counter()
        self._seen = 0
        self._known: set[Fact] = set()
        self._known_lock = threading.Lock()

    def run(self, seconds: float) -> None:
        """Lets all of it happen for so long, then lets the daemon come to rest."""
        for number in range(_WORKERS):
            self._start(Worker(self, f"worker-{number}", self._seed * 100 + number).run)
        self._start(Others(self, self._seed * 100 + 99).run)
        if not self._why_not:
            self._start(self._fill_now_and_then)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._life(end)
        self._over.set()
        self._rest()

    # The daemon

    def _daemon(self, *plant: str) -> Forked:
        command = ["--state-dir", str(self.home.state), "run", "--log-format", "json"]
        return Forked([*plant, "--", *command], self.home.environment(), self._base / "daemon.log")

    def _life(self, end: float) -> None:
        """One life of the daemon, and its end."""
        dice = self._dice
        way = dice.choice(["at a call", "at a moment", "at a moment", "refused", "refused", "in order"])
        plant: list[str] = []
        if way == "at a call":
            plant = ["--at", "*", "--passes", str(dice.randint(1, 400))]
        elif way == "refused":
            plant = ["--flaky", str(dice.getrandbits(32)), "--tally", str(self._base / "faults")]
        process = self._daemon(*plant)
        until = min(time.monotonic() + dice.choice([0.2, 0.5, 1.0, 2.0]) * (0.5 + dice.random()), end)
        while process.poll() is None and time.monotonic() < until:
            self._over.wait(0.02)
            if dice.random() < 0.01:
                self._stall(process)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM if way == "in order" else signal.SIGKILL)
        self._await(process)
        code = process.poll()
        self.counts[
            "ended in order" if code == 0 else "killed" if code == -signal.SIGKILL else "gave up"
        ] += 1
        # -SIGTERM: told to end before it listened.
        if code not in (0, -signal.SIGKILL, -signal.SIGTERM, 74, 75, 77):
            self._troubles.append(f"the daemon ended with {code}")

    def _stall(self, process: Forked) -> None:
        self.counts["stalled"] += 1
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        process.send_signal(signal.SIGCONT)

    def _await(self, process: Forked) -> None:
        end = time.monotonic() + _PATIENCE
        while process.poll() is None:
            if time.monotonic() > end:
                self._troubles.append("the daemon did not end")
                process.send_signal(signal.SIGKILL)
            time.sleep(0.01)

    def _rest(self) -> None:
        process = self._daemon()
        for thread in self._threads:
            thread.join(_PATIENCE)
            if thread.is_alive():
                self._troubles.append(f"{thread.name} never heard that it was recorded")
        end = time.monotonic() + _PATIENCE
        calm = 0
        while calm < 3 and time.monotonic() < end:
            answer = ask(self.home.state, Request("once"), _PATIENCE)
            time.sleep(0.7)
            calm = calm + 1 if answer and not answer.events and self.home.backlog() == (0, 0) else 0
        if calm < 3:
            self._troubles.append(f"the daemon did not come to rest: backlog {self.home.backlog()}")
        process.send_signal(signal.SIGTERM)
        self._await(process)
        if process.poll() != 0:
            self._troubles.append(f"the last daemon ended with {process.poll()}")

    # The disk

    def _fill_now_and_then(self) -> None:
        dice = random.Random(self._seed)
        filler = self.home.root.parent / "filler"
        while not self._over.wait(dice.uniform(2.0, 6.0)):
            self.counts["disk full"] += 1
            with suppress(OSError), open(filler, "wb") as file:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            self._over.wait(dice.uniform(0.2, 1.5))
            filler.unlink()

    def _start(self, run: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                run()
            except Exception as error:
                self._troubles.append(f"a bug of this program: {type(error).__name__}: {error}")

        thread = threading.Thread(target=guarded, name=str(run), daemon=True)
        self._threads.append(thread)
        thread.start()

    # What is known meanwhile

    @property
    def over(self) -> bool:
        """Whether nobody begins anything new."""
        return self._over.is_set()

    def persist(self, write: Callable[[], object]) -> None:
        """Does it until the disk takes it."""
        while True:
            try:
                write()
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            except sqlite3.OperationalError as error:
                if "full" not in str(error) and "I/O" not in str(error) and "locked" not in str(error):
                    raise
            else:
                return
            time.sleep(0.05)

    def recorded(self, fact: Fact) -> None:
        """Waits until the journal has it: what is overwritten before anybody looked is nobody's to know."""
        end = time.monotonic() + _PATIENCE
        while True:
            with self._known_lock:
                self._look()
                if fact in self._known:
                    return
            if time.monotonic() > end and self.over:
                raise TimeoutError(f"not recorded: {fact}")
            time.sleep(_LULL)

    def _look(self) -> None:
        try:
            new = self.home.events(self._seen)
        except (SwarmmemdError, sqlite3.Error):
            return
        for event in new:
            self._seen = event["seq"]
            self._known.add(fact_of(event))

    # The end

    def wrong(self) -> list[str]:
        """What is not as it must be."""
        found = list(self._troubles)
        events = self.home.events()
        told = Counter(fact_of(event) for event in events if event["type"] != "mission-start")
        found += [f"lost: {fact} (x{n})" for fact, n in (self.story.facts - told).items()]
        found += [f"doubled or never said: {fact} (x{n})" for fact, n in (told - self.story.facts).items()]
        starts = Counter((e["workerId"], e["missionId"]) for e in events if e["type"] == "mission-start")
        found += [f"mission-start {key}: {n}" for key, n in starts.items() if n != 1]
        for kept, what in ((self.story.lines, "line"), (self.story.bullets, "bullet")):
            for path, texts in kept.items():
                lines = path.read_text().splitlines()
                for text in texts:
                    # It may stand behind a line of the daemon's that was cut short by a kill: who only appends
                    # cannot part the two again.
                    holding = [line for line in lines if line.endswith(text)]
                    if len(holding) != 1:
                        found.append(f"{what} of others: {len(holding)} times in {path}: {text}; {holding}")
        verdict = verify(config_of(self.home))
        self.counts["events"], self.counts["files"] = len(events), verdict.files
        return found + [f"verify: {one.path}:{one.line}: {one.what}" for one in verdict.findings]

    def tell(self, wrong: list[str]) -> None:
        """Prints what was done, and what came of it."""
        faults = self._base / "faults"
        self.counts["calls refused or cut short"] = faults.stat().st_size if faults.exists() else 0
        others = sum(len(t) for kept in (self.story.lines, self.story.bullets) for t in kept.values())
        self.counts["lines and bullets of others"] = others
        print(f"seed {self._seed}: " + ", ".join(f"{what} {count}" for what, count in self.counts.items()))
        if self._why_not:
            print(f"the disk never got full: {self._why_not}")
        print("\n".join(wrong) if wrong else "nothing lost, nothing doubled, verify is clean")


class Worker:
    """A worker and the control plane that hands it its tasks: one mission after the other."""

    def __init__(self, torture: Torture, name: str, seed: int) -> None:
        self._torture, self._name = torture, name
        self._dice = random.Random(seed)
        self._home = torture.home
        self._profile = BUILD.Profile(
            self._home.profiles / name, journal=self._dice.choice(["wal", "delete"])
        )

    def run(self) -> None:
        """Until it is over; the mission that has begun is finished."""
        self._torture.persist(lambda: self._sql(self._open))
        number = 0
        while not self._torture.over:
            number += 1
            self._mission(f"mission-{self._name}-{number}", f"Task {number} of {self._name}: lay the path")
        self._profile.close()

    def _mission(self, mission: str, task: str) -> None:
        torture, dice = self._torture, self._dice
        self._runtime({**_dispatched(mission, task), "lastDispatchAt": _now_ms()})
        self._say("user", BUILD.prompt(task))
        self._fact(mission, "dispatch", task, wait=True)
        torture.story.begun(self._name, mission)
        for number in range(dice.randint(1, 12)):
            result = f"Row {number} of {mission} laid — 砂 {dice.getrandbits(32):08x}"
            if dice.random() < 0.15:
                self._said(mission, "blocked", BUILD.block("BLOCKED", result, blocker=result), result)
            else:
                self._said(mission, "checkpoint", BUILD.block("IN_PROGRESS", result), result)
            time.sleep(dice.uniform(0, 4 * _LULL))
        if dice.random() < 0.5:
            self._hand_over(mission)
        result = f"{mission} is done"
        self._said(mission, "checkpoint", BUILD.block("DONE", result), result)
        torture.story.fact(self._name, mission, "complete", "")
        torture.recorded((self._name, mission, "complete", ""))

    def _said(self, mission: str, type: str, block: str, result: str) -> None:
        self._say("assistant", block)
        self._fact(mission, type, result, wait=False)
        if type == "checkpoint":
            self._torture.story.last[mission] = result

    def _fact(self, mission: str, type: str, text: str, wait: bool) -> None:
        self._torture.story.fact(self._name, mission, type, text)
        if wait:
            self._torture.recorded((self._name, mission, type, text))

    def _hand_over(self, mission: str) -> None:
        text = (
            f"# Handoff — {self._name} — {mission}\n\n## Next exact action\n\n"
            f"Lay row {self._dice.getrandbits(32)}\n"
        )
        path = self._home.profiles / self._name / "memory" / "handoffs" / "latest.md"
        self._torture.persist(lambda: put_file(path, text.encode()))
        self._fact(mission, "handoff-written", "latest.md", wait=True)

    def _runtime(self, content: dict[str, object]) -> None:
        self._torture.persist(lambda: self._home.write(self._name, content))

    def _say(self, role: str, text: str) -> None:
        minutes = (time.time() - BUILD.T0) / 60
        self._torture.persist(lambda: self._sql(lambda: self._profile.say(role, text, minutes)))

    def _open(self) -> None:
        known = self._profile.con.execute("SELECT count(*) FROM sessions").fetchone()[0]
        if not known:
            self._profile.session("main", at=(time.time() - BUILD.T0) / 60)

    def _sql(self, work: Callable[[], object]) -> None:
        try:
            work()
        except sqlite3.Error:
            self._profile.close()
            raise


class Others:
    """People who edit `SUMMARY.md`, and a program that appends to `events.jsonl`, now and then what the daemon says."""

    def __init__(self, torture: Torture, seed: int) -> None:
        self._torture = torture
        self._dice = random.Random(seed)
        self._number = 0
        self._torn: set[Path] = set()

    def run(self) -> None:
        """Until it is over."""
        while not self._torture.over:
            time.sleep(self._dice.uniform(0.02, 0.2))
            if self._torture.story.missions:
                worker, mission = self._dice.choice(self._torture.story.missions[-2 * _WORKERS :])
                folder = self._torture.home.mission(worker, mission)
                self._number += 1
                with suppress(FileNotFoundError):
                    self._log(folder, worker, mission) if self._dice.random() < 0.5 else self._edit(folder)

    def _log(self, folder: Path, worker: str, mission: str) -> None:
        record: dict[str, object] = {"at": iso(_now_ms()), "type": "note", "summary": f"Seen: {self._number}"}
        said = self._torture.story.last.get(mission)
        if said is not None and self._dice.random() < 0.4:
            state = {"stateLabel": "IN_PROGRESS", "blocker": "none", "nextAction": "none", "n": self._number}
            record |= {"type": "checkpoint", "summary": said, "event": state}
        line = json.dumps({**record, "workerId": worker, "missionId": mission, "assignmentId": None})
        path = folder / "events.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            start = "\n" if path in self._torn else ""
            data = f"{start}{line}\n".encode()
            if os.write(descriptor, data) == len(data):
                self._torn.discard(path)
                self._torture.story.wrote(self._torture.story.lines, path, line)
            else:
                self._torn.add(path)  # it does not glue its own next line to it
        except OSError:
            return  # a full disk: this program does not insist
        finally:
            os.close(descriptor)

    def _edit(self, folder: Path) -> None:
        path, bullet = folder / "SUMMARY.md", f"- Somebody's bullet {self._number}"
        text = path.read_text()
        if "## Decisions\n" not in text:
            return
        edited = text.replace("## Decisions\n", f"## Decisions\n\n{bullet}\n", 1)
        try:
            put_file(path, edited.encode())
        except OSError:
            return
        self._torture.story.wrote(self._torture.story.bullets, path, bullet)


def _dispatched(mission: str, task: str) -> dict[str, object]:
    return {
        "state": "executing",
        "phase": "dispatched",
        "checkpointStatus": "in_progress",
        "currentTask": task,
        "currentMissionId": mission,
        "currentAssignmentId": f"assign-{mission}",
        "lastCheckIn": iso(_now_ms()),
    }


def _now_ms() -> int:
    return int(time.time() * 1000)


def fact_of(event: dict[str, Any]) -> Fact:
    """What the event says, as the story tells it."""
    detail = event.get("event", {})
    key = {"dispatch": "task", "checkpoint": "result", "blocked": "result", "handoff-written": "path"}
    text = str(detail.get(key.get(event["type"], ""), "")).rpartition("/")[2]
    return event["workerId"], event["missionId"] or "", event["type"], text


def config_of(home: Home) -> Config:
    """The roots of the home."""
    return Config(
        profiles_root=home.profiles,
        workspace_root=home.workspace,
        shared_root=home.shared,
        state_dir=home.state,
    )


if __name__ == "__main__":
    sys.exit(main())
