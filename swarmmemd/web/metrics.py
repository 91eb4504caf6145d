"""Figures as Prometheus text. Pure. docs/api.md, "Metrics"."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from swarmmemd.model import EventType

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes: of the journal with its log, of all the state folder's files, and what is free where it lies."""

    journal: int
    state: int
    free: int


def metrics(
    figures: Mapping[str, Any],
    running: bool,
    counts: Mapping[str, int],
    backlog: tuple[int, int],
    disk: Disk,
    streams: int,
) -> str:
    """The page. `figures` is what the daemon wrote last, possibly nothing; `counts` the events by type."""
    turns, watching = figures.get("turns", {}), figures.get("watching", {})
    troubles = figures.get("troubles", [])
    families = [
        _family("up", "gauge", "Whether the daemon runs.", [("", int(running))]),
        _family(
            "events_total",
            "counter",
            "Events in the journal, by type.",
            [(f'{{type="{kind.value}"}}', counts.get(kind.value, 0)) for kind in EventType],
        ),
        _family("workers", "gauge", "Workers that are watched.", [("", len(figures.get("workers", [])))]),
        _family("turns_total", "counter", "Turns since the start.", [("", turns.get("count", 0))]),
        _family(
            "turn_seconds_total", "counter", "Seconds spent in turns.", [("", turns.get("seconds", 0.0))]
        ),
        _family("turn_seconds_last", "gauge", "Seconds of the last turn.", [("", _s(turns.get("last_ms")))]),
        _family(
            "turn_seconds_longest",
            "gauge",
            "Seconds of the longest turn.",
            [("", _s(turns.get("longest_ms")))],
        ),
        _family("lag_seconds", "gauge", "How far the daemon is behind.", [("", figures.get("lag_s", 0.0))]),
        _family("troubles", "gauge", "What is wrong now, of all kinds.", [("", len(troubles))]),
        _family(
            "source_errors",
            "gauge",
            "Sources that cannot be read now, by kind.",
            [(f'{{source="{kind}"}}', count) for kind, count in _sources(figures)],
        ),
        _family("queue_events", "gauge", "Events recorded and not in their files yet.", [("", backlog[0])]),
        _family("unplaced_events", "gauge", "Events of profiles that are gone.", [("", backlog[1])]),
        _family(
            "watched_folders", "gauge", "Folders that are looked after.", [("", watching.get("wanted", 0))]
        ),
        _family(
            "polled_folders", "gauge", "Those of them that are polled.", [("", watching.get("polled", 0))]
        ),
        _family(
            "watcher_alive", "gauge", "Whether the watcher lives.", [("", int(watching.get("alive", False)))]
        ),
        _family(
            "watch_losses_total",
            "counter",
            "Times notifications were lost.",
            [("", watching.get("losses", 0))],
        ),
        _family("journal_bytes", "gauge", "The journal with its log.", [("", disk.journal)]),
        _family("state_bytes", "gauge", "All files of the state folder.", [("", disk.state)]),
        _family("disk_free_bytes", "gauge", "Free where the state folder lies.", [("", disk.free)]),
        _family("streams", "gauge", "Streams of events that are open.", [("", streams)]),
    ]
    return "".join(families)


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> str:
    rows = "".join(f"swarmmemd_{name}{labels} {value}\n" for labels, value in samples)
    return f"# HELP swarmmemd_{name} {about}\n# TYPE swarmmemd_{name} {kind}\n{rows}"


def _s(milliseconds: float | None) -> float:
    return (milliseconds or 0.0) / 1000


def _sources(figures: Mapping[str, Any]) -> list[tuple[str, int]]:
    counts = dict.fromkeys(("runtime.json", "state.db", "transcript", "ledger", "roster"), 0)
    for worker in figures.get("workers", []):
        for source in worker.get("sources", []):
            if source.get("trouble"):
                counts[source["name"] if source["name"] in counts else "transcript"] += 1
    for trouble in figures.get("troubles", []):
        if trouble.get("what") in ("ledger", "roster"):
            counts[trouble["what"]] += 1
    return list(counts.items())
