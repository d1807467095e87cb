"""YAML read word for word: every scalar as it is spelt (`NO` is a name, not false), every mapping with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from okf_compiler import yaml_aliases
from okf_compiler.model import Problem

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"


class Entry(dict[str, Any]):
    """A mapping; its values are text, None, items or entries."""

    line: int = 0
    """1-based line of its first key."""
    lines: Mapping[str, int] = {}
    """1-based line of each key."""


class Items(list[Any]):
    """A list; `lines[i]` is the 1-based line of item i."""

    lines: tuple[int, ...] = ()


class YamlError(Exception):
    """The text is not YAML; `line` is 1-based, 0 where unknown."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str, file: str, problems: list[Problem]) -> list[Any]:
    """The documents of a YAML text; a key that stands twice is a problem, and the last one counts.

    Raises:
        YamlError: not YAML, nested too deeply, multiplied by aliases, or an alias inside its own anchor.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
        if yaml_aliases.multiply(text, *nodes):
            raise YamlError("aliases multiply what it says", 0)
        converter = _Converter(file, problems)
        return [converter.value(node) for node in nodes if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"not YAML: {error.problem or error.context}", mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not YAML: {str(error).splitlines()[0]}", 0) from None
    except RecursionError:
        raise YamlError("nested too deeply to be read", 0) from None


class _Converter:
    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self.done: dict[int, Any] = {}
        self.open: set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag == _NULL else node.value
        key = id(node)
        if key in self.open:
            raise YamlError("an alias stands inside its own anchor", node.start_mark.line + 1)
        if key not in self.done:
            self.open.add(key)
            self.done[key] = self._entry(node) if isinstance(node, yaml.MappingNode) else self._items(node)
            self.open.discard(key)
        return self.done[key]

    def _items(self, node: yaml.Node) -> Items:
        items = Items(self.value(item) for item in node.value)
        items.lines = tuple(item.start_mark.line + 1 for item in node.value)
        return items

    def _entry(self, node: yaml.MappingNode) -> Entry:
        entry, merged = Entry(), Entry()
        entry.line = node.start_mark.line + 1
        entry.lines = {k.value: k.start_mark.line + 1 for k, _ in node.value if isinstance(k, yaml.ScalarNode)}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                values = self.value(value_node)
                for part in values if isinstance(values, list) else [values]:
                    merged.update({k: v for k, v in part.items() if k not in merged} if isinstance(part, dict) else {})
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem("a key that is not a text is not read", self.file, line))
                continue
            if key_node.value in entry:
                self.problems.append(Problem(f"{key_node.value!r} stands twice; the last counts", self.file, line))
            entry[key_node.value] = self.value(value_node)
        for key, value in merged.items():
            entry.setdefault(key, value)
        return entry
