"""Columns that `hide` keeps from the role, and everything else that would show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from okf_compiler.hide import is_hidden, widened

USER_SCHEMA = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

EXPOSING = """
WITH RECURSIVE uses AS (
    SELECT DISTINCT w.ev_class AS view, d.refobjid AS used, d.refobjsubid AS part,
        w.ev_action::text ~ ':varattno 0 ' AS whole_rows
    FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND w.ev_class <> d.refobjid
), exposing AS (
    SELECT view FROM uses WHERE (used, part) IN (SELECT * FROM unnest(%(tables)s::oid[], %(columns)s::int[]))
        OR (whole_rows AND used = ANY (%(tables)s::oid[]))
    UNION SELECT u.view FROM uses u JOIN exposing e ON u.used = e.view
)
SELECT n.nspname, c.relname FROM exposing JOIN pg_class c ON c.oid = view JOIN pg_namespace n ON n.oid = relnamespace
ORDER BY 1, 2"""
"""Views that read a hidden column, a whole row that has one (pg_depend does not tell), or another such view."""

FAMILIES = """
WITH RECURSIVE kin AS (
    SELECT inhrelid AS a, inhparent AS b FROM pg_inherits UNION SELECT inhparent, inhrelid FROM pg_inherits
), family AS (
    SELECT a, b FROM kin UNION SELECT f.a, k.b FROM family f JOIN kin k ON k.a = f.b
)
SELECT a, b FROM family"""
"""Every pair of tables that share rows: partitions, parents and children."""

GENERATED = """
SELECT r.adrelid, made.attname, used.attname FROM pg_attrdef r
JOIN pg_attribute made ON made.attrelid = r.adrelid AND made.attnum = r.adnum AND made.attgenerated <> ''
JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.adrelid
    AND d.classid = 'pg_attrdef'::regclass AND d.objid = r.oid
JOIN pg_attribute used ON used.attrelid = r.adrelid AND used.attnum = d.refobjsubid AND used.attnum <> r.adnum"""
"""Every generated column: its table, its name, and a column it is computed from."""

COLUMNS = f"""
SELECT n.nspname, c.relname, a.attname, c.oid, a.attnum FROM pg_attribute a
JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE {USER_SCHEMA} AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v', 'm', 'f', 'p')
ORDER BY c.oid, attnum"""
"""Every column that people made, a row each as HiddenColumn has it."""


@dataclass(frozen=True)
class HiddenColumn:
    """A column the role may not read."""

    schema: str
    table: str
    name: str
    oid: int
    """Of its table."""
    number: int


@dataclass(frozen=True)
class HiddenTable:
    """A table some or all of whose columns are hidden."""

    schema: str
    name: str
    readable: tuple[str, ...]
    """The columns that may be read."""


def hidden_columns(
    connection: psycopg.Connection[Any], hide: Sequence[str]
) -> tuple[tuple[HiddenColumn, ...], tuple[str, ...]]:
    """The columns that the entries of `hide` name, and the entries that name none; a path in a column is the column."""
    every = [HiddenColumn(*row) for row in connection.execute(COLUMNS.encode())]
    hide = widened(hide, ((column.schema, column.table, column.name) for column in every))
    matched: set[str] = set()
    named: set[tuple[int, str]] = set()
    for column in every:
        if hits := [entry for entry in hide if is_hidden([entry], column.schema, column.table, column.name)]:
            matched.update(hits)
            named.add((column.oid, column.name))
    # A partition, a parent and a child show the same rows.
    kin = connection.execute(FAMILIES.encode()).fetchall()
    named |= {(other, name) for one, other in kin for oid, name in named if oid == one}
    computed = connection.execute(GENERATED.encode()).fetchall()
    named |= {(oid, made) for oid, made, used in computed if (oid, used) in named}
    found = tuple(column for column in every if (column.oid, column.name) in named)
    return found, tuple(entry for entry in hide if entry not in matched)


def exposing_views(connection: psycopg.Connection[Any], columns: Sequence[HiddenColumn]) -> list[tuple[str, str]]:
    """The views, schema and name, that show one of the columns."""
    values = {"tables": [column.oid for column in columns], "columns": [column.number for column in columns]}
    return connection.execute(EXPOSING.encode(), values).fetchall()


def hidden_tables(
    connection: psycopg.Connection[Any], hide: Sequence[str]
) -> tuple[tuple[HiddenTable, ...], tuple[str, ...]]:
    """The tables and views that `hide` touches, and its entries that name nothing."""
    if not hide:
        return (), ()
    columns, unmatched = hidden_columns(connection, hide)
    hidden = {(column.oid, column.name) for column in columns}
    touched = {column.oid for column in columns}
    readable: dict[tuple[str, str], list[str]] = {}
    for row in connection.execute(COLUMNS.encode()):
        column = HiddenColumn(*row)
        if column.oid in touched:
            names = readable.setdefault((column.schema, column.table), [])
            if (column.oid, column.name) not in hidden:
                names.append(column.name)
    for view in exposing_views(connection, columns):
        readable.setdefault(view, [])
    return tuple(HiddenTable(*path, tuple(names)) for path, names in readable.items()), unmatched
