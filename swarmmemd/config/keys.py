"""The table of keys: the one place that says which keys there are. Imports the standard library only.

Flags, environment names, validation, `swarmmemd config` and the test of docs/configuration.md read it.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

PREFIX = "SWARMMEMD_"
LIMIT = 1024 * 1024
"""Bytes that a configuration file may have."""


class Kind(Enum):
    """What a value is, and so how it is read and checked."""

    PATH = auto()
    LISTEN = auto()
    BOOL = auto()
    WHOLE = auto()
    SECONDS = auto()
    CHOICE = auto()
    WORKER_GLOBS = auto()
    FILE_GLOBS = auto()
    PATTERNS = auto()
    TEXTS = auto()


LISTS = frozenset({Kind.WORKER_GLOBS, Kind.FILE_GLOBS, Kind.PATTERNS, Kind.TEXTS})


class Key(NamedTuple):
    """One key. A default of None is the platform's; `also` is a variable of Hermes that sets it too."""

    name: str
    kind: Kind
    default: object
    about: str
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    written: bool = False
    common: bool = False
    also: str = ""

    @property
    def variable(self) -> str:
        """The environment variable: `api.listen` is `SWARMMEMD_API_LISTEN`."""
        return PREFIX + self.name.replace(".", "_").upper()

    @property
    def flag(self) -> str:
        """The flag: `api.listen` is `--api-listen`."""
        return "--" + self.name.replace(".", "-").replace("_", "-")

    @property
    def off(self) -> str:
        """The flag that turns a switch off: `--no-api-enabled`."""
        return "--no-" + self.flag[2:]

    @property
    def many(self) -> bool:
        """The value is a list."""
        return self.kind in LISTS


CONFIG = Key("config", Kind.PATH, None, "Read this configuration file.", common=True)
"""Names the file; no key of the file."""

_DAY = 24 * 60 * 60

KEYS: tuple[Key, ...] = (
    Key(
        "profiles_root",
        Kind.PATH,
        "~/.hermes/profiles",
        "Folder of the workers' profiles.",
        written=True,
        common=True,
        also="HERMES_HOME",
    ),
    Key(
        "workspace_root",
        Kind.PATH,
        "~/hermes-workspace",
        "Folder of hermes-workspace; read only.",
        common=True,
    ),
    Key(
        "shared_root",
        Kind.PATH,
        "~/.openclaw/workspace/memory",
        "Folder of the shared memory.",
        written=True,
        common=True,
        also="HERMES_SWARM_MEMORY_ROOT",
    ),
    Key("state_dir", Kind.PATH, None, "Folder of the daemon's own state.", written=True, common=True),
    Key("workers.include", Kind.WORKER_GLOBS, (), "Only workers whose id matches one of these globs."),
    Key("workers.exclude", Kind.WORKER_GLOBS, (), "No workers whose id matches one of these globs."),
    Key(
        "coexist.settle_ms",
        Kind.WHOLE,
        400,
        "Milliseconds that a foreign torn line must stand still before it is ended.",
        most=60_000,
    ),
    Key("redact.local", Kind.BOOL, False, "Redact secrets in the workers' own memory too."),
    Key("redact.patterns", Kind.PATTERNS, (), "Further regular expressions that are secrets."),
    Key("redact.allow", Kind.TEXTS, (), "Texts that look like secrets and are none."),
    Key("api.enabled", Kind.BOOL, False, "Serve the HTTP API from the daemon."),
    Key("api.listen", Kind.LISTEN, "127.0.0.1:7768", "Loopback HOST:PORT or unix:/PATH of the HTTP API."),
    Key("retention.days", Kind.WHOLE, 0, "Days that bodies are kept; 0 keeps them for ever.", most=36_500),
    Key(
        "transcripts",
        Kind.FILE_GLOBS,
        ("checkpoint.md", "checkpoints/*.md"),
        "Files of a profile, as globs, in which a worker leaves checkpoints.",
    ),
    Key("log.format", Kind.CHOICE, "auto", "Form of the log.", choices=("auto", "json", "text")),
    Key(
        "log.level", Kind.CHOICE, "info", "Least level logged.", choices=("debug", "info", "warning", "error")
    ),
    Key("log.files", Kind.WHOLE, 5, "Files of the log in the state folder; 0 writes none.", most=100),
    Key("log.max_mb", Kind.WHOLE, 5, "MiB after which the next file of the log begins.", least=1, most=1024),
    Key(
        "sweep.runtime_s",
        Kind.SECONDS,
        10.0,
        "Seconds between looks at a runtime.json, if not heard.",
        most=_DAY,
    ),
    Key("sweep.chat_s", Kind.SECONDS, 5.0, "Seconds between looks at each chat database.", most=_DAY),
    Key("sweep.directories_s", Kind.SECONDS, 15.0, "Seconds between looks for new workers.", most=_DAY),
    Key("sweep.full_s", Kind.SECONDS, 60.0, "Seconds between full sweeps.", most=_DAY),
)

BY_NAME = {key.name: key for key in KEYS}
SECTIONS = frozenset(key.name.partition(".")[0] for key in KEYS if "." in key.name)


def near(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that was probably meant, hyphens and case apart."""
    from difflib import get_close_matches  # 17 ms, and needed for a mistake only

    plain = {item.replace(".", "_").lower(): item for item in names}
    found = get_close_matches(name.replace(".", "_").replace("-", "_").lower(), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None
