"""The configuration: layers, homes, refusals. docs/configuration.md is the contract."""

import dataclasses
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
import pytest

from swarmmemd.config import Account, Config, Loaded, account, load
from swarmmemd.config.keys import CONFIG, KEYS, SECTIONS
from swarmmemd.config.rim import read_file
from swarmmemd.errors import ConfigError

HOME = Path("/home/op")
FILE = "/home/op/.config/swarmmemd/config.yaml"
PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


@dataclasses.dataclass
class World:
    """A system that exists only in these fields."""

    environ: dict[str, str] = dataclasses.field(default_factory=dict)
    files: dict[str, str | bytes] = dataclasses.field(default_factory=dict)
    links: dict[str, str] = dataclasses.field(default_factory=dict)
    folders: tuple[str, ...] = ()
    platform: str = "linux"

    def read(self, path: Path) -> bytes | None:
        text = self.files.get(str(path))
        return text.encode() if isinstance(text, str) else text

    def real(self, path: str) -> str:
        path = os.path.normpath(path)
        for link, target in self.links.items():
            if path == link or path.startswith(f"{link}/"):
                return self.real(target + path[len(link) :])
        return path

    def load(self, **flags: object) -> Loaded:
        named = {name.replace("__", "."): value for name, value in flags.items()}
        environ = {"HOME": str(HOME)} | self.environ
        who = Account(HOME, self.platform)
        return load(named, environ, who, self.read, self.real, lambda path: str(path) in self.folders)

    def problems(self, **flags: object) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(**flags)
        assert all("\n" not in line for line in caught.value.problems)
        return caught.value.problems


def written(text: str | bytes, **environ: str) -> World:
    return World(environ=environ, files={FILE: text})


def only(problems: list[str]) -> str:
    assert len(problems) == 1, problems
    return problems[0]


def origin(loaded: Loaded, key: str) -> str:
    return next(setting.origin for setting in loaded.settings if setting.key == key)


def value(loaded: Loaded, key: str) -> object:
    return next(setting.value for setting in loaded.settings if setting.key == key)


# Defaults and layers


def test_without_anything_the_defaults_hold() -> None:
    loaded = World().load()
    assert loaded.config == Config(
        profiles_root=HOME / ".hermes/profiles",
        workspace_root=HOME / "hermes-workspace",
        shared_root=HOME / ".openclaw/workspace/memory",
        state_dir=HOME / ".local/state/swarmmemd",
    )
    assert loaded.file is None
    assert loaded.notices == ()
    assert {setting.origin for setting in loaded.settings} == {"default"}
    assert [setting.key for setting in loaded.settings] == [key.name for key in KEYS]


def test_the_table_and_the_structs_name_the_same_keys() -> None:
    names: set[str] = set()
    for field in msgspec.structs.fields(Config):
        inner = msgspec.structs.fields(field.type) if field.name in SECTIONS else ()
        names |= {f"{field.name}.{leaf.name}" for leaf in inner} or {field.name}
    assert names == {key.name for key in KEYS}


def test_precedence_falls_through_every_layer() -> None:
    environ = {"SWARMMEMD_PROFILES_ROOT": "/b", "HERMES_HOME": "/c"}
    text = "profiles_root: /d\n"
    world = World(environ=environ, files={FILE: text})
    assert world.load(profiles_root="/a").config.profiles_root == Path("/a")
    assert origin(world.load(profiles_root="/a"), "profiles_root") == "flag --profiles-root"
    assert origin(world.load(), "profiles_root") == "environment SWARMMEMD_PROFILES_ROOT"
    del environ["SWARMMEMD_PROFILES_ROOT"]
    assert world.load().config.profiles_root == Path("/c/profiles")
    assert origin(world.load(), "profiles_root") == "environment HERMES_HOME"
    del environ["HERMES_HOME"]
    assert origin(world.load(), "profiles_root") == f"file {FILE}"
    assert world.load().file == Path(FILE)


