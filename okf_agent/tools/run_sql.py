"""run_sql: one query, its rows or its error."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from okf_agent import prompts
from okf_agent.prompts import framing
from okf_agent.sql import render, sql_text
from okf_agent.sql.database import QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Context, Queries, Tool, ToolResult, arguments_of


def tool(max_rows: int) -> Tool:
    """Runs one query and shows at most `max_rows` rows."""
    return Tool(
        name="run_sql",
        description=prompts.load("tools/run_sql.md", max_rows=max_rows),
        schema=arguments_of(sql={"type": "string"}),
        example='{"sql": "SELECT count(*) FROM some_table"}',
        run=run,
        aliases={"query": "sql"},
    )


def run(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    try:
        sql = sql_text.clean(arguments["sql"])
    except sql_text.SqlTextError as error:
        return _sql_failed(str(error))
    if context.database is None:
        return ToolResult(prompts.say("not_run"), sql_attempts=1)
    if sql in context.queries:
        problem = context.queries[sql]
        if problem:
            return _sql_failed(prompts.say("repeated_failed", problem=problem))
        return ToolResult(prompts.say("repeated"), sql_attempts=1)
    result, seconds = query(sql, context.database)
    if isinstance(result, QueryError):
        if not result.passing:
            context.queries[sql] = quoted(result)
        return _sql_failed(prompts.say("sql_error", problem=quoted(result)), seconds)
    context.queries[sql] = ""
    remember(result, context)
    shown = render.fitted(result)
    text = render.model_text(shown)
    return ToolResult(
        text, sql_attempts=1, rows=len(result.rows), database_seconds=seconds, data=render.for_program(shown)
    )


def quoted(error: QueryError) -> str:
    """Return an error for a model: the server's own words in a frame, since they may quote a cell that gives orders."""
    return f"PostgreSQL said:\n{framing.framed('postgresql', str(error))}" if error.sqlstate else str(error)


def query(sql: str, database: Queries, max_rows: int | None = None) -> tuple[QueryResult | QueryError, float]:
    """The result or the error of a query, and the seconds it took."""
    begin = time.monotonic()
    try:
        found: QueryResult | QueryError = database.run(sql, max_rows=max_rows)
    except QueryError as error:
        found = error
    return found, time.monotonic() - begin


def _sql_failed(text: str, seconds: float = 0.0) -> ToolResult:
    return ToolResult(text, failed=True, sql_attempts=1, sql_errors=1, database_seconds=seconds)


def remember(result: QueryResult, context: Context) -> None:
    """Count the result's cells and its number of rows as seen."""
    context.evidence.add_rows(result.rows)
    context.evidence.add_count(len(result.rows))
    if result.rows_total is not None:
        context.evidence.add_count(result.rows_total)
