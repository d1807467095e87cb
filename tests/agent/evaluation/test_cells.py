"""Cells from config.yaml, from a file, and by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from okf_agent.cell import Cell
from okf_agent.config import load_config
from okf_agent.evaluation import plan
from okf_agent.evaluation.cells import choose
from okf_compiler.errors import UserError

MODEL = "openai/scripted"
CELLS = {"usual": {}, "bare": {"knowledge": "pack", "rules": False}, "small": {"model": "openai/small"}}
BARE = Cell(MODEL, "pack", rules=False, name="bare")


def chosen(root: Path, given: str | None, cells: object = CELLS, model: str | None = None) -> tuple[Cell, ...]:
    config = {"model": {"name": MODEL, "api_base": "http://127.0.0.1:9/v1"}, "cells": cells}
    (root / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return choose(load_config(root), given, model, lambda _line: None)


@pytest.mark.parametrize(
    ("given", "cells", "expected"),
    [
        (None, CELLS, (Cell(MODEL, name="usual"), BARE, Cell("openai/small", name="small"))),
        (None, {}, (Cell(MODEL, name="bundle"),)),
        ("raw, pack", {}, (Cell(MODEL, "raw", name="raw"), Cell(MODEL, "pack", name="pack"))),
        ("bare,raw", CELLS, (BARE, Cell(MODEL, "raw", name="raw"))),
    ],
)
def test_cells_by_name(tmp_path: Path, given: str | None, cells: object, expected: tuple[Cell, ...]) -> None:
    assert chosen(tmp_path, given, cells) == expected


@pytest.mark.parametrize(
    "content",
    ['[{"name": "bare", "knowledge": "pack", "rules": false}]', "cells: {bare: {knowledge: pack, rules: no}}"],
)
def test_cells_of_a_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "cells.yaml"
    file.write_text(content, encoding="utf-8")
    assert chosen(tmp_path, str(file)) == (BARE,)


def test_without_any_cell_it_is_what_ask_would_do(tmp_path: Path) -> None:
    agent = {"knowledge": "search", "signposts": False, "find_value": True}
    (tmp_path / "config.yaml").write_text(json.dumps({"agent": agent}), encoding="utf-8")
    usual = Cell(MODEL, "search", signposts=False, find_value=True, name="search")
    assert choose(load_config(tmp_path), None, "local", lambda _line: None)[0].knowledge == "pack"
    config = {"model": {"name": MODEL, "api_base": "http://127.0.0.1:9/v1"}, "agent": agent}
    (tmp_path / "config.yaml").write_text(json.dumps(config | {"cells": {"bare": {"rules": False}}}), encoding="utf-8")
    bare = replace(usual, name="bare", rules=False)
    for given, expected in ((None, bare), ("search", usual), ("raw", replace(usual, knowledge="raw", name="raw"))):
        assert choose(load_config(tmp_path), given, None, lambda _line: None) == (expected,)
    (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert choose(load_config(tmp_path), None, None, lambda _line: None) == (usual,)


def test_the_embedded_model_gets_the_one_mode_that_it_can_do(tmp_path: Path) -> None:
    assert chosen(tmp_path, None, {}, "local") == (Cell("local", "pack", name="pack"),)


@pytest.mark.parametrize(
    ("given", "cells", "message"),
    [
        ("bundel", {}, "no knowledge mode 'bundel'; did you mean 'bundle'"),
        (None, {"a": {"knowledg": "raw"}}, "cells.a: A cell has no key 'knowledg'; did you mean 'knowledge'"),
        (None, {"a": {"knowledge": "rew"}}, "cell a: There is no knowledge mode 'rew'; did you mean 'raw'"),
        (None, {"a": 3}, "cells.a: a mapping"),
        (None, {"a": {"model": "local", "knowledge": "bundle"}}, "The embedded model takes one prompt"),
        ("raw,raw", {}, "Two cells are called 'raw'"),
        (",", {}, "names no cell"),
        (None, {"a:b": {}}, "'a:b' cannot be a cell's name"),
        ("none.yaml", {}, "none.yaml cannot be read"),
    ],
)
def test_what_cannot_be_a_cell_is_named(tmp_path: Path, given: str | None, cells: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        chosen(tmp_path, given, cells)


@pytest.mark.parametrize(
    ("workers", "models", "at_once"),
    [(None, ["openai/x"], 4), (None, ["openai/x", "local"], 1), (2, ["local"], 2), (8, ["openai/x"], 8)],
)
def test_the_embedded_model_is_asked_one_question_after_the_other(
    workers: int | None, models: list[str], at_once: int
) -> None:
    cells = [Cell(model, "pack") for model in models]
    assert plan.at_once(plan.EvalOptions(workers=workers), cells) == at_once
