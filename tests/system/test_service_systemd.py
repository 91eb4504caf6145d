"""`swarmmemd service` against a live systemd user manager, with the command as it is installed."""

import json
import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from swarmmemd.install import unit
from tests.support.daemon import answered, dispatched, until
from tests.support.manager import SWARMMEMD, UserManager


@pytest.fixture(scope="module")
def live() -> Iterator[UserManager]:
    """One manager for all tests here."""
    manager = UserManager()
    try:
        manager.up()
        yield manager
    finally:
        manager.down()


@pytest.fixture
def user(live: UserManager) -> Iterator[UserManager]:
    """The manager with nothing installed, and less patience than usual."""
    live.quick()
    yield live
    live.clean()


def chown(user: UserManager, *names: str) -> None:
    """Gives folders of the home to the user."""
    entry = pwd.getpwnam(user.user)
    for name in names:
        os.chown(user.home / name, entry.pw_uid, entry.pw_gid)


def proc(user: UserManager, key: str) -> str:
    """A line of the daemon's /proc/PID/status."""
    lines = Path(f"/proc/{user.pid()}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{key}:"))


def test_installed_once_it_is_there_through_crash_hang_and_reboot(user: UserManager) -> None:
    user.write("w1", dispatched("m1"))
    assert user.asked("service", "install")["action"] == "installed"
    assert user.show("ActiveState") == "active"
    user.recorded("w1", "m1", "Paint the fence")
    first = user.pid()

    assert user.asked("service", "install")["action"] == "unchanged"
    assert user.pid() == first

    os.kill(first, signal.SIGKILL)
    user.write("w1", answered("m1", "Halfway", "IN_PROGRESS"))
    user.replaced(first)
    user.recorded("w1", "m1", "Halfway")

    hung = user.pid()
    os.kill(hung, signal.SIGSTOP)
    user.replaced(hung)

    until(lambda: "1 workers" in user.show("StatusText"), "a word about itself")
    told = user.asked("service", "status")
    assert told["supervisor"]["active"] == "active"
    assert told["supervisor"]["restarts"] >= 2
    assert told["daemon"]["running"]
    assert told["daemon"]["pid"] == told["supervisor"]["pid"] == user.pid()

    user.stop()
    user.up()
    until(lambda: user.show("SubState") == "running", "a start by itself after the reboot")
    user.write("w1", answered("m1", "Finished"))
    user.recorded("w1", "m1", "Finished")

    assert user.asked("service", "uninstall")["action"] == "removed"
    assert user.show("LoadState") == "not-found"
    assert user.asked("service", "uninstall")["action"] == "not installed"
    types = [one["type"] for one in user.lines("w1", "m1")]
    assert types == ["mission-start", "dispatch", "checkpoint", "checkpoint", "complete"]
    assert not list(user.home.rglob("*.wants/swarmmemd*"))
    assert user.swarmmemd("service", "status", code=3).stdout


