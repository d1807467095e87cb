"""The tools of the loop as MCP tools, with the database as an argument where several are served."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from okf_agent import prompts
from okf_agent.ask import Asked, Outcome, ask
from okf_agent.cell import Cell
from okf_agent.mcp_server.served import Served, Stop, one_of
from okf_agent.models.arguments import ArgumentError, parse_arguments, printable
from okf_agent.models.errors import redact
from okf_agent.prompts import framing
from okf_agent.run import Event, StepStarted, ToolStarted
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.render import fitted, for_program, model_text
from okf_agent.tools import (
    Context,
    Tool,
    ToolResult,
    arguments_of,
    find_value,
    read_file,
    run_sql,
    search,
    unknown_tool,
)
from okf_compiler.errors import UserError

logger = logging.getLogger(__name__)
WITH_DATABASE = frozenset({"run_sql"})
"""Tools that run queries; the others read the bundle and what was measured."""
NAMED_DATABASES = 8
"""So many databases are named in the arguments of each tool; more are left to list_databases."""
READ_ONLY = types.ToolAnnotations(read_only_hint=True)

Progress = Callable[[str], None]
"""Told, in words, what a long call is doing; called from the call's thread."""


@dataclass(frozen=True)
class Call:
    """One call as a client made it. `databases` are those that the client may see."""

    name: str
    arguments: Mapping[str, Any]
    databases: tuple[str, ...]
    client: str
    cell: Cell | None = None
    """How `ask` asks; None where it is not offered."""


def offered(served: Served, with_ask: bool) -> dict[str, Tool]:
    """The tools by name. `list_databases` and `ask` are the server's own; their `run` is in `run_call`."""
    max_rows = served.config.settings.database.max_rows
    tools = [read_file.tool(), search.tool(), find_value.tool(), run_sql.tool(max_rows), _own("list_databases")]
    if with_ask:
        tools.append(_own("ask", question={"type": "string"}))
    return {tool.name: tool for tool in tools}


def listing(tools: Mapping[str, Tool], databases: Sequence[str]) -> list[types.Tool]:
    """The tools as a client that may see `databases` gets them."""
    return [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=_schema(tool, databases),
            annotations=READ_ONLY,
        )
        for tool in tools.values()
    ]


def run_call(call: Call, tools: Mapping[str, Tool], served: Served, stop: Stop, progress: Progress) -> ToolResult:
    """Run one call. Blocks; whatever goes wrong is a failed result that says what to do."""
    tool = tools.get(call.name)
    if tool is None:
        return ToolResult(unknown_tool(call.name, [*tools.values()]), failed=True)
    try:
        given = dict(call.arguments)
        name = "" if tool.name == "list_databases" else one_of(given.pop("database", None), call.databases)
        arguments = parse_arguments(tool, json.dumps(given))
        if tool.name == "list_databases":
            return _list_databases(served, call.databases)
        if tool.name == "ask":
            return _ask(arguments["question"], name, call, served, stop, progress)
        with served.context(name, stop, with_database=tool.name in WITH_DATABASE) as context:
            return _run(tool, arguments, context)
    except (ArgumentError, UserError, QueryError) as error:
        return ToolResult(printable(redact(str(error))), failed=True)
    except Exception:
        logger.exception("%s failed", tool.name)
        return ToolResult(prompts.say("mcp_internal"), failed=True)


def kind(name: str) -> str:
    """What a call needs: `ask` and `query` a connection, `read` only files."""
    if name == "ask":
        return "ask"
    return "query" if name in WITH_DATABASE else "read"


def database_of(call: Call) -> str | None:
    """The one database a call is about, if it names one that the client may see or there is only one."""
    if call.name == "list_databases":
        return None
    name = call.arguments.get("database")
    if len(call.databases) == 1 and name is None:
        return call.databases[0]
    return name if isinstance(name, str) and name in call.databases else None


def _run(tool: Tool, arguments: Mapping[str, Any], context: Context) -> ToolResult:
    if tool.name in WITH_DATABASE and context.database is None:
        return ToolResult(prompts.say("mcp_no_content"), failed=True, sql_attempts=1)
    return tool.run(arguments, context)


def _own(name: str, **properties: Mapping[str, Any]) -> Tool:
    """A tool that the loop has not."""

    def run(_arguments: Mapping[str, Any], _context: Context) -> ToolResult:
        raise AssertionError(f"{name} is run by run_call")

    example = json.dumps(dict.fromkeys(properties, "…"))
    return Tool(name, prompts.load(f"tools/{name}.md"), arguments_of(**properties), example, run)


def _schema(tool: Tool, databases: Sequence[str]) -> dict[str, Any]:
    """The tool's arguments, with the database where there is more than one."""
    schema = dict(tool.schema)
    if len(databases) < 2 or tool.name == "list_databases":
        return schema
    names: dict[str, Any] = {"type": "string"}
    if len(databases) <= NAMED_DATABASES:
        names["enum"] = [*databases]
    schema["properties"] = {"database": names, **schema["properties"]}
    schema["required"] = ["database", *schema["required"]]
    return schema


def _list_databases(served: Served, databases: Sequence[str]) -> ToolResult:
    entries = []
    for name in databases:
        concepts = served.concepts(name)
        tables = sum(concept.is_table for concept in concepts.values())
        entries.append({"name": name, "tables": tables, "rules": len(concepts) - tables, "index": "/index.md"})
    lines = [
        f"* {e['name']}: {e['tables']} tables, {e['rules']} rules; read_file /index.md lists them" for e in entries
    ]
    return ToolResult("\n".join(lines), data={"databases": entries})


def _ask(question: str, name: str, call: Call, served: Served, stop: Stop, progress: Progress) -> ToolResult:
    """Answer a question with our own loop; it leaves a record of its own."""
    assert call.cell is not None

    def on_event(event: Event) -> None:
        if isinstance(event, StepStarted):
            progress(f"step {event.step}")
        elif isinstance(event, ToolStarted):
            progress(f"step {event.step}: {framing.one_line(event.name)}")

    with served.one_question(name, stop) as workspace:
        outcome = ask(Asked(question, name, client=call.client), call.cell, workspace, on_event, served.say)
    return _answered(outcome)


def _answered(outcome: Outcome) -> ToolResult:
    run = outcome.run
    answer = run.answer
    if answer is None:
        problem = run.error or f"There is no answer: {run.stop_reason}."
        return ToolResult(problem, failed=True, data={"run_id": outcome.run_id, "stop_reason": run.stop_reason})
    rows = fitted(run.result) if run.result else None
    data = {
        "run_id": outcome.run_id,
        "stop_reason": run.stop_reason,
        "answer": answer.answer,
        "sql": answer.sql,
        "checked": answer.checked,
        "ungrounded_numbers": [*run.tally.ungrounded_numbers],
        "files": [*dict.fromkeys(run.tally.files_opened)],
        "cost_usd": run.tally.cost_usd,
        "result": for_program(rows) if rows else None,
    }
    parts = [answer.answer, f"SQL ({answer.checked}):\n{answer.sql}" if answer.sql else ""]
    if run.tally.ungrounded_numbers:
        parts.append(f"Not in any result or rule: {', '.join(run.tally.ungrounded_numbers)}.")
    parts.append(model_text(rows) if rows else "")
    return ToolResult("\n\n".join(part for part in parts if part), failed=outcome.exit_status != 0, data=data)
