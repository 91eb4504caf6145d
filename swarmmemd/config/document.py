"""The configuration file: bytes to values with their lines. Pure. docs/configuration.md, "The file".

The YAML is composed to nodes and only the table's keys are built. So a merge key, a tag or nested aliases
cannot blow up, and each problem knows its line.
"""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from swarmmemd.config.keys import BY_NAME, KEYS, LIMIT, SECTIONS, near
from swarmmemd.config.values import Nested, problem

_SEQUENCE = "tag:yaml.org,2002:seq"
# What PyYAML's constructors raise for a scalar that its own tag does not fit, such as 2024-99-99.
_MISFITS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError)


class Entry(NamedTuple):
    """A value of the file and its line, counted from 1."""

    value: object
    line: int


class _FaultError(Exception):
    """The file cannot be read as YAML."""

    def __init__(self, line: int, what: str, mend: str) -> None:
        super().__init__(what)
        self.line, self.what, self.mend = line, what, mend


def parse(data: bytes, file: Path) -> tuple[dict[str, Entry], list[str]]:
    """The entries of the file by key, and a line for each problem. An empty file has no entries."""
    reader = _Reader(file)
    try:
        reader.read(_text(data))
    except _FaultError as fault:
        where = f"line {fault.line} of {file}" if fault.line else str(file)
        reader.problems.append(problem("config", where, fault.what, fault.mend))
    return reader.entries, reader.problems


def _text(data: bytes) -> str:
    if len(data) > LIMIT:
        raise _FaultError(0, f"the file is larger than {LIMIT} bytes", "name a swarmmemd configuration file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _FaultError(line, "the file is not UTF-8", "save it as UTF-8") from None


def _fault(error: yaml.YAMLError, text: str) -> _FaultError:
    mend = "correct the YAML there"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        return _FaultError(mark.line + 1 if mark else 0, f"no valid YAML: {what}", mend)
    position = getattr(error, "position", 0)
    return _FaultError(text.count("\n", 0, position) + 1, "a character that YAML does not allow", mend)


class _Reader:
    """Walks the nodes of one file. A class only because PyYAML builds scalars with its loader's state."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []

    def read(self, text: str) -> None:
        """Fill `entries` and `problems` from the text."""
        try:
            self.loader = yaml.SafeLoader(text)
            root = self.loader.get_single_node()
        except yaml.YAMLError as error:
            raise _fault(error, text) from None
        except RecursionError:
            raise _FaultError(0, "the YAML is nested too deeply", "write keys and values only") from None
        if isinstance(root, yaml.MappingNode):
            self._mapping(root, "")
        elif root is not None and not _null(root):
            raise _FaultError(_line(root), "the file is no mapping", "write it as `key: value` lines")

    def _mapping(self, node: yaml.MappingNode, section: str) -> None:
        seen: dict[str, int] = {}
        for key_node, value in node.value:
            leaf = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            name = section + leaf
            if name in seen:
                self._complain(name, key_node, f"stands there twice, first in line {seen[name]}", "keep one")
                continue
            seen[name] = _line(key_node)
            self._pair(name, leaf, key_node, value)

    def _pair(self, name: str, leaf: str, key: Any, value: Any) -> None:
        # A flat `api.listen:` is refused, or one key could be set twice without anybody seeing it.
        if name in BY_NAME and "." not in leaf:
            self._entry(name, key, value)
        elif name in SECTIONS:
            self._section(name, key, value)
        else:
            self._complain(name, key, "is no known key", _meant(name))

    def _entry(self, name: str, key: Any, node: Any) -> None:
        try:
            value = self._value(node)
        except _MISFITS:
            self._complain(name, node, "holds a value that does not fit its YAML type", "put it in quotes")
            return
        if value is None:
            mend = "give one, or remove the line (YAML reads a bare ~ as nothing: put it in quotes)"
            self._complain(name, key, "has no value", mend)
            return
        self.entries[name] = Entry(value, _line(key))

    def _section(self, name: str, key: Any, node: Any) -> None:
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, f"{name}.")
        elif not _null(node):
            leaves = ", ".join(item.name for item in KEYS if item.name.startswith(f"{name}."))
            self._complain(name, key, "is a section and takes no value", f"set a key beneath it: {leaves}")

    def _value(self, node: Any) -> object:
        if isinstance(node, yaml.ScalarNode):
            return self.loader.construct_object(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self._item(item) for item in node.value]
        return Nested("a mapping" if isinstance(node, yaml.MappingNode) else "a tagged list")

    def _item(self, node: Any) -> object:
        return self._value(node) if isinstance(node, yaml.ScalarNode) else Nested("a list or mapping")

    def _complain(self, name: str, node: Any, what: str, mend: str) -> None:
        self.problems.append(problem(name, f"line {_line(node)} of {self.file}", what, mend))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _meant(name: str) -> str:
    if name in BY_NAME:
        section, _, leaf = name.partition(".")
        return f"write `{leaf}:` beneath `{section}:`"
    same_leaf = [key.name for key in KEYS if key.name.rpartition(".")[2] == name]
    guess = same_leaf[0] if same_leaf else near(name, [*BY_NAME, *SECTIONS])
    return f"did you mean {guess}?" if guess else "remove it; `swarmmemd config` lists the keys"
