"""The definitions as text: equal to the examples, quoted right, and marked so that an edit is seen."""

import plistlib
from pathlib import Path

import pytest

from swarmmemd.install import agent, unit
from swarmmemd.install.mark import Origin, origin_of

ROOT = Path(__file__).parents[2]
ODD = ("/opt/my tools/swarmmemd", "run", "--state-dir", "/srv/100%/$x", 'q"b\\', "it's", "")


@pytest.mark.parametrize(
    ("example", "rendered"),
    [
        ("systemd/swarmmemd.service", unit.unit(unit.EXAMPLE)),
        ("systemd/swarmmemd.service.d/namespaces.conf", unit.NAMESPACES),
        ("launchd/com.swarmmemd.agent.plist", agent.example()),
    ],
)
def test_the_examples_are_what_the_installer_renders(example: str, rendered: str) -> None:
    assert (ROOT / example).read_text() == rendered


def test_what_is_installed_differs_from_the_example_in_program_and_mark_only() -> None:
    installed = unit.marked_unit(("/x/swarmmemd", "run", "--supervisor", "systemd")).splitlines()
    example = unit.unit(unit.EXAMPLE).splitlines()
    different = [(a, b) for a, b in zip(installed[1:], example, strict=True) if a != b]
    assert different == [("ExecStart=/x/swarmmemd run --supervisor systemd", f"ExecStart={unit.EXAMPLE}")]


def test_words_are_quoted_for_systemd() -> None:
    assert unit.words(ODD[:4]) == '"/opt/my tools/swarmmemd" run --state-dir /srv/100%%/$$x'
    assert unit.argv_of(unit.marked_unit(ODD)) == ODD
    dollar = ("/opt/$x/100%/swarmmemd", "$x")
    assert unit.words(dollar) == "/opt/$x/100%%/swarmmemd $$x", "systemd expands no variable in the program"
    assert unit.argv_of(unit.marked_unit(dollar)) == dollar


def test_launchd_gets_the_words_as_they_are() -> None:
    text = agent.marked_agent(ODD, "/Users/a & b")
    assert agent.argv_of(text) == ODD
    assert plistlib.loads(text.encode())["WorkingDirectory"] == "/Users/a & b"


@pytest.mark.parametrize("text", [unit.marked_unit(ODD), agent.marked_agent(ODD, "/Users/YOU")])
def test_the_mark_tells_our_text_from_an_edited_one(text: str) -> None:
    assert origin_of(text) is Origin.OURS
    assert origin_of(text.replace("run", "ran", 1)) is Origin.EDITED
    assert origin_of(text + "\n") is Origin.EDITED
    assert origin_of(unit.unit(unit.EXAMPLE)) is Origin.FOREIGN
    assert origin_of("") is Origin.FOREIGN


def test_nothing_of_a_broken_file_is_believed() -> None:
    assert unit.argv_of('[Service]\nExecStart="open') == ()
    assert agent.argv_of("<plist>") == ()


def test_without_hardening_the_sandbox_is_left_out_and_nothing_else() -> None:
    whole, bare = unit.unit("/x"), unit.unit("/x", hardened=False)
    before, _, after = whole.partition("\n# What works in a user unit")
    assert bare == before + "\n" + after[after.index("[Install]") :]
    assert "NoNewPrivileges" not in bare