def test_nested_keys_come_from_every_layer_with_their_type() -> None:
    text = "coexist: {settle_ms: 10}\nsweep:\n  chat_s: 2\nworkers: {include: [a, b]}\nlog:\n"
    world = written(
        text, SWARMMEMD_API_ENABLED="Yes", SWARMMEMD_SWEEP_FULL_S=".5", SWARMMEMD_RETENTION_DAYS="30"
    )
    config = world.load(api__listen="unix:/run/x.sock", redact__local=True).config
    assert (config.coexist.settle_ms, config.sweep.chat_s, config.sweep.full_s) == (10, 2.0, 0.5)
    assert (config.api.enabled, config.api.listen) == (True, "unix:/run/x.sock")
    assert (config.redact.local, config.retention.days) == (True, 30)
    assert config.workers.include == ("a", "b")


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    world = World({"SWARMMEMD_REDACT_PATTERNS": r"a{1\,2}, b\d", "SWARMMEMD_TRANSCRIPTS": ","})
    assert world.load().config.redact.patterns == ("a{1,2}", r"b\d")
    assert world.load().config.transcripts == ()


def test_lists_of_flags_are_taken_as_they_are() -> None:
    assert World().load(redact__patterns=("a{1,2}",)).config.redact.patterns == ("a{1,2}",)


def test_empty_variables_are_not_set() -> None:
    loaded = World({"SWARMMEMD_STATE_DIR": "", "HERMES_HOME": "", "SWARMMEMD_CONFIG": ""}).load()
    assert origin(loaded, "state_dir") == "default"
    assert origin(loaded, "profiles_root") == "default"


def test_flags_that_were_not_given_do_not_count() -> None:
    loaded = World().load(state_dir=None, workers__include=())
    assert origin(loaded, "state_dir") == "default"
    assert origin(loaded, "workers.include") == "default"


def test_a_switch_turned_off_names_its_own_flag() -> None:
    loaded = written("api: {enabled: true}").load(api__enabled=False)
    assert value(loaded, "api.enabled") is False
    assert origin(loaded, "api.enabled") == "flag --no-api-enabled"


# The file


def test_a_named_file_is_read_and_must_be_there() -> None:
    world = World(
        {"SWARMMEMD_CONFIG": "~/e.yaml"}, {"/home/op/e.yaml": "state_dir: /e", "/f.yaml": "state_dir: /f"}
    )
    assert world.load().config.state_dir == Path("/e")
    assert world.load(config="/f.yaml").config.state_dir == Path("/f")
    assert "is not there" in only(world.problems(config="/none.yaml"))
    assert "relative" in only(world.problems(config="f.yaml"))


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "\ufeffstate_dir: /x\n", "workers:\nlog: ~\n"])
def test_files_that_say_little_are_fine(text: str) -> None:
    assert written(text).load().file == Path(FILE)


def test_an_alias_is_fine() -> None:
    assert written("workers:\n  include: &a [x]\n  exclude: *a\n").load().config.workers.exclude == ("x",)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("state_dir: /x\n  a: b: c\n", 2, "no valid YAML"),
        ("a: [\n", 2, "no valid YAML"),
        ("state_dir: /x\n---\nstate_dir: /y\n", 2, "no valid YAML"),
        ("- a\n", 1, "no mapping"),
        ("just text\n", 1, "no mapping"),
        (b"a: b\nc: \xff\n", 2, "not UTF-8"),
        ("a: b\nc: \x07\n", 2, "does not allow"),
        ("state_dir: /x\nstate_dir: /y\n", 2, "twice, first in line 1"),
        ("log:\n  level: info\nlog:\n  level: info\n", 3, "twice"),
        ("log:\n  level: info\n  level: debug\n", 3, "twice"),
        ("log: info\n", 1, "is a section"),
        ("state_dir: ~\n", 1, "has no value"),
        ("state_dir:\n", 1, "has no value"),
        ("\nretention:\n  days: !!int x\n", 3, "does not fit"),
        ("retention: {days: 2024-99-99}\n", 1, "does not fit"),
        ("retention: {days: !!python/object:os.system x}\n", 1, "does not fit"),
        ("? [a, b]\n: c\n", 1, "no known key"),
        ("<<: {state_dir: /x}\n", 1, "no known key"),
        ("1: x\n", 1, "no known key"),
    ],
)
def test_files_that_are_refused_name_the_line(text: str | bytes, line: int, said: str) -> None:
    problem = only(written(text).problems())
    assert said in problem
    assert f"line {line} of {FILE}" in problem


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("stat_dir: /x", "did you mean state_dir?"),
        ("state-dir: /x", "did you mean state_dir?"),
        ("api: {listne: x}", "did you mean api.listen?"),
        ("settle_ms: 4", "did you mean coexist.settle_ms?"),
        ("worker: {}", "did you mean workers?"),
        ("api.listen: x", "write `listen:` beneath `api:`"),
        ("banana: 1", "remove it"),
    ],
)
def test_an_unknown_key_is_refused_with_a_near_miss(text: str, mend: str) -> None:
    assert mend in only(written(text).problems())


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nworkers: {include: [*b, *b]}\n",
        "workers: &w\n  include: [*w]\n",
        "a: &a {x: 1}\nworkers: {include: {<<: [*a, *a]}}\n",
        "[" * 50_000,
        "retention: {days: " + "9" * 5000 + "}\n",
        "retention: {days: 0x" + "f" * 100_000 + "}\n",
        "sweep: {full_s: 0x" + "f" * 100_000 + "}\n",
        "x" * (1024 * 1024 + 1),
    ],
)
def test_hostile_files_cost_little_and_are_refused(text: str) -> None:
    assert all(len(line) < 600 for line in written(text).problems())


