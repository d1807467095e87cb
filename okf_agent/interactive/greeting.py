"""The first screen of the prompt: where one is, what can be asked, three questions to begin with."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.text import Text

from okf_agent.cell import Cell
from okf_agent.config import Config
from okf_agent.search.text import key_stems
from okf_agent.tasks import list_tasks
from okf_compiler.bundle import Bundle, Concept
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
    """Return three questions that fit: the database's tasks, else some made of its rules and tables."""
    try:
        tasks = [" ".join(t.question.split()) for t in list_tasks(config.settings).values() if t.database == database]
    except UserError:
        tasks = []
    asked = list({question.casefold(): question for question in tasks or _made(bundle)}.values())
    short = [question for question in asked if len(question) <= width]
    return (short + sorted((q for q in asked if q not in short), key=len))[:EXAMPLES]


def _made(bundle: Path) -> Iterator[str]:
    """Yield questions about what rules compute and what they count, in turn, then about the size of tables.

    A business rule is counted if its title ends in what a table holds, as "Active Customer" does beside `customers`.
    """
    content = _bundle(bundle)
    if content is None:
        return
    things = {tuple(key_stems(words[-1])): words[-1] for table in content.tables if (words := _words(table))}
    computed = (f"What is the {' '.join(_words(rule))}?" for rule in content.rules if rule.type == CALCULATION)
    counted = (
        f"How many {' '.join([*words[:-1], _plural(thing)])} are there?"
        for rule in content.rules
        if rule.type == BUSINESS_RULE and len(words := _words(rule)) > 1
        for thing in [things.get(tuple(key_stems(words[-1])))]
        if thing
    )
    for pair in itertools.zip_longest(computed, counted):
        yield from filter(None, pair)
    for table in content.tables:
        if words := _words(table):
            yield f"How many {' '.join([*words[:-1], _plural(words[-1])])} are there?"


def _words(concept: Concept) -> list[str]:
    """Return the words of a title as they stand in a sentence, without brackets and a schema's name."""
    title = concept.title.partition("(")[0]
    title = title.rpartition(".")[2].replace("_", " ") if concept.is_table else title
    return [word.lower() if word.istitle() else word for word in title.split()]


def _plural(word: str) -> str:
    """Return the plural of a noun, which may be one.

    >>> [_plural(word) for word in ("customers", "category", "address", "order", "day")]
    ['customers', 'categories', 'addresses', 'orders', 'days']
    """
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


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
