"""What was measured of a database, frozen, and how it stands in profile.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

VERSION = 1
"""Of profile.json; a file of another version is as good as none."""


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column, or one path inside a JSON column, over the rows that were looked at."""

    name: str
    """The column, or `column.key.key` as the compiler names JSON fields."""
    type: str
    """As PostgreSQL names it; of a JSON path, what stands there: `number`, `string or array`."""
    rows: int
    """Rows that were looked at: all of the table unless `sampled`."""
    nulls: int
    """Of these, rows where it is NULL; of a JSON path, also where the path is absent or a JSON null."""
    empty: int | None
    """Rows that hold ''; None for types that cannot."""
    distinct: int
    """Different values, NULL not counted; compared as text where PostgreSQL cannot compare the type."""
    unique: bool
    """No value stands in two rows. In a sample, only what a constraint says."""
    only_value: bool
    """One value only, NULL aside."""
    blank: bool
    """Nothing at all: NULL, '' and white space only."""
    examples: tuple[str, ...] = ()
    """Up to three values, the most frequent first, equals in the order of their text; none is blank."""
    low: str | None = None
    """The smallest finite number or date, as PostgreSQL prints it; None for other types."""
    high: str | None = None
    list_separator: str | None = None
    """What separates several values in one cell, where the same values also stand alone."""
    sampled: bool = False
    specials: tuple[str, ...] = ()
    """Values outside the range `low` to `high`: NaN, Infinity, -Infinity, infinity, -infinity."""
    path: tuple[str, ...] = ()
    """Keys from a JSON column inwards; empty for a column."""

    @property
    def filled(self) -> int:
        """Rows that hold a value, '' among them."""
        return self.rows - self.nulls


@dataclass(frozen=True, slots=True)
class TableProfile:
    name: str
    """As `model.Table.qualified_name`."""
    rows: int
    sampled_rows: int | None = None
    """Rows that its columns were measured on; None for all of them."""
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    """By name, in the table's order; JSON paths stand after their column."""
    rows_estimated: bool = False
    """Counting took too long: `rows` is the planner's estimate."""
    row_security: bool = False
    """Rows that row security kept from the role were not counted."""


@dataclass(frozen=True, slots=True)
class ForeignKeyProfile:
    """How many rows a join along a foreign key leaves out, on either side."""

    table: str
    columns: tuple[str, ...]
    other_table: str
    other_columns: tuple[str, ...]
    without_partner: int
    """Rows of `table` that no row of `other_table` answers; NULL keys are among them."""
    rows: int
    """Rows of `table` that were looked at."""
    unreferenced: int
    """Rows of `other_table` that no row of `table` refers to."""
    other_rows: int
    sampled: bool = False
    """`rows` is a sample. `unreferenced` is always of all rows."""


@dataclass(frozen=True)
class Profile:
    database: str
    measured_at: str
    """ISO 8601 with offset; where a profile was taken up again, when its first table was measured."""
    tables: Mapping[str, TableProfile]
    """By qualified name."""
    foreign_keys: tuple[ForeignKeyProfile, ...] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Tables, columns and JSON paths that could not be measured -> why."""


def as_json(profile: Profile) -> dict[str, Any]:
    """The content of profile.json."""
    return {
        "version": VERSION,
        "database": profile.database,
        "measured_at": profile.measured_at,
        "tables": [table_as_json(table) for table in profile.tables.values()],
        "foreign_keys": [asdict(key) for key in profile.foreign_keys],
        "unmeasured": dict(profile.unmeasured),
    }


def from_json(content: Mapping[str, Any]) -> Profile:
    """The profile in a profile.json of this version.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    if content["version"] != VERSION:
        raise ValueError(f"version {content['version']}")
    return _profiles().validate_python(
        {**content, "tables": {table["name"]: _by_name(table) for table in content["tables"]}}
    )


def table_as_json(table: TableProfile) -> dict[str, Any]:
    return {
        "name": table.name,
        "rows": table.rows,
        "sampled_rows": table.sampled_rows,
        "rows_estimated": table.rows_estimated,
        "row_security": table.row_security,
        "columns": [asdict(column) for column in table.columns.values()],
    }


def table_from_json(content: Mapping[str, Any]) -> TableProfile:
    """Raises KeyError, TypeError, ValueError: it is no table."""
    return _tables().validate_python(_by_name(content))


def _by_name(table: Mapping[str, Any]) -> dict[str, Any]:
    return {**table, "columns": {column["name"]: column for column in table["columns"]}}


@cache
def _profiles() -> TypeAdapter[Profile]:
    """Holds every field to its type: a file may have been edited, or broken."""
    return TypeAdapter(Profile)


@cache
def _tables() -> TypeAdapter[TableProfile]:
    return TypeAdapter(TableProfile)