def test_a_file_that_cannot_be_read_is_a_problem() -> None:
    def read(_path: Path) -> bytes | None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        load({}, {"HOME": "/home/op"}, Account(HOME), read)


def test_the_rim_reads_at_most_one_byte_too_many(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (1024 * 1024 + 99))
    assert len(read_file(tmp_path / "big") or b"") == 1024 * 1024 + 1
    assert read_file(tmp_path / "none") is None
    assert read_file(tmp_path / "big" / "below") is None
    with pytest.raises(OSError, match="directory"):
        read_file(tmp_path)


# Values that are refused


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("state_dir", "data"),
        ("state_dir", "''"),
        ("state_dir", "'   '"),
        ("state_dir", "~other/x"),
        ("state_dir", "$HOME/x"),
        ("state_dir", '"/a\\0b"'),
        ("state_dir", '"/a\\nb"'),
        ("state_dir", '"/a\\uD800"'),
        ("state_dir", "5"),
        ("state_dir", "[/a]"),
        ("state_dir", "{a: b}"),
        ("state_dir", "2024-01-01"),
        ("coexist.settle_ms", "'400'"),
        ("coexist.settle_ms", "400.5"),
        ("coexist.settle_ms", "true"),
        ("coexist.settle_ms", "-1"),
        ("coexist.settle_ms", "60001"),
        ("retention.days", "-1"),
        ("retention.days", "99999999999"),
        ("sweep.chat_s", "0"),
        ("sweep.chat_s", "-1"),
        ("sweep.chat_s", ".nan"),
        ("sweep.chat_s", ".inf"),
        ("sweep.chat_s", "true"),
        ("sweep.chat_s", "fast"),
        ("redact.local", "'true'"),
        ("redact.local", "1"),
        ("log.level", "loud"),
        ("log.format", "[json]"),
        ("workers.include", "swarm*"),
        ("workers.include", "[1]"),
        ("workers.include", "['']"),
        ("workers.include", "['a[b']"),
        ("workers.include", "[a/b]"),
        ("workers.include", "[[a]]"),
        ("transcripts", "[/etc/passwd]"),
        ("transcripts", "[../x.md]"),
        ("transcripts", "['**/x.md']"),
        ("transcripts", "[a//b]"),
        ("transcripts", "['~/x']"),
        ("redact.patterns", "['(']"),
        ("redact.patterns", "['x*']"),
        ("redact.patterns", "['(a+)+$']"),
        ("redact.patterns", "['a{99999999999999999999}']"),
        ("redact.allow", "[1]"),
        ("api.listen", "7768"),
        ("api.listen", "0.0.0.0:7768"),
        ("api.listen", "'[::]:7768'"),
        ("api.listen", "'[::ffff:127.0.0.1]:7768'"),
        ("api.listen", "'[127.0.0.1]:7768'"),
        ("api.listen", "'::1:7768'"),
        ("api.listen", "192.168.1.2:7768"),
        ("api.listen", "example.com:7768"),
        ("api.listen", "localhost.example.com:80"),
        ("api.listen", "127.0.0.1"),
        ("api.listen", "127.0.0.1:70000"),
        ("api.listen", '"127.0.0.1:80\\n"'),
        ("api.listen", "unix:run/x"),
        ("api.listen", "unix:/" + "x" * 103),
    ],
)
def test_a_value_that_cannot_be_is_refused(key: str, bad: str) -> None:
    section, _, leaf = key.rpartition(".")
    text = f"{section}:\n  {leaf}: {bad}\n" if section else f"{key}: {bad}\n"
    line = text.count("\n")
    problem = only(written(text).problems())
    assert problem.startswith(f"{key}: file {FILE} line {line}: ")
    assert "; " in problem


