"""Log events with fields: readable on a terminal, JSON lines elsewhere. One line when something fails, one when
it is well again, none in between. docs/architecture.md, "Logs".
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from swarmmemd.text import harmless

Log = structlog.typing.FilteringBoundLogger

GRACE = 5.0
"""Seconds that a source may be unreadable before it is worth a line: files are seen half-written every day."""


def configure(style: str, level: str, stream: TextIO = sys.stderr) -> Log:
    """The logger. `style` is auto, json or text; auto is text on a terminal."""
    readable = style == "text" or (style == "auto" and stream.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=stream.isatty())
        if readable
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    set_level(level)
    structlog.configure(
        processors=[
            _by_level,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _harmless_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    log: Log = structlog.get_logger()
    return log


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

    def all(self, now: float) -> list[dict[str, Any]]:
        """What is wrong now, for `status`: what, why, and for how many seconds."""
        return [
            {"what": key, "reason": reason, "for_s": round(now - since, 1)}
            for key, (since, reason, _) in sorted(self._since.items())
        ]
