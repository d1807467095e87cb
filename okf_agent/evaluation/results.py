"""Run a query for a scorer: every row, read-only, by the same door as `run_sql`, within bounds."""

from __future__ import annotations

import time
from dataclasses import dataclass

from okf_agent.evaluation.values import Row, parse
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError

MAX_ROWS = 100_000
"""Rows past which a result is not compared any more."""
MAX_CHARS = 200_000_000
"""Characters of all its cells past which it is not."""


@dataclass(frozen=True)
class Result:
    """A whole result: column names as the query gives them, and rows in its order."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def fetch(database: Database, sql: str) -> Result:
    """The whole result of one query, within `database.statement_timeout_s`.

    Raises:
        QueryError: refused, failed, stopped, or too long to compare.
    """
    rows: list[Row] = []
    size = 0
    with database.stream(sql) as export:
        for batch in export:
            for row in batch:
                size += sum(len(cell) for cell in row if cell)
                rows.append(tuple(parse(_text(cell), kind) for cell, kind in zip(row, export.types, strict=True)))
            if len(rows) > MAX_ROWS or size > MAX_CHARS:
                raise QueryError(f"The result has more than {MAX_ROWS:,} rows or {MAX_CHARS:,} characters.")
        return Result(export.columns, tuple(rows))


def seconds(database: Database, sql: str) -> float:
    """How long a query takes, its rows' transfer included, by our clock.

    Raises:
        QueryError: as `fetch`.
    """
    began = time.perf_counter()
    with database.stream(sql) as export:
        for _ in export:
            pass
    return time.perf_counter() - began


def _text(cell: object) -> str | None:
    return None if cell is None else cell if isinstance(cell, str) else str(cell)
