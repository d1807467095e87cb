"""The public suites: where their publishers keep them, and which of the files there are wanted."""

from __future__ import annotations

import csv
import fnmatch
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from okf_compiler.whole_file import write_whole


@dataclass(frozen=True)
class Repository:
    """A repository of a publisher, and which of its files are wanted."""

    name: str
    """`owner/name`."""
    files: tuple[str, ...]
    """Patterns of paths in it."""
    host: str = "hub"
    """`hub` (a data set on Hugging Face) or `github`."""
    branch: str = "main"
    strip: str = ""
    """What is cut off the beginning of a path."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Path there -> path here, where it differs."""

    def place(self, path: str) -> str:
        """Return where a file of the repository lies in the suite's folder."""
        return self.renamed.get(path, path.removeprefix(self.strip))

    def has(self, path: str) -> bool:
        """Return whether a file of the repository is wanted."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.files)

    def origin(self, place: str) -> str | None:
        """Return the path in the repository of what lies there, or None where it has no such file."""
        there = {here: path for path, here in self.renamed.items()}.get(place, self.strip + place)
        return there if self.has(there) else None


@dataclass(frozen=True)
class Published:
    """A suite as its publisher gives it."""

    folder: str
    """In `data/`."""
    repositories: tuple[Repository, ...]
    licence: str
    content: str
    """Where the databases' contents are, in words."""
    finish: Callable[[Path], None] = lambda _folder: None
    """What is made of the files once they are there."""


QUESTIONS = ("questions_gen_postgres", "instruct_basic_postgres", "instruct_advanced_postgres", "idk")
DOCUMENTS = ("livesqlbench_data.jsonl", "*/*_schema.txt", "*/*_column_meaning_base.json", "*/*_kb.jsonl")


def _livesqlbench(name: str, content: str) -> Published:
    return Published(name, (Repository(f"birdsql/{name}", DOCUMENTS),), "CC BY-SA 4.0", content)


def _defog_tasks(folder: Path) -> None:
    """Make tasks.jsonl of the CSV files: an id is the file's name and the row's number, from 1."""
    databases = {each.name for each in folder.iterdir() if each.is_dir()}
    tasks = []
    for file in sorted((folder / "published").glob("*.csv")):
        stem = file.stem.removesuffix("_postgres")
        with file.open(encoding="utf-8-sig", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines), start=1):
                kept = ("question", "query", "db_name", "query_category", "instructions")
                task = {"instance_id": f"{stem}_{number}"} | {name: row.get(name) or "" for name in kept}
                if task["db_name"] in databases:
                    tasks.append(json.dumps(task, ensure_ascii=False) + "\n")
    write_whole(folder / "tasks.jsonl", "".join(tasks))


SUITES: Mapping[str, Published] = {
    "livesqlbench-base-lite": _livesqlbench(
        "livesqlbench-base-lite",
        "Contents (PostgreSQL edition): `database.engine: docker` in config.yaml loads all 18 from the authors' image.",
    ),
    "livesqlbench-base-full": _livesqlbench(
        "livesqlbench-base-full-v1",
        "Contents: the authors link PostgreSQL dumps in the data set's README; put <db>_full.sql into dumps/.",
    ),
    "livesqlbench-large": _livesqlbench(
        "livesqlbench-large-v1",
        "Contents: the authors link PostgreSQL dumps in the data set's README; put <db>_full.sql into dumps/.",
    ),
    "bird-minidev": Published(
        "bird-minidev",
        (
            Repository(
                "birdsql/bird_mini_dev",
                ("data/mini_dev_sqlite-*.json",),
                renamed={"data/mini_dev_sqlite-00000-of-00001.json": "mini_dev_sqlite.json"},
            ),
        ),
        "CC BY-SA 4.0",
        "Contents: the data set's README links the complete package; put its dev_databases/ here.",
    ),
    "defog": Published(
        "defog",
        (
            Repository(
                "defog-ai/defog-data", ("defog_data/*/*.sql", "defog_data/*/*.json"), "github", strip="defog_data/"
            ),
            Repository(
                "defog-ai/sql-eval",
                tuple(f"data/{name}.csv" for name in QUESTIONS),
                "github",
                renamed={f"data/{name}.csv": f"published/{name}.csv" for name in QUESTIONS},
            ),
        ),
        "Apache-2.0",
        "Contents: in the same files.",
        _defog_tasks,
    ),
}
