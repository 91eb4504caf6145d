"""An agent that writes its chat without rest, as a process of its own: what it sees is printed as JSON.

    python -m tests.support.chatwriter PROFILE wal|delete|switch COMMITS A_SECOND

It closes its database when its input ends.
"""

import json
import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.chats import BUILD

TIMEOUT = 1.0
"""Seconds that the agent waits for a lock."""
EVERY = 100
"""Commits from one checkpoint to the next."""
_SWITCHES = 40
_TRIES = 15
_PAUSE = 0.02


class Writer:
    """Commits row after row, and watches the log of its database."""

    def __init__(self, profile: Path, journal: str) -> None:
        self.profile = BUILD.Profile(profile, 19, "delete" if journal == "delete" else "wal")
        self.profile.con.execute(f"PRAGMA busy_timeout = {int(TIMEOUT * 1000)}")
        self.profile.con.execute("PRAGMA synchronous = NORMAL")
        self.wal = Path(f"{self.profile.db}-wal")
        self.errors: list[str] = []
        self.largest = 0
        self.inodes: set[int] = set()
        self.shrunk = False
        self._rows = self._size = 0

    def commit(self) -> None:
        """One row, in a transaction of its own."""
        self._rows += 1
        done = self._rows // EVERY
        last = self._rows % EVERY == 0
        text = BUILD.block("IN_PROGRESS", f"Piece {done} of the work") if last else "working " * 40
        try:
            self.profile.con.execute("BEGIN IMMEDIATE")
            self.profile.say("assistant" if last else "tool", text, self._rows / 1000)
            self.profile.con.execute("COMMIT")
        except sqlite3.Error as error:
            self.errors.append(f"row {self._rows}: {error}")

    def switch(self, journal: str) -> None:
        """Another journal mode. SQLite does not wait for a reader here: the owner tries again, as it does elsewhere."""
        refused = ""
        for _ in range(_TRIES):
            try:
                self.profile.con.execute(f"PRAGMA journal_mode = {journal}")
                return
            except sqlite3.Error as error:
                refused = str(error)
                time.sleep(_PAUSE)
        self.errors.append(f"to {journal}: {refused}")

    def watch(self) -> None:
        """Looks at the log: it is the writer's, and nobody else ends or shortens it."""
        found = os.stat(self.wal)
        self.inodes.add(found.st_ino)
        self.shrunk = self.shrunk or found.st_size < self._size
        self._size = found.st_size
        self.largest = max(self.largest, self._size)


def main(profile: str, journal: str, commits: int, a_second: float) -> dict[str, Any]:
    """Writes so many rows, at this rate; 0 for as fast as it goes."""
    writer = Writer(Path(profile), journal)
    writer.profile.session("main")
    writer.profile.say("user", BUILD.prompt("Write without rest"), 0.0)
    began = time.monotonic()
    for n in range(1, commits + 1):
        writer.commit()
        if journal == "switch" and n % max(commits // _SWITCHES, 1) == 0:
            writer.switch("delete")
            writer.switch("wal")
        if journal == "wal":
            writer.watch()
        if a_second:
            time.sleep(max(began + n / a_second - time.monotonic(), 0.0))
    sys.stdin.read()
    writer.profile.close()
    return {
        "errors": writer.errors,
        "largest": writer.largest,
        "inodes": len(writer.inodes),
        "shrunk": writer.shrunk,
        "left": writer.wal.stat().st_size if writer.wal.exists() else 0,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
