"""The config.yaml that a command line reads: which one (`--config`), and single keys that win over it (`--set`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import CONFIG_FILE, Settings, find_root, load_settings, read_config

READ = {"agent": ("bundles", "raw_docs"), "database": (), "databases": ()}
"""The sections that the compiler reads, and which of their keys, where it does not read all."""


def find_config(file: Path | None, root: Path | None = None) -> tuple[Path, Path]:
    """The workspace's folder and its config.yaml, which need not be there unless it is named: `file`, whose folder is
    the workspace then, else that of `root`, by default found from the current folder.

    Raises:
        UserError: there is no such `file`.
    """
    if file is not None and not file.is_file():
        raise UserError(f"There is no configuration {file}.", status=2)
    root = root or (file.resolve().parent if file else find_root())
    return root, file or root / CONFIG_FILE


def changed(sections: Mapping[str, Any], changes: Sequence[str], known: Collection[str]) -> dict[str, Any]:
    """The sections of a config.yaml with each change, such as `agent.max_steps=20`, its value in YAML.

    Raises:
        UserError: a change has another form, or names none of the `known` sections.
    """
    merged = dict(sections)
    for change in changes:
        keys, value = _parse(change, known)
        for key in reversed(keys):
            value = {key: value}
        merged = _merged(merged, value)
    return merged


def origin_of(changes: Sequence[str]) -> str:
    """Where changed sections are from, for messages."""
    return " ".join(f"--set {change}" for change in changes)


def workspace_settings(file: Path | None = None, changes: Sequence[str] = ()) -> Settings:
    """The settings of the workspace, as `--config` and `--set` of okf-compiler say.

    Raises:
        UserError: config.yaml is broken; a change names what the compiler does not read.
    """
    root, file = find_config(file)
    sections = read_config(file)
    settings = load_settings(root, sections, file)
    for change in changes:
        keys, _ = _parse(change, READ)
        read = READ[keys[0]]
        if read and keys[1] not in read:
            raise UserError(
                f"--set {change}: okf-compiler does not read {'.'.join(keys)}{did_you_mean(keys[1], read)} "
                f"It reads {' and '.join(f'{keys[0]}.{key}' for key in read)}.",
                status=2,
            )
    return load_settings(root, changed(sections, changes, READ), origin_of(changes)) if changes else settings


def _parse(change: str, known: Collection[str]) -> tuple[list[str], Any]:
    """The keys and the value of a change."""
    name, equals, text = change.partition("=")
    keys = [key.strip() for key in name.split(".")]
    if not equals or len(keys) < 2 or not all(keys):
        raise UserError(f"--set {change}: write a key and a value: --set database.port=5433", status=2)
    if keys[0] not in known:
        raise UserError(f"--set {change}: there is no section {keys[0]!r}{did_you_mean(keys[0], known)}", status=2)
    try:
        return keys, yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return keys, text


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, inner ones merged too; `over` wins."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
