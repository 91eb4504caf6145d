"""The launchd agent as text. Pure. docs/operations.md, "Under launchd"."""

import plistlib
import xml.parsers.expat
from typing import Any

from swarmmemd.install.mark import mark_of

LABEL = "com.swarmmemd.agent"
NAME = f"{LABEL}.plist"
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
CRASH_LOG = "Library/Logs/swarmmemd.log"
"""Below the home: what the interpreter says when it cannot even start."""
_EXAMPLE_HOME = "/Users/YOU"
_EXAMPLE = """\
  swarmmemd as a launchd agent. launchd expands neither ~ nor variables: each /Users/YOU stands for a home.
  How it is installed: docs/operations.md.
"""


def definition(argv: tuple[str, ...], home: str) -> dict[str, Any]:
    """The agent's keys: it runs `argv` for the account with this home. No path of it is expanded by launchd."""
    return {
        "Label": LABEL,
        "ProgramArguments": list(argv),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 30,
        "ProcessType": "Background",
        "LowPriorityBackgroundIO": True,
        "Nice": 5,
        "SoftResourceLimits": {"NumberOfFiles": 4096},
        "LimitLoadToSessionType": ["Aqua", "Background"],
        "WorkingDirectory": home,
        "EnvironmentVariables": {
            "PATH": PATH,
            "LANG": "en_US.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "SWARMMEMD_CRASH_LOG": f"{home}/{CRASH_LOG}",
        },
        "StandardErrorPath": f"{home}/{CRASH_LOG}",
    }


def example() -> str:
    """The readable example in `launchd/`."""
    argv = (f"{_EXAMPLE_HOME}/.local/bin/swarmmemd", "run", "--supervisor", "launchd")
    return _commented(_dumped(argv, _EXAMPLE_HOME), _EXAMPLE)


def marked_agent(argv: tuple[str, ...], home: str) -> str:
    """The agent as it is installed; a comment says who wrote it."""
    body = _commented(_dumped(argv, home), "")
    return _commented(_dumped(argv, home), f"{mark_of(body)}\n")


def argv_of(text: str) -> tuple[str, ...]:
    """What an agent runs; nothing where the file cannot be read."""
    try:
        found = plistlib.loads(text.encode()).get("ProgramArguments", ())
    except (ValueError, AttributeError, xml.parsers.expat.ExpatError):
        return ()
    return tuple(one for one in found if isinstance(one, str))


def _dumped(argv: tuple[str, ...], home: str) -> str:
    return plistlib.dumps(definition(argv, home), sort_keys=False).decode()


def _commented(text: str, comment: str) -> str:
    """`text` with a comment before its root; without words the comment is there and empty."""
    head, sign, root = text.partition("<plist ")
    return f"{head}<!--\n{comment}-->\n{sign}{root}"
