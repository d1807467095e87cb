"""A cell that was changed after it saw the hold-out stays marked, whatever is done afterwards."""

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import okf_agent
import okf_compiler
from okf_agent.cell import Cell
from okf_agent.evaluation import contamination
from okf_agent.evaluation.contamination import REGISTRY, marks, saw_holdout
from okf_compiler.errors import UserError

ANSWERING = ("bundles", "knowledge", "packing", "search", "sql", "tools")
PLUMBING = {"okf_agent.engines"}
"""What these packages use and what moves no result."""


def settings(**changes: object) -> dict[str, object]:
    """A flat configuration; `settings__rules=False` is another `settings.rules`."""
    cell = {f"settings.{name}": value for name, value in Cell("m", "pack").settings().items()}
    parts = {"model.temperature": 0.0, "limits.max_steps": 15, "bundle.shop": "aa"}
    return {**cell, **parts, **{name.replace("__", "."): value for name, value in changes.items()}}


def test_the_same_configuration_is_clean_and_is_registered_once_an_evaluation(tmp_path: Path) -> None:
    for _ in range(3):
        assert saw_holdout(tmp_path, "shop", "pack", "first", settings()) is None
    assert saw_holdout(tmp_path, "shop", "pack", "second", settings()) is None
    assert len((tmp_path / REGISTRY).read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"settings__profiles": False}, "settings.profiles"),
        ({"settings__find_value": True}, "settings.find_value"),
        ({"model__temperature": 1.0}, "model.temperature"),
        ({"limits__max_steps": 20}, "limits.max_steps"),
        ({"bundle__shop": "bb"}, "bundle.shop"),
    ],
)
def test_a_changed_cell_is_marked_for_good(tmp_path: Path, changes: dict[str, object], part: str) -> None:
    saw_holdout(tmp_path, "shop", "pack", "first", settings())
    mark = saw_holdout(tmp_path, "shop", "pack", "second", settings(**changes))
    assert mark and mark.changed == (part,) and mark.evaluation == "first"
    assert part in str(mark) and "first" in str(mark)
    # Neither going back to how it was, nor another evaluation later, makes it clean again.
    assert saw_holdout(tmp_path, "shop", "pack", "third", settings())
    assert set(marks(tmp_path, "shop", ["pack", "other"], "second")) == {"pack"}
    # What was measured before the change stays as it was.
    assert marks(tmp_path, "shop", ["pack"], "first") == {}


def test_a_change_within_one_evaluation_counts_too(tmp_path: Path) -> None:
    saw_holdout(tmp_path, "shop", "pack", "first", settings())
    assert saw_holdout(tmp_path, "shop", "pack", "first", settings(settings__rules=False))
    assert marks(tmp_path, "shop", ["pack"], "first")


def test_prompts_and_code_are_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "okf_agent/prompts/pack.md": {"prompts"},
        "okf_agent/agent.py": {"code"},
        "okf_agent/packing/choose.py": {"code"},
        "okf_agent/search/synonyms.txt": {"code"},
        "okf_compiler/profiling/text.py": {"code"},
        "okf_agent/results/terminal.py": set(),
        "okf_agent/evaluation/report.py": set(),
        "okf_compiler/readers/dbt.py": set(),
    }
    for package in (okf_agent, okf_compiler):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, tmp_path / package.__name__, ignore=shutil.ignore_patterns("*.pyc"))
        monkeypatch.setattr(package, "__file__", str(tmp_path / package.__name__ / "__init__.py"))
    before = contamination.installed_hashes()
    changed = {}
    for name in expected:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        content = file.read_bytes() if file.exists() else b""
        file.write_bytes(content + b"# more\n")
        changed[name] = {part for part, value in contamination.installed_hashes().items() if value != before[part]}
        file.write_bytes(content.replace(b"\n", b"\r\n"))  # as a checkout on Windows has it
        assert contamination.installed_hashes() == before
    assert changed == expected


def test_everything_that_modes_and_tools_are_made_of_is_code() -> None:
    agent, compiler = (Path(str(package.__file__)).parent for package in (okf_agent, okf_compiler))
    names = [agent / name for name in contamination.NO_SAY] + [compiler / name for name in contamination.COMPILER]
    assert [place for place in names if not place.exists()] == []
    outside = {f"okf_agent.{name.removesuffix('.py')}" for name in contamination.NO_SAY} - PLUMBING
    for file in (agent / "agent.py", *(file for name in ANSWERING for file in (agent / name).glob("*.py"))):
        for module in imported(file):
            known = ".".join(module.split(".")[:2]) not in outside
            assert known, f"{file.name} uses {module}: is it code that moves results, or plumbing?"


def imported(file: Path) -> Iterator[str]:
    """The modules of the agent that a file imports, by their full names."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("okf_agent"):
            for each in node.names:
                name = f"{node.module}.{each.name}"
                yield name if is_module(name) else node.module


def is_module(name: str) -> bool:
    place = Path(okf_agent.__file__).parent.parent.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_other_cells_suites_and_databases_have_no_say(tmp_path: Path) -> None:
    saw_holdout(tmp_path, "shop", "pack", "first", settings())
    assert saw_holdout(tmp_path, "defog", "pack", "second", settings(settings__rules=False)) is None
    assert saw_holdout(tmp_path, "shop", "bundle", "second", settings(settings__rules=False)) is None
    more = settings(bundle__alien="cc")
    assert saw_holdout(tmp_path, "shop", "pack", "second", more) is None


def test_an_edited_registry_is_seen(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        saw_holdout(tmp_path, "shop", "pack", name, settings(settings__rules=name != "second"))
    lines = (tmp_path / REGISTRY).read_text(encoding="utf-8").splitlines()
    edited = json.loads(lines[1]) | {"cell": "other"}
    for text in ([lines[0], lines[2]], [lines[0], json.dumps(edited), lines[2]]):
        (tmp_path / REGISTRY).write_text("".join(f"{line}\n" for line in text), encoding="utf-8", newline="\n")
        with pytest.raises(UserError, match="edited"):
            marks(tmp_path, "shop", ["pack"], "third")