def test_a_bad_configuration_is_not_tried_again(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.put(user.home / ".config/swarmmemd/config.yaml", "stat_dir: /nowhere\n")
    user.run("systemctl", "--user", "restart", "swarmmemd.service", code=1)
    until(lambda: user.show("ActiveState") == "failed", "the end")
    assert (user.show("NRestarts"), user.show("ExecMainStatus")) == ("0", "78")
    (user.home / ".config/swarmmemd/config.yaml").unlink()
    user.swarmmemd("service", "start")
    assert user.show("ActiveState") == "active"
    user.swarmmemd("service", "stop")
    assert (user.show("ActiveState"), user.show("Result")) == ("inactive", "success")
    user.swarmmemd("service", "restart")
    assert user.show("ActiveState") == "active"


def test_what_fails_for_ever_is_given_up_and_start_begins_anew(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.swarmmemd("service", "stop")
    journal = user.state / "journal.db"
    kept = journal.read_bytes()
    for path in user.state.glob("journal.db*"):
        path.unlink()
    user.put(journal, "no database" * 100)
    refused = user.swarmmemd("service", "start", code=1)
    assert "journal" in refused.stderr
    until(lambda: user.show("ActiveState") == "failed", "systemd to give up")
    assert user.asked("service", "status", code=3)["supervisor"]["gave_up"]
    journal.write_bytes(kept)
    user.swarmmemd("service", "start")
    assert user.show("ActiveState") == "active"


def test_an_install_that_fails_leaves_what_was_there(user: UserManager) -> None:
    broken = user.home / "broken"
    user.put(broken / "journal.db", "no database" * 100)
    refused = user.swarmmemd("--state-dir", str(broken), "service", "install", code=1)
    assert "The daemon cannot run" in refused.stderr
    assert "journal.db" in refused.stderr
    assert not user.unit.exists()
    assert user.show("LoadState") == "not-found"

    user.swarmmemd("service", "install")
    good, pid = user.unit.read_text(), user.pid()
    refused = user.swarmmemd("--state-dir", str(broken), "service", "install", code=1)
    assert "in place again" in refused.stderr
    assert user.unit.read_text() == good
    assert user.show("ActiveState") == "active"
    assert user.pid() != pid

    user.swarmmemd("service", "stop")
    user.swarmmemd("--state-dir", str(broken), "service", "install", code=1)
    assert user.unit.read_text() == good
    assert (user.show("ActiveState"), user.show("UnitFileState")) == ("inactive", "enabled")


def test_an_install_that_the_state_folder_refuses_leaves_nothing(user: UserManager) -> None:
    (user.home / ".local/state/swarmmemd").mkdir(parents=True)  # root's, as after sudo
    chown(user, ".local", ".local/state")
    user.state.chmod(0o700)
    refused = user.swarmmemd("service", "install", code=1)
    assert f"{user.state}: Permission denied" in refused.stderr
    assert "Nothing of it is left" in refused.stderr
    assert not user.unit.exists()
    assert user.show("LoadState") == "not-found"

    assert "cannot be told" in user.swarmmemd("service", "status", code=3).stdout
    found = user.asked("doctor", "--no-self-test", code=1)["findings"]
    assert {"root-denied", "state-denied"} <= {one["name"] for one in found}


def test_what_is_denied_is_not_tried_again_and_doctor_names_the_file(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.swarmmemd("service", "stop")
    journal = user.state / "journal.db"
    os.chown(journal, 0, 0)
    refused = user.swarmmemd("service", "start", code=1)
    assert f"{journal}: Permission denied" in refused.stderr
    assert (user.show("ActiveState"), user.show("NRestarts")) == ("failed", "0")
    assert user.show("ExecMainStatus") == "77"
    (user.state / "last-exit.json").unlink()
    found = user.asked("doctor", "--no-self-test", code=1)["findings"]
    assert {"journal", "owner", "failed"} <= {one["name"] for one in found}
    assert any(str(journal) in one["what"] for one in found)


def test_doctor_goes_on_where_a_root_is_closed(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    closed = user.home / ".hermes"
    closed.mkdir(mode=0o700)
    os.chown(user.state / "inbox", 0, 0)
    found = user.asked("doctor", "--no-self-test", code=1)["findings"]
    assert any(one["name"] == "root-denied" and ".hermes/profiles" in one["what"] for one in found)
    assert any(one["name"] == "closed" and str(user.state / "inbox") in one["what"] for one in found)
    assert "linger" in [one["name"] for one in found]


def test_an_install_beside_a_daemon_names_it(user: UserManager) -> None:
    user.run("mkdir", "-p", str(user.profiles))
    user.run("bash", "-c", f"{SWARMMEMD} run >{user.home}/log 2>&1 & echo $! >{user.home}/pid")
    try:
        until(lambda: user.swarmmemd("status", code=None).returncode == 0, "the other daemon")
        refused = user.swarmmemd("service", "install", code=1)
        assert f"process {(user.home / 'pid').read_text().strip()}" in refused.stderr
        assert not user.unit.exists()
    finally:
        user.run("bash", "-c", f"kill $(cat {user.home}/pid)")
    until(lambda: user.swarmmemd("status", code=None).returncode == 3, "its end")


def test_a_unit_edited_by_hand_is_kept(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    edited = user.unit.read_text().replace("Nice=5", "Nice=7")
    user.put(user.unit, edited)
    refused = user.swarmmemd("service", "install", code=1)
    assert "-Nice=7" in refused.stderr
    assert "+Nice=5" in refused.stderr
    assert user.unit.read_text() == edited
    assert user.asked("service", "install", "--force")["action"] == "updated"
    assert "Nice=5" in user.unit.read_text()
    saved = user.unit.with_name("swarmmemd.service.saved")
    assert saved.read_text() == edited
    saved.unlink()
    user.put(user.unit, edited)
    assert user.asked("service", "uninstall")["saved"] == str(saved)
    assert (saved.read_text(), user.unit.exists()) == (edited, False)


def test_a_unit_that_is_a_link_is_somebody_s(user: UserManager) -> None:
    kept = user.home / "dotfiles/swarmmemd.service"
    user.put(kept, user.swarmmemd("service", "install", "--print").stdout)
    user.run("mkdir", "-p", str(user.unit.parent))
    user.run("ln", "-s", str(kept), str(user.unit))
    assert "not made by" in user.swarmmemd("service", "install", code=1).stderr
    user.swarmmemd("service", "install", "--force")
    assert (user.unit.is_symlink(), kept.exists()) == (False, True)
    assert user.asked("service", "install")["action"] == "unchanged"


def test_a_program_with_a_dollar_in_its_path_is_started(user: UserManager) -> None:
    script = user.home / "a $b%c/swarmmemd"
    user.put(script, f'#!/bin/sh\nexec {SWARMMEMD} "$@"\n')
    script.chmod(0o755)
    state = str(user.home / "a $b%c/state")
    user.put(
        user.unit, unit.marked_unit((str(script), "--state-dir", state, "run", "--supervisor", "systemd"))
    )
    user.run("systemctl", "--user", "daemon-reload")
    user.swarmmemd("--state-dir", state, "service", "start")
    assert user.show("ActiveState") == "active"
    assert Path(state, "lock").exists()


LOGINCTL = """#!/bin/sh
echo "$@" >> {home}/asked
{does}
"""


def test_lingering_is_turned_on_when_asked_for_and_named(user: UserManager) -> None:
    mark = Path("/var/lib/systemd/linger", user.user)
    made = not mark.parent.exists()
    mode = 0o755 if made else mark.parent.stat().st_mode
    mark.parent.mkdir(parents=True, exist_ok=True)
    fake = user.home / "fake/loginctl"
    with_fake = ("env", f"PATH={fake.parent}:/usr/bin:/bin", SWARMMEMD, "service", "install", "--linger")

    def loginctl(does: str) -> None:
        user.put(fake, LOGINCTL.format(home=user.home, does=does))
        fake.chmod(0o755)

    loginctl("echo 'Could not enable linger: Access denied' >&2; exit 1")
    refused = user.run(*with_fake, code=1)
    assert "Access denied" in refused.stderr
    assert f"sudo loginctl enable-linger {user.user}" in refused.stderr
    assert not user.unit.exists(), "it was asked for as a whole"
    assert f"loginctl enable-linger {user.user}" in user.run(*with_fake, "--dry-run").stdout

    # The account of logind may write there; the user may not, and so the folder is lent to it.
    mark.parent.chmod(0o777)
    try:
        loginctl(f"touch {mark}")
        told = json.loads(user.run(*with_fake, "--json").stdout)
        assert (told["action"], told["stays"]) == ("installed", True)
        assert (user.home / "asked").read_text().splitlines() == [f"enable-linger {user.user}"] * 2
        assert json.loads(user.run(*with_fake, "--json").stdout)["action"] == "unchanged"
        assert len((user.home / "asked").read_text().splitlines()) == 2, "what is on is not turned on again"
        assert "linger" not in [
            one["name"] for one in user.asked("doctor", "--no-self-test", code=None)["findings"]
        ]
        assert str(mark) in user.asked("service", "uninstall")["stays"]
        assert mark.exists()
    finally:
        mark.unlink(missing_ok=True)
        mark.parent.chmod(mode)
        if made:
            mark.parent.rmdir()


def test_in_a_shell_of_su_the_user_s_own_manager_is_asked(user: UserManager) -> None:
    own = f"/run/user/{pwd.getpwnam(user.user).pw_uid}"
    for given in ("-u", "XDG_RUNTIME_DIR"), ("XDG_RUNTIME_DIR=/root",):
        user.run("env", *given, SWARMMEMD, "service", "install")
        assert user.show("ActiveState") == "active", own


def test_a_second_daemon_by_mistake_is_not_why_the_first_one_is_down(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    assert "Another swarmmemd holds" in user.swarmmemd("run", code=75).stderr
    user.swarmmemd("service", "stop")
    assert user.asked("service", "status", code=3)["last_exit"] is None
    names = [one["name"] for one in user.asked("doctor", "--no-self-test", code=1)["findings"]]
    assert "not-running" in names
    assert "last-exit" not in names


def test_with_a_configuration_that_cannot_be_used_one_can_look_and_uninstall(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.put(user.home / ".config/swarmmemd/config.yaml", "stat_dir: /nowhere\n")
    assert user.asked("service", "status")["daemon"]["running"]
    assert "ready" in user.swarmmemd("service", "logs").stdout
    refused = user.swarmmemd("service", "restart", code=78)
    assert "stat_dir" in refused.stderr
    assert user.show("ActiveState") == "active", "what runs is not given up for what cannot"
    assert user.asked("service", "uninstall")["action"] == "removed"


def test_a_shared_folder_that_is_closed_keeps_no_worker_from_its_memory(user: UserManager) -> None:
    shared = user.home / ".openclaw/workspace/memory"
    user.run("mkdir", "-p", str(shared), str(user.profiles))
    user.swarmmemd("service", "install")
    shared.rename(shared.with_name("kept"))
    shared.mkdir(mode=0o700)  # root's, as after sudo
    user.write("w1", dispatched("m1"))
    user.recorded("w1", "m1", "Paint the fence")
    until(lambda: "shared root" in user.swarmmemd("status").stdout, "the trouble")
    lines = [
        line for line in user.swarmmemd("service", "logs").stdout.splitlines() if "what=shared root" in line
    ]
    assert len(lines) == 1
    chown(user, ".openclaw/workspace/memory")
    until(lambda: "shared root" not in user.swarmmemd("status").stdout, "it to be well again")


def test_a_state_folder_that_was_taken_away_is_no_riddle(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.state.rename(user.home / "kept")
    assert "holds no lock" in user.swarmmemd("service", "status", code=3).stdout
    found = user.asked("doctor", "--no-self-test", code=1)["findings"]
    assert "other-state" in [one["name"] for one in found]
    user.swarmmemd("service", "restart")
    assert user.asked("service", "status")["daemon"]["by_service"]


def test_systemd_is_told_how_far_it_is(user: UserManager) -> None:
    user.write("w1", dispatched("m1"))
    user.swarmmemd("service", "install")
    until(lambda: "2 events since the start, the last at 20" in user.show("StatusText"), "its last event")
    user.put(user.profiles / "w1/runtime.json", "{ half")
    until(lambda: "degraded since 20" in user.show("StatusText"), "what is wrong")


def test_an_older_unit_that_would_win_is_set_aside_by_force_only(user: UserManager) -> None:
    older = user.home / ".config/systemd/user/swarmmemd.service"
    user.put(older, "[Service]\nExecStart=/bin/false\n")
    assert str(older) in user.swarmmemd("service", "install", code=1).stderr
    assert older.exists()
    assert not user.unit.exists()
    user.swarmmemd("service", "install", "--force")
    assert user.show("FragmentPath") == str(user.unit)
    assert older.with_name("swarmmemd.service.saved").exists()


def test_an_older_unit_comes_back_where_the_install_fails(user: UserManager) -> None:
    older = user.home / ".config/systemd/user/swarmmemd.service"
    text = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=default.target\n"
    user.put(older, text)
    user.run("systemctl", "--user", "daemon-reload")
    user.run("systemctl", "--user", "enable", "--now", "swarmmemd.service")
    broken = user.home / "broken"
    user.put(broken / "journal.db", "no database" * 100)
    user.swarmmemd("--state-dir", str(broken), "service", "install", "--force", code=1)
    assert older.read_text() == text
    assert not user.unit.exists()
    assert (user.show("ActiveState"), user.show("UnitFileState")) == ("active", "enabled")

    user.swarmmemd("service", "install", "--force")
    assert (user.show("FragmentPath"), user.show("UnitFileState")) == (str(user.unit), "enabled")


def test_uninstall_leaves_a_service_that_is_not_ours(user: UserManager) -> None:
    older = user.home / ".config/systemd/user/swarmmemd.service"
    user.put(older, "[Service]\nExecStart=/bin/sleep 1000\n")
    user.run("systemctl", "--user", "daemon-reload")
    user.run("systemctl", "--user", "start", "swarmmemd.service")
    for _ in range(2):
        told = user.asked("service", "uninstall")
        assert (told["action"], told["other"]) == ("not installed", str(older))
    assert (user.show("ActiveState"), older.exists()) == ("active", True)


def test_uninstall_ends_a_service_whose_file_is_gone(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    user.unit.unlink()
    user.run("systemctl", "--user", "daemon-reload")
    assert user.show("ActiveState") == "active"
    assert user.asked("service", "uninstall")["action"] == "removed"
    assert user.show("ActiveState") == "inactive"
    assert user.asked("service", "uninstall")["action"] == "not installed"


def test_the_sandbox_is_in_force_and_can_be_left_out(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    assert (proc(user, "Seccomp"), proc(user, "NoNewPrivs")) == ("2", "1")
    assert Path(f"/proc/{user.pid()}/oom_score_adj").read_text().strip() == "200"
    assert user.asked("service", "install", "--no-hardening")["action"] == "updated"
    assert (proc(user, "Seccomp"), proc(user, "NoNewPrivs")) == ("0", "0")


def test_the_api_answers_from_the_sandbox(user: UserManager) -> None:
    file = user.home / ".config/swarmmemd/config.yaml"
    user.put(file, "api: {enabled: true, listen: '127.0.0.1:0'}\n")
    user.swarmmemd("service", "install")
    address = json.loads((user.state / "status.json").read_bytes())["api"]
    token = (user.state / "token").read_text().strip()
    asked = Request(f"{address}/api/workers", headers={"Authorization": f"Bearer {token}"})
    with urlopen(asked, timeout=20) as answer:
        assert json.load(answer)["running"] is True
    file.unlink()


def test_with_the_drop_in_only_the_written_folders_can_be_written(user: UserManager) -> None:
    inside, outside = user.profiles / "inside", user.home / "outside"
    user.write("w1", dispatched("m1"))
    attempts = "RestartSec=100ms\n" + "".join(
        f"ExecStartPre=-/usr/bin/touch {path}\n" for path in (inside, outside)
    )
    user.put(user.drop_ins / "namespaces.conf", unit.NAMESPACES)
    user.quick(attempts)
    user.run("mkdir", "-p", str(user.home / ".openclaw/workspace/memory"), str(user.state))
    user.swarmmemd("service", "install")
    assert inside.exists()
    assert not outside.exists()
    user.recorded("w1", "m1", "Paint the fence")


def test_a_daemon_that_the_manager_does_not_know_is_no_secret(user: UserManager) -> None:
    user.swarmmemd("service", "install")
    pid = user.pid()
    user.unit.unlink()
    user.run("systemctl", "--user", "daemon-reload")
    told = user.asked("service", "status")
    assert told["definition"]["state"] == "missing"
    assert (told["daemon"]["running"], told["daemon"]["pid"]) == (True, pid)
    assert user.asked("service", "install")["action"] == "installed"


def test_doctor_finds_nothing_on_a_healthy_installation(user: UserManager) -> None:
    user.run("mkdir", "-p", str(user.profiles))
    lingers = Path("/var/lib/systemd/linger", user.user)
    kept = lingers.parent.exists()
    lingers.parent.mkdir(parents=True, exist_ok=True)
    lingers.touch()
    try:
        user.swarmmemd("service", "install")
        told = user.asked("doctor", code=None)
        assert told == {"schema": 1, "ok": True, "findings": []}
        lingers.unlink()
        found = user.asked("doctor", "--no-self-test", code=1)["findings"]
        assert [one["name"] for one in found] == ["linger"]
        (user.profiles / "w1/memory").mkdir(parents=True)
        (user.profiles / "w1/memory/MEMORY.md").touch()
        found = user.asked("doctor", "--no-self-test", code=1)["findings"]
        assert [one["name"] for one in found] == ["owner", "linger"]
    finally:
        lingers.unlink(missing_ok=True)
        if not kept:
            lingers.parent.rmdir()


def test_without_a_bus_nothing_is_written_and_the_way_out_is_told(user: UserManager) -> None:
    refused = user.run("env", "XDG_RUNTIME_DIR=/nowhere", SWARMMEMD, "service", "install", code=69)
    assert "enable-linger" in refused.stderr
    assert not user.unit.exists()


def test_what_would_be_done_is_shown_and_not_done(user: UserManager) -> None:
    shown = user.asked("service", "install", "--dry-run")
    assert (shown["action"], shown["dry_run"]) == ("installed", True)
    assert shown["argv"][0] == SWARMMEMD
    printed = user.swarmmemd("service", "install", "--print").stdout
    assert f"ExecStart={SWARMMEMD} run" in printed
    assert not user.unit.exists()
    user.swarmmemd("service", "install")
    assert user.unit.read_text() == printed
    assert user.asked("service", "uninstall", "--dry-run")["action"] == "removed"
    assert user.unit.exists()


def test_a_real_journald_has_each_line_with_its_priority(user: UserManager) -> None:
    user.journald()
    user.run("mkdir", "-p", str(user.home / "hermes-workspace/memory"))  # worth a warning
    user.swarmmemd("service", "install")
    until(lambda: any('"ready"' in line["MESSAGE"] for line in user.journal()), "the daemon's lines")
    levels = {json.loads(line["MESSAGE"])["event"]: line["PRIORITY"] for line in user.journal()}
    assert (levels["notice"], levels["ready"]) == ("4", "6")
