"""The tools of the model: what each is called, what it takes, what it does. One definition for the loop and for MCP.

A tool never raises for what the model wrote: its errors are text that says what exists and what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from okf_agent import prompts, reading, render, sql_text
from okf_agent.arguments import quote
from okf_agent.database import QueryResult
from okf_agent.grounding import Evidence
from okf_agent.query_error import QueryError
from okf_agent.run import Answer, Checked
from okf_compiler.settings import did_you_mean


class Queries(Protocol):
    """What the tools need of a database."""

    def run(self, sql: str, *, max_rows: int | None = None) -> QueryResult: ...


@dataclass
class Context:
    """What the tools of one run work on, and what they have seen so far."""

    bundle: Path | None = None
    """The folder that read_file reads; None where there is no such tool."""
    database: Queries | None = None
    """None where the database has no content: then no query is run."""
    max_rows: int = 20
    """Rows of one query that the model sees."""
    evidence: Evidence = field(default_factory=Evidence)
    step: int = 0
    """The step under way; the loop counts it."""
    files: set[str] = field(default_factory=set)
    """What read_file has sent, a piece of a file each: it is not sent again."""
    queries: dict[str, str] = field(default_factory=dict)
    """Every query of run_sql, with its error, or "" if it ran."""
    sent_back_at: int | None = None
    """The step whose answer was sent back; an answer goes back once."""
    check: Check | None = None
    """The check of the answer that stands."""

    def forget(self) -> None:
        """Results were cut from the conversation: files and queries may be asked for again."""
        self.files.clear()
        self.queries = {sql: problem for sql, problem in self.queries.items() if problem}


@dataclass(frozen=True)
class ToolResult:
    """What a call gives: the text for the model, and the facts for the record (as in run.ToolFinished)."""

    text: str
    failed: bool = False
    files: tuple[str, ...] = ()
    failed_reads: int = 0
    sql_attempts: int = 0
    sql_errors: int = 0
    rows: int | None = None
    database_seconds: float = 0.0


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    schema: Mapping[str, Any]
    """A JSON Schema of the arguments: an object whose properties are strings or lists of strings."""
    example: str
    """Arguments as a model should write them."""
    run: Callable[[Mapping[str, Any], Context], ToolResult]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other argument names that models use, and the real one."""

    def spec(self) -> dict[str, Any]:
        """The tool in the shape of OpenAI's function tools."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.schema)}
        return {"type": "function", "function": function}


def read_file() -> Tool:
    """Reads files of the bundle, several at once."""
    return Tool(
        name="read_file",
        description=prompts.load("tools/read_file.md"),
        schema=_object(paths={"type": "array", "items": {"type": "string"}}),
        example='{"paths": ["/knowledge/some-rule.md", "/tables/some_table.md"]}',
        run=_read_file,
        aliases={"path": "paths", "file": "paths", "files": "paths", "file_path": "paths"},
    )


def run_sql(max_rows: int) -> Tool:
    """Runs one query and shows at most `max_rows` rows."""
    return Tool(
        name="run_sql",
        description=prompts.load("tools/run_sql.md", max_rows=max_rows),
        schema=_object(sql={"type": "string"}),
        example='{"sql": "SELECT count(*) FROM some_table"}',
        run=_run_sql,
        aliases={"query": "sql"},
    )


def submit_answer() -> Tool:
    """Hands in the answer and ends the run."""
    return Tool(
        name="submit_answer",
        description=prompts.load("tools/submit_answer.md"),
        schema=_object(sql={"type": "string"}, answer={"type": "string"}),
        example='{"sql": "SELECT count(*) FROM some_table", "answer": "There are … rows."}',
        run=_submit_answer,
        aliases={"query": "sql"},
    )


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _read_file(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    paths = [p for p in dict.fromkeys(path.strip() for path in arguments["paths"]) if p]
    if not paths or context.bundle is None:
        return ToolResult(prompts.say("no_paths"), failed=True)
    parts: list[str] = []
    files: list[str] = []
    failed = 0
    for asked in paths:
        found = reading.read(context.bundle, asked)
        text = found.text
        if found.failed:
            failed += 1
        else:
            if found.key in context.files:
                text = prompts.say("file_known")
            elif not found.is_index:
                context.evidence.add_text(text)
            context.files.add(found.key)
            files.append(found.path)
        parts.append(f"=== {found.path} ===\n{text}")
    return ToolResult("\n\n".join(parts), not files, tuple(files), failed)


def _run_sql(arguments: Mapping[str, Any], context: Context) -> ToolResult:
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
    result, seconds = _query(sql, context.database)
    if isinstance(result, QueryError):
        if not result.passing:
            context.queries[sql] = str(result)
        return _sql_failed(prompts.say("sql_error", problem=result), seconds)
    context.queries[sql] = ""
    _remember(result, context)
    text = render.for_model(result)
    return ToolResult(text, sql_attempts=1, rows=len(result.rows), database_seconds=seconds)


def _query(sql: str, database: Queries) -> tuple[QueryResult | QueryError, float]:
    """The result or the error of a query, and the seconds it took."""
    begin = time.monotonic()
    try:
        found: QueryResult | QueryError = database.run(sql)
    except QueryError as error:
        found = error
    return found, time.monotonic() - begin


def _sql_failed(text: str, seconds: float = 0.0) -> ToolResult:
    return ToolResult(text, failed=True, sql_attempts=1, sql_errors=1, database_seconds=seconds)


def _remember(result: QueryResult, context: Context) -> None:
    """Count the result's cells and its number of rows as seen."""
    context.evidence.add_rows(result.rows)
    context.evidence.add_count(len(result.rows))
    if result.rows_total is not None:
        context.evidence.add_count(result.rows_total)