@pytest.mark.parametrize(
    "good", ["127.0.0.1:0", "127.9.9.9:65535", "[::1]:7768", "localhost:80", "unix:/run/s.sock"]
)
def test_loopback_and_sockets_are_accepted(good: str) -> None:
    assert World({"SWARMMEMD_API_LISTEN": good}).load().config.api.listen == good


@pytest.mark.parametrize("good", ["swarm[0-9]", "[!a]*", "a[]]b", "a[[]b", "?*"])
def test_good_globs_are_accepted(good: str) -> None:
    assert World().load(workers__include=(good,)).config.workers.include == (good,)


@pytest.mark.parametrize(
    ("variable", "bad"),
    [
        ("SWARMMEMD_COEXIST_SETTLE_MS", "4_0"),
        ("SWARMMEMD_COEXIST_SETTLE_MS", "٤"),
        ("SWARMMEMD_SWEEP_CHAT_S", "nan"),
        ("SWARMMEMD_SWEEP_CHAT_S", "1e3"),
        ("SWARMMEMD_REDACT_LOCAL", "maybe"),
        ("SWARMMEMD_STATE_DIR", "/a\udcff"),
    ],
)
def test_text_of_the_environment_is_parsed_strictly(variable: str, bad: str) -> None:
    assert f"environment {variable}" in only(World({variable: bad}).problems())


def test_an_unknown_variable_is_refused() -> None:
    problem = only(World({"SWARMMEMD_STAT_DIR": "/x"}).problems())
    assert "did you mean SWARMMEMD_STATE_DIR?" in problem
    problem = only(World({"SWARMMEMD_BANANA": "hush"}).problems())
    assert "docs/configuration.md" in problem
    assert "hush" not in problem


def test_an_unknown_flag_is_refused() -> None:
    assert "no known key" in only(World().problems(banana=1))


def test_all_problems_come_together() -> None:
    text = "banana: 1\nstate_dir: x\nlog: {level: loud}\nshared_root: /p/shared\n"
    world = written(text, SWARMMEMD_API_LISTEN="0.0.0.0:1", SWARMMEMD_X="1")
    problems = world.problems(profiles_root="/p", retention__days="long")
    keys = {line.partition(":")[0] for line in problems}
    assert keys == {
        "banana",
        "state_dir",
        "log.level",
        "shared_root",
        "api.listen",
        "SWARMMEMD_X",
        "retention.days",
    }


def test_a_bad_value_of_ours_counts_even_when_overridden_and_one_of_hermes_does_not() -> None:
    assert "state_dir" in only(written("state_dir: x").problems(state_dir="/y"))
    world = World({"HERMES_HOME": "relative"})
    assert world.load(profiles_root="/y").config.profiles_root == Path("/y")
    assert "environment HERMES_HOME" in only(world.problems())


# Hermes' variables


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/h", "/h/profiles"),
        ("/h/", "/h/profiles"),
        ("~/.hermes", "/home/op/.hermes/profiles"),
        ("/h/profiles/swarm5", "/h/profiles"),
        ("/h/profiles/swarm5/", "/h/profiles"),
        ("/h/profiles/swarm5/home", "/h/profiles"),
        ("/h/profiles/home", "/h/profiles"),
        ("/h/profiles", "/h/profiles/profiles"),
        ("/h/home", "/h/home/profiles"),
        ("/h/profiles/-no-id", "/h/profiles/-no-id/profiles"),
    ],
)
def test_hermes_home_gives_the_folder_of_profiles(given: str, expected: str) -> None:
    assert World({"HERMES_HOME": given}).load().config.profiles_root == Path(expected)


