"""Frontmatter: YAML by libyaml, both ways, and its place in a file.

Between libyaml and Python lie nodes; they are built and read here directly, which takes half the time of PyYAML's
own representer and constructor. Whatever is not plain text goes to those.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import yaml

from okf_compiler import yaml_aliases

_TEXT, _LIST, _MAP, _MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map", "merge"))


class FormatError(ValueError):
    """A file that is not a concept; `line` is 1-based."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class _Loader(yaml.CSafeLoader):
    """YAML whose dates stay texts: nothing here computes with them, and JSON cannot hold a date."""

    yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML's own way to set them
        first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def dump(values: Mapping[str, Any]) -> str:
    """YAML in the order given; lists and mappings of plain values stand on one line, strings are never folded."""
    stream = io.StringIO()
    dumper = yaml.CSafeDumper(stream, allow_unicode=True, width=1_000_000)
    try:
        dumper.open()
        pairs = [(_node(dumper, key), _node(dumper, inner)) for key, inner in values.items()]
        dumper.serialize(yaml.MappingNode(_MAP, pairs, flow_style=not pairs))
        dumper.close()
    finally:
        dumper.dispose()
    return stream.getvalue()


def _node(dumper: yaml.CSafeDumper, value: Any) -> yaml.Node:
    if isinstance(value, str):
        return yaml.ScalarNode(_TEXT, value)
    if isinstance(value, Mapping):
        pairs = [(_node(dumper, key), _node(dumper, inner)) for key, inner in value.items()]
        plain = all(isinstance(node, yaml.ScalarNode) for pair in pairs for node in pair)
        return yaml.MappingNode(_MAP, pairs, flow_style=plain)
    if isinstance(value, list | tuple):
        items = [_node(dumper, inner) for inner in value]
        return yaml.SequenceNode(_LIST, items, flow_style=all(isinstance(n, yaml.ScalarNode) for n in items))
    node: yaml.Node = dumper.represent_data(value)
    return node


def load(text: str) -> dict[str, Any]:
    """The mapping in a frontmatter's YAML.

    Raises:
        FormatError: not YAML, not a mapping, or multiplied by aliases; the line counts from the opening `---`.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if yaml_aliases.multiply(text, node):
                raise FormatError("the frontmatter's aliases multiply what it says: write it out")
            values = _value(loader, node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise FormatError(f"the frontmatter is not YAML: {error.problem}", line) from None
    except FormatError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise FormatError(f"the frontmatter is not YAML: {error}") from None
    if not isinstance(values, dict):
        raise FormatError("the frontmatter is not a mapping of keys to values")
    return {str(key): value for key, value in values.items()}


def _value(loader: _Loader, node: yaml.Node) -> Any:
    if node.tag == _TEXT:
        return node.value
    if node.tag == _LIST:
        return [_value(loader, inner) for inner in node.value]
    if node.tag == _MAP and all(key.tag != _MERGE for key, _ in node.value):
        return {_value(loader, key): _value(loader, inner) for key, inner in node.value}
    return loader.construct_document(node)


def split(text: str) -> tuple[str | None, str, int]:
    """Frontmatter, body, and the body's first line number (1-based); (None, text, 1) without frontmatter.

    Only a line that is exactly `---` opens or closes it, so `---` inside a value is text.

    Raises:
        FormatError: it is opened and never closed.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.startswith("---\n"):
        return None, text, 1
    end = 3 if text.startswith("---\n---\n") else text.find("\n---\n", 4)
    if end < 0:
        if not text.endswith("\n---"):
            raise FormatError("the frontmatter is never closed with a line `---`")
        end, text = len(text) - 4, text + "\n"
    front, body = text[4 : end + 1], text[end + 5 :]
    line = front.count("\n") + 3
    return front, body.removeprefix("\n"), line + body.startswith("\n")
