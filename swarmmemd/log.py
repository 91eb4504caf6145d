"""Log events with fields, to stderr and to a file. One line when something fails, one when
it is well again, none in between. docs/architecture.md, "Logs".
"""

import logging
import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Protocol, TextIO

import structlog

from swarmmemd.logfile import LogFile
from swarmmemd.text import harmless

Log = structlog.typing.FilteringBoundLogger
EventDict = MutableMapping[str, Any]

GRACE = 5.0
"""Seconds that a source may be unreadable before it is worth a line: files are seen half-written every day."""


class Outlet(Protocol):
    """Where lines go."""

    def write(self, event: EventDict) -> None:
        """Writes one event."""


class Stream:
    """stderr: readable on a terminal, JSON elsewhere, with journald's priorities where journald reads it."""

    def __init__(self, style: str, stream: TextIO = sys.stderr) -> None:
        """`style` is auto, json or text; auto is text on a terminal."""
        readable = style == "text" or (style == "auto" and stream.isatty())
        self._render: structlog.typing.Processor = (
            structlog.dev.ConsoleRenderer(colors=stream.isatty()) if readable else _as_json
        )
        self._stream = stream
        self._journald = by_journald(stream)

    def write(self, event: EventDict) -> None:
        """Writes it, and flushes. A reader that has gone away is no reason to stop."""
        text = str(self._render(None, "", dict(event)))
        with suppress(OSError, ValueError):
            self._stream.write(prioritised(text, str(event["level"])) if self._journald else text + "\n")
            self._stream.flush()


class File:
    """The log in the state folder, always JSON."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def write(self, event: EventDict) -> None:
        """Writes it."""
        self._file.write(str(_as_json(None, "", dict(event))))


def configure(level: str, outlets: list[Outlet]) -> Log:
    """The logger; each line goes to every outlet that is in the list at that time."""
    set_level(level)
    structlog.configure(
        processors=[
            _by_level,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _harmless_values,
            lambda _, __, event: ((event,), {}),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *_: _Outlets(outlets),
        cache_logger_on_first_use=True,
    )
    log: Log = structlog.get_logger()
    return log


class _Outlets:
    """What structlog calls with the finished event, under the name of its level."""

    def __init__(self, outlets: list[Outlet]) -> None:
        self._outlets = outlets

    def write(self, event: EventDict) -> None:
        for outlet in self._outlets:
            outlet.write(event)

    debug = info = warning = error = critical = exception = write


_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}


def by_journald(stream: TextIO) -> bool:
    """Whether journald reads what is written to the stream: it names the descriptor that it gave us."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def prioritised(text: str, level: str) -> str:
    """`text` for journald. A priority holds for one line only, so each line has it."""
    number = _PRIORITIES.get(level, 6)
    return "".join(f"<{number}>{line}\n" for line in text.splitlines())


_as_json = structlog.processors.JSONRenderer(ensure_ascii=False)


_threshold = [logging.INFO]


def set_level(level: str) -> None:
    """Says from which level on lines are written: debug, info, warning or error."""
    _threshold[0] = logging.getLevelNamesMapping()[level.upper()]


def _by_level(_: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if logging.getLevelNamesMapping().get(method.upper(), logging.INFO) < _threshold[0]:
        raise structlog.DropEvent
    return event


def _harmless_values(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Texts of workers can hold terminal codes and line breaks."""
    return {
        key: harmless(value) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


class Troubles:
    """What is wrong now, each thing by its key. Logs the change to wrong and the change to well."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._since: dict[str, tuple[float, str, bool]] = {}
        self.changed = False
        """Something went wrong, or is well again, since this was last set to false."""

    def update(self, key: str, reason: str | None, now: float, grace: float = 0.0, **fields: Any) -> None:
        """Notes that `key` fails for `reason`, or, with None, that it is well. `now` is monotonic seconds."""
        known = self._since.get(key)
        if reason is None:
            if known is not None:
                del self._since[key]
                self.changed = True
                if known[2]:
                    self._log.info("recovered", what=key, after_s=round(now - known[0], 1), **fields)
            return
        since, _, said = known or (now, reason, False)
        if not said and now - since >= grace:
            self._log.warning("failing", what=key, reason=reason, **fields)
            said = True
        self.changed = self.changed or known is None or known[1] != reason
        self._since[key] = (since, reason, said)

    @property
    def any(self) -> bool:
        """Whether anything is wrong now."""
        return bool(self._since)

    def all(self, now: float) -> list[dict[str, Any]]:
        """What is wrong now, for `status`: what, why, and for how many seconds."""
        return [
            {"what": key, "reason": reason, "for_s": round(now - since, 1)}
            for key, (since, reason, _) in sorted(self._since.items())
        ]