def test_the_memory_root_of_hermes_gives_the_shared_root() -> None:
    loaded = World({"HERMES_SWARM_MEMORY_ROOT": "~/w"}).load()
    assert loaded.config.shared_root == HOME / "w/memory"
    assert origin(loaded, "shared_root") == "environment HERMES_SWARM_MEMORY_ROOT"


# Home


@pytest.mark.parametrize(
    ("home", "more"),
    [
        ("/home/op/.hermes/profiles/swarm5/home", {}),
        ("/home/op/.hermes/profiles/swarm5", {}),
        ("/home/op/.hermes/profiles/swarm5/work/deep", {}),
        ("/srv/h/profiles/swarm5/home", {}),
        ("/srv/h/profiles/swarm5/home/", {}),
        ("/srv/h/profiles/swarm5", {"HERMES_HOME": "/srv/h"}),
        ("/srv/h/profiles/swarm5", {"HERMES_HOME": "/srv/h/profiles/swarm5"}),
        ("/srv/tree/swarm5", {"SWARMMEMD_PROFILES_ROOT": "/srv/tree"}),
        ("/home/op/.hermes/home", {}),
        ("/opt/data/home", {"HERMES_HOME": "/opt/data"}),
        ("/link", {}),
        ("", {}),
        ("relative", {}),
    ],
)
def test_a_home_inside_a_profile_is_not_the_account_s(home: str, more: Mapping[str, str]) -> None:
    world = World({"HOME": home, **more, "XDG_STATE_HOME": "/srv/h/profiles/swarm5/home/.state"})
    world.links["/link"] = "/home/op/.hermes/profiles/swarm5/home"
    world.files[FILE] = "workspace_root: ~/w\n"
    if home in ("", "relative"):
        del world.environ["XDG_STATE_HOME"]
    loaded = world.load()
    assert loaded.file == Path(FILE)
    assert loaded.config.workspace_root == HOME / "w"
    assert loaded.config.state_dir == HOME / ".local/state/swarmmemd"


@pytest.mark.parametrize(
    "home", ["/home/other", "/mnt/profiles/alice", "/home/op/.hermes", "/srv/profiles", "/x/home"]
)
def test_any_other_home_counts(home: str) -> None:
    config = World({"HOME": home}).load().config
    assert config.workspace_root == Path(home, "hermes-workspace")


def test_xdg_moves_the_folders_and_a_worker_inherits_what_its_operator_moved() -> None:
    environ = {"XDG_STATE_HOME": "/data/state", "XDG_CONFIG_HOME": "relative"}
    assert World(dict(environ)).load().config.state_dir == Path("/data/state/swarmmemd")
    inside = World({**environ, "HOME": "/home/op/.hermes/profiles/a/home"})
    assert inside.load().config.state_dir == Path("/data/state/swarmmemd")


def test_macos_has_its_own_folders() -> None:
    config = World(platform="darwin").load().config
    assert config.state_dir == HOME / "Library/Application Support/swarmmemd"


@pytest.mark.parametrize(
    "environ", [{}, {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, {"XDG_STATE_HOME": "s"}]
)
@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="platformdirs answers for this platform")
def test_the_folders_are_those_of_platformdirs(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/op")
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    config_dir = platformdirs.user_config_dir("swarmmemd")
    world = World(environ, {f"{config_dir}/config.yaml": "workspace_root: /w"}, platform=account().platform)
    loaded = world.load()
    assert str(loaded.config.state_dir) == platformdirs.user_state_dir("swarmmemd")
    assert str(loaded.file) == f"{config_dir}/config.yaml"


def test_the_account_comes_from_the_password_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    assert account().home != Path("/nowhere")

    def nobody(_uid: int) -> Any:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert account().home == Path("/nowhere")


# Roots


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"state_dir": "/p", "profiles_root": "/p"}, "is the same folder as profiles_root"),
        ({"state_dir": "/p/a", "profiles_root": "/p"}, "lies inside profiles_root"),
        ({"shared_root": "/p/../q/a", "profiles_root": "/q"}, "lies inside profiles_root"),
        ({"profiles_root": "/s/a", "shared_root": "/s"}, "lies inside shared_root"),
        ({"shared_root": "/w/.runtime/x", "workspace_root": "/w"}, "which is only read"),
        ({"state_dir": "/w/.runtime", "workspace_root": "/w"}, "which is only read"),
        ({"profiles_root": "~/.openclaw/profiles"}, "no place for swarm memory"),
        ({"workspace_root": "~/.ocplatform/workspace/x"}, "no place for swarm memory"),
        ({"state_dir": "/link/a", "shared_root": "/target"}, "it resolves to"),
        ({"state_dir": "/target/a", "shared_root": "/link"}, "lies inside shared_root"),
        ({"state_dir": "/rt", "workspace_root": "/w"}, "which is only read"),
        ({"profiles_root": "/wrong"}, "no place for swarm memory"),
        ({"state_dir": "/"}, "lies inside"),
    ],
)
def test_a_root_that_lies_wrongly_is_refused(flags: dict[str, object], said: str) -> None:
    links = {"/link": "/target", "/rt": "/w/.runtime/state", "/wrong": "/home/op/.openclaw/profiles"}
    assert any(said in line for line in World(links=links).problems(**flags))


