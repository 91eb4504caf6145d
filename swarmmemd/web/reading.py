"""Questions that are answered from the memory files and the journal. docs/api.md, "Memory", "Search", "Workers".

Nothing here waits for the daemon: files are read as they are, the journal by its own connection.
"""

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

from swarmmemd import layout
from swarmmemd.config import Config
from swarmmemd.errors import Exit
from swarmmemd.fold import status
from swarmmemd.journal import Follower, numbered
from swarmmemd.model import WorkerId, iso, parse_iso, worker_id
from swarmmemd.recall.files import MemoryQuery, read_memory
from swarmmemd.recall.index import search
from swarmmemd.recall.overview import Card, overview, workers_of
from swarmmemd.recall.search import SearchQuery, shown
from swarmmemd.recall.troubles import Trouble
from swarmmemd.standing import OLD, Standing, standing
from swarmmemd.text import utf8
from swarmmemd.web.answers import Refusal
from swarmmemd.web.metrics import Disk, metrics

KINDS = ("profile", "mission", "episodic", "handoff", "shared")
SCOPES = ("worker", "shared", "all")
_MOST = 1000


class Reading:
    """Reads the tree of one configuration. Called from several threads."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._counted: Counter[str] = Counter()
        self._counted_to = 0
        self._counted_in: tuple[int, int] = (0, 0)

    def memory(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """`GET /api/swarm-memory`."""
        kind = choice(asked, "kind", KINDS)
        worker = asked.get("workerId")
        if worker is None and kind != "shared":
            raise Refusal(400, "workerId is needed, but for kind=shared")
        if worker is not None:
            self.known(worker)
        query = MemoryQuery(worker=worker, kind=kind, mission=asked.get("missionId"), date=asked.get("date"))
        found = read_memory(self.config, query)
        _whole(found.troubles)
        files = [
            {"name": utf8(file.name), "path": utf8(str(file.path)), "content": file.content}
            for file in found.files
        ]
        return {"ok": True, "workerId": worker, "kind": kind, "path": utf8(str(found.path)), "files": files}

    def search(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """`GET /api/swarm-memory/search`."""
        text = asked.get("query", asked.get("q"))
        if text is None:
            raise Refusal(400, "query is needed")
        scope = choice(asked, "scope", SCOPES, "worker")
        worker = asked.get("workerId")
        if worker is not None:
            self.known(worker)
        elif scope == "worker":
            raise Refusal(400, "scope=worker needs workerId; scope=all searches everybody's memory")
        limit = number(asked, "limit", 10, 1, _MOST)
        found = search(self.config, SearchQuery(text=text, worker=worker, scope=scope, limit=limit))
        if not found.hits:
            _whole(found.troubles)
        return shown(text, found)

    def workers(self) -> dict[str, Any]:
        """`GET /api/workers`."""
        stands = standing(self.config.state_dir)
        return {
            "ok": True,
            "running": stands.running,
            "since": stands.figures.get("since") if stands.running else None,
            "workers": [_card(card) for card in overview(self.config)],
        }

    def healthy(self) -> bool:
        """Whether the daemon runs and has said so lately."""
        return _is_fresh(standing(self.config.state_dir))

    def metrics(self, streams: int) -> str:
        """`GET /metrics`."""
        stands = standing(self.config.state_dir)
        counts, backlog = self._journal()
        return metrics(stands.figures, stands.running, counts, backlog, _disk(self.config.state_dir), streams)

    def known(self, text: str) -> WorkerId:
        """The worker. Raises `Refusal`: 400 for what is no id, 404 for one that is none of the workers."""
        worker = worker_id(text)
        if worker is None:
            raise Refusal(400, f"{text[:80]!r} is no worker id: letters, digits, - and _, at most 64")
        if worker not in workers_of(self.config):
            raise Refusal(404, f"There is no worker {worker}")
        return worker

    def _journal(self) -> tuple[Mapping[str, int], tuple[int, int]]:
        """Events by type, counted on from the last time, and the backlog."""
        path = self.config.state_dir / layout.JOURNAL
        if not path.exists():
            return {}, (0, 0)
        with self._lock:
            follower = Follower(path)
            try:
                found = path.stat()
                if (found.st_dev, found.st_ino) != self._counted_in:
                    self._counted, self._counted_to = Counter(), 0
                    self._counted_in = found.st_dev, found.st_ino
                self._counted_to, new = follower.counts(self._counted_to)
                self._counted.update(new)
                return dict(self._counted), follower.backlog()
            finally:
                follower.close()


def once(asked: QueryParams) -> Mapping[str, str]:
    """The parameters. Raises `Refusal` where one stands there twice: which one would be meant?"""
    given = asked.multi_items()
    found = dict(given)
    if len(found) < len(given):
        raise Refusal(400, "A parameter stands there twice")
    return found


def choice(asked: Mapping[str, str], name: str, words: tuple[str, ...], default: str | None = None) -> str:
    """One of the words. Raises `Refusal`."""
    given = asked.get(name, default)
    if given not in words:
        raise Refusal(400, f"{name} must be one of {', '.join(words)}")
    return given


def number(asked: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number within bounds. Raises `Refusal`."""
    given = asked.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 19 and least <= int(given) <= most):
        raise Refusal(400, f"{name} must be a whole number from {least} to {most}")
    return int(given)


def _whole(troubles: Iterable[Trouble]) -> None:
    """Raises `Refusal` where something could not be read: nobody can say then that there is no more."""
    for trouble in troubles:
        if trouble.code > Exit.NOTHING:
            raise Refusal(503, trouble.text)


def _card(card: Card) -> dict[str, Any]:
    roster, mission, last = card.roster, card.mission, card.last
    return {
        "workerId": card.worker,
        "name": roster.name if roster else card.worker,
        "role": roster.role if roster else None,
        "specialty": roster.specialty if roster else None,
        "missionId": mission.mission if mission else None,
        "title": (mission.title or None) if mission else None,
        "status": status(mission).value if mission else None,
        "updated": iso(mission.updated) if mission and mission.updated else None,
        "nextAction": mission.next_action if mission else None,
        "blockers": list(mission.blockers) if mission else [],
        "lastEvent": numbered(last) if last else None,
    }


def _is_fresh(stands: Standing) -> bool:
    written = parse_iso(stands.figures.get("written"))
    return stands.running and written is not None and time.time() * 1000 - written < OLD * 1000


def _disk(state_dir: Path) -> Disk:
    sizes: dict[str, int] = {}
    try:
        with os.scandir(state_dir) as entries:
            sizes = {one.name: one.stat(follow_symlinks=False).st_size for one in entries if one.is_file()}
        free = shutil.disk_usage(state_dir).free
    except OSError:
        free = 0
    journal = sum(size for name, size in sizes.items() if name.startswith(layout.JOURNAL))
    return Disk(journal=journal, state=sum(sizes.values()), free=free)
