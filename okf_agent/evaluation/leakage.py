"""Does anything that a model reads hold a test's question, gold SQL or evidence?

Texts are compared as words in any case, so that line breaks, quotes, markdown and SQL formatting hide nothing. A run
of LONG words in a row of one secret is a hit; a shorter secret must stand there whole, and one below SHORT words is not
looked for, since everybody writes `SELECT count(*) FROM customers`. What is rephrased is not found.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from okf_compiler.errors import UserError
from okf_compiler.sql_names import quoted

if TYPE_CHECKING:
    from okf_agent.evaluation.gold import Gold
    from okf_agent.evaluation.suites.model import Suite

LONG = 16
"""Words in a row that are no accident. A question may quote a sentence of the documents; the longest known has 15."""
SHORT = 7
ENTRY = re.compile(r"\b(sol_sql|external_knowledge|test_cases|instance_id)\b[^\w]{1,6}")
"""The names of a task file's fields, before their value: somebody put a whole entry there."""
SHOWN_HITS = 10
WORD = re.compile(r"[^\W_]+")
WORTHWHILE = 2 * SHORT
"""Characters that a cell of a SQLite file must have to hold SHORT words."""
TEXT_FILES = (".md", ".json", ".jsonl", ".yaml", ".yml", ".txt", ".csv")
"""Files that people and programs write as text. In packed ones a field's name may stand by accident."""
DATABASES = (".sqlite", ".db")


@dataclass(frozen=True)
class Secret:
    """A text of a test that no model may read."""

    task_id: str
    kind: str
    """question, gold SQL or evidence."""
    text: str


@dataclass(frozen=True)
class Leak:
    """A secret that lies where a model reads."""

    file: Path
    line: int
    """From 1; in a SQLite file, the row."""
    task_id: str
    kind: str
    text: str
    """The words that were found, normalised."""

    def __str__(self) -> str:
        whose = f"the {self.kind} of task {self.task_id}" if self.task_id else f"a task file's field {self.kind}"
        return f"{self.file}:{self.line}: {whose}: “{self.text}”"


def secrets(suite: Suite, gold: Mapping[str, Gold]) -> list[Secret]:
    """Everything of a suite that must not be read: its questions, and what its gold has."""
    found = [Secret(task.id, "question", task.question) for task in suite.tasks]
    for task_id, answer in gold.items():
        found += [Secret(task_id, "gold SQL", sql) for sql in answer.sql]
        if answer.hint:
            found.append(Secret(task_id, "evidence", answer.hint))
    return found


def scan(hidden: Iterable[Secret], places: Iterable[Path]) -> list[Leak]:
    """Every leak in files and folders (bundles, profiles, prompts, indexes); one hit a secret and file.

    Text and SQLite files are read whole, other files as far as they hold text: a search index repeats what a bundle
    has, packed.
    """
    needles = _needles(hidden)
    lengths = sorted({len(words) for words in needles})
    leaks: list[Leak] = []
    for file in _files(places):
        if file.suffix in DATABASES:
            leaks += _in_rows(file, needles, lengths)
        else:
            leaks += _in_text(file, file.read_bytes().decode("utf-8", "replace"), needles, lengths)
    return leaks


def stop_on(leaks: list[Leak]) -> None:
    """Let no suite start whose answers can be read.

    Raises:
        UserError: there are leaks; names the first of them by file and line.
    """
    if leaks:
        more = f"\n… and {len(leaks) - SHOWN_HITS} more." if len(leaks) > SHOWN_HITS else ""
        shown = "\n".join(f"  {leak}" for leak in leaks[:SHOWN_HITS])
        raise UserError(
            f"The suite does not start: a model could read what it is tested on.\n{shown}{more}\n"
            f"Take these texts out of the files (or out of what they are made from), then compile again."
        )


def words(text: str) -> list[str]:
    """The words of a text, in lower case; an underscore parts words as a blank does.

    >>> words("SELECT o.customer_id, 'ACTIVE'")
    ['select', 'o', 'customer', 'id', 'active']
    """
    return [word.casefold() for word in WORD.findall(text)]


def _needles(hidden: Iterable[Secret]) -> dict[tuple[str, ...], Secret]:
    """Every run of words that is a hit, with the first secret that has it."""
    needles: dict[tuple[str, ...], Secret] = {}
    for secret in hidden:
        found = words(secret.text)
        size = min(LONG, len(found))
        if size >= SHORT:
            for start in range(len(found) - size + 1):
                needles.setdefault(tuple(found[start : start + size]), secret)
    return needles


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and file.suffix not in (".lock", ".pyc"):
                yield file


def _in_text(file: Path, text: str, needles: Mapping[tuple[str, ...], Secret], lengths: list[int]) -> list[Leak]:
    found: dict[tuple[str, str], Leak] = {}
    if file.suffix in TEXT_FILES:
        for match in ENTRY.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.setdefault(("", match[1]), Leak(file, line, "", match[1], match[0].strip()))
    spots = [(match[0].casefold(), match.start()) for match in WORD.finditer(text)]
    sequence = [word for word, _ in spots]
    for secret, start, size in _hits(sequence, needles, lengths):
        line = text.count("\n", 0, spots[start][1]) + 1
        hit = Leak(file, line, secret.task_id, secret.kind, " ".join(sequence[start : start + size]))
        found.setdefault((secret.task_id, secret.kind), hit)
    return [*found.values()]


def _in_rows(file: Path, needles: Mapping[tuple[str, ...], Secret], lengths: list[int]) -> list[Leak]:
    """Leaks in the texts of a SQLite file, such as a value index."""
    leaks: dict[tuple[str, str], Leak] = {}
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        except sqlite3.DatabaseError:
            return _in_text(file, file.read_bytes().decode("utf-8", "replace"), needles, lengths)
        for row, text in _cells(connection, tables):
            found = words(text)
            for secret, start, size in _hits(found, needles, lengths):
                hit = Leak(file, row, secret.task_id, secret.kind, " ".join(found[start : start + size]))
                leaks.setdefault((secret.task_id, secret.kind), hit)
    return [*leaks.values()]


def _cells(connection: sqlite3.Connection, tables: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The row's number in its table, and the text, of every cell that may hold a secret."""
    for table in tables:
        try:
            rows = connection.execute(f"SELECT * FROM {quoted(table)}")
        except sqlite3.DatabaseError:
            continue  # a virtual table of an extension that is not here; its content lies in plain tables
        for number, row in enumerate(rows, start=1):
            yield from ((number, cell) for cell in row if isinstance(cell, str) and len(cell) > WORTHWHILE)


def _hits(
    sequence: list[str], needles: Mapping[tuple[str, ...], Secret], lengths: list[int]
) -> Iterator[tuple[Secret, int, int]]:
    """(secret, first word, words) of every run that is a needle."""
    for start in range(len(sequence)):
        for size in lengths:
            secret = needles.get(tuple(sequence[start : start + size]))
            if secret and start + size <= len(sequence):
                yield secret, start, size
