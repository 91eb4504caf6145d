"""The service files: accepted by systemd's own check, and right where that check is blind.

`systemd-analyze verify` passes keys that do nothing, or that keep a user unit from starting; those are looked
at here. docs/operations.md.
"""

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "systemd" / "swarmmemd.service"
PLIST = ROOT / "launchd" / "com.swarmmemd.agent.plist"

# In a user unit these end the service at once, or need namespaces that are not there everywhere.
_HARMFUL = frozenset(
    {"User", "Group", "DynamicUser", "PrivateDevices", "ProtectKernelModules", "ProtectKernelLogs"}
    | {"ProtectClock", "CapabilityBoundingSet", "AmbientCapabilities", "TemporaryFileSystem", "LogNamespace"}
    | {"BindPaths", "BindReadOnlyPaths", "RootDirectory", "SecureBits", "PrivateUsers"}
)
# In a user unit these are accepted and do nothing: a promise that is not kept.
_EMPTY_PROMISES = frozenset(
    {"ProtectSystem", "ProtectHome", "ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths", "PrivateTmp"}
    | {"PrivateMounts", "PrivateIPC", "PrivateNetwork", "NoExecPaths", "ProcSubset", "ProtectProc"}
    | {"ProtectControlGroups", "IPAddressDeny"}
)


def unit_settings() -> dict[str, dict[str, str]]:
    """Section to key to value. A key that stands twice would be a list; ours has none."""
    sections: dict[str, dict[str, str]] = {}
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section = sections[list(sections)[-1]]
            assert key not in section, f"{key} stands twice"
            section[key] = value
    return sections


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        assert not os.environ.get("SWARMMEMD_CI"), "systemd-analyze is needed in CI; .ci/run installs it"
        pytest.skip("no systemd-analyze here")
    script = Path(sys.prefix) / "bin" / "swarmmemd"
    text = UNIT.read_text().replace("%h/.local/bin/swarmmemd", str(script))
    copy = tmp_path / UNIT.name
    copy.write_text(text)
    done = subprocess.run(
        [tool, "--user", "verify", "--man=no", "--recursive-errors=yes", str(copy)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert UNIT.name not in done.stderr


def test_the_unit_is_not_less_confined_than_it_was() -> None:
    """A ratchet on systemd's own score of the text. What holds in effect is tested with a live manager."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze here")
    done = subprocess.run(
        [tool, "security", "--offline=true", "--threshold=62", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-300:]


def test_the_unit_starts_the_daemon_and_hears_of_its_start() -> None:
    service = unit_settings()["Service"]
    assert service["ExecStart"] == "%h/.local/bin/swarmmemd run --supervisor systemd"
    assert service["Type"] == "notify"
    assert service["NotifyAccess"] == "main"
    assert int(service["WatchdogSec"]) >= 60, "a busy machine is no reason to end it"


def test_the_unit_restarts_only_what_a_restart_can_mend() -> None:
    unit = unit_settings()
    service = unit["Service"]
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"].split() == ["2", "75", "77", "78"]
    assert service["RestartSec"] == "5"
    assert service["TimeoutStopSec"] == "30"
    assert service["KillMode"] == "mixed"
    assert int(service["OOMScoreAdjust"]) > 0, "the user's manager and agents come first"
    assert {"StartLimitIntervalSec", "StartLimitBurst"} <= unit["Unit"].keys()
    # The limit must be within reach: five starts, five seconds apart, are over long before the interval.
    waits = int(service["RestartSec"]) * int(unit["Unit"]["StartLimitBurst"])
    assert waits < int(unit["Unit"]["StartLimitIntervalSec"])


def test_the_unit_starts_at_login_and_waits_for_nothing() -> None:
    unit = unit_settings()
    assert unit["Install"] == {"WantedBy": "default.target"}
    assert not {"After", "Wants", "Requires", "BindsTo"} & unit["Unit"].keys()


def test_memory_files_keep_the_umask_of_the_account() -> None:
    assert "UMask" not in unit_settings()["Service"]
    assert "Umask" not in plist()


def test_the_hardening_is_what_works_in_a_user_unit() -> None:
    keys = unit_settings()["Service"].keys()
    assert not keys & _HARMFUL
    assert not keys & _EMPTY_PROMISES
    assert {"NoNewPrivileges", "SystemCallFilter", "RestrictNamespaces", "RestrictSUIDSGID"} <= keys
    assert "StateDirectory" not in keys, "its place depends on the version of systemd"


def plist() -> dict[str, Any]:
    """The agent's definition."""
    found = plistlib.loads(PLIST.read_bytes())
    assert isinstance(found, dict)
    return found


def test_the_plist_is_named_after_its_label() -> None:
    assert plist()["Label"] == PLIST.stem


def test_the_plist_names_the_program_absolutely() -> None:
    arguments = plist()["ProgramArguments"]
    assert arguments == ["/Users/YOU/.local/bin/swarmmemd", "run", "--supervisor", "launchd"]
    assert Path(arguments[0]).name == "swarmmemd", "what macOS shows among the login items"
    assert not any(sign in PLIST.read_text().partition("<dict>")[2] for sign in ("~", "$"))


def test_the_plist_holds_the_keys_that_are_known_with_their_types() -> None:
    types = {
        "Label": str,
        "ProgramArguments": list,
        "RunAtLoad": bool,
        "KeepAlive": dict,
        "ThrottleInterval": int,
        "ExitTimeOut": int,
        "ProcessType": str,
        "LowPriorityBackgroundIO": bool,
        "Nice": int,
        "SoftResourceLimits": dict,
        "LimitLoadToSessionType": list,
        "WorkingDirectory": str,
        "EnvironmentVariables": dict,
        "StandardErrorPath": str,
    }
    found = plist()
    assert {key: type(value) for key, value in found.items()} == types
    assert all(isinstance(one, str) for one in found["EnvironmentVariables"].values())
    assert all(isinstance(one, int) for one in found["SoftResourceLimits"].values())
    assert set(found["LimitLoadToSessionType"]) <= {"Aqua", "Background"}
    assert found["KeepAlive"] == {"SuccessfulExit": False}
    assert (found["ThrottleInterval"], found["ProcessType"]) == (10, "Background")


def test_no_key_of_the_plist_stands_twice() -> None:
    """plistlib takes the last of two."""
    keys = [line for line in PLIST.read_text().splitlines() if "<key>" in line]
    assert len(keys) == len(set(keys))
    assert len([key for key in keys if key.startswith("\t<")]) == len(plist())