@pytest.mark.parametrize(
    "flags",
    [
        {"state_dir": "/pp", "profiles_root": "/p"},
        {"shared_root": "/w/memory", "workspace_root": "/w"},
        {"profiles_root": "~/.openclaw/profiles2"},
        {"profiles_root": "/P/a", "state_dir": "/p"},
    ],
)
def test_roots_side_by_side_are_fine(flags: dict[str, object]) -> None:
    World().load(**flags)


def test_a_wrong_folder_that_links_to_the_right_one_is_no_harm() -> None:
    World(links={"/home/op/.openclaw/profiles": "/home/op/.hermes/profiles"}).load()


def test_case_and_composition_do_not_count_on_macos() -> None:
    world = World(platform="darwin")
    assert "lies inside" in only(world.problems(profiles_root="/P/a", state_dir="/p"))
    assert "same folder" in only(world.problems(profiles_root="/\u00e9", state_dir="/e\u0301"))


def test_a_default_can_be_the_one_that_lies_wrongly() -> None:
    assert "shared_root: default" in only(World().problems(state_dir="~/.openclaw"))


def test_paths_are_absolute_and_keep_their_links() -> None:
    config = (
        World(links={"/link": "/target"})
        .load(state_dir="/link/a", shared_root="~", profiles_root="//p/")
        .config
    )
    assert (config.state_dir, config.shared_root) == (Path("/link/a"), HOME)
    assert str(config.profiles_root) == "/p"


# Notices


def test_the_memory_of_newer_workspaces_is_pointed_out() -> None:
    world = World(folders=("/home/op/hermes-workspace/memory",))
    (notice,) = world.load().notices
    assert "shared_root" in notice
    assert "/home/op/hermes-workspace/memory" in notice
    assert world.load(shared_root="/s").notices == ()
    world.links["/home/op/.openclaw/workspace/memory"] = "/home/op/hermes-workspace/memory"
    assert world.load().notices == ()


def test_links_on_the_disk_are_followed(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to("shared")
    flags = {"shared_root": f"{tmp_path}/shared", "state_dir": f"{tmp_path}/link/state"}
    with pytest.raises(ConfigError, match="lies inside shared_root"):
        load(flags, {"HOME": str(tmp_path)}, Account(tmp_path))


# The page


def test_the_page_has_a_row_for_each_key() -> None:
    rows = {row.split("|")[1].strip(): row for row in PAGE.read_text().splitlines() if row.startswith("| `")}
    for key in KEYS:
        row = rows[f"`{key.name}`"]
        assert f"`{key.variable}`" in row
        assert f"`{key.flag}`" in row
        assert not key.also or f"`{key.also}`" in row
        assert all(f"`{choice}`" in row for choice in key.choices)
        assert not key.most or str(key.most) in row or key.name.startswith("sweep.")
        assert _default(key.default) in row
    assert CONFIG.variable in PAGE.read_text()


def _default(default: object) -> str:
    if default is None:
        return "the platform's"
    if isinstance(default, tuple):
        return "`[" + ", ".join(f'"{item}"' for item in default) + "]`"
    return f"`{re.sub('[.]0$', '', str(default)).replace('False', 'false')}`"