@dataclass(frozen=True)
class Check:
    """An answer whose SQL was run. `problem` says to the model what is wrong with it, "" if nothing is."""

    answer: Answer
    problem: str = ""
    result: QueryResult | None = None
    ungrounded_numbers: tuple[str, ...] = ()
    seconds: float = 0.0


def check_answer(sql: str, answer: str | None, context: Context) -> Check:
    """Run the SQL of an answer as the agent's role, and look for its numbers in what the run has seen.

    Where `answer` is None, what the rows say becomes the answer.
    """
    said = answer or ""
    if not sql.strip():
        problem = "" if said.strip() else prompts.say("check_silent")
        return Check(Answer("", said, None, "not_run"), problem, None, context.evidence.missing(said))
    try:
        cleaned = sql_text.clean(sql)
    except sql_text.SqlTextError as error:
        return Check(Answer(sql.strip(), said, None, "error"), prompts.say("check_error", problem=error))
    if context.database is None:
        missing = context.evidence.missing(said)
        problem = prompts.say("check_numbers_not_run", numbers=", ".join(missing)) if missing else ""
        return Check(Answer(cleaned, said, None, "not_run"), problem, None, missing)
    result, seconds = _query(cleaned, context.database)
    if isinstance(result, QueryError):
        problem = prompts.say("check_error", problem=result)
        missing = context.evidence.missing(said)
        return Check(Answer(cleaned, said, None, "error"), problem, None, missing, seconds)
    _remember(result, context)
    said = _describe(result) if answer is None else answer
    missing = context.evidence.missing(said)
    checked, problem = _judge(result, missing)
    return Check(Answer(cleaned, said, result.rows_total, checked), problem, result, missing, seconds)


def _judge(result: QueryResult, missing: Sequence[str]) -> tuple[Checked, str]:
    """What became of an answer's query, and what is wrong with it or with the answer's numbers."""
    if not result.rows:
        return "no_rows", prompts.say("check_no_rows")
    if [list(row) for row in result.rows] == [[None]]:
        return "lone_null", prompts.say("check_lone_null")
    if missing:
        rows = render.for_model(result)
        return "ran", prompts.say("check_numbers", numbers=", ".join(missing), rows=rows)
    return "ran", ""


def _describe(result: QueryResult) -> str:
    """A result in a sentence: its one row, or how many rows there are."""
    if len(result.rows) == 1:
        cells = zip(result.columns, result.rows[0], strict=True)
        return ", ".join(f"{column}: {'NULL' if cell is None else cell}" for column, cell in cells)
    count = result.rows_total if result.rows_total is not None else f"more than {len(result.rows)}"
    return f"{count} rows ({', '.join(result.columns)})"


def _submit_answer(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    if context.check is not None:
        return ToolResult(prompts.say("already_answered"), failed=True)
    if context.sent_back_at == context.step:
        return ToolResult(prompts.say("back_once"), failed=True)
    check = check_answer(arguments["sql"], arguments["answer"], context)
    if check.problem and context.sent_back_at is None:
        context.sent_back_at = context.step
        text = prompts.say("back", problem=check.problem)
        return ToolResult(text, failed=True, database_seconds=check.seconds)
    context.check = check
    return ToolResult(prompts.say("accepted"), database_seconds=check.seconds)


def unknown_tool(name: str, tools: Sequence[Tool]) -> str:
    """What to tell a model that called a tool which does not exist."""
    names = [tool.name for tool in tools]
    near = did_you_mean(name, names)
    hint = "" if near == "." else f" {near[2:].capitalize()}"
    return prompts.say("unknown_tool", name=quote(name) or '""', tools=", ".join(names), near=hint)
