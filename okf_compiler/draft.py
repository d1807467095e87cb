"""Tables under construction, for the readers that meet their facts one by one and in any order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from okf_compiler.model import Column, ForeignKey, Place, Problem, Table

_NOTHING = re.compile(r"\W*|n\W?a\.?|tbd|tba|todo|none|null", re.IGNORECASE)


@dataclass
class DraftTable:
    name: str
    schema: str
    description: str | None = None
    kind: str = "table"
    columns: dict[str, Column] = field(default_factory=dict)
    """By name in lower case."""
    primary_key: list[str] = field(default_factory=list)
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    unique: list[tuple[str, ...]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    def add_key(self, column: str) -> None:
        if column not in self.primary_key:
            self.primary_key.append(column)

    def add_foreign_key(self, key: ForeignKey) -> None:
        if key not in self.foreign_keys:
            self.foreign_keys.append(key)

    def add_unique(self, columns: tuple[str, ...]) -> None:
        if columns not in self.unique:
            self.unique.append(columns)


class Draft:
    """Tables by name in any letter case. A second, different description is a problem; the first one stands."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.tables: dict[tuple[str, str], DraftTable] = {}
        self._places: dict[tuple[str, ...], Place] = {}

    def table(self, name: str, schema: str, place: Place) -> DraftTable:
        """The table of this name, made where it is new; `schema` is empty where the source does not say."""
        table = self.tables.setdefault((schema.lower(), name.lower()), DraftTable(name, schema))
        self._places.setdefault((table.schema, table.name), place)
        return table

    def describe(self, table: DraftTable, description: str, place: Place) -> None:
        """Give the table its description."""
        if not description.strip():
            return
        if table.description is None:
            table.description = description
        elif not same_text(table.description, description):
            self._twice(f"table {table.name}", table.description, (table.schema, table.name), place)

    def column(self, table: DraftTable, column: Column, place: Place) -> None:
        """Add a column, or what is new about one: a column that is already there keeps what it has."""
        old = table.columns.get(column.name.lower())
        if old is None:
            table.columns[column.name.lower()] = column
            self._places[table.schema, table.name, column.name] = place
            return
        key = (table.schema, table.name, old.name)
        if old.meaning and column.meaning and not same_text(old.meaning, column.meaning):
            self._twice(f"{table.name}.{old.name}", old.meaning, key, place)
        if old.type and column.type and old.type.lower() != column.type.lower():
            self.problems.append(
                Problem(
                    f"{table.name}.{old.name} has two types, {old.type} and {column.type}; the first stands",
                    place.file,
                    place.line,
                )
            )
        table.columns[column.name.lower()] = replace(
            old,
            type=old.type or column.type,
            nullable=old.nullable and column.nullable,
            meaning=old.meaning or column.meaning,
            default=old.default or column.default,
        )

    def finish(self, source: str) -> tuple[Table, ...]:
        """The tables, in the order in which they were met, as facts of the source with this id."""
        return tuple(
            Table(
                name=t.name,
                columns=tuple(t.columns.values()),
                schema=t.schema,
                kind=t.kind,
                primary_key=tuple(t.primary_key),
                foreign_keys=tuple(t.foreign_keys),
                unique=tuple(t.unique),
                checks=tuple(t.checks),
                description=t.description,
                sources=(source,),
            )
            for t in self.tables.values()
        )

    @property
    def places(self) -> Mapping[tuple[str, ...], Place]:
        return self._places

    def _twice(self, what: str, standing: str, key: tuple[str, ...], place: Place) -> None:
        first = self._places[key]
        self.problems.append(
            Problem(
                f"{what} has a second meaning; the one of {first.file}:{first.line} stands: {shorten(standing)}",
                place.file,
                place.line,
            )
        )


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in white space and letter case at most."""
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def says_nothing(text: str | None) -> bool:
    """Whether a text is blank, or only fills a cell until somebody writes one.

    >>> says_nothing(" N/A "), says_nothing("-"), says_nothing("TBD"), says_nothing("Not used")
    (True, True, True, False)
    """
    return not text or _NOTHING.fullmatch(text.strip()) is not None


def shorten(text: str, length: int = 80) -> str:
    """The text on one line, in quotes, cut where it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= length else line[: length - 1] + "…")
