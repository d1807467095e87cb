"""What the database still has of what was measured in it."""

from __future__ import annotations

from collections.abc import Collection

from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Queries
from okf_compiler.sql_names import qualified, schema_and_table

_COLUMNS = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE (c.relname IN ({tables}) OR lower(c.relname) IN ({tables}))
        AND (a.attname IN ({columns}) OR lower(a.attname) IN ({columns})) AND a.attnum > 0 AND NOT a.attisdropped
"""
"""Documents may write names in another letter case than the catalogue."""
MAX_ROWS = 10_000
"""Of that query: columns of one name in tables of one name, in all schemas."""


def missing_columns(places: Collection[tuple[str, str]], database: Queries) -> set[tuple[str, str]]:
    """Those of the (table, column) that the database does not have; none where it cannot be asked.

    Tables and columns are named as in a profile: `orders`, `sales.orders`; `data.size.cm` is a path in a column.
    """
    tables = {schema_and_table(table)[1] for table, _ in places}
    columns = {name for _, column in places for name in _beginnings(column)}
    if not places:
        return set()
    try:
        result = database.run(_COLUMNS.format(tables=_texts(tables), columns=_texts(columns)), max_rows=MAX_ROWS)
    except QueryError:
        return set()
    if result.cut:
        return set()
    there = set()
    for schema, table, column in result.rows:
        there.add((qualified(f"{schema}", f"{table}").lower(), f"{column}".lower()))
    return {
        (table, column)
        for table, column in places
        if not any((table.lower(), name.lower()) in there for name in _beginnings(column))
    }


def _beginnings(column: str) -> list[str]:
    """What may be the column in a path, which has dots between its keys.

    >>> _beginnings("data.size.cm")
    ['data', 'data.size', 'data.size.cm']
    """
    keys = column.split(".")
    return [".".join(keys[: depth + 1]) for depth in range(len(keys))]


def _texts(texts: Collection[str]) -> str:
    """Texts as a list in SQL, in small letters too."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in sorted({*texts, *map(str.lower, texts)}))
