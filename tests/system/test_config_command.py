"""`swarmmemd config` and the common options, through a small group of the same make as the real one."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from swarmmemd.cli.config import config_command
from swarmmemd.cli.options import Root, common_options, given_flags, load_config
from swarmmemd.config.keys import KEYS, Kind
from swarmmemd.errors import ConfigError


@click.group(cls=Root)
@common_options
def group() -> None:
    """A swarm."""


@group.command()
@common_options
@click.pass_context
def where(ctx: click.Context) -> None:
    """Print the state directory."""
    click.echo(load_config(ctx).config.state_dir)


@group.group(cls=Root)
def nested() -> None:
    """Commands below a command."""


@nested.command("given")
@common_options
@click.pass_context
def nested_given(ctx: click.Context) -> None:
    """Print the flags given."""
    click.echo(json.dumps(given_flags(ctx)))


group.add_command(config_command)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HERMES_HOME", "HERMES_SWARM_MEMORY_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(group, args)


@pytest.mark.usefixtures("home")
def test_a_flag_counts_before_and_after_the_command_and_after_wins() -> None:
    assert run("--state-dir", "/a", "where").output == "/a\n"
    assert run("where", "--state-dir", "/b").output == "/b\n"
    assert run("--state-dir", "/a", "where", "--state-dir", "/b").output == "/b\n"


def test_flags_reach_commands_below_commands(home: Path) -> None:
    args = ["--config", "x.yaml", "--no-api-enabled", "nested", "given", "--workers-include", "a"]
    result = run(*args, "--workers-include", "b,c")
    expected = {"config": f"{home}/x.yaml", "api.enabled": False, "workers.include": ["a", "b,c"]}
    assert json.loads(result.output) == expected


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_each_key_is_a_flag(key: object) -> None:
    entry = next(item for item in KEYS if item is key)
    args = [entry.flag] if entry.kind is Kind.BOOL else [entry.flag, "1"]
    expected: object = True if entry.kind is Kind.BOOL else ["1"] if entry.many else "1"
    assert json.loads(run("nested", "given", *args).output) == {entry.name: expected}
    assert json.loads(run("nested", "given").output) == {}


def test_help_shows_the_roots_only() -> None:
    for args in (["-h"], ["config", "--help"]):
        output = run(*args).output
        assert "--state-dir" in output
        assert "--sweep-chat-s" not in output
    assert "swarmmemd config --json" in run("config", "-h").output


def test_a_misspelt_command_is_suggested_and_not_run() -> None:
    result = run("confg")
    assert result.exit_code == 2
    assert "Did you mean 'config'?" in result.output
    assert run("con").exit_code == 2
    assert "Did you mean" not in run("banana").output


def test_the_listing_has_a_line_for_each_key_with_its_origin(home: Path) -> None:
    file = home / "c.yaml"
    file.write_text("log: {level: debug}\nworkers: {include: [a, b]}\n")
    lines = run("config", "--config", "c.yaml", "--state-dir", "/s").stdout.splitlines()
    cells = {line.split()[0]: line for line in lines}
    assert list(cells) == ["file", *(key.name for key in KEYS)]
    assert cells["file"].endswith(f"  {file}")
    assert cells["log.level"].split() == ["log.level", "debug", "file", str(file)]
    assert '["a", "b"]' in cells["workers.include"]
    assert cells["state_dir"].endswith("flag --state-dir")
    assert len({line.rindex("  ") for line in lines[1:]}) == 1


def test_without_a_file_the_listing_says_where_it_would_be(home: Path) -> None:
    first = run("config").stdout.splitlines()[0]
    assert first.startswith("file")
    assert str(home) in first
    assert "config.yaml is not there" in first


def test_json_is_one_object(home: Path) -> None:
    (home / "hermes-workspace" / "memory").mkdir(parents=True)
    result = run("config", "--json", "--redact-patterns", "a+")
    found = json.loads(result.stdout)
    assert list(found) == ["schema", "file", "settings", "notices"]
    assert (found["schema"], found["file"]) == (1, None)
    settings = {item["key"]: item for item in found["settings"]}
    assert settings["redact.patterns"]["value"] == ["a+"]
    assert settings["redact.patterns"]["origin"] == "flag --redact-patterns"
    assert settings["shared_root"]["value"] == f"{home}/.openclaw/workspace/memory"
    assert "shared_root" in found["notices"][0]
    assert result.stderr == ""


def test_notices_go_to_stderr(home: Path) -> None:
    (home / "hermes-workspace" / "memory").mkdir(parents=True)
    result = run("config")
    assert result.stderr.startswith("Notice: shared_root is not set")
    assert "Notice" not in result.stdout


@pytest.mark.usefixtures("home")
def test_problems_are_left_to_the_main_group() -> None:
    result = run("config", "--state-dir", "x", "--retention-days", "long")
    assert isinstance(result.exception, ConfigError)
    assert len(result.exception.problems) == 2


def test_help_needs_neither_yaml_nor_msgspec() -> None:
    code = "import sys, swarmmemd.cli.config; print({'yaml', 'msgspec', 'platformdirs'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
