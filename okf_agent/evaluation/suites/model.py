"""What a suite is: questions, the databases they are asked of, and where their gold lies. No gold itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from okf_agent.tasks import Task


@dataclass(frozen=True)
class SuiteDatabase:
    """Where one database of a suite comes from. What is None or empty, config.yaml and the data roots say."""

    name: str
    root: Path | None = None
    """A data root that has its documents, `<root>/<name>/<name>_schema.txt` and the others."""
    dump: Path | None = None
    """The SQL file with its content, for PostgreSQL."""
    sqlite: Path | None = None
    """A SQLite file with its content, converted on the way in."""
    columns: tuple[Path, ...] = ()
    """Data dictionaries: then its documents are made of them and of the tables of its dump."""


@dataclass(frozen=True)
class Suite:
    """A named set of questions over databases."""

    name: str
    tasks: tuple[Task, ...]
    scorer: str
    """A name in `scorers.SCORERS`."""
    databases: tuple[SuiteDatabase, ...]
    gold: Path | None = None
    """The file that only scorers open; None: nothing can be scored."""
    gold_format: str = "rows"
    """How `gold.load` reads that file: a name in `gold.READERS`."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Every input by its name in the pins: tasks, gold, dumps, documents."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Name -> SHA-256 in hexadecimal of what the inputs are to be."""
    pins_file: Path | None = None
    """Where they are kept as they were run here; None where the publisher's are known."""
    row_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Database -> `schema.table` -> rows of the tables when it is loaded completely."""
    notes: tuple[str, ...] = ()
    """What a reader of its figures must know, one sentence each."""

    @property
    def own(self) -> bool:
        """Whether these are questions of the user's own, who may change them."""
        return self.gold_format == "user"

    @property
    def queries(self) -> tuple[Task, ...]:
        """The tasks in scope for a role that can only read."""
        return tuple(task for task in self.tasks if task.kind == "query")

    @property
    def management(self) -> tuple[Task, ...]:
        """The tasks that are out of scope, to be counted apart."""
        return tuple(task for task in self.tasks if task.kind == "management")

    @property
    def hash(self) -> str:
        """SHA-256 over the name and the content of every input."""
        whole = hashlib.sha256(self.name.encode())
        for name, path in sorted(self.files.items()):
            whole.update(f"\n{name} {digest(path)}".encode())
        return whole.hexdigest()


def first_file(folder: Path, names: Sequence[str]) -> Path:
    """The first of these files that the folder has; where it has none, the first name, which nobody can read then."""
    return next((file for file in (folder / name for name in names) if file.is_file()), folder / names[0])


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
