"""Flags, environment, file and defaults to one value. docs/configuration.md, "Precedence".

`load` gathers what each layer says, checks all of it, and raises once with everything that is wrong.
"""

import os.path
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarmmemd.config.keys import BY_NAME, CONFIG, KEYS, PREFIX, SECTIONS, Key, near
from swarmmemd.config.places import HERMES, Ground, Home, Real, Root, find_home, memory_notice, misplaced
from swarmmemd.config.rim import read_file
from swarmmemd.config.shape import Account, Config, Loaded, Setting
from swarmmemd.config.values import BadError, check, from_text, path, problem, shown
from swarmmemd.errors import ConfigError

Read = Callable[[Path], bytes | None]


class _Given(NamedTuple):
    """What one layer says of one key. `where` is the origin for messages, with the line of a file."""

    value: object
    origin: str
    where: str


class _Told(NamedTuple):
    """A layer: what it gives, and what is wrong with it apart from the values."""

    given: dict[str, _Given]
    problems: list[str]


def load(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    account: Account,
    read: Read = read_file,
    real: Real = os.path.realpath,
    is_dir: Callable[[Path], bool] = os.path.isdir,
) -> Loaded:
    """The effective configuration, or ConfigError with a line for each problem. docs/configuration.md.

    `flags` holds the flags given, by the name of their key (`config`, `api.listen`).
    """
    real = cache(real)  # every root is held against every other
    home = find_home(flags, environ, account, real)
    layers = [_flags(flags), _environment(environ)]
    file, told = _file(layers, home, read)
    settings, problems = _settle([*layers, _hermes(environ), told, _defaults(home)], home.home)
    ground = Ground((home.home, account.home), account.platform, real)
    problems += misplaced(_roots(settings), ground)
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    config = _build({key: given.value for key, given in settings.items()})
    chosen = tuple(Setting(key.name, settings[key.name].value, settings[key.name].origin) for key in KEYS)
    return Loaded(config, chosen, file, _notices(config, settings, ground, is_dir))


def default_file(flags: Mapping[str, object], environ: Mapping[str, str], account: Account) -> Path:
    """Where the configuration file is looked for when nobody names one."""
    return find_home(flags, environ, account, os.path.realpath).config / "config.yaml"


def _flags(flags: Mapping[str, object]) -> _Told:
    told = _Told({}, [])
    for name, value in flags.items():
        key = CONFIG if name == CONFIG.name else BY_NAME.get(name)
        if key is None:
            told.problems.append(problem(name, "flag", "is no known key", "remove it"))
        elif value is not None and value != ():
            origin = f"flag {key.off if value is False else key.flag}"
            told.given[name] = _Given(str(value) if isinstance(value, Path) else value, origin, origin)
    return told


_NO_KEYS = frozenset({f"{PREFIX}CI", f"{PREFIX}CRASH_LOG"})
"""Variables of ours that configure nothing: the one tells the tests that a missing component is a failure, the
other the daemon which file launchd collects its last words in."""


def _environment(environ: Mapping[str, str]) -> _Told:
    told = _Told({}, [])
    names = {key.variable: key for key in (CONFIG, *KEYS)}
    for variable, text in sorted(environ.items()):
        # An empty variable is an unset one, as it is for most programs.
        if not variable.startswith(PREFIX) or not text or variable in _NO_KEYS:
            continue
        origin = f"environment {variable}"
        if key := names.get(variable):
            told.given[key.name] = _Given(text, origin, origin)
        else:
            told.problems.append(problem(variable, "environment", "names no known key", _meant(variable)))
    return told


def _meant(variable: str) -> str:
    # Compared without the prefix, which would make every name look alike. The value is not shown: a
    # variable that is not ours may hold a secret.
    guess = near(variable.removeprefix(PREFIX), [CONFIG.name, *BY_NAME])
    if guess is None:
        return "unset it; docs/configuration.md lists the names"
    return f"did you mean {(BY_NAME.get(guess) or CONFIG).variable}?"


