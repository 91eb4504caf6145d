"""Which program a service runs: the environment's own script, unresolved, and never one that will be gone."""

import os
import sys
from pathlib import Path

import pytest

from swarmmemd.config import Account, Loaded, load
from swarmmemd.errors import ServiceError
from swarmmemd.install.program import check, find_program


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def environment(place: Path, says: str = "swarmmemd 0.1.0") -> Path:
    """A virtual environment with a console script; its interpreter is a link to the base one, as in a real one."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    script = place / "bin" / "swarmmemd"
    script.write_text(f"#!/bin/sh\necho {says}\n")
    script.chmod(0o755)
    return place


def loaded(home: Path, environ: dict[str, str] | None = None, **flags: object) -> Loaded:
    """The configuration of a shell with this environment."""
    return load(flags, {"HOME": str(home), **(environ or {})}, Account(home))


def argv(
    home: Path, prefix: Path, configured: Loaded | None = None, kind: str = "systemd"
) -> tuple[str, ...]:
    """What the service would run."""
    return find_program(kind, home, configured or loaded(home), Account(home), str(prefix)).argv


def test_the_script_is_the_environment_s_own_and_no_link_is_resolved(home: Path, tmp_path: Path) -> None:
    real = environment(tmp_path / "real")
    prefix = tmp_path / "linked"
    prefix.symlink_to(real)
    assert argv(home, prefix) == (f"{prefix}/bin/swarmmemd", "run", "--supervisor", "systemd")


def test_the_shim_of_pipx_and_uv_is_taken_where_it_leads_here(home: Path, tmp_path: Path) -> None:
    prefix, other = environment(tmp_path / "venv"), environment(tmp_path / "other")
    shim = home / ".local/bin/swarmmemd"
    shim.parent.mkdir(parents=True)
    shim.symlink_to(prefix / "bin/swarmmemd")
    assert argv(home, prefix)[0] == str(shim)
    assert argv(home, other)[0] == f"{other}/bin/swarmmemd"
    (prefix / "bin/swarmmemd").unlink()
    assert argv(home, other)[0] == f"{other}/bin/swarmmemd"


@pytest.mark.parametrize("place", [".cache/uv/archive-v0/x1", "Library/Caches/uv/x", ".local/pipx/.cache/a"])
def test_an_environment_that_will_be_cleaned_away_is_refused(home: Path, place: str) -> None:
    with pytest.raises(ServiceError, match="cleaned away"):
        argv(home, environment(home / place))


@pytest.mark.parametrize("folder", ["Documents", "Desktop", "Downloads", "Library/Mobile Documents"])
def test_macos_starts_nothing_from_a_protected_folder(home: Path, folder: str) -> None:
    prefix = environment(home / folder / "project/.venv")
    with pytest.raises(ServiceError, match="no service start from"):
        argv(home, prefix, kind="launchd")
    assert argv(home, prefix)[0].endswith("swarmmemd")


def test_an_interpreter_without_the_script_is_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="no swarmmemd of its own"):
        argv(home, tmp_path)


def test_a_checkout_s_environment_is_warned_about(home: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    found = find_program("systemd", home, loaded(home), Account(home), str(environment(tmp_path / ".venv")))
    assert any("checkout" in warning for warning in found.warnings)


def test_a_script_that_does_not_run_by_itself_is_refused_before_anything_is_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    good = environment(tmp_path / "good", "swarmmemd ${PYTHONPATH:-0.1.0}")
    assert check(good / "bin/swarmmemd", home) == "0.1.0"
    base = environment(tmp_path / "base", "No module named swarmmemd")
    with pytest.raises(ServiceError, match="does not run by itself"):
        check(base / "bin/swarmmemd", home)
    (base / "bin/swarmmemd").write_text(f"#!{tmp_path}/gone/python\n")
    with pytest.raises(ServiceError, match="does not run by itself"):
        check(base / "bin/swarmmemd", home)


def test_roots_that_the_service_would_not_find_become_flags(home: Path, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "venv")
    plain = argv(home, prefix)
    elsewhere = {"HERMES_HOME": "/srv/hermes", "XDG_STATE_HOME": "/srv/state"}
    found = argv(home, prefix, loaded(home, elsewhere))
    assert found[: len(plain)] == plain
    assert found[len(plain) :] == (
        *("--profiles-root", "/srv/hermes/profiles"),
        *("--state-dir", "/srv/state/swarmmemd"),
    )


def test_a_file_that_the_service_would_not_find_is_named(home: Path, tmp_path: Path) -> None:
    prefix, file = environment(tmp_path / "venv"), tmp_path / "other.yaml"
    file.write_text("shared_root: /srv/shared\n")
    named = loaded(home, {"SWARMMEMD_CONFIG": str(file)})
    assert argv(home, prefix, named)[4:] == ("--config", str(file))
    default = home / ".config/swarmmemd/config.yaml"
    default.parent.mkdir(parents=True)
    default.write_text("shared_root: /srv/shared\n")
    assert argv(home, prefix)[4:] == ()


def test_what_else_the_shell_sets_is_said_and_not_taken(home: Path, tmp_path: Path) -> None:
    prefix = environment(tmp_path / "venv")
    shell = loaded(home, {"SWARMMEMD_LOG_LEVEL": "debug", "SWARMMEMD_REDACT_ALLOW": "s3cr3t"})
    found = find_program("systemd", home, shell, Account(home), str(prefix))
    assert found.argv == argv(home, prefix)
    assert [warning.split()[0] for warning in found.warnings] == ["redact.allow", "log.level"]
    assert not any("s3cr3t" in warning for warning in found.warnings)
