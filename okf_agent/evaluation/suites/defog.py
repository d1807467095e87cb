"""Defog's SQL-Eval for PostgreSQL: 9 databases, 252 questions with answers, 105 that cannot be answered.

https://github.com/defog-ai/sql-eval and defog-data, Apache-2.0. A task's `query` is its gold SQL: only `gold.py`
reads it. What is asked is `question`, and `instructions` where they say how to compute. The instructions of a
question that cannot be answered hold the gold itself ("return the query 'SELECT …'"), so they are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from okf_agent.entries import Entry, read_entries
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase
from okf_agent.tasks import Task

TASKS_FILE = "tasks.jsonl"
UNANSWERABLE = "idk"
"""Begins the ids of questions that cannot be answered."""
ASKS_ORDER = re.compile(r"\b(order|sort|arrange)\b", re.IGNORECASE)


def load(name: str, folder: Path) -> Suite:
    """The suite in `folder`: tasks.jsonl, and `<db>/<db>.sql` and `<db>/<db>.json` a database.

    Raises:
        UserError: a line that is no task.
    """
    tasks = tuple(_tasks(folder / TASKS_FILE))
    files = {TASKS_FILE: folder / TASKS_FILE}
    databases = []
    for database in dict.fromkeys(task.database for task in tasks):
        dump, meanings = (folder / database / f"{database}{suffix}" for suffix in (".sql", ".json"))
        files |= {path.relative_to(folder).as_posix(): path for path in (dump, meanings) if path.is_file()}
        databases.append(
            SuiteDatabase(
                database, dump=dump if dump.is_file() else None, columns=(meanings,) if meanings.is_file() else ()
            )
        )
    return Suite(
        name=name, tasks=tasks, scorer="defog", databases=tuple(databases),
        gold=folder / TASKS_FILE, gold_format="defog", files=files,
        notes=("Some gold queries use today's date: figures of other days differ.",),
    )  # fmt: skip


def _tasks(file: Path) -> Iterator[Task]:
    for entry in read_entries(file):
        instructions = entry.text("instructions", default="") if is_answerable(entry) else ""
        yield Task(
            id=entry.name("instance_id"),
            database=entry.text("db_name"),
            question=f"{entry.text('question')}\n{instructions}".strip(),
            difficulty=entry.text("query_category", default=""),
            ordered=is_ordered(entry),
        )


def is_answerable(entry: Entry) -> bool:
    """Whether a task has an answer."""
    return not entry.text("instance_id").startswith(UNANSWERABLE)


def is_ordered(entry: Entry) -> bool:
    """Whether the order of a task's rows counts, as Defog's own scorer decides it."""
    return entry.text("query_category", default="") == "order_by" or bool(ASKS_ORDER.search(entry.text("question")))