def _hermes(environ: Mapping[str, str]) -> _Told:
    told = _Told({}, [])
    for key in KEYS:
        if key.also and (text := environ.get(key.also)):
            origin = f"environment {key.also}"
            told.given[key.name] = _Given(HERMES[key.also](text), origin, origin)
    return told


def _file(layers: list[_Told], home: Home, read: Read) -> tuple[Path | None, _Told]:
    """The file that was read, if there is one, and what it says. A file that was named must be there."""
    named = next((layer.given[CONFIG.name] for layer in layers if CONFIG.name in layer.given), None)
    if named is None:
        return _read(home.config / "config.yaml", None, read)
    try:
        file = path(named.value, home.home)
    except BadError as bad:
        return None, _Told({}, [_problem(CONFIG, named, bad)])
    return _read(file, named.where, read)


def _read(file: Path, named: str | None, read: Read) -> tuple[Path | None, _Told]:
    try:
        data = read(file)
    except OSError as error:
        what = f"{shown(file)} cannot be read: {error.strerror or error}"
        line = problem(CONFIG.name, named or "default", what, "let this account read it, or name another")
        return None, _Told({}, [line])
    if data is not None:
        return file, _parsed(data, file)
    if named is None:
        return None, _Told({}, [])
    what = f"{shown(file)} is not there"
    return None, _Told({}, [problem(CONFIG.name, named, what, "create it, or name another")])


def _parsed(data: bytes, file: Path) -> _Told:
    from swarmmemd.config.document import parse  # brings YAML with it

    entries, problems = parse(data, file)
    given = {
        name: _Given(entry.value, f"file {file}", f"file {file} line {entry.line}")
        for name, entry in entries.items()
    }
    return _Told(given, problems)


def _defaults(home: Home) -> _Told:
    values = {key.name: key.default for key in KEYS} | {"state_dir": str(home.state)}
    return _Told({name: _Given(value, "default", "default") for name, value in values.items()}, [])


def _settle(layers: list[_Told], home: Path) -> tuple[dict[str, _Given], list[str]]:
    """The value of each key that has a good one, and every problem of the layers.

    What somebody wrote for this program is checked even where a higher layer wins; what Hermes' variables
    say matters only where it is used.
    """
    problems = [line for layer in layers for line in layer.problems]
    settled: dict[str, _Given] = {}
    for key in KEYS:
        said = [layer.given[key.name] for layer in layers if key.name in layer.given]
        for place, given in enumerate(said):
            if place and key.also and given.origin == f"environment {key.also}":
                continue
            try:
                value = check(key, _typed(key, given), home)
            except BadError as bad:
                problems.append(_problem(key, given, bad))
                continue
            if place == 0:
                settled[key.name] = given._replace(value=value)
    return settled, problems


def _typed(key: Key, given: _Given) -> object:
    """Text from flags and environment is parsed; a value of the file keeps its YAML type."""
    is_text = given.origin.startswith(("flag", "environment"))
    return from_text(key, given.value) if is_text and isinstance(given.value, str) else given.value


def _problem(key: Key, given: _Given, bad: BadError) -> str:
    return problem(key.name, given.where, f"{shown(given.value)} {bad.what}", bad.mend)


def _roots(settled: Mapping[str, _Given]) -> dict[str, Root]:
    return {
        name: Root(name, given.value, given.where)
        for name, given in settled.items()
        if isinstance(given.value, Path)
    }


def _build(values: Mapping[str, Any]) -> Config:
    top = {name: value for name, value in values.items() if "." not in name}
    types = {field.name: field.type for field in msgspec.structs.fields(Config)}
    for section in SECTIONS:
        leaves = {
            name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{section}.")
        }
        top[section] = types[section](**leaves)
    return Config(**top)


def _notices(
    config: Config, settled: Mapping[str, _Given], ground: Ground, is_dir: Callable[[Path], bool]
) -> tuple[str, ...]:
    if settled["shared_root"].origin != "default" or not is_dir(config.workspace_root / "memory"):
        return ()
    notice = memory_notice(config.workspace_root, config.shared_root, ground)
    return (notice,) if notice else ()
