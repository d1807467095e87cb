"""Which cells an evaluation compares: from config.yaml, from a file, or named on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from okf_agent.cell import KNOWLEDGE, Cell, cell_from, configured_cell
from okf_agent.config import Config
from okf_agent.models.providers import choose_model
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.inert import inert

SUFFIXES = (".yaml", ".yml", ".json")


def choose(config: Config, given: str | None, model: str | None, say: Callable[[str], None]) -> tuple[Cell, ...]:
    """The cells to compare, each with a name of its own.

    `given` is a file, or a list such as `bundle,raw,pack` of cells that config.yaml names and of knowledge modes;
    None: all of config.yaml, else one cell: what `ask` would do. `model` wins where a cell names none, else the
    configured one.

    Raises:
        UserError: an unknown cell or key, two of one name, or a cell that cannot work.
    """
    default = _model(config, model, say)
    if given is None:
        found = _named(config, config.cells, default, "cells") or [_of_mode(config, default)]
    elif Path(given).suffix in SUFFIXES:
        found = _read(config, Path(given), default)
    else:
        found = [_listed(config, name.strip(), default) for name in given.split(",") if name.strip()]
    if not found:
        raise UserError(
            f"--cells {given} names no cell. Name some: bundle,raw,pack, or a file that has cells.", status=2
        )
    seen: set[str] = set()
    for cell in found:
        if cell.name in seen:
            raise UserError(f"Two cells are called {cell.name!r}; give each a name of its own.", status=2)
        seen.add(cell.name)
        if set(cell.name) & set(":,") or inert(cell.name) != cell.name:
            raise UserError(f"{cell.name!r} cannot be a cell's name: `NAME:CELL` and lists part there.", status=2)
        try:
            cell.check()
        except UserError as error:
            raise UserError(f"cell {cell.name}: {error}", status=2) from None
    return tuple(found)


def _model(config: Config, model: str | None, say: Callable[[str], None]) -> str:
    choice = choose_model(model, config.model.name, config.model.api_base)
    if choice.notice:
        say(choice.notice)
    return choice.name


def _of_mode(config: Config, model: str, mode: str | None = None) -> Cell:
    """What `ask` does, with `--knowledge` where a mode is named."""
    cell = configured_cell(config, model, mode)
    return replace(cell, name=cell.knowledge)


def _listed(config: Config, name: str, default: str) -> Cell:
    if name in config.cells:
        return _named(config, {name: config.cells[name]}, default, "cells")[0]
    if name in KNOWLEDGE:
        return _of_mode(config, default, name)
    known = [*config.cells, *KNOWLEDGE]
    raise UserError(f"There is no cell and no knowledge mode {name!r}{did_you_mean(name, known)}", status=2)


def _named(config: Config, cells: Mapping[str, Mapping[str, Any]], default: str, place: str) -> list[Cell]:
    return [_cell(config, {**values, "name": name}, default, f"{place}.{name}") for name, values in cells.items()]


def _read(config: Config, file: Path, default: str) -> list[Cell]:
    """The cells of a file: a list of mappings with a `name` each, or a mapping of names, or `cells:` of either."""
    try:
        content = yaml.load(file.read_text(encoding="utf-8-sig"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{file} cannot be read: {error}", status=2) from None
    if isinstance(content, Mapping) and "cells" in content:
        content = content["cells"]
    if isinstance(content, Mapping) and all(isinstance(values, Mapping | None) for values in content.values()):
        return _named(config, {str(name): values or {} for name, values in content.items()}, default, str(file))
    if isinstance(content, Sequence) and all(isinstance(values, Mapping) for values in content):
        return [_cell(config, values, default, f"{file}, cell {n}") for n, values in enumerate(content, 1)]
    raise UserError(f"{file}: write a list of cells, each with name, model, knowledge and its switches.", status=2)


def _cell(config: Config, values: Mapping[str, Any], default: str, place: str) -> Cell:
    """What `ask` does with the cell's model, but for what the cell says."""
    model = values.get("model") or default
    try:
        cell = cell_from({**configured_cell(config, str(model)).settings(), **values, "model": model})
    except UserError as error:
        raise UserError(f"{place}: {error}", status=2) from None
    return cell if cell.name else replace(cell, name=cell.knowledge)
