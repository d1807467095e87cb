"""Profiles held against plain SQL: every figure has a simple query of its own."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from okf_compiler.model import Column, Database, Table
from okf_compiler.profiling.facts import ColumnProfile, ForeignKeyProfile, Profile
from okf_compiler.sql_names import sql_name

DATE = r"^\d\d\d\d-\d\d-\d\d($|[ T]\d\d:\d\d)"
COMPARED_AS_TEXT = ("json", "point", "pair", "xml", "polygon", "circle", "box", "path", "line")
NOT_NUMBERS = ("NaN", "Infinity", "-Infinity", "infinity", "-infinity")
RANGED = (
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "real",
    "double",
    "money",
    "date",
    "timestamp",
    "time",
    "interval",
)


def differences(
    connection: psycopg.Connection[Any], profile: Profile, database: Database, folder: Path
) -> Iterator[str]:
    """Each figure of a whole (not sampled) profile that plain SQL does not confirm."""
    tables = {table.qualified_name: table for table in database.tables}
    indexed = _indexed(folder)
    for name, table in profile.tables.items():
        place = _place(tables[name])
        (rows,) = _row(connection, f"SELECT count(*)::text FROM {place}")
        if int(rows) != table.rows or table.sampled_rows is not None:
            yield f"{name}: {table.rows} rows, {rows} in plain SQL"
        for column in table.columns.values():
            expected = _expected(connection, place, tables[name], column)
            for figure, value in expected.items():
                if getattr(column, figure) != value:
                    yield f"{name}.{column.name}.{figure}: {getattr(column, figure)!r}, {value!r} in plain SQL"
            values = _values(connection, place, tables[name], column)
            if values != indexed.get((name, column.name), {}):
                yield f"{name}.{column.name}: the index has other values"
    for key in profile.foreign_keys:
        yield from _key(connection, key, tables)


def _row(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def _place(table: Table) -> str:
    return f"{sql_name(table.schema)}.{sql_name(table.name)}"


def _column(table: Table, column: ColumnProfile) -> Column:
    name = column.name.removesuffix("." + ".".join(column.path)) if column.path else column.name
    return next(c for c in table.columns if c.name == name)


def _text(table: Table, column: ColumnProfile) -> str:
    name = sql_name(_column(table, column).name)
    if not column.path:
        return f"{name}::text"
    keys = ["'" + key.replace("'", "''") + "'" for key in column.path]
    return f"({name}::jsonb" + "".join(f" -> {key}" for key in keys[:-1]) + f" ->> {keys[-1]})"


def _value(table: Table, column: ColumnProfile) -> str:
    """The value, so that DISTINCT can be said of it."""
    if column.path or _column(table, column).type.split("[")[0].split("(")[0] in COMPARED_AS_TEXT:
        return _text(table, column)
    return sql_name(column.name)


def _expected(connection: psycopg.Connection[Any], place: str, table: Table, column: ColumnProfile) -> dict[str, Any]:
    text, value = _text(table, column), _value(table, column)
    if column.path and column.type == "number":
        value = f"{text}::numeric"
    nulls, distinct, doubled, filled, empty = _row(
        connection,
        f"""SELECT (SELECT count(*) FROM {place} WHERE {text} IS NULL)::text,
                   (SELECT count(*) FROM (SELECT DISTINCT {value} FROM {place} WHERE {text} IS NOT NULL) d)::text,
                   (SELECT count(*) FROM (SELECT {value} FROM {place} WHERE {text} IS NOT NULL
                                          GROUP BY {value} HAVING count(*) > 1) d)::text,
                   (SELECT count(*) FROM {place} WHERE {text} ~ '\\S')::text,
                   (SELECT count(*) FROM {place} WHERE {text} = '')::text""",
    )
    blank = filled == "0" and column.rows > 0
    expected: dict[str, Any] = {
        "nulls": int(nulls),
        "distinct": int(distinct),
        "unique": doubled == "0" and distinct != "0",
        "blank": blank,
        "only_value": distinct == "1" and not blank,
        "sampled": False,
    }
    if column.empty is not None or empty != "0":
        expected["empty"] = int(empty)
    if column.examples:
        found = connection.execute(
            f"""SELECT v FROM (SELECT left({text}, 81) AS v FROM {place} WHERE {text} ~ '\\S') short
                GROUP BY v ORDER BY count(*) DESC, v COLLATE "C" LIMIT 3""".encode()
        ).fetchall()
        expected["examples"] = tuple(v for (v,) in found)
    ranged = column.type == "number" if column.path else column.type.startswith(RANGED) and "[" not in column.type
    if not ranged and column.empty is not None:
        (is_date,) = _row(connection, f"SELECT bool_and({text} ~ '{DATE}')::text FROM {place} WHERE {text} ~ '\\S'")
        ranged = is_date == "true"
        value = text
    if ranged:
        expected |= _range(connection, place, text, value)
    return expected


def _range(connection: psycopg.Connection[Any], place: str, text: str, value: str) -> dict[str, Any]:
    ends = []
    for direction in ("ASC", "DESC"):
        found = connection.execute(
            f"""SELECT ({value})::text AS found FROM {place} WHERE {text} ~ '\\S' AND {text} NOT IN {NOT_NUMBERS}
                ORDER BY {value} {direction} LIMIT 1""".encode()
        ).fetchone()
        ends.append(found[0] if found else None)
    return {"low": ends[0], "high": ends[1]}


def _values(connection: psycopg.Connection[Any], place: str, table: Table, column: ColumnProfile) -> dict[str, int]:
    """What the value index is to hold of a column."""
    held = _column(table, column)
    types = ("text", "character", "citext", "name")
    is_text = (
        "string" in column.type and "object" not in column.type
        if column.path
        else held.type.startswith(types) or bool(held.enum_labels)
    )
    text = _text(table, column)
    if held.type == "text[]" or column.type == "array":
        arrays = connection.execute(
            f"SELECT to_json({text if column.path else sql_name(held.name)})::text FROM {place}".encode()
        )
        lists = [json.loads(cell) for (cell,) in arrays if cell is not None]
        lists = [json.loads(cell) for cell in lists] if column.path else lists
        counted = Counter(each for cell in lists for each in {e for e in cell if _is_short_text(e)})
        return dict(counted)
    if "[" in held.type or not is_text or column.distinct > 5_000:
        return {}
    found = connection.execute(
        f"""SELECT {text}, count(*)::text FROM {place}
            WHERE {text} ~ '\\S' AND length({text}) <= 80 GROUP BY 1""".encode()
    ).fetchall()
    return {value: int(rows) for value, rows in found}


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= 80


def _indexed(folder: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Everything in the value index, by table and column."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    connection = sqlite3.connect(folder / "values.sqlite")
    try:
        for table, column, value, rows in connection.execute(
            "SELECT tab, columns.col, value, amount FROM cells JOIN columns ON columns.id = cells.col"
        ):
            found.setdefault((table, column), {})[value] = rows
    finally:
        connection.close()
    return found


def _key(connection: psycopg.Connection[Any], key: ForeignKeyProfile, tables: dict[str, Table]) -> Iterator[str]:
    mine, other = _place(tables[key.table]), _place(tables[key.other_table])
    ours = ", ".join(map(sql_name, key.columns))
    theirs = ", ".join(map(sql_name, key.other_columns))
    matched, rows, referred, other_rows = _row(
        connection,
        f"""SELECT (SELECT count(*) FROM {mine} WHERE ({ours}) IN (SELECT {theirs} FROM {other}))::text,
                   (SELECT count(*) FROM {mine})::text,
                   (SELECT count(*) FROM {other} WHERE ({theirs}) IN (SELECT {ours} FROM {mine}))::text,
                   (SELECT count(*) FROM {other})::text""",
    )
    plain = (int(rows) - int(matched), int(rows), int(other_rows) - int(referred), int(other_rows))
    measured = (key.without_partner, key.rows, key.unreferenced, key.other_rows)
    if plain != measured:
        yield f"{key.table} {key.columns} -> {key.other_table}: {measured}, {plain} in plain SQL"
