"""New keys for a config.yaml and new lines for a `.env` that people keep: everything else stays as they wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from dotenv import dotenv_values, set_key

from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

Keys = tuple[str, ...]


def set_keys(file: Path, wanted: Mapping[Keys, Any]) -> list[str]:
    """Give the keys of a YAML file these values; `database.engine: server` of each key that was not so already.

    Comments, order and line ends stay. The file is made where there is none, and replaced whole.

    Raises:
        UserError: the file cannot be edited without harm; its text names the lines to add by hand.
    """
    before = file.read_bytes().decode("utf-8-sig") if file.is_file() else ""
    text = before.replace("\r\n", "\n")
    changed = []
    expected = _load(text)
    for keys, value in wanted.items():
        if _get(expected, keys) != value:
            text = _with_key(text, keys, value)
            _put(expected, keys, value)
            changed.append(f"{'.'.join(keys)}: {_scalar(value)}")
    if not changed:
        return []
    try:
        harmless = _load(text) == expected
    except yaml.YAMLError:
        harmless = False
    if not harmless:
        raise UserError(f"{file} is written in a way that cannot be edited safely. Add by hand:\n" + "\n".join(changed))
    write_whole(file, text.replace("\n", "\r\n") if "\r\n" in before else text)
    return changed


def add_variables(file: Path, wanted: Mapping[str, str]) -> list[str]:
    """Add variables to a `.env` file that it does not have, or has empty; their names.

    A new file is for its owner only.
    """
    has = dotenv_values(file, interpolate=False, encoding="utf-8-sig")
    added = {name: value for name, value in wanted.items() if not has.get(name)}
    for name, value in added.items():
        set_key(file, name, value, quote_mode="auto", follow_symlinks=True)
    return list(added)


IGNORED = (
    "/.env",
    "/.okf/",
    "/runs/",
    "/bundles/profiles/",
    "/bundles/.lock",
    "/bundles/*/.lock",
    "/bundles/*/.*.last.json",
)
"""What git is to leave alone: passwords, a server's files, records and profiles with people's data, locks."""


def ignore_files(root: Path) -> list[str]:
    """Add what git is to leave alone to the `.gitignore` of a workspace, which is made if need be; the new lines.

    A line that says the same without its slashes counts.
    """
    file = root / ".gitignore"
    text = file.read_bytes().decode("utf-8", "surrogateescape") if file.is_file() else ""
    has = {line.strip().strip("/") for line in text.splitlines()}
    added = [line for line in IGNORED if line.strip("/") not in has]
    if added:
        end = "\r\n" if "\r\n" in text else "\n"
        head = text if not text or text.endswith("\n") else text + end
        write_whole(file, (head + end.join([*added, ""])).encode("utf-8", "surrogateescape"))
    return added


def _load(text: str) -> dict[str, Any]:
    content = yaml.load(text, Loader=yaml.CSafeLoader)
    return _unshared(content) if isinstance(content, dict) else {}


def _unshared(value: Any) -> Any:
    """The value with every alias a copy of its own, so that a change of one place shows as one."""
    if isinstance(value, dict):
        return {key: _unshared(inner) for key, inner in value.items()}
    return [_unshared(inner) for inner in value] if isinstance(value, list) else value


def _get(content: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _put(content: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        if not isinstance(content.get(key), dict):
            content[key] = {}
        content = content[key]
    content[keys[-1]] = value


def _with_key(text: str, keys: Keys, value: Any) -> str:
    """The text with one key more, or with another value where it has the key."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)  # not the C one: its marks count bytes
    parent: yaml.Node | None = None
    for depth, key in enumerate(keys):
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next(((k, v) for k, v in pairs if k.value == key), None)
        if found is None:
            return _inserted(text, node, parent, keys[depth:], value)
        parent, node = found
    assert node is not None
    start, end = node.start_mark.index, node.end_mark.index
    blank = " " if start == end else ""
    return text[:start] + blank + _scalar(value) + text[end:]


def _inserted(text: str, node: yaml.Node | None, key: yaml.Node | None, keys: Keys, value: Any) -> str:
    """The text with `keys` put below `node`: a mapping, or nothing yet below `key`."""
    if isinstance(node, yaml.MappingNode) and node.flow_style:
        at = node.end_mark.index - 1
        return text[:at] + (", " if node.value else "") + _flow(keys, value) + text[at:]
    lines = text.splitlines(keepends=True)
    if isinstance(node, yaml.MappingNode) and node.value:
        indent, at = node.value[0][0].start_mark.column, _last_line(node) + 1
    elif key is not None:
        indent, at = key.start_mark.column + 2, key.start_mark.line + 1
    else:
        indent, at = 0, len(lines)
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    gap = ["\n"] if indent == 0 and lines else []
    return "".join([*lines[:at], *gap, *_block(keys, value, indent), *lines[at:]])


def _last_line(node: yaml.Node) -> int:
    """The last line with something of the node: its own end may lie behind comments that follow."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return max((max(_last_line(k), _last_line(v)) for k, v in node.value), default=node.start_mark.line)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return max((_last_line(item) for item in node.value), default=node.start_mark.line)
    behind = node.end_mark.column == 0 and node.end_mark.line > node.start_mark.line
    return node.end_mark.line - behind


def _block(keys: Keys, value: Any, indent: int) -> list[str]:
    parents = [f"{' ' * (indent + 2 * depth)}{_scalar(key)}:\n" for depth, key in enumerate(keys[:-1])]
    return [*parents, f"{' ' * (indent + 2 * len(parents))}{_scalar(keys[-1])}: {_scalar(value)}\n"]


def _flow(keys: Keys, value: Any) -> str:
    inner = json.dumps(value, ensure_ascii=False)  # JSON is YAML too, and a JSON file stays one
    for depth, key in enumerate(reversed(keys)):
        inner = (
            f"{json.dumps(key, ensure_ascii=False)}: {inner}"
            if depth == 0
            else f"{json.dumps(key, ensure_ascii=False)}: {{{inner}}}"
        )
    return inner


def _scalar(value: Any) -> str:
    """A value on one line."""
    dumped = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return dumped.removesuffix("...\n").strip()
