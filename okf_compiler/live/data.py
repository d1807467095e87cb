"""Bounded looks at a database's content: read-only, limited in rows and time, columns of the catalogue only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from okf_compiler.model import Column, Table
from okf_compiler.postgres import Row

ROWS = 1_000_000
"""Rows of one table that a question reads."""
VALUES = 200
"""Different values that are looked at one by one; a column with more is not a list of values."""
QUESTION_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Place:
    """A column of the database, or a field inside a JSON column."""

    table: Table
    column: Column
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "->".join((f"{self.table.qualified_name}.{self.column.name}", *self.path))


@dataclass(frozen=True, slots=True)
class Spread:
    """What a place holds."""

    rows: int
    """Rows that were read."""
    nulls: int
    """Of these, rows where it is NULL (or the field is absent, or a JSON null)."""
    values: dict[str, int] | None
    """Each value as text and its rows; None if there are more than `VALUES`."""
    whole: bool
    """Whether every row of the table was read."""

    @property
    def scope(self) -> str:
        """Words for the rows that were read."""
        return f"{self.rows:,} rows" if self.whole else f"the first {self.rows:,} rows"


@dataclass
class Data:
    """Questions to one database within one time budget."""

    connection: psycopg.Connection[Any]
    seconds: float
    unanswered: dict[str, list[str]] = field(default_factory=dict)
    """Reason -> places that were not looked at."""
    _spreads: dict[str, Spread | None] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)

    def spread(self, place: Place) -> Spread | None:
        """How many rows, NULLs and different values; None if it could not be asked."""
        key = str(place)
        if key not in self._spreads:
            self._spreads[key] = self._spread(place)
        return self._spreads[key]

    def count(self, place: Place, condition: sql.Composable) -> int | None:
        """The rows whose value `v` (as text, never NULL) meets the condition; None if it could not be asked."""
        query = sql.SQL("SELECT count(*)::text FROM {} WHERE v IS NOT NULL AND {}").format(_values(place), condition)
        rows = self._ask(place, query)
        return int(rows[0][0] or 0) if rows else None

    def bounds(self, place: Place) -> tuple[str | None, str | None] | None:
        """The smallest and largest number held, as text; of values that are no numbers nothing is said."""
        query = sql.SQL("SELECT min(v::numeric)::text, max(v::numeric)::text FROM {} WHERE v ~ {}").format(
            _values(place), sql.Literal(NUMBER)
        )
        rows = self._ask(place, query)
        return (rows[0][0], rows[0][1]) if rows else None

    def repeated(self, place: Place) -> int | None:
        """How many values stand in more than one row."""
        query = sql.SQL(
            "SELECT count(*)::text FROM (SELECT v FROM {} WHERE v IS NOT NULL GROUP BY v HAVING count(*) > 1) r"
        ).format(_values(place))
        rows = self._ask(place, query)
        return int(rows[0][0] or 0) if rows else None

    def keys(self, place: Place) -> dict[str, int] | None:
        """The keys of the JSON objects at a place and how many rows hold each; None if it could not be asked."""
        query = sql.SQL(
            "SELECT k, count(*)::text FROM {}, jsonb_object_keys(CASE jsonb_typeof(v::jsonb) WHEN 'object' "
            "THEN v::jsonb END) k GROUP BY k ORDER BY k LIMIT {}"
        ).format(_values(place), number(VALUES))
        rows = self._ask(place, query)
        return None if rows is None else {key or "": int(count or 0) for key, count in rows}

    def _spread(self, place: Place) -> Spread | None:
        groups = self._ask(
            place,
            sql.SQL("SELECT v, count(*)::text FROM {} GROUP BY v ORDER BY count(*) DESC, v LIMIT {}").format(
                _values(place), number(VALUES + 2)
            ),
        )
        if groups is None:
            return None
        held = {value: int(rows or 0) for value, rows in groups if value is not None}
        if len(held) <= VALUES and len(groups) < VALUES + 2:
            rows = sum(int(rows or 0) for _, rows in groups)
            return Spread(rows, rows - sum(held.values()), held, rows < ROWS)
        totals = self._ask(place, sql.SQL("SELECT count(*)::text, count(v)::text FROM {}").format(_values(place)))
        if not totals:
            return None
        rows, filled = (int(n or 0) for n in totals[0])
        return Spread(rows, rows - filled, None, rows < ROWS)

    def _ask(self, place: Place, query: sql.Composed) -> list[Row] | None:
        """The rows, or None where PostgreSQL refuses, takes too long, or the budget is spent."""
        left = self.seconds - (time.monotonic() - self._start)
        if left <= 0 or place.table.kind == "foreign table":
            self._give_up(place, f"{self.seconds:g} s were spent" if left <= 0 else "the table is foreign")
            return None
        limit = int(min(left, QUESTION_SECONDS) * 1000) + 1
        try:
            with self.connection.transaction(force_rollback=True), self.connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(f"SET LOCAL statement_timeout = {limit}")
                return cursor.execute(query).fetchall()
        except psycopg.errors.QueryCanceled:
            self._give_up(place, f"it took longer than {limit / 1000:.0f} s")
        except psycopg.OperationalError:
            if self.connection.broken:
                raise
            self._give_up(place, "the server refused")
        except psycopg.DatabaseError as error:
            self._give_up(place, str(error.diag.message_primary or error))
        return None

    def _give_up(self, place: Place, reason: str) -> None:
        places = self.unanswered.setdefault(reason, [])
        if str(place) not in places:
            places.append(str(place))


def number(value: float) -> sql.SQL:
    """A number as SQL: connections of ours adapt text only."""
    return sql.SQL(repr(value))


NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def _values(place: Place) -> sql.Composed:
    """A FROM item with one column `v`: the place's values as text, of a limited number of rows."""
    column = sql.Identifier(place.column.name)
    if place.path:
        keys = sql.SQL(", ").join(sql.Literal(key) for key in place.path)
        value: sql.Composable = sql.SQL("{}::jsonb #>> ARRAY[{}]::text[]").format(column, keys)
    else:
        value = sql.SQL("{}::text").format(column)
    return sql.SQL("(SELECT {} AS v FROM {} LIMIT {}) s").format(
        value, sql.Identifier(place.table.schema, place.table.name), number(ROWS)
    )
