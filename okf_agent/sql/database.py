"""Run one query safely: columns, rows of exact text, and what was cut.

The query runs inside `SELECT … FROM (query)`, over the extended protocol: both take one statement and nothing
but a read. sessions.py gives it a transaction of its own. Time, rows, cells and bytes are bounded here, whatever the
server's settings say.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from okf_agent.sql import notes, sql_text
from okf_agent.sql.errors import explain, stopped
from okf_agent.sql.notes import Looked, Note
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.result import Batches, Shape, copied, cut_cells, describe, receive, wrapped
from okf_agent.sql.session import Session, Stopped, Watch
from okf_agent.sql.sessions import Sessions
from okf_compiler.postgres import Row, any_bytes
from okf_compiler.settings import DatabaseSection

COUNT_ROWS = 100_000
"""Rows that are counted past those shown, to say a total."""
COUNT_SECONDS = 1.0
"""Seconds that counting may take."""
NOTE_SECONDS = 1.0
"""Seconds that what is measured for notes may take, or as long as the query itself took if that is longer."""
MESSAGE_BYTES = 16_000_000
"""Bytes the server may send without a whole row among them: one error message can be as long as a cell."""


@dataclass(frozen=True)
class Cut:
    """What of a result is not in `rows`."""

    rows: bool = False
    """There are more rows."""
    seen: int = 0
    """Rows that were counted, those shown included."""
    cells: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(row, column), from 0 -> the characters the whole cell has."""
    columns: int = 0
    """Columns at the end that are not shown."""

    def __bool__(self) -> bool:
        return self.rows or bool(self.cells or self.columns)


@dataclass(frozen=True)
class QueryResult:
    """The rows of one query, as PostgreSQL prints them, None for NULL."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """PostgreSQL's names, such as `numeric(12,2)`."""
    rows: tuple[Row, ...]
    rows_total: int | None
    """Rows of the whole result, None if they were not counted to the end."""
    cut: Cut
    seconds: float
    notes: tuple[Note, ...] = ()
    """What the rows do not tell by themselves."""

    def first(self, rows: int) -> QueryResult:
        """The same with no more than `rows` rows."""
        if len(self.rows) <= rows:
            return self
        cells = {place: length for place, length in self.cut.cells.items() if place[0] < rows}
        return replace(self, rows=self.rows[:rows], cut=Cut(True, max(self.cut.seen, len(self.rows)), cells))


class Export:
    """A whole result, in batches of rows, while its transaction is open. Use it in a `with`."""

    def __init__(self, shape: Shape, batches: Iterator[list[Row]]) -> None:
        self.columns = shape.columns
        self.types = shape.types
        self._batches = batches

    def __iter__(self) -> Iterator[list[Row]]:
        return self._batches


