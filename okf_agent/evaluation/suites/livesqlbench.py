"""LiveSQLBench: Base-Lite, Base-Full and Large, as their authors publish them, and the shop, in the same form.

https://github.com/bird-bench/livesqlbench. Their authors give the answers (`sol_sql`, `test_cases`,
`external_knowledge`) to who asks for them by mail: save that file as `gold.jsonl` beside the tasks. Without it a
suite runs unscored. Management tasks change the database and are out of scope for a role that can only read.
"""

from __future__ import annotations

from pathlib import Path

from okf_agent.evaluation.suites.model import Suite, SuiteDatabase, first_file
from okf_agent.tasks import TASK_FILES, read_tasks

GOLD_FILE = "gold.jsonl"
OTHER_DUMPS = {"mental_health": "mental_healths_full.sql"}
"""Base-Full's dump that is not called after its database."""


def load(name: str, folder: Path) -> Suite:
    """The suite in `folder`, which has the tasks and is a data root.

    Raises:
        UserError: a line that is no task.
    """
    tasks_file = first_file(folder, TASK_FILES)
    tasks = tuple(read_tasks(tasks_file))
    gold = next((file for file in _gold_files(folder)), tasks_file)
    files = {tasks_file.name: tasks_file, gold.name: gold}
    databases = []
    for database in dict.fromkeys(task.database for task in tasks):
        dump = _dump(folder, database)
        documents = sorted((folder / database).glob(f"{database}_*"))
        files |= {path.relative_to(folder).as_posix(): path for path in (*documents, *([dump] if dump else ()))}
        databases.append(SuiteDatabase(database, root=folder, dump=dump))
    return Suite(
        name=name, tasks=tasks, scorer="livesqlbench", databases=tuple(databases),
        gold=gold, gold_format="livesqlbench", files=files,
    )  # fmt: skip


def _gold_files(folder: Path) -> list[Path]:
    """`gold.jsonl`, else a file under the name its authors send it by (`livesqlbench_…_gt_….jsonl`)."""
    return [file for file in (folder / GOLD_FILE, *sorted(folder.glob("*_gt*.jsonl"))) if file.is_file()]


def _dump(folder: Path, database: str) -> Path | None:
    """Its own `<db>.sql`, else the publisher's dump."""
    dumps = folder / "dumps"
    named = (f"{database}_full.sql", OTHER_DUMPS.get(database, ""), f"{database}.sql")
    candidates = [folder / database / f"{database}.sql", *(dumps / name for name in named if name)]
    return next((file for file in candidates if file.is_file()), None)
