"""YAML file, environment and flags to one frozen value, all problems at once. docs/configuration.md.

`keys` is the table of keys; `document`, `values`, `places` and `merge` are pure; `rim` touches the system.
The names below are loaded on first use: the command line reads `keys` for its flags on every start, and
`--help` must not pay for YAML and msgspec.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmmemd.config.merge import default_file, load
    from swarmmemd.config.rim import account
    from swarmmemd.config.shape import (
        Account,
        Api,
        Coexist,
        Config,
        Loaded,
        Log,
        Redact,
        Retention,
        Setting,
        Sweep,
        Workers,
    )
else:

    def __getattr__(name: str) -> object:
        """The public name, from the module that defines it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = {"load": "merge", "default_file": "merge", "account": "rim"}.get(name, "shape")
        return getattr(import_module(f"{__name__}.{home}"), name)


__all__ = [
    "Account",
    "Api",
    "Coexist",
    "Config",
    "Loaded",
    "Log",
    "Redact",
    "Retention",
    "Setting",
    "Sweep",
    "Workers",
    "account",
    "default_file",
    "load",
]
