"""A cell that was changed after it saw the hold-out stays marked, whatever is done afterwards."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import okf_agent
from okf_agent.cell import Cell
from okf_agent.evaluation import contamination
from okf_agent.evaluation.contamination import REGISTRY, configuration, marks, saw_holdout
from okf_compiler.errors import UserError

PLUMBING = {
    f"okf_agent.{name}" for name in ("prepare", "config", "cell", "run", "llm", "models.providers", "access.hidden")
}
"""Modules that modes and tools use and that move no result, or are held by something else than the code's hash."""


def settings(**changes: object) -> dict[str, object]:
    parts = {"bundles": {"shop": "aa"}, "model": {"temperature": 0.0}, "limits": {"max_steps": 15}}
    cell = Cell("m", "pack", **{k: v for k, v in changes.items() if k not in parts})  # type: ignore[arg-type]
    return configuration(cell.settings(), **{**parts, **{k: v for k, v in changes.items() if k in parts}})


def test_the_same_configuration_is_clean_and_is_registered_once_an_evaluation(tmp_path: Path) -> None:
    for _ in range(3):
        assert saw_holdout(tmp_path, "shop", "pack", "first", settings()) is None
    assert saw_holdout(tmp_path, "shop", "pack", "second", settings()) is None
    assert len((tmp_path / REGISTRY).read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"profiles": False}, "settings.profiles"),
        ({"find_value": True}, "settings.find_value"),
        ({"model": {"temperature": 1.0}}, "model.temperature"),
        ({"limits": {"max_steps": 20}}, "limits.max_steps"),
        ({"bundles": {"shop": "bb"}}, "bundle.shop"),
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
    assert saw_holdout(tmp_path, "shop", "pack", "first", settings(rules=False))
    assert marks(tmp_path, "shop", ["pack"], "first")


def test_prompts_and_code_are_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    for name in ("prompts/pack.md", "knowledge/pack.py", "agent.py", "search/index.py", "terminal.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("one\n", encoding="utf-8")
    monkeypatch.setattr(contamination.okf_agent, "__file__", str(package / "__init__.py"))
    before = contamination.here()
    changed = {}
    for name in ("prompts/pack.md", "knowledge/pack.py", "agent.py", "search/index.py", "terminal.py"):
        (package / name).write_text("two\n", encoding="utf-8")
        changed[name] = {part for part, value in contamination.here().items() if value != before[part]}
        (package / name).write_bytes(b"one\r\n")  # as a checkout on Windows has it
        assert contamination.here() == before
    assert changed["prompts/pack.md"] == {"prompts"} and changed["terminal.py"] == set()
    assert changed["knowledge/pack.py"] == changed["agent.py"] == changed["search/index.py"] == {"code"}


def test_everything_that_modes_and_tools_are_made_of_is_code() -> None:
    package = Path(okf_agent.__file__).parent
    assert [name for name in contamination.CODE if not (package / name).exists()] == []
    covered = tuple(
        f"okf_agent.{name.removesuffix('.py').replace('/', '.')}"
        for name in (*contamination.CODE, *contamination.PROMPTS)
    )
    for name in ("knowledge", "tools", "packing", "search"):
        for file in (package / name).glob("*.py"):
            for module in imported(file):
                known = module in PLUMBING or any(f"{module}.".startswith(f"{each}.") for each in covered)
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
    assert saw_holdout(tmp_path, "defog", "pack", "second", settings(rules=False)) is None
    assert saw_holdout(tmp_path, "shop", "bundle", "second", settings(rules=False)) is None
    more = settings(bundles={"shop": "aa", "alien": "cc"})
    assert saw_holdout(tmp_path, "shop", "pack", "second", more) is None


def test_an_edited_registry_is_seen(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        saw_holdout(tmp_path, "shop", "pack", name, settings(rules=name != "second"))
    lines = (tmp_path / REGISTRY).read_text(encoding="utf-8").splitlines()
    edited = json.loads(lines[1]) | {"cell": "other"}
    for text in ([lines[0], lines[2]], [lines[0], json.dumps(edited), lines[2]]):
        (tmp_path / REGISTRY).write_text("".join(f"{line}\n" for line in text), encoding="utf-8", newline="\n")
        with pytest.raises(UserError, match="edited"):
            marks(tmp_path, "shop", ["pack"], "third")
