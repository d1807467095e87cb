"""BIRD: Mini-Dev, and one database of it (superhero). SQLite databases, loaded into PostgreSQL.

https://bird-bench.github.io, https://github.com/bird-bench/mini_dev, CC BY-SA 4.0. A question, its evidence (a hint)
and its gold SQL are one record: only `gold.py` reads the last two. Gold is in SQLite's dialect and transpiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from okf_agent.entries import read_entries
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase, first_file
from okf_agent.tasks import Task

TASK_FILES = ("questions.json", "mini_dev_sqlite.json", "dev.json")


def load(name: str, folder: Path) -> Suite:
    """The suite in `folder`: one of TASK_FILES, and `<db>.sqlite` with `database_description` beside it or as
    published, in `dev_databases/<db>/`.

    Raises:
        UserError: an entry that is no task.
    """
    tasks_file = first_file(folder, TASK_FILES)
    tasks = tuple(_tasks(tasks_file))
    files = {tasks_file.name: tasks_file}
    databases = []
    for database in dict.fromkeys(task.database for task in tasks):
        place = next(
            (each for each in (folder / "dev_databases" / database, folder / database) if each.is_dir()), folder
        )
        content, described = place / f"{database}.sqlite", place / "database_description"
        found = [content] if content.is_file() else []
        found += sorted(described.glob("*.csv"))
        files |= {path.relative_to(folder).as_posix(): path for path in found}
        databases.append(
            SuiteDatabase(
                database,
                sqlite=content if content.is_file() else None,
                columns=(described,) if described.is_dir() else (),
            )
        )
    return Suite(
        name=name, tasks=tasks, scorer="bird", databases=tuple(databases),
        gold=tasks_file, gold_format="bird", files=files,
        notes=("Gold is transpiled from SQLite: NULLs sort and text compares as PostgreSQL does it.",),
    )  # fmt: skip


def _tasks(file: Path) -> Iterator[Task]:
    for entry in read_entries(file):
        yield Task(
            id=entry.name("question_id"),
            database=entry.text("db_id"),
            question=entry.text("question"),
            difficulty=entry.text("difficulty", default=""),
        )
