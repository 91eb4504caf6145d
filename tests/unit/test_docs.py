"""The documentation says what is there: cited sections, commands, dependencies, the README's commands."""

import re
import tomllib
from pathlib import Path

import pytest

from swarmmemd.cli.main import swarmmemd_group

ROOT = Path(__file__).parents[2]
_TITLES = r'(?:"[^"]+"|SUMMARY\.md)'
_CITED = re.compile(rf"docs/(\w+)\.md, ({_TITLES}(?:(?:, | and |, and ){_TITLES})*)")
_LINK = re.compile(r"\]\(([\w./-]+)\)")
PAGES = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))


def sections_of(page: Path) -> set[str]:
    """Headings and bold terms of a page, outside of fences."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {found.strip(" .:") for found in (*headings, *re.findall(r"\*\*(.+?)\*\*", text))}


def citations() -> set[tuple[str, str]]:
    """(page, section) of each mention in code, tests and service files."""
    found = set()
    for folder in ("swarmmemd", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            text = re.sub(r"\s+#?\s*", " ", path.read_text())
            for page, titles in _CITED.findall(text):
                found |= {(page, title.strip('"')) for title in re.findall(_TITLES, titles)}
    return found


def test_there_are_citations() -> None:
    assert {("architecture", "Watching"), ("contracts", "SUMMARY.md"), ("contracts", "Events")} <= citations()


@pytest.mark.parametrize("page", sorted({page for page, _ in citations()}))
def test_cited_sections_exist(page: str) -> None:
    cited = {title for name, title in citations() if name == page}
    assert cited - sections_of(ROOT / "docs" / f"{page}.md") == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    targets = _LINK.findall((ROOT / page).read_text())
    assert [target for target in targets if not (ROOT / page.parent / target).exists()] == []


def test_every_command_has_a_section_and_the_other_way_round() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    sections = set(re.findall(r"^## (.+)$", page, flags=re.M)) - {"Exit codes", "Output"}
    assert sections == set(swarmmemd_group.commands) | set(swarmmemd_group.list_commands(None))  # type: ignore[arg-type]


def test_every_option_of_a_command_is_in_its_section() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    for name in swarmmemd_group.list_commands(None):  # type: ignore[arg-type]
        section = re.split(r"^## ", page.partition(f"\n## {name}\n")[2], flags=re.M)[0]
        command = swarmmemd_group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        own = [one for one in command.params if one.expose_value and not getattr(one, "hidden", False)]
        missing = [one.opts for one in own if not any(option in section for option in one.opts)]
        assert missing == [], name


def command_in_readme(marker: str) -> list[str]:
    """The lines of the fence below a marker."""
    _, _, after = (ROOT / "README.md").read_text().partition(f"<!-- {marker} -->\n")
    return after.split("```")[1].splitlines()[1:]


def test_the_readme_has_one_line_to_see_it_and_one_to_test_it() -> None:
    setup = "python3 -m venv .venv && .venv/bin/pip install -q"
    assert command_in_readme("demo") == [f"{setup} . && .venv/bin/swarmmemd demo"]
    assert command_in_readme("test") == [f"{setup} -e '.[dev]' && .venv/bin/pytest"]


def test_ci_runs_the_readme_s_test_command() -> None:
    """It takes the line from there: a copy would part from it one day."""
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- test -->" in script
    assert "README.md" in script
    assert "bin/pytest" not in script


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [one for extra in extras for one in extra]
    names = {re.split(r"[<>=~!\[; ]", one)[0].lower() for one in wanted} - {project["project"]["name"]}
    page = (ROOT / "docs" / "dependencies.md").read_text()
    given = {name.lower() for name in re.findall(r"^\| `([\w.-]+)` \|", page, flags=re.M)}
    assert given == names


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_place_of_somebody_s_machine_is_named(page: Path) -> None:
    assert re.findall(r"/root/|/work/|/tmp/|/Users/(?!YOU)\w+", (ROOT / page).read_text()) == []
