"""Questions by id, as the data roots hold them. Answers live in other files, which nothing here opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings, list_databases, no_database

TASK_FILES = ("tasks.jsonl", "livesqlbench_data.jsonl")


@dataclass(frozen=True)
class Task:
    id: str
    database: str
    question: str


def list_tasks(settings: Settings) -> dict[str, Task]:
    """Every task of the data roots and their databases' folders, by id; the first root that has an id wins.

    Raises:
        UserError: a line that is not a task, with file and line.
    """
    tasks: dict[str, Task] = {}
    for root in settings.data_roots:
        for name in TASK_FILES:
            for file in (root / name, *sorted(root.glob(f"*/{name}"))):
                for task in _read(file):
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


def _read(file: Path) -> Iterator[Task]:
    if not file.is_file():
        return
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            # Only these three names are LiveSQLBench's. Elsewhere `query` may be gold SQL, so a file that also
            # has a `question` is of another format and needs an adapter.
            if "question" in entry:
                return
            yield Task(str(entry["instance_id"]), str(entry["selected_database"]), str(entry["query"]))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{file}:{number}: not a task ({error}). It needs instance_id, selected_database and query."
            ) from None
