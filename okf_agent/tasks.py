"""Questions by id, as the data roots hold them. Answers live in other files, which nothing here opens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from okf_agent.entries import Entry, read_entries
from okf_compiler.documents import list_databases, no_database
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

Kind = Literal["query", "management"]
TASK_FILES = ("livesqlbench_data.jsonl", "tasks.jsonl")
"""In order: where a folder has both, its suite is the first, and the first that has an id wins."""
_KEYS = ("instance_id", "selected_database", "query")


@dataclass(frozen=True)
class Task:
    """One question, as a model may see it."""

    id: str
    database: str
    question: str
    difficulty: str = ""
    """The suite's own word for it: Simple, moderate, a category; "" where it has none."""
    kind: Kind = "query"
    """A management task changes the database: out of scope for a role that can only read."""
    ordered: bool = False
    """The order of the rows is part of the answer."""
    hint: str = ""
    """The benchmark's evidence, empty unless a cell with `hints` asked for it: `gold.hints(suite)`."""


def list_tasks(settings: Settings) -> dict[str, Task]:
    """Every task of the data roots and their databases' folders, by id; the first root that has an id wins.

    Raises:
        UserError: a line that is not a task, with file and line.
    """
    tasks: dict[str, Task] = {}
    for root in settings.data_roots:
        for name in TASK_FILES:
            for file in (root / name, *sorted(root.glob(f"*/{name}"))):
                for task in _questions(file):
                    tasks.setdefault(task.id, task)
    return tasks


def find_task(settings: Settings, task_id: str) -> Task:
    """The task with this id.

    Raises:
        UserError: there is none; the nearest id is suggested.
    """
    tasks = list_tasks(settings)
    if task_id in tasks:
        return tasks[task_id]
    if not tasks and not list_databases(settings):
        raise no_database(settings)
    roots = ", ".join(str(root) for root in settings.data_roots)
    raise UserError(
        f"There is no task {task_id!r}{did_you_mean(task_id, tasks)}\n{len(tasks)} tasks were found in {roots}.",
        status=2,
    )


def read_tasks(file: Path) -> Iterator[Task]:
    """The tasks of a file of LiveSQLBench's format, management tasks too.

    Raises:
        UserError: the file cannot be read, or a line is not a task; names the line.
    """
    return map(_task, read_entries(file))


def _questions(file: Path) -> Iterator[Task]:
    # `instance_id`, `selected_database` and `query` are LiveSQLBench's names. Elsewhere `query` may be gold SQL, so
    # what also has a `question` is of another format and needs an adapter.
    entries = read_entries(file) if file.is_file() else ()
    return (_task(entry) for entry in entries if "question" not in entry.values)


def _task(entry: Entry) -> Task:
    for key in _KEYS:
        if key not in entry.values:
            near, keys = did_you_mean(key, entry.values), ", ".join(_KEYS)
            raise UserError(f"{entry.where}: not a task: there is no {key!r}{near} It needs {keys}.", status=2)
    management = entry.text("category", default="Query").lower() == "management"
    return Task(
        id=entry.name("instance_id"),
        database=entry.text("selected_database"),
        question=entry.text("query"),
        difficulty=entry.text("difficulty_tier", default=""),
        kind="management" if management else "query",
        ordered=bool((entry.values.get("conditions") or {}).get("order")),
    )
