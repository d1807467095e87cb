"""The documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from okf_agent.config import load_config
from okf_agent.models.providers import PROVIDERS
from okf_agent.setup import demo
from okf_compiler.settings import read_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "PROVIDERS", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_the_table_of_providers_is_the_code_s() -> None:
    rows = re.findall(
        r"^\| ([^|]+?) +\| `?([A-Z_]+|none)`? +\| `([^`]+)` \|$", (ROOT / "PROVIDERS.md").read_text("utf-8"), re.M
    )
    assert rows == [(p.title, p.key or "none", p.example) for p in PROVIDERS]


def groups() -> dict[str, click.Group]:
    from okf_agent.commands.cli import commands as agent
    from okf_compiler.cli import commands as compiler

    return {"okf-agent": agent, "okf-compiler": compiler}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_a_page_names_exist_with_their_options(page: Path) -> None:
    text = page.read_text("utf-8")
    known = groups()
    named = re.findall(r"(okf-agent|okf-compiler) ([a-z][a-z-]*)((?:[^`\n]*)?)", text)
    for program, name, rest in named:
        command = known[program].commands.get(name)
        if command is None:
            # "okf-agent and" in prose is no call; in code it is.
            assert f"`{program} {name}" not in text and f"$ {program} {name}" not in text, f"{program} {name}"
            continue
        below = command.commands.get(rest.split()[0]) if isinstance(command, click.Group) and rest.split() else None
        params = [*command.params, *(below.params if below else ())]
        options = {o for p in params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
        options |= {o for p in known[program].params for o in p.opts}
        code = rest if f"`{program} {name}{rest}`" in text or f"$ {program} {name}{rest}" in text else ""
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", code)) <= options, f"{program} {name}{rest}"


def test_every_command_is_in_the_readme() -> None:
    table = README[README.index("## Use it") : README.index("First use compiles")]
    for program, group in groups().items():
        assert program in table
        for name in set(group.commands) - {"completion"}:
            assert re.search(rf"`(okf-\w+ )?{name}\b", table), f"{program} {name}"


def test_the_tree_is_there() -> None:
    tree = README[README.index("```text\nconfig.yaml") :].split("```")[1].splitlines()[1:]
    folder = ROOT
    for line in tree:
        for name in re.findall(r"^ *(\S+/)|(?:^|  )([.\w-]+\.(?:yaml|yml|md|example))", line):
            path = name[0] or name[1]
            if name[0] and not line.startswith(" "):
                folder = ROOT / path
                assert folder.is_dir(), path
            else:
                assert (folder / path if line.startswith(" ") else ROOT / path).exists(), path
    packages = {p.parent.name for p in ROOT.glob("okf_*/*/__init__.py")}
    assert packages <= set(re.findall(r"^ +(\w+)/", "\n".join(tree), re.M)), "a package is missing in the tree"


def test_links_between_pages_hold() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#|/)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_ci_runs_the_readme_s_test_command() -> None:
    command = re.search(r"^pip install uv && (uv run .*pytest.*)$", README, re.M)
    assert command is not None
    assert command[1] in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("file", [ROOT / "config.yaml", demo.CONFIG], ids=["the checkout's", "the demo's"])
def test_the_config_file_holds_the_defaults(file: Path) -> None:
    config = load_config(file.parent)
    written = read_config(file)
    for name, section in (("model", config.model), ("agent", config.agent), ("database", config.settings.database)):
        for key, value in written[name].items():
            default = type(section).model_fields[key].default
            assert getattr(section, key) == default, f"{name}.{key}: {value}"
