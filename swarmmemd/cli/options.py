"""Options that every command takes, before or after its name. docs/configuration.md, "Flags".

They are made from the table of keys. Only click, the standard library and that table are imported here:
YAML and msgspec are needed by a command, not by `--help`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from swarmmemd.config.keys import CONFIG, KEYS, Key, Kind, near

if TYPE_CHECKING:
    from swarmmemd.config import Loaded
    from swarmmemd.model import MissionId, WorkerId

_GIVEN = "swarmmemd.flags"
_METAVARS = {
    Kind.PATH: "PATH",
    Kind.LISTEN: "ADDRESS",
    Kind.WHOLE: "N",
    Kind.SECONDS: "SECONDS",
    Kind.WORKER_GLOBS: "GLOB",
    Kind.FILE_GLOBS: "GLOB",
    Kind.PATTERNS: "REGEX",
    Kind.TEXTS: "TEXT",
}

F = TypeVar("F", bound=Callable[..., Any] | click.Command)


class Root(click.Group):
    """A group that answers `-h` and suggests the command that was probably meant, without running it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settings = {"help_option_names": ["-h", "--help"]} | dict(kwargs.pop("context_settings", None) or {})
        super().__init__(*args, context_settings=settings, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or wrong usage with a suggestion."""
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name)):
            guess = near(name, self.list_commands(ctx))
            hint = f" Did you mean {guess!r}?" if guess else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


def common_options(command: F) -> F:
    """Add `--config`, the roots and, hidden from the help, a flag for every other key."""
    keys = (CONFIG, *KEYS)
    # Decorating a function piles options up from the last; a finished command takes them in order.
    for key in keys if isinstance(command, click.Command) else reversed(keys):
        command = _option(key)(command)
    return command


def _option(key: Key) -> Callable[[F], F]:
    def keep(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        # The contexts of group and command share `meta`; the command is parsed later, so its flag wins.
        if value is not None and value != ():
            ctx.meta.setdefault(_GIVEN, {})[key.name] = value

    switch = key.kind is Kind.BOOL
    return click.option(
        f"{key.flag}/{key.off}" if switch else key.flag,
        type=bool if switch else str,
        multiple=key.many,
        default=None,
        metavar="|".join(key.choices) or _METAVARS.get(key.kind),
        help=key.about,
        hidden=not key.common,
        expose_value=False,
        callback=keep,
    )


def given_flags(ctx: click.Context) -> dict[str, object]:
    """The flags that were given, by key. A relative `--config` counts from the working directory."""
    flags: dict[str, object] = dict(ctx.meta.get(_GIVEN, {}))
    file = flags.get(CONFIG.name)
    if isinstance(file, str) and file and not file.startswith("~"):
        flags[CONFIG.name] = os.path.abspath(file)  # noqa: PTH100 - Path.absolute keeps the `..`
    return flags


def load_config(ctx: click.Context) -> "Loaded":
    """The effective configuration of this invocation, or ConfigError. docs/configuration.md."""
    from swarmmemd.config import account, load

    return load(given_flags(ctx), os.environ, account())


def as_worker(text: str) -> "WorkerId":
    """The worker id that was given. Raises `UsageError` for what is none."""
    from swarmmemd.errors import UsageError
    from swarmmemd.model import worker_id

    if (id := worker_id(text)) is None:
        raise UsageError(f"{text[:200]!r} is no worker id", "Letters, digits, - and _, at most 64.")
    return id


def as_mission(text: str) -> "MissionId":
    """The mission id that was given. Raises `UsageError` for what is none."""
    from swarmmemd.errors import UsageError
    from swarmmemd.model import mission_id

    if (id := mission_id(text)) is None:
        raise UsageError(f"{text[:200]!r} is no mission id", "Letters, digits and _.:- , at most 128.")
    return id


def state_directory(ctx: click.Context) -> Path:
    """The state directory; where the configuration cannot be used, the one that was named, or the default."""
    from swarmmemd.config import account, load
    from swarmmemd.errors import ConfigError

    try:
        return load_config(ctx).config.state_dir
    except ConfigError:
        named = given_flags(ctx).get("state_dir") or os.environ.get("SWARMMEMD_STATE_DIR")
        if isinstance(named, str) and named.startswith("/"):
            return Path(named)
        return load({}, {}, account(), read=lambda _: None).config.state_dir


def default_config_file(ctx: click.Context) -> Path:
    """Where the configuration file would be looked for, were none named."""
    from swarmmemd.config import account, default_file

    return default_file(given_flags(ctx), os.environ, account())


def home_directory(ctx: click.Context) -> Path:
    """The home that `~` means: HOME, or the account's where HOME lies inside a profile."""
    from swarmmemd.config import account
    from swarmmemd.config.places import find_home

    return find_home(given_flags(ctx), os.environ, account(), os.path.realpath).home
