"""How we notice that watchdog lost events, or lost a thread: a log handler and a thread exception hook.

Both are process-wide, so both are put back on `detach`. Both are called on watching threads, where an
exception would do the very damage that they report: the callbacks given here must not raise.
docs/architecture.md, "Watching".
"""

import logging
import threading
from collections.abc import Callable, Iterable


class LossAlarm(logging.Handler):
    """Calls `heard(message)` for what the library reports of lost events only as a log line.

    gorakhargosh/watchdog#654: the kernel's queue overflowed, and a warning is all that comes of it.
    """

    def __init__(self, names: Iterable[str], heard: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._loggers = [logging.getLogger(name) for name in names]
        self._levels = [logger.level for logger in self._loggers]
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard(record.getMessage())

    def attach(self) -> bool:
        """Listens; True if it did so already, False if something had to be mended.

        `logging.config.dictConfig` disables loggers it does not name and strips handlers from those it
        does; a root logger at ERROR hides warnings of loggers without a level of their own.
        """
        intact = [self._attach_to(logger) for logger in self._loggers]  # each of them, also after a False
        return all(intact)

    def _attach_to(self, logger: logging.Logger) -> bool:
        intact = self in logger.handlers and not logger.disabled and 0 < logger.level <= logging.WARNING
        if not intact:
            logger.disabled = False
            logger.addHandler(self)
            if not 0 < logger.level <= logging.WARNING:
                logger.setLevel(logging.WARNING)
        return intact

    def silenced(self) -> bool:
        """Whether `logging.disable` switches warnings off for the whole process: overflow goes unseen."""
        return logging.root.manager.disable >= logging.WARNING

    def detach(self) -> None:
        """Stops listening and gives the loggers their levels back."""
        for logger, level in zip(self._loggers, self._levels, strict=True):
            logger.removeHandler(self)
            logger.setLevel(level)
        self.close()


class DeathAlarm:
    """Calls `died(thread, what)` when a thread ends by an exception, then whatever hook was there before.

    tirth8205/code-review-graph#811: a dead reader thread leaves a process that looks healthy.
    """

    def __init__(self, died: Callable[[threading.Thread, str], None]) -> None:
        self._died = died
        self._before = threading.excepthook
        # A bound method is another object at each look; one is kept to be found again.
        self._mine = self._hook
        self._attached = False

    def attach(self) -> None:
        """Puts the hook before the present one."""
        self._before = threading.excepthook
        threading.excepthook = self._mine
        self._attached = True

    def detach(self) -> None:
        """Takes the hook out; one that somebody put before it meanwhile stays, and ours only passes on."""
        self._attached = False
        if threading.excepthook is self._mine:
            threading.excepthook = self._before

    def _hook(self, args: threading.ExceptHookArgs) -> None:
        if self._attached and args.thread is not None:
            self._died(args.thread, f"{args.exc_type.__name__}: {args.exc_value}")
        self._before(args)
