"""What measuring may take: the rows of a table that are looked at, and the time of one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql

from okf_compiler.errors import UserError
from okf_compiler.model import Database
from okf_compiler.postgres import Row
from okf_compiler.profiling.targets import SAMPLED_KINDS, Relation

SAMPLE_ROWS = 200_000
LARGEST = 1_000_000_000
"""Bytes of a table above which it is sampled, however few its rows."""
SAMPLE_BYTES = 200_000_000
LOCK_MS = 5_000
LOST = "The server ended the connection. Call again: the profile goes on where it was."


@dataclass(frozen=True, slots=True)
class Limits:
    sample_above: int = 500_000
    """Rows of a table above which its columns are measured on a sample."""
    seconds: float = 60
    """Time that one query may take."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be measured, and how much that may take."""

    documented: Database | None = None
    """Adds the JSON fields and foreign keys that only documents know."""
    hide: Sequence[str] = ()
    """Columns and JSON paths that are never asked for; see `hide.is_hidden`."""
    limits: Limits = Limits()


Ask = Callable[[sql.Composed], list[Row]]


@contextmanager
def asking(connection: psycopg.Connection[Any], seconds: float) -> Iterator[Ask]:
    """Yield a function for queries of one snapshot, read-only and limited in time; one that fails leaves the others.

    Raises:
        UserError: the connection is lost, which is no fault of what is asked.
    """
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with _held(connection), connection.transaction(force_rollback=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(
            f"SET LOCAL statement_timeout = {int(seconds * 1000)}; SET LOCAL lock_timeout = {LOCK_MS}; "
            "SET LOCAL search_path = pg_catalog, public; SET LOCAL work_mem = '32MB'"
        )

        def ask(query: sql.Composed) -> list[Row]:
            with _held(connection), connection.transaction():
                found: list[Row] = cursor.execute(query).fetchall()
                return found

        yield ask


@contextmanager
def _held(connection: psycopg.Connection[Any]) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError:
        if connection.broken:
            raise UserError(LOST) from None
        raise


def reason(error: psycopg.Error, limits: Limits) -> str:
    """Why something was not measured, for a person."""
    if isinstance(error, errors.QueryCanceled):
        return (
            f"it took longer than {limits.seconds:g} s: allow more with --seconds, or look at less with --sample-above"
        )
    return str(error.diag.message_primary or error).strip()


def source_of(relation: Relation, rows: int, limits: Limits) -> tuple[sql.Composable, bool]:
    """What to read of a table of `rows` rows, called `a`, and whether that is a sample: the same blocks each time."""
    source = sql.SQL("{} AS a").format(relation.source)
    small = rows <= limits.sample_above and relation.size <= LARGEST
    if small or relation.table.kind not in SAMPLED_KINDS:
        return source, False
    wanted = min(SAMPLE_ROWS, limits.sample_above)
    percent = 100 * min(wanted / max(rows, 1), SAMPLE_BYTES / max(relation.size, 1), 1.0)
    return sql.SQL("{} TABLESAMPLE SYSTEM ({}) REPEATABLE (0)").format(source, sql.SQL(f"{percent:.9f}")), True
