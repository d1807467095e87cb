"""The first screen of the prompt: where one is, what can be asked, three questions to begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from okf_agent.config import Config
from okf_agent.tasks import list_tasks
from okf_compiler import bundle as bundles
from okf_compiler.errors import UserError
from okf_compiler.inert import inert

EXAMPLES = 3


def greeting(config: Config, database: str, bundle: Path, mode: str, model: str, width: int) -> Iterator[str]:
    """Two lines, then the examples; none is wider than `width`."""
    tables, rules = (_concepts(bundle, folder) for folder in ("tables", "knowledge"))
    size = f" ({tables} tables, {rules} rules)" if tables or rules else ""
    yield _fitting(f"{database}{size}, read by {mode}, answered by {model}.", width)
    yield _fitting("Ask in plain language; /help lists commands, Ctrl-D leaves. For example:", width)
    yield from (_fitting(f"  {question}", width) for question in examples(config, database, bundle, width - 2))


def examples(config: Config, database: str, bundle: Path, width: int = 10_000) -> list[str]:
    """Three questions that fit: the database's tasks, else made from the titles of its rules."""
    try:
        tasks = [" ".join(t.question.split()) for t in list_tasks(config.settings).values() if t.database == database]
    except UserError:
        tasks = []
    short = [question for question in tasks if len(question) <= width]
    found = (short + sorted((q for q in tasks if q not in short), key=len))[:EXAMPLES]
    return found or [*_made(bundle)][:EXAMPLES]


def _made(bundle: Path) -> Iterator[str]:
    """Questions from rule titles, those that can be computed first; from tables where there is no rule."""
    try:
        concepts = [*bundles.load(bundle).concepts.values()] if bundle.is_dir() else []
    except UserError:
        concepts = []
    for kind, text in (
        ("Calculation", "What is the {} over all data?"),
        ("Business Rule", "How many fit the rule {}?"),
        ("PostgreSQL Table", "How many rows has {}?"),
    ):
        yield from (text.format(concept.title) for concept in concepts if concept.type == kind)


def _concepts(bundle: Path, folder: str) -> int:
    try:
        return sum(bundles.is_concept(file.name) for file in (bundle / folder).iterdir())
    except OSError:
        return 0


def _fitting(line: str, width: int) -> str:
    line = inert(line)
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
