"""The commands as a person or a script meets them, in processes of their own."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swarmmemd.cli.main import swarmmemd_group
from tests.support.daemon import Daemon, Home, answered, dispatched, running, until

COMMANDS = sorted(swarmmemd_group.list_commands(swarmmemd_group.make_context("swarmmemd", ["run"])))
_HOSTILE = "\x1b]0;owned\x07\x1b[31mred\r\n## Heading\x9b2J \u202etxt.exe\u200e\u061c\u2028a"
_CONTROLS = [
    chr(code)
    for code in (*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F, 0x9B, 0x202E, 0x200E, 0x061C, 0x2028)
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with ten events of three workers, recorded by `once`, no daemon."""
    home = Home(tmp_path_factory.mktemp("told") / "home")
    for worker in ("builder-1", "painter-2", "scout-3"):
        home.write(worker, dispatched("mission-1", f"Task of {worker}"))
    assert home.command("once").returncode == 0
    home.write("builder-1", answered("mission-1", "The shed stands"))
    home.write("painter-2", answered("mission-1", "There is no paint", "BLOCKED"))
    home.write("scout-3", answered("mission-1", "Half of the way", "IN_PROGRESS"))
    assert home.command("once").returncode == 0
    assert len(home.events()) == 10
    return home


def lines(home: Home, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """The objects that `tail --json` prints."""
    done = home.command("tail", "--json", *arguments)
    assert (done.returncode, done.stderr) == (code, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


# Help and usage


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(home: Home, command: str) -> None:
    done = home.command(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    examples = done.stdout.partition("Examples:\n")[2]
    assert f"swarmmemd {command}" in examples
    assert all(len(line) <= 120 for line in done.stdout.splitlines())
    assert not home.state.exists()


def test_the_list_of_commands_names_each_of_them(home: Home) -> None:
    done = home.command("--help")
    assert done.returncode == 0
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)
    examples = re.findall(r"^ +swarmmemd (\S+)", done.stdout.partition("Examples:\n")[2], re.M)
    assert len(examples) >= 3
    assert set(examples) <= set(COMMANDS)


def test_an_unknown_command_is_suggested(home: Home) -> None:
    done = home.command("statsu")
    assert done.returncode == 2
    assert "Did you mean 'status'?" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["tail", "--type", "chekpoint"],
        ["tail", "--since", "yesterday"],
        ["tail", "-n", "many"],
        ["show"],
        ["show", "--worker", "../escape"],
        ["show", "--worker", "builder-1", "--mission", "../escape"],
        ["show", "--worker", "builder-1", "--kind", "episodic", "--date", "../x"],
        ["show", "--worker", "builder-1", "--kind", "episodic", "--date", "2026-13-45"],
        ["show", "--worker", "builder-1", "--date", "2026-02-29"],
        ["tail", "--since", "2026-13-45"],
        ["tail", "--after", "-1"],
        ["tail", "-n", "-1"],
        ["tail", "--after", "9" * 30],
        ["tail", "-n", "9" * 30],
        ["service", "logs", "-n", "9" * 30],
        ["search", "--since", "2026-13-45", "x"],
        ["backfill", "--since", "2026-13-45"],
        ["status", "--no-such-flag"],
        ["run", "--supervisor", "cron"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_told_without_a_traceback(home: Home, arguments: list[str]) -> None:
    done = home.command(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_flag_counts_before_and_after_the_command(told: Home, home: Home) -> None:
    command = home.arguments("status")[:3]

    def backlog_of(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments, "--json"],
            env=home.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = backlog_of("--state-dir", str(told.state), "tail")
    after = backlog_of("tail", "--state-dir", str(told.state))
    last = backlog_of("--state-dir", "/nowhere", "tail", "--state-dir", str(told.state))
    assert before == after == last
    assert len(before.splitlines()) == 10


# status, config and once


def test_status_says_3_when_down_and_0_when_up(home: Home) -> None:
    done = home.command("status")
    assert done.returncode == 3
    assert "not running" in done.stdout
    assert json.loads(home.command("status", "--json").stdout)["running"] is False
    home.write("builder-1", dispatched("mission-1"))
    with running(home) as daemon:
        home.looked_at()
        assert home.command("status").returncode == 0
        until(lambda: [w["mission"] for w in home.figures()["workers"]] == ["mission-1"], "the mission")
        done = home.command("status", "--json")
        assert done.returncode == 0
        found = json.loads(done.stdout)
        assert (found["running"], found["pid"], found["schema"]) == (True, daemon.process.pid, 1)
        assert found["roots"]["profiles"] == str(home.profiles)
        (worker,) = found["workers"]
        assert (worker["worker"], worker["mission"], worker["status"]) == (
            "builder-1",
            "mission-1",
            "executing",
        )
        assert f"process {daemon.process.pid}" in home.command("status").stdout
        daemon.kill()
        assert home.command("status").returncode == 3
        assert json.loads(home.command("status", "--json").stdout)["running"] is False


def test_status_without_a_readable_file_of_figures(home: Home) -> None:
    with running(home):
        home.looked_at()
    for content in (b"", b"{", b"[]", b"\xff"):
        (home.state / "status.json").write_bytes(content)
        done = home.command("status", "--json")
        assert done.returncode == 3
        assert json.loads(done.stdout)["running"] is False


def test_config_is_one_object(home: Home) -> None:
    done = home.command("config", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    settings = {setting["key"]: setting for setting in json.loads(done.stdout)["settings"]}
    assert settings["state_dir"] == {
        "key": "state_dir",
        "value": str(home.state),
        "origin": "flag --state-dir",
    }
    assert settings["profiles_root"]["value"] == str(home.profiles)


def test_once_without_a_daemon_records_and_twice_is_once(home: Home) -> None:
    home.write("builder-1", dispatched("mission-1"))
    first = home.command("once")
    assert first.returncode == 0
    assert "2 new events" in first.stdout
    files = {path: path.read_bytes() for path in home.profiles.rglob("*") if path.is_file()}
    second = home.command("once")
    assert second.returncode == 0
    assert "0 new events" in second.stdout
    assert {path: path.read_bytes() for path in home.profiles.rglob("*") if path.is_file()} == files
    assert home.types() == ["mission-start", "dispatch"]
    assert home.backlog() == (0, 0)


def test_once_beside_a_daemon_waits_until_it_has_looked(home: Home) -> None:
    with running(home):
        for number in range(5):
            home.write(f"builder-{number}", dispatched("mission-1"))
            done = home.command("once")
            assert (done.returncode, done.stderr) == (0, "")
            assert len(home.events()) == 2 * (number + 1)
    assert not list((home.state / "inbox").glob("*.request"))


# tail


def test_tail_shows_the_newest(told: Home) -> None:
    assert [event["seq"] for event in lines(told)] == list(range(1, 11))
    assert [event["seq"] for event in lines(told, "-n", "3")] == [8, 9, 10]
    assert lines(told, "-n", "0", code=1) == []
    rows = told.command("tail", "-n", "2").stdout.splitlines()
    assert len(rows) == 2
    assert "builder-1" in told.command("tail", "--worker", "builder-1").stdout


def test_tail_shows_the_events_as_they_stand_in_the_files(told: Home) -> None:
    shown = [
        {key: value for key, value in event.items() if key != "seq"}
        for event in lines(told, "--worker", "painter-2")
    ]
    file = told.mission("painter-2", "mission-1") / "events.jsonl"
    assert shown == [json.loads(line) for line in file.read_text().splitlines()]
    assert list(shown[0])[:6] == ["at", "type", "workerId", "missionId", "assignmentId", "summary"]


def test_tail_filters(told: Home) -> None:
    assert {event["workerId"] for event in lines(told, "--worker", "scout-3")} == {"scout-3"}
    assert [event["type"] for event in lines(told, "--type", "blocked")] == ["blocked"]
    assert len(lines(told, "--mission", "mission-1", "--worker", "builder-1")) == 4
    assert lines(told, "--mission", "mission-2", code=1) == []
    since = "2026-04-24T03:07:00Z"
    assert all(event["at"] >= since for event in lines(told, "--since", since))
    assert len(lines(told, "--since", since)) == 4
    assert len(lines(told, "--since", "2026-04-24T05:07:00+02:00")) == 4


def test_tail_resumes_exactly(told: Home) -> None:
    for after in range(11):
        shown = lines(told, "--after", str(after), code=0 if after < 10 else 1)
        assert [event["seq"] for event in shown] == list(range(after + 1, 11))


@pytest.mark.parametrize(
    ("after", "count", "seqs"), [(0, 2, [9, 10]), (8, 5, [9, 10]), (3, 1, [10]), (3, 0, [])]
)
def test_tail_shows_the_newest_after_a_number(told: Home, after: int, count: int, seqs: list[int]) -> None:
    shown = lines(told, "--after", str(after), "-n", str(count), code=0 if seqs else 1)
    assert [event["seq"] for event in shown] == seqs


def test_tail_without_a_journal_says_how_to_begin(home: Home) -> None:
    done = home.command("tail")
    assert done.returncode == 74
    assert "swarmmemd run" in done.stderr
    assert "Traceback" not in done.stderr
    assert not home.state.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["tail"],
        ["tail", "--json"],
        ["handoff", "show", "swarm5"],
        ["handoff", "history", "swarm5"],
        ["verify"],
        ["rebuild", "--dry-run"],
    ],
    ids=" ".join,
)
def test_a_journal_with_nothing_in_it_is_no_answer(home: Home, arguments: list[str]) -> None:
    home.state.mkdir(mode=0o700)
    (home.state / "journal.db").touch(0o600)
    done = home.command(*arguments)
    assert (done.returncode, done.stdout) == (74, "")
    assert "there is nothing in it yet" in done.stderr
    assert "swarmmemd run" in done.stderr


@contextmanager
def following(home: Home, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`tail -f` beside the test; its lines go to `follow.out`, its complaints to `follow.err`."""
    with (home.root / "follow.out").open("wb") as out, (home.root / "follow.err").open("wb") as err:
        process = subprocess.Popen(
            home.arguments("tail", "-f", "--json", *arguments), env=home.environment(), stdout=out, stderr=err
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def followed(home: Home) -> list[int]:
    """The sequence numbers that `tail -f` has shown so far."""
    whole = (home.root / "follow.out").read_bytes().rpartition(b"\n")[0]
    return [json.loads(line)["seq"] for line in whole.splitlines()]


def test_tail_follows_from_before_the_first_start_over_restarts(home: Home) -> None:
    with following(home) as tail:
        with running(home):
            home.write("builder-1", dispatched("mission-1"))
            until(lambda: followed(home) == [1, 2], "the first events")
        daemon = Daemon(home).ready()
        home.write("builder-1", answered("mission-1", "Half of it", "IN_PROGRESS"))
        until(lambda: followed(home) == [1, 2, 3], "the event after the restart")
        daemon.kill()
        home.write("builder-1", answered("mission-1", "Painted"))
        with running(home):
            until(lambda: followed(home) == [1, 2, 3, 4, 5], "the events after the kill")
        assert tail.poll() is None
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) == 0
    assert (home.root / "follow.err").read_bytes() == b""


def test_tail_follows_on_from_a_number(home: Home) -> None:
    with running(home):
        home.write("builder-1", dispatched("mission-1"))
        home.looked_at()
        with following(home, "--after", "1", "--type", "complete"):
            home.write("builder-1", answered("mission-1", "Painted"))
            until(lambda: followed(home) == [4], "the only event that is wanted")


# show


def test_show_reads_each_kind(told: Home) -> None:
    memory = told.profiles / "scout-3" / "memory"
    (memory / "handoffs").mkdir()
    (memory / "handoffs" / "mission-1.md").write_text("# Handoff of mine\n")
    (told.shared / "handoffs" / "swarm").mkdir(parents=True)
    (told.shared / "handoffs" / "swarm" / "scout-3-latest.md").write_text("# Handoff for all\n")
    (memory / "IDENTITY.md").write_text("# Who I am\n")
    wanted = {
        "mission": "Half of the way",
        "episodic": "# Episodes — scout-3 — ",
        "handoff": "# Handoff of mine",
        "shared": "# Handoff for all",
        "profile": "# Who I am",
    }
    for kind, text in wanted.items():
        done = told.command("show", "--worker", "scout-3", "--kind", kind)
        assert done.returncode == 0, kind
        assert text in done.stdout
        found = json.loads(told.command("show", "--worker", "scout-3", "--kind", kind, "--json").stdout)
        assert (found["ok"], found["workerId"], found["kind"]) == (True, "scout-3", kind)
        assert any(text in file["content"] for file in found["files"])
        assert all(Path(file["path"]).read_text() == file["content"] for file in found["files"])


def test_show_finds_a_day_and_a_mission(told: Home) -> None:
    done = told.command("show", "--worker", "builder-1", "--kind", "episodic", "--date", "2026-04-24")
    assert done.stdout.startswith("# Episodes — builder-1 — 2026-04-24")
    done = told.command("show", "--worker", "builder-1", "--mission", "mission-1")
    assert "- Status: complete" in done.stdout


def test_show_of_nothing_exits_1(told: Home) -> None:
    for arguments in (
        ["builder-1", "--mission", "mission-9"],
        ["nobody"],
        ["builder-1", "--kind", "handoff"],
    ):
        done = told.command("show", "--worker", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "Nothing in" in done.stderr
        assert "none" not in done.stderr
        found = told.command("show", "--json", "--worker", *arguments)
        assert found.returncode == 1
        assert (json.loads(found.stdout)["ok"], json.loads(found.stdout)["files"]) == (False, [])


# Texts of others


def test_hostile_texts_do_nothing_to_a_terminal(home: Home) -> None:
    home.write("builder-1", dispatched("mission-1", f"Task {_HOSTILE}"))
    with running(home) as daemon:
        home.looked_at()
        block = answered("mission-1", "Painted", nextAction=_HOSTILE, lastResult=_HOSTILE, checkpointRaw=None)
        home.write("builder-1", block)
        home.looked_at()
        home.write("builder-2", b'{"\x1b[31m')
        assert "checkpoint" in home.types()
        until(lambda: home.figures()["workers"][0]["last_event"], "the event in the status")
        commands = [
            ["tail"],
            ["status"],
            ["show", "--worker", "builder-1"],
            ["show", "--worker", "builder-1", "--kind", "episodic"],
            ["tail", "--json"],
            ["status", "--json"],
            ["show", "--worker", "builder-1", "--json"],
        ]
        for command in commands:
            done = home.command(*command)
            assert done.returncode == 0
            assert "red" in done.stdout, command
            found = [c for c in _CONTROLS if c in done.stdout + done.stderr]
            assert not found, (command, found)
        assert len(home.command("tail").stdout.splitlines()) == len(home.events())
        assert not any(line.startswith("## Heading") for line in home.command("status").stdout.splitlines())
        summary = (home.mission("builder-1", "mission-1") / "SUMMARY.md").read_text()
        assert "\n## Heading" not in summary
        assert "\x1b" not in daemon.log.read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(home: Home, shell: str) -> None:
    script = home.command("completion", shell)
    assert script.returncode == 0
    assert "_SWARMMEMD_COMPLETE" in script.stdout
    at = "ver" if shell == "fish" else "1"
    asked = {"_SWARMMEMD_COMPLETE": f"{shell}_complete", "COMP_WORDS": "swarmmemd ver", "COMP_CWORD": at}
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'swarmmemd'; from swarmmemd.__main__ import main; main()",
        ],
        env={**home.environment(), **asked},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "verify" in told.stdout
