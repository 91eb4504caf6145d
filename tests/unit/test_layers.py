"""Who may import whom: downward only, and the pure part touches nothing outside. docs/architecture.md."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

import swarmmemd

ROOT = Path(swarmmemd.__file__).parent
NAME = "swarmmemd"

LAYERS: list[set[str]] = [
    {NAME, "model", "errors", "seam", "observation", "state", "identity", "text", "layout"},
    {
        "audit",
        "bodies",
        "checkpoint",
        "cut",
        "derive",
        "fold",
        "foreign",
        "handoff",
        "mending",
        "record",
        "redact",
        "remember",
        "render",
        "rest",
        "config",
        "durable",
        "exchange",
        "log",
        "logfile",
        "schedule",
    },
    {"sources", "journal", "memory", "watch", "instance", "inbox", "notify", "standing", "access"},
    {"tracked", "turn", "tree", "recall", "backfill", "rebuild", "install", "skills"},
    {"watchplan", "service", "web", "doctor", "demo"},
    {"cli", "__main__"},
]
"""The modules and packages right below `swarmmemd`, lowest layer first. One that is not here is refused."""

PURE = {
    *("model", "observation", "state", "identity", "text", "errors"),
    *(
        "audit",
        "bodies",
        "checkpoint",
        "cut",
        "derive",
        "fold",
        "foreign",
        "handoff",
        "mending",
        "record",
        "redact",
    ),
    *("remember", "render", "rest"),
    *("memory.appends", "sources.document", "sources.ledger", "sources.portion", "sources.roster"),
    *("sources.rows", "sources.runtime", "sources.terminal"),
    *(
        "recall.ages",
        "recall.briefing",
        "recall.lines",
        "recall.suspicion",
        "recall.terms",
        "recall.troubles",
        "recall.words",
    ),
    *("install.mark", "install.unit", "install.agent"),
    "web.metrics",
}
OUTSIDE = {
    *("os", "io", "time", "sqlite3", "logging", "pathlib", "random", "threading", "secrets", "subprocess"),
    *("socket", "sys", "shutil", "tempfile", "signal", "asyncio", "structlog", "watchdog", "click", "rich"),
}
CLOCKS = {"now", "utcnow", "today", "open", "print", "input"}


class Import(msgspec.Struct, frozen=True):
    """One import: which module's, of what, and whether it runs when the module is loaded."""

    by: str
    of: str
    at_top: bool = True

    def __str__(self) -> str:
        return f"{self.by} imports {self.of}"


def module_names() -> dict[str, Path]:
    """Every module by its dotted name below the package; the package itself is `swarmmemd`."""
    found: dict[str, Path] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts) or NAME] = path
    return found


def imports(by: str, source: str, modules: Iterable[str]) -> list[Import]:
    """Every import of a module, those inside of functions and those for types too."""
    known = set(modules)
    return [
        Import(by, _named(of, known), at_top)
        for node, at_top in _nodes(ast.parse(source), True)
        for of in _targets(node, known)
    ]