class Database:
    """A database as the role that can only read sees it. Safe to use from several threads."""

    def __init__(
        self,
        params: Mapping[str, Any],
        name: str,
        limits: DatabaseSection,
        *,
        revive: Callable[[], None] | None = None,
        steady: bool = False,
    ) -> None:
        """`params` are psycopg's connect parameters without `dbname`. Nothing is connected yet.

        `revive` starts the server again where nothing answers.
        `steady`: the same query adds up floats in the same order each time, by one process from a table's first page.
        """
        self.name = name
        self.limits = limits
        self._params = params
        self._revive = revive
        self._steady = steady
        self._sessions = Sessions(params, name, limits.statement_timeout_s, revive=revive, steady=steady)

    def run(self, sql: str, *, max_rows: int | None = None) -> QueryResult:
        """Return the first `max_rows` rows (default: `database.max_rows`) of one query.

        Where a server that can be started again ended under the query, it is sent once more: it only reads.

        Raises:
            QueryError: refused, failed, stopped or unreachable; the text says what to do.
        """
        try:
            return self._run(sql, max_rows)
        except QueryError as error:
            if not error.lost or self._revive is None:
                raise
        return self._run(sql, max_rows)

    def _run(self, sql: str, max_rows: int | None) -> QueryResult:
        started = time.monotonic()
        statement = sql_text.parse(sql)
        rows = self.limits.max_rows if max_rows is None else max_rows
        limit = self.limits.statement_timeout_s
        with self._errors(statement.text, limit), self._sessions.transaction(limit, MESSAGE_BYTES) as session:
            shape, batches = self._open(session, statement, self.limits.max_cell_chars)
            kept, seen, ended = self._collect(batches, rows, session.watch)
            in_bytes = any_bytes(session)
            spent, limited = session.spent, session.limited
        kept, cells = cut_cells(kept, self.limits.max_cell_chars, in_bytes=in_bytes)
        took = time.monotonic() - started
        # What an allowed function does is not done twice; a steady result is compared, and nobody reads it.
        noted = statement.kind == "query" and not spent and not self._steady
        return QueryResult(
            columns=shape.columns,
            types=shape.types,
            rows=tuple(kept),
            rows_total=seen if ended else None,
            cut=Cut(rows=seen > len(kept), seen=seen, cells=cells),
            seconds=took,
            notes=self._notes(statement, limited, min(limit - took, max(took, NOTE_SECONDS))) if noted else (),
        )

    def _notes(
        self, statement: sql_text.Statement, limited: frozenset[tuple[str, str]], seconds: float
    ) -> tuple[Note, ...]:
        """The notes on a query that ran, as many as can be had in so many seconds; it never fails."""
        end = time.monotonic() + seconds

        def ask(sql: str) -> list[Row]:
            with self._sessions.transaction(end - time.monotonic(), MESSAGE_BYTES) as session:
                _, batches = self._open(session, sql_text.parse(sql), self.limits.max_cell_chars)
                return [row for batch in batches for row in batch]

        found: list[Note] = []
        # Of every kind: hostile text may take a parser where its authors never were, and a note fails no query.
        with contextlib.suppress(Exception):
            found.extend(notes.find(Looked(statement.text, limited, ask)))
        return tuple(found)

    @contextlib.contextmanager
    def stream(self, sql: str, *, seconds: float | None = None) -> Iterator[Export]:
        """The whole result of one query, every cell uncut, in the memory of one batch of rows.

        `seconds` (default: `database.statement_timeout_s`) bounds query, transfer and what is done with the rows.

        Raises:
            QueryError: as `run`; also while iterating.
        """
        statement = sql_text.parse(sql)
        limit = self.limits.statement_timeout_s if seconds is None else seconds
        with self._errors(statement.text, limit), self._sessions.transaction(limit, None) as session:
            shape, batches = self._open(session, statement, None)
            yield Export(shape, iter(batches))

    @contextlib.contextmanager
    def stream_csv(self, sql: str, *, seconds: float | None = None) -> Iterator[Iterator[tuple[int, bytes]]]:
        """The whole result of one SELECT as CSV in UTF-8, in pieces of (lines, bytes); the first line is the header.

        Faster than `stream`. NULL is nothing, '' is two quotes.

        Raises:
            QueryError: as `run`; also while iterating.
        """
        statement = sql_text.parse(sql)
        if statement.kind != "query":
            raise QueryError("Only the rows of a SELECT can be copied.")
        limit = self.limits.statement_timeout_s if seconds is None else seconds
        with self._errors(statement.text, limit), self._sessions.transaction(limit, None) as session:
            self._refuse_functions(session, statement)
            describe(session, statement.text)
            self._refuse_cost(session, statement.text)
            yield copied(session, statement.text)

    def another(self) -> Database:
        """A second object for the same database, with connections of its own."""
        return Database(self._params, self.name, self.limits, revive=self._revive)

    def steady(self) -> Database:
        """Return a second object that gives the same floats each time; see `steady` above."""
        return Database(self._params, self.name, self.limits, revive=self._revive, steady=True)

    def cancel(self) -> None:
        """Stop every query of this object that runs, from another thread; they raise QueryError."""
        self._sessions.cancel()

    def close(self) -> None:
        """Close the connections. The object can still be used: it connects again."""
        self._sessions.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, session: Session, statement: sql_text.Statement, max_chars: int | None) -> tuple[Shape, Batches]:
        """Describe the statement and send it; rows come as the batches are read."""
        self._refuse_functions(session, statement)
        if statement.kind == "show":
            session.pgconn.send_query_params(statement.text.encode(), None)
            return receive(session, None, max_chars)
        shape = describe(session, statement.inner)
        if statement.kind == "explain":
            if statement.runs:
                self._refuse_cost(session, statement.inner)
            # The words before the query are EXPLAIN's own; the query cannot leave its brackets.
            inner = wrapped(statement.inner, shape, None)
            session.pgconn.send_query_params((statement.head + inner).encode(), None)
            return receive(session, None, max_chars)
        self._refuse_cost(session, statement.text)
        session.pgconn.send_query_params(wrapped(statement.text, shape, max_chars).encode(), None)
        return receive(session, shape, max_chars)

    def _refuse_functions(self, session: Session, statement: sql_text.Statement) -> None:
        """See `sql_text.refuse_functions`; what an allowed function left in the session goes with the session."""
        allowed = self.limits.allow_functions
        session.spent = sql_text.refuse_functions(statement.text, session.foreign, allowed)
        sql_text.refuse_implied(statement.text, session.implied, allowed)

    def _refuse_cost(self, session: Session, sql: str) -> None:
        """Refuse a query whose planner's cost is above `database.max_cost`.

        Raises:
            QueryError: it is.
        """
        if self.limits.max_cost is None:
            return
        session.pgconn.send_query_params(f"EXPLAIN (FORMAT JSON) SELECT * FROM (\n{sql}\n) AS q".encode(), None)
        plan = session.request()[-1].get_value(0, 0) or b"[]"
        cost = json.loads(plan)[0]["Plan"]["Total Cost"]
        if cost > self.limits.max_cost:
            raise QueryError(
                f"The planner expects this query to cost {cost:,.0f}, and the most is {self.limits.max_cost:,.0f} "
                "(database.max_cost). Filter earlier, join on keys, or aggregate less."
            )

    def _collect(self, batches: Batches, max_rows: int, watch: Watch | None) -> tuple[list[Row], int, bool]:
        """The rows to keep, how many were seen, and whether those were all.

        Once there are rows enough, the rest is only counted, for a short time: the watch is set to it.
        """
        kept: list[Row] = []
        size = seen = 0
        try:
            for batch in batches:
                full = seen > len(kept)
                for row in () if full else batch[: max_rows - len(kept)]:
                    if size >= self.limits.max_bytes:
                        break
                    kept.append(row)
                    size += sum(len(cell) for cell in row if cell)
                seen += len(batch)
                if seen == len(kept):
                    continue
                if seen > COUNT_ROWS:
                    return kept, seen, False
                if watch:
                    watch.shorten(COUNT_SECONDS)
        except Stopped as stop:
            if stop.reason != "time" or seen == len(kept):
                raise
            return kept, seen, False
        return kept, seen, True

    @contextlib.contextmanager
    def _errors(self, sql: str, seconds: float) -> Iterator[None]:
        """What goes wrong inside, as a QueryError.

        It stands around the transaction: what explains an error asks the catalogue on the session that is free again.
        """
        try:
            yield
        except Stopped as stop:
            usual = seconds == self.limits.statement_timeout_s
            key = "database.statement_timeout_s" if usual else "database.export_timeout_s"
            raise stopped(stop.reason, seconds, MESSAGE_BYTES, key) from None
        except psycopg.Error as error:
            raise explain(error, sql, self._params, self._ask) from None

    def _ask(self, query: str, *params: str) -> list[tuple[Any, ...]]:
        """Rows of a query of our own over the catalogue; none if it fails or takes long."""
        with contextlib.suppress(psycopg.Error, Stopped), self._sessions.transaction(2.0, MESSAGE_BYTES) as session:
            return session.execute(query, params).fetchall()
        return []
