"""Cells: what names are taken, what goes together, and what the command line, the prompt and config.yaml choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.endpoint import submit, text
from support.workspace import ACTIVE, QUESTION, Workspace

from okf_agent.cell import KNOWLEDGE, SWITCHES, Cell, cell_from, choose_cell, configured_cell
from okf_agent.config import load_config
from okf_compiler.errors import UserError


def test_settings_are_everything_but_the_name() -> None:
    cell = Cell("openai/x", "pack", profiles=False, name="bare")
    assert cell_from(cell.settings()) == Cell("openai/x", "pack", profiles=False)
    assert cell_from({**cell.settings(), "name": "bare"}) == cell
    assert set(SWITCHES) < set(cell.settings())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "x", "profile": True}, "did you mean 'profiles'?"),
        ({"model": "x", "rules": "no"}, "'rules' must be true or false"),
        ({"model": "x", "knowledge": True}, "'knowledge' must be a text"),
        ({"knowledge": "pack"}, "needs a model"),
    ],
)
def test_cells_that_are_none(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as error:
        cell_from(values)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("config", "asked", "expected"),
    [
        ({}, {}, Cell("openai/x")),
        ({"knowledge": "search", "find_value": True}, {}, Cell("openai/x", "search", find_value=True)),
        ({"knowledge": "search"}, {"knowledge": "raw"}, Cell("openai/x", "raw")),
        ({"knowledge": "search"}, {"model": "local"}, Cell("local", "pack")),
        ({"signposts": False}, {}, Cell("openai/x", signposts=False)),
        (
            {"find_value": True},
            {"without": "signposts, profiles"},
            Cell("openai/x", profiles=False, signposts=False, find_value=True),
        ),
    ],
)
def test_what_is_asked_for_wins_over_what_is_configured(
    tmp_path: Path, config: dict[str, Any], asked: dict[str, Any], expected: Cell
) -> None:
    changes = [f"agent.{key}={str(value).lower()}" for key, value in config.items()]
    loaded = load_config(tmp_path, changes=["model.api_base=http://x", *changes])
    told: list[str] = []
    asked = {"model": "openai/x", "knowledge": None, **asked}
    assert choose_cell(loaded, say=told.append, **asked) == expected


@pytest.mark.parametrize(
    ("model", "knowledge", "without", "said"),
    [
        ("openai/x", "pak", "", "did you mean 'pack'?"),
        ("openai/x", None, "profile", "did you mean 'profiles'?"),
        ("local", "search", "", "search needs a model that calls tools"),
    ],
)
def test_what_does_not_exist_or_go_together(
    tmp_path: Path, model: str, knowledge: str | None, without: str, said: str
) -> None:
    with pytest.raises(UserError) as error:
        configured_cell(load_config(tmp_path), model, knowledge, without)
    assert said in str(error.value) and error.value.status == 2


def test_a_mode_in_the_configuration_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent:\n  knowledge: bundel\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"config\.yaml:2: agent\.knowledge: .*did you mean 'bundle'"):
        load_config(tmp_path)


# Through the command line.


@pytest.mark.parametrize("mode", [*KNOWLEDGE])
def test_every_mode_answers_and_its_record_says_how(workspace: Workspace, mode: str) -> None:
    one_reply = [text("```sql\nSELECT 52\n```")] if mode == "pack" else [submit("SELECT 52", "52.")]
    result = workspace.agent("ask", QUESTION, "--knowledge", mode, "--without", "signposts", script=one_reply)
    assert result.returncode == 0, result.stderr
    (record,) = workspace.records()
    assert record["mode"] == mode == record["cell"]["knowledge"]
    assert (record["cell"]["signposts"], record["cell"]["profiles"]) == (False, True)
    assert (record["bundle_hash"] is None) == (mode == "raw")
    told = str(workspace.endpoint.requests[0]["messages"])
    assert "Files of the bundle whose words match" not in told, "no signposts"
    assert ("only says whether the login works" in told) == (mode in ("raw", "pack")), "the rule, word for word"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "x", "--raw", "--knowledge", "pack"], "--raw and --knowledge pack do not go together"),
        (["ask", "x", "--knowledge", "packs"], "did you mean 'pack'?"),
        (["ask", "x", "--compare", "--knowledge", "raw"], "--compare and --knowledge raw do not go together"),
        (["--raw", "--knowledge", "search"], "--raw and --knowledge search do not go together"),
    ],
)
def test_options_that_do_not_go_together(workspace: Workspace, arguments: list[str], said: str) -> None:
    result = workspace.agent(*arguments, script=[], typed="")
    assert (result.returncode, said in result.stderr) == (2, True), result.stderr


def test_raw_twice_is_raw(workspace: Workspace) -> None:
    result = workspace.agent("ask", QUESTION, "--raw", "--knowledge", "raw", script=ACTIVE[2:])
    assert (result.returncode, workspace.records()[0]["mode"]) == (0, "raw")


def test_the_prompt_goes_over_to_another_mode(workspace: Workspace) -> None:
    typed = "/knowledge\n/knowledge schema\nHi\n/knowledge shcema\n/compare search\n/model openai/other\n/exit\n"
    result = workspace.agent(script=[submit("SELECT 1", "1.")] * 2, typed=typed)
    assert "* bundle" in result.stdout and "  schema" in result.stdout
    assert "did you mean 'schema'?" in result.stderr and "shop (schema)> " not in result.stdout  # no terminal
    assert [record["mode"] for record in workspace.records()] == ["schema", "search"]
    assert "openai/other answers, in mode schema." in result.stdout