def _nodes(node: ast.AST, at_top: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield child, at_top
        yield from _nodes(child, at_top and not inside and not for_types)


def _targets(node: ast.AST, known: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        base = node.module or ""
        whole = [f"{base}.{alias.name}" for alias in node.names]
        return [name if _named(name, known) in known else base for name in whole]
    return []


def _named(module: str, known: set[str]) -> str:
    """The name below the package; what is not the project's keeps its own name."""
    return module.removeprefix(f"{NAME}.") if module.startswith(f"{NAME}.") else module


def unit(module: str) -> str:
    """What the table speaks of: the module or package right below `swarmmemd`."""
    return module.partition(".")[0]


def layer(module: str) -> int | None:
    return next((n for n, units in enumerate(LAYERS) if unit(module) in units), None)


def upward(found: Iterable[Import]) -> list[str]:
    """The imports that point to a higher layer."""
    return [
        str(one) for one in found if (above := layer(one.of)) is not None and above > (layer(one.by) or 0)
    ]


def cycles(edges: Mapping[str, set[str]]) -> list[str]:
    """Names that lead back to themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for name in edges.get(ahead.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    ahead.append(name)
        return seen

    return sorted(name for name in edges if name in reached(name))


def is_pure(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in PURE)


def impure(found: Iterable[Import], modules: Iterable[str]) -> list[str]:
    """The imports by which a pure module would touch the world."""
    known = set(modules)
    return [
        str(one)
        for one in found
        if is_pure(one.by) and (unit(one.of) in OUTSIDE or (one.of in known and not is_pure(one.of)))
    ]


MODULES = module_names()
IMPORTS = [
    found for name, path in MODULES.items() for found in imports(name, path.read_text("utf-8"), MODULES)
]
OWN = [found for found in IMPORTS if found.of in MODULES]


def test_every_module_has_a_layer() -> None:
    assert [name for name in MODULES if layer(name) is None] == []
    assert {unit(name) for name in MODULES} == set().union(*LAYERS)


def test_no_unit_stands_in_two_layers() -> None:
    assert sum(map(len, LAYERS)) == len(set().union(*LAYERS))


def test_imports_point_downward() -> None:
    assert len(OWN) > 100
    assert upward(OWN) == []


def test_there_is_no_cycle_between_modules() -> None:
    edges: dict[str, set[str]] = {}
    for one in OWN:
        edges.setdefault(one.by, set()).add(one.of)
    assert cycles(edges) == []


def test_there_is_no_cycle_between_packages() -> None:
    edges: dict[str, set[str]] = {}
    for one in OWN:
        if unit(one.by) != unit(one.of):
            edges.setdefault(unit(one.by), set()).add(unit(one.of))
    assert cycles(edges) == []


def test_pure_modules_touch_nothing_outside() -> None:
    assert set(MODULES) >= PURE
    assert impure(IMPORTS, MODULES) == []


@pytest.mark.parametrize("module", [name for name in MODULES if is_pure(name)])
def test_pure_modules_ask_no_clock_and_open_nothing(module: str) -> None:
    calls = [
        node.func
        for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]
    names = {
        f.id if isinstance(f, ast.Name) else f.attr for f in calls if isinstance(f, ast.Name | ast.Attribute)
    }
    assert names & CLOCKS == set()


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("watchdog", {"watch"}),
        ("sqlite3", {"journal", "sources.chat", "recall"}),
        ("click", {"cli", "demo"}),
        ("starlette", {"web"}),
        ("uvicorn", {"web"}),
    ],
)
def test_a_library_has_one_home(library: str, homes: set[str]) -> None:
    users = {one.by for one in IMPORTS if unit(one.of) == library}
    assert {by if by in homes else unit(by) for by in users} == homes


def test_the_daemon_starts_nothing_but_the_api_and_never_itself() -> None:
    """Nothing has to be found on a PATH, and an old version cannot bring itself back to life: what serves the API is
    the running interpreter with a module that records nothing, and ends with the daemon."""
    users = {one.by for one in IMPORTS if unit(one.of) in ("subprocess", "multiprocessing")}
    assert {by if by == "web.beside" else unit(by) for by in users} == {
        "cli",
        "demo",
        "doctor",
        "install",
        "web.beside",
    }
    (command,) = re.findall(r"command = (\[.*\])", MODULES["web.beside"].read_text("utf-8"))
    assert command == '[sys.executable, "-P", "-m", "swarmmemd.web.child"]'
    assert {unit(one.of) for one in OWN if one.by.startswith("web.")}.isdisjoint({"service", "turn", "tree"})
    calls = [
        f"{name}: os.{node.attr}"
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr.startswith(("exec", "spawn", "posix_spawn", "fork", "system"))
    ]
    assert calls == []


def test_rich_is_imported_only_when_it_is_needed() -> None:
    assert [str(one) for one in IMPORTS if unit(one.of) == "rich" and one.at_top] == []


def test_nothing_of_the_project_is_imported_by_its_vocabulary() -> None:
    assert [str(one) for one in OWN if one.by in ("model", "errors", "seam", "text", NAME)] == []


# The checks see what they are there for

KNOWN = {"model", "turn", "derive.draft", "cli.run", NAME}


@pytest.mark.parametrize(
    ("by", "source", "wrong"),
    [
        ("model", "from swarmmemd.turn import x", ["model imports turn"]),
        ("model", "from swarmmemd import turn", ["model imports turn"]),
        ("model", "import swarmmemd.cli.run", ["model imports cli.run"]),
        ("derive.draft", "def f():\n    from swarmmemd.turn import x", ["derive.draft imports turn"]),
        ("turn", "from swarmmemd.model import x", []),
        ("turn", "from swarmmemd import __version__", []),
    ],
)
def test_an_upward_import_is_found(by: str, source: str, wrong: list[str]) -> None:
    assert upward(imports(by, source, KNOWN)) == wrong


def test_a_pure_module_that_is_not_is_found() -> None:
    source = "import os.path\nfrom swarmmemd.turn import x\nfrom swarmmemd.model import y\nimport re"
    assert impure(imports("derive.draft", source, KNOWN), KNOWN) == [
        "derive.draft imports os.path",
        "derive.draft imports turn",
    ]


def test_an_import_below_a_function_or_for_types_is_not_at_the_top() -> None:
    source = (
        "import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    import c\nclass C:\n    import d\n"
        "try:\n    import e\nexcept ImportError:\n    pass"
    )
    assert {one.of: one.at_top for one in imports("turn", source, KNOWN)} == {
        "a": True,
        "b": False,
        "c": False,
        "d": True,
        "e": True,
    }


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def test_a_module_without_a_layer_is_found() -> None:
    assert layer("novelty.part") is None
