"""The configuration as frozen values. docs/configuration.md explains each key.

The defaults here let other modules make a `Config` from four roots; a test holds them equal to the table.
"""

from pathlib import Path
from typing import Literal

import msgspec


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Globs that narrow which workers are looked after."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Coexist(msgspec.Struct, frozen=True, kw_only=True):
    """Manners beside another writer of the same files."""

    settle_ms: int = 400


class Redact(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a secret, and whether local memory is redacted too."""

    local: bool = False
    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


class Api(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP API: `listen` is a loopback `HOST:PORT` or `unix:/PATH`."""

    enabled: bool = False
    listen: str = "127.0.0.1:7768"


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long bodies are kept; 0 is for ever."""

    days: int = 0


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """Form and level of the log, and how much of it is kept in the state folder."""

    format: Literal["auto", "json", "text"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    files: int = 5
    max_mb: int = 5


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds between the periodic looks that bound the cost of a lost notification."""

    runtime_s: float = 10.0
    chat_s: float = 5.0
    directories_s: float = 15.0
    full_s: float = 60.0


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration. Roots are absolute, `~` expanded, symlinks left as they are."""

    profiles_root: Path
    workspace_root: Path
    shared_root: Path
    state_dir: Path
    workers: Workers = Workers()
    coexist: Coexist = Coexist()
    redact: Redact = Redact()
    api: Api = Api()
    retention: Retention = Retention()
    transcripts: tuple[str, ...] = ("checkpoint.md", "checkpoints/*.md")
    log: Log = Log()
    sweep: Sweep = Sweep()


class Setting(msgspec.Struct, frozen=True):
    """One effective value and where it came from: `flag --state-dir`, `file /x/config.yaml`, `default`."""

    key: str
    value: object
    origin: str


class Loaded(msgspec.Struct, frozen=True):
    """The configuration, its origins, the file that was read (None: there is none) and what to tell."""

    config: Config
    settings: tuple[Setting, ...]
    file: Path | None
    notices: tuple[str, ...]


class Account(msgspec.Struct, frozen=True):
    """The account's home in the password database, and whose folders apply: `linux` or `darwin`."""

    home: Path
    platform: str = "linux"
