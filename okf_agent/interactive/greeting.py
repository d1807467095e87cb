"""The first screen of the prompt: where one is, what can be asked, three questions to begin with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.text import Text

from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.tasks import list_tasks
from okf_compiler.bundle import Bundle
from okf_compiler.errors import UserError
from okf_compiler.headings import BUSINESS_RULE, CALCULATION
from okf_compiler.inert import inert
from okf_compiler.loaded import loaded

EXAMPLES = 3


def greet(config: Config, database: str, bundle: Path | None, cell: Cell, notice: str = "") -> None:
    """The first screen, on standard error.

    Raises:
        UserError: there is no such database or bundle.
    """
    from okf_compiler.terminal import Console

    err = Console(sys.stderr)
    if notice:
        err.say(notice, "magenta")
    folder = bundle or config.settings.bundles / database
    if not (folder / "index.md").is_file():
        from okf_agent.prepare import find_bundle  # brings the database side: a second, the first time only

        folder, _ = find_bundle(config, database, bundle, partial(err.say, style="dim"))
    first, second, *questions = greeting(config, database, folder, cell.knowledge, cell.model, err.width)
    err.print(Text(first, "bold"))
    err.print(Text(second))
    for question in questions:
        err.print(Text(question, "cyan"))


def greeting(config: Config, database: str, bundle: Path, mode: str, model: str, width: int) -> Iterator[str]:
    """Two lines, then the examples; none is wider than `width`."""
    content = _bundle(bundle)
    size = f" ({len(content.tables)} tables, {len(content.rules)} rules)" if content else ""
    yield _fitting(f"{database}{size}, read by {mode}, answered by {model}.", width)
    yield _fitting("Ask in plain language; /save FILE keeps rows, /help lists more, Ctrl-D leaves.", width)
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
    """Questions from rule titles, those that can be computed first; from tables where there is no rule.

    A business rule may be about things or about an amount, so its question is right for both.
    """
    content = _bundle(bundle)
    if content is None:
        return
    for kind, text in (
        (CALCULATION, "What is the {} over all data?"),
        (BUSINESS_RULE, "What counts as {}, in numbers?"),
    ):
        yield from (text.format(rule.title) for rule in content.rules if rule.type == kind)
    yield from (f"How many rows has {table.title}?" for table in content.tables)


def _bundle(folder: Path) -> Bundle | None:
    """The bundle, if it is there and has concepts."""
    try:
        content = loaded(folder) if folder.is_dir() else None
    except UserError:
        return None
    return content if content and content.concepts else None


def _fitting(line: str, width: int) -> str:
    line = inert(line)
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"
