"""submit_answer: an answer, whose SQL is run before it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from okf_agent import prompts
from okf_agent.events import Answer, Checked
from okf_agent.sql import render, sql_text
from okf_agent.sql.database import QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.tools import Check, Context, Tool, ToolResult, arguments_of
from okf_agent.tools.grounding import Evidence
from okf_agent.tools.run_sql import query, quoted, remember

CHART_ROWS = 40
"""Rows of an answer that are fetched for a person's chart, also where fewer are shown as rows."""


def tool() -> Tool:
    """Hands in the answer and ends the run."""
    return Tool(
        name="submit_answer",
        description=prompts.load("tools/submit_answer.md"),
        schema=arguments_of(sql={"type": "string"}, answer={"type": "string"}),
        example='{"sql": "SELECT count(*) FROM some_table", "answer": "There are … rows."}',
        run=run,
        aliases={"query": "sql"},
    )


def run(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    if context.check is not None:
        return ToolResult(prompts.say("already_answered"), failed=True)
    if context.sent_back_at == context.step:
        return ToolResult(prompts.say("back_once"), failed=True)
    check = check_answer(arguments["sql"], arguments["answer"], context)
    failed = int(check.answer.checked == "error")
    if check.problem and context.sent_back_at is None:
        context.sent_back_at = context.step
        text = prompts.say("back", problem=check.problem)
        return ToolResult(text, failed=True, sql_errors=failed, database_seconds=check.seconds)
    context.check = check
    accepted = prompts.say("accepted")
    return ToolResult(accepted, sql_errors=failed, database_seconds=check.seconds)


def check_answer(sql: str, answer: str | None, context: Context) -> Check:
    """Run the SQL of an answer as the agent's role, and look for its numbers in what the run has seen.

    Where `answer` is None, what the rows say becomes the answer.
    """
    check = _checked(sql, answer, context)
    documented = context.evidence.documented(check.answer.answer, check.answer.sql)
    if documented and check.result and not check.problem and not _says(check.answer.answer, check.result):
        rows = render.for_model(check.result)
        problem = prompts.say("check_documented", numbers=", ".join(documented), rows=rows)
        return replace(check, document_numbers=documented, problem=problem)
    return replace(check, document_numbers=documented)


def _says(answer: str, result: QueryResult) -> bool:
    """Whether one of the numbers of an answer is in the result of its query."""
    none, some = Evidence(), Evidence()
    some.add_rows(result.rows)
    some.add_count(len(result.rows) if result.rows_total is None else result.rows_total)
    return some.missing(answer) != none.missing(answer)


def _checked(sql: str, answer: str | None, context: Context) -> Check:
    said = answer or ""
    if not sql.strip():
        problem = "" if said.strip() else prompts.say("check_silent")
        return Check(Answer("", said, None, "not_run"), problem, None, context.evidence.missing(said))
    try:
        cleaned = sql_text.clean(sql)
    except sql_text.SqlTextError as error:
        problem = prompts.say("check_error", problem=error)
        return Check(Answer(sql.strip(), said, None, "error"), problem, sql_error=str(error))
    if context.database is None:
        missing = context.evidence.missing(said)
        problem = prompts.say("check_numbers_not_run", numbers=", ".join(missing)) if missing else ""
        return Check(Answer(cleaned, said, None, "not_run"), problem, None, missing)
    result, seconds = query(cleaned, context.database, max(context.max_rows, CHART_ROWS))
    if isinstance(result, QueryError):
        problem = prompts.say("check_error", problem=quoted(result))
        missing = context.evidence.missing(said)
        return Check(Answer(cleaned, said, None, "error"), problem, None, missing, seconds, str(result))
    remember(result, context)
    said = _describe(result) if answer is None else answer
    missing = context.evidence.missing(said)
    checked, problem = _judge(result.first(context.max_rows), missing)
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
