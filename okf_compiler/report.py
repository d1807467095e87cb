"""What a compile read, wrote and missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from okf_compiler.draft import says_nothing
from okf_compiler.model import Database, Problem, Rule

_NAMES_SHOWN = 10


@dataclass(frozen=True)
class Report:
    database: Database
    folder: Path
    unlinked: tuple[Rule, ...]
    """Rules that name no table and no column."""
    saved: bool = False
    """False if the folder was like that already."""
    added: int = 0
    changed: int = 0
    removed: int = 0
    notes: tuple[str, ...] = ()
    """What a person should look at in the bundle."""
    checked: bool = False
    """Nothing was written: `saved` and the counts say what a compile would do."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What of the sources could not be read, or does not fit the rest."""
        return self.database.problems

    @property
    def without_meaning(self) -> tuple[str, ...]:
        """`table.column` of the columns that no document describes."""
        return tuple(
            f"{table.qualified_name}.{column.name}"
            for table in self.database.tables
            for column in table.columns
            if says_nothing(column.meaning) and not column.fields
        )

    def lines(self) -> Iterator[str]:
        """The report as a person reads it: a summary, then what is missing, then each problem."""
        database = self.database
        columns = sum(len(table.columns) for table in database.tables)
        state = f"{self.added} added, {self.changed} changed, {self.removed} removed" if self.saved else "unchanged"
        if self.checked and self.saved:
            state = f"not what its sources give: {state}; nothing was written"
        yield (
            f"{database.name}: {len(database.tables)} tables, {columns} columns, {len(database.rules)} rules"
            f" -> {self.folder} ({state})"
        )
        if self.without_meaning:
            yield f"  columns without a meaning ({len(self.without_meaning)}): {_names(self.without_meaning)}"
        if self.unlinked:
            names = [" ".join(f"{rule.id} {rule.name}".split()) for rule in self.unlinked]
            yield f"  rules linked to no table ({len(names)}): {_names(names)}"
        yield from (f"  {problem}" for problem in self.problems)
        yield from (f"  {note}" for note in self.notes)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return "; ".join(names[:_NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
