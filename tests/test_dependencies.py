"""What is asked for is what is used, and heavy packages wait until something needs them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = (
    "distributed", "huggingface_hub", "litellm", "matplotlib", "mcp", "numpy", "psycopg", "sqlglot", "tantivy",
    "uvicorn", "xllamacpp",
)  # fmt: skip
HELP = """
import okf_compiler.launch
sys.argv = [{program!r}, "--help"]
try:
    okf_compiler.launch.{entry}()
except SystemExit:
    pass
"""
PROMPT = """
from okf_agent.interactive import greeting, line_editor, prompt
from okf_agent.cell import choose_cell
from okf_agent.config import load_config
config = load_config()
prompt.completions(config)
greeting.greet(config, "shop", None, choose_cell(config, "openai/x", None, print))
"""
STARTS = {
    "okf-agent --help": HELP.format(program="okf-agent", entry="agent"),
    "okf-compiler --help": HELP.format(program="okf-compiler", entry="compiler"),
    "the prompt": PROMPT,
}


@pytest.mark.parametrize("start", STARTS)
def test_a_start_imports_nothing_heavy(start: str) -> None:
    code = f"import sys\n{STARTS[start]}\nprint('!', *set({HEAVY}) & {{*sys.modules}})"
    env = {**os.environ, "OPENAI_API_KEY": "x"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "!"


def asked_for() -> dict[str, str]:
    """Every direct dependency with its group."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {re.split(r"[^\w-]", line)[0]: group for group, lines in groups.items() for line in lines}


def test_the_table_of_dependencies_is_today_s() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    assert dict(re.findall(r"^\| ([\w-]+) \| (core|local|mcp|eval|dask) \|", page, re.M)) == asked_for()


def imported() -> Iterator[tuple[str, Path]]:
    """The top packages that the code imports, wherever in a file, with the file."""
    for file in (*ROOT.glob("okf_agent/**/*.py"), *ROOT.glob("okf_compiler/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name.split(".")[0], file) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module.split(".")[0], file


BROUGHT = {
    "anyio": "mcp",
    "httpx": "litellm",
    "mcp_types": "mcp",
    "pygments": "rich",
    "starlette": "mcp",
    "tqdm": "huggingface-hub",
}
"""Packages in whose terms a dependency is written, so that their versions are its choice, with that dependency."""


def distributions(package: str) -> set[str]:
    """The distributions that a package comes from, as pyproject.toml spells names."""
    return {name.replace("_", "-").lower() for name in PACKAGES[package]}


PACKAGES = metadata.packages_distributions()


def test_nothing_is_imported_that_is_not_asked_for() -> None:
    known = {*asked_for(), *(name for package in BROUGHT for name in distributions(package))}
    ours = {*sys.stdlib_module_names, "okf_agent", "okf_compiler"}
    foreign = {(package, file) for package, file in imported() if package not in ours}
    assert [f"{file}: {package}" for package, file in foreign if not known & distributions(package)] == []
    assert set(BROUGHT) <= {package for package, _ in foreign}


@pytest.mark.parametrize("package", BROUGHT)
def test_what_a_dependency_brings_is_required_by_it(package: str) -> None:
    required = {re.split(r"[^\w-]", line)[0].lower() for line in metadata.requires(BROUGHT[package]) or ()}
    assert BROUGHT[package] in asked_for() and distributions(package) & required


def test_everything_asked_for_is_named_in_the_code() -> None:
    text = "\n".join(file.read_text("utf-8") for file in ROOT.glob("okf_*/**/*.py"))
    for wanted in asked_for():
        packages = [package for package in PACKAGES if wanted in distributions(package)]
        assert any(re.search(rf"\b{package}\b", text) for package in packages), wanted
