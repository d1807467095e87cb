"""Questions of your own: JSON lines with `question`, `database` and `sql`, the gold query.

More keys, all optional: `id`, `difficulty`, `ordered` (the order of rows counts), `rules` (ids of the rules that the
answer needs), `hint`, and `answerable: false` in place of `sql`. `sql` may be a list: any of them is right. The
words of other benchmarks are taken too: `db_id` or `db_name` for the database, `evidence` for the hint; `SQL`, `gold`,
`gold_sql` or, beside a `question`, `query` for gold. A folder means all its .jsonl files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from okf_agent.entries import Entry, read_entries
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase
from okf_agent.tasks import Task
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.settings import Settings

IDS = ("id", "task_id", "question_id", "instance_id")
DATABASES = ("database", "db_id", "db_name")
GOLD = ("sql", "SQL", "gold", "gold_sql", "query")
HINTS = ("hint", "evidence")
FLAGS = (
    ("ordered", bool, "true or false"),
    ("answerable", bool, "true or false"),
    ("rules", list, "a list of ids"),
)
"""Keys whose values are no texts, with the type that JSON gives them."""
SHOWN_KEYS = ("question", "database", "sql", "id", "difficulty", "ordered", "rules", "hint", "answerable")
"""Those that a message lists: each meaning once."""
KEYS = ("question", *IDS, *DATABASES, *GOLD, *HINTS, "difficulty", "ordered", "rules", "answerable")


def load(path: Path, settings: Settings) -> Suite:
    """The suite of a file or folder.

    Raises:
        UserError: a line without question, database or gold, a database that is not there, an id that is given
            twice; names the line.
    """
    inside = _files(path)
    if not inside:
        raise UserError(f"There is no .jsonl file in {path}.", status=2)
    known = list_databases(settings)
    tasks: dict[str, Task] = {}
    for task_id, entry in entries(path):
        task = _task(entry, task_id)
        if task.database not in known:
            near = did_you_mean(task.database, known)
            raise UserError(f"{entry.where}: there is no database {task.database!r}{near}", status=2)
        if task.id in tasks:
            raise UserError(f"{entry.where}: the id {task.id!r} is given twice.", status=2)
        tasks[task.id] = task
    if not tasks:
        raise UserError(f"There are no questions in {path}.", status=2)
    databases = tuple(dict.fromkeys(task.database for task in tasks.values()))
    files = {file.name: file for file in inside}
    for name in databases:
        dump = known[name].dump
        files |= {dump.name: dump} if dump else {}
    return Suite(
        name=path.stem, tasks=tuple(tasks.values()), scorer="rows",
        databases=tuple(SuiteDatabase(name) for name in databases),
        gold=path, gold_format="user", files=files,
    )  # fmt: skip


def _task(entry: Entry, task_id: str) -> Task:
    for key in entry.values:
        if key not in KEYS:
            near = f"{did_you_mean(key, KEYS)} The keys: {', '.join(SHOWN_KEYS)}."
            raise UserError(f"{entry.where}: there is no key {key!r}{near}", status=2)
    question, database = entry.text("question"), entry.text(*DATABASES)
    for name, value in (("question", question), ("id", task_id)):
        if not value.strip():
            raise UserError(f"{entry.where}: {name!r} is empty.", status=2)
    for key, kind, what in FLAGS:
        if not isinstance(entry.values.get(key, kind()), kind):
            raise UserError(f"{entry.where}: {key!r} must be {what}, not {entry.values[key]!r}.", status=2)
    _check_gold(entry)
    return Task(
        id=task_id, database=database, question=question, difficulty=entry.text("difficulty", default=""),
        ordered=bool(entry.values.get("ordered")),
    )  # fmt: skip


def _check_gold(entry: Entry) -> None:
    """Refuse an entry whose gold could not score anything: it would be asked, and paid for, in vain.

    Raises:
        UserError: no query, one that is no text, or a question that has gold and cannot be answered.
    """
    found = next((entry.values[key] for key in GOLD if entry.values.get(key) is not None), None)
    if entry.values.get("answerable") is False:
        if found:
            raise UserError(f"{entry.where}: a question that cannot be answered has no gold query.", status=2)
        return
    if found is None:
        raise UserError(
            f"{entry.where}: there is no 'sql', the gold query. For a question that cannot be answered: "
            '"answerable": false',
            status=2,
        )
    queries = found if isinstance(found, list) else [found]
    if not queries or not all(isinstance(query, str) and query.strip() for query in queries):
        raise UserError(f"{entry.where}: 'sql' must be a query or a list of queries, not {found!r:.60}.", status=2)


def entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """Every entry with its task's id: its `id`, else its line, with the file's name before it in several files."""
    inside = _files(path)
    for file in inside:
        for entry in read_entries(file):
            line = f"{file.stem}_{entry.number}" if len(inside) > 1 else str(entry.number)
            yield entry.name(*IDS, default=line), entry


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
