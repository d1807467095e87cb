"""The tools of the loop as MCP tools, with the database as an argument where several are served, and two more."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

from okf_agent import prompts
from okf_agent.ask import Asked, Outcome, ask
from okf_agent.cell import Cell
from okf_agent.events import Event, StepStarted, ToolStarted
from okf_agent.mcp_server.calls import Call, Calls, Client, Ctx, Needs, Progress
from okf_agent.mcp_server.databases import Databases, Stop, for_client, one_of
from okf_agent.models.arguments import ArgumentError, parse_arguments, printable
from okf_agent.models.errors import redact
from okf_agent.prompts import framing
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.render import fitted, for_program, model_text
from okf_agent.tools import (
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
NAMED_DATABASES = 8
"""So many databases are named in the arguments of each tool; more are left to list_databases."""
QUESTION_CHARS = 20_000
"""The longest question that `ask` takes."""
READ_ONLY = types.ToolAnnotations(read_only_hint=True)


@dataclass(frozen=True)
class Asking:
    """Who makes a call of a tool, and how it is stopped and watched."""

    client: Client
    stop: Stop
    progress: Progress


@dataclass(frozen=True)
class Offer:
    """A tool as this server offers it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """Its arguments but for the database, as in `Tool`."""
    example: str
    needs: Needs
    run: Callable[[Asking, Mapping[str, Any], str], ToolResult]
    """Runs a call with its arguments, checked, in a database; blocks."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    of_one_database: bool = True


class Tools:
    """The tools of one server."""

    def __init__(self, databases: Databases, calls: Calls, cell: Cell | None) -> None:
        """`cell` is how `ask` asks; without one it is not offered."""
        self._databases = databases
        self._calls = calls
        self._cell = cell
        offers = [
            self._of_loop(read_file.tool(), "files"),
            self._of_loop(search.tool(), "files"),
            self._of_loop(find_value.tool(), "connection"),
            self._of_loop(run_sql.tool(databases.config.settings.database.max_rows), "connection", only_content=True),
            _own("list_databases", "files", self._list_databases, of_one_database=False),
        ]
        if cell:
            offers.append(
                _own("ask", "ask", self._ask, question={"type": "string", "minLength": 1, "maxLength": QUESTION_CHARS})
            )
        self._offers = {offer.name: offer for offer in offers}

    async def list(self, ctx: Ctx, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Answer `tools/list`."""
        return types.ListToolsResult(tools=[*self.seen_with(self._calls.client(ctx).databases)])

    def seen_with(self, databases: Sequence[str]) -> Sequence[types.Tool]:
        """Return the tools as a client that may see `databases` gets them."""
        return [
            types.Tool(
                name=offer.name,
                description=offer.description,
                input_schema=_schema(offer, databases),
                annotations=READ_ONLY,
            )
            for offer in self._offers.values()
        ]

    async def call(self, ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Answer `tools/call`: whatever goes wrong is a failed result that says what to do."""
        client = self._calls.client(ctx)
        name, arguments = params.name, params.arguments or {}
        offer = self._offers.get(name)

        def run(stop: Stop, progress: Progress) -> ToolResult:
            return self._run(name, arguments, Asking(client, stop, progress))

        database = _database_of(offer, arguments, client.databases)
        call = Call(name, arguments, database, offer.needs if offer else "files")
        result = await self._calls.do(ctx, call, run)
        text = printable(framing.unmarked(result.text))
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=dict(result.data) or {"text": text},
            is_error=result.failed,
        )

    def _run(self, name: str, arguments: Mapping[str, Any], call: Asking) -> ToolResult:
        """Run one call. Blocks."""
        offer = self._offers.get(name)
        if offer is None:
            return ToolResult(unknown_tool(name, [*self._offers.values()]), failed=True)
        try:
            given = dict(arguments)
            database = one_of(given.pop("database", None), call.client.databases) if offer.of_one_database else ""
            return offer.run(call, parse_arguments(offer, json.dumps(given)), database)
        except (ArgumentError, QueryError) as error:
            return ToolResult(printable(redact(str(error))), failed=True)
        except UserError as error:
            return ToolResult(printable(for_client(error)), failed=True)
        except Exception:
            logger.exception("%s failed", name)
            return ToolResult(prompts.say("mcp_internal"), failed=True)

    def _of_loop(self, tool: Tool, needs: Needs, *, only_content: bool = False) -> Offer:
        """A tool of the loop: one definition for both. With `only_content` it is refused where a database has none."""

        def run(call: Asking, arguments: Mapping[str, Any], database: str) -> ToolResult:
            with self._databases.context(database, call.stop, with_database=needs == "connection") as context:
                if only_content and context.database is None:
                    return ToolResult(prompts.say("mcp_no_content"), failed=True, sql_attempts=1)
                return tool.run(arguments, context)

        return Offer(tool.name, tool.description, tool.schema, tool.example, needs, run, tool.aliases)

    def _list_databases(self, call: Asking, _arguments: Mapping[str, Any], _database: str) -> ToolResult:
        entries = []
        for name in call.client.databases:
            concepts = self._databases.concepts(name)
            tables = sum(concept.is_table for concept in concepts.values())
            entries.append({"name": name, "tables": tables, "rules": len(concepts) - tables, "index": "/index.md"})
        lines = [
            f"* {e['name']}: {e['tables']} tables, {e['rules']} rules; read_file /index.md lists them" for e in entries
        ]
        return ToolResult("\n".join(lines), data={"databases": entries})

    def _ask(self, call: Asking, arguments: Mapping[str, Any], database: str) -> ToolResult:
        """Answer a question with our own loop; it leaves a record of its own."""
        assert self._cell is not None

        def on_event(event: Event) -> None:
            if isinstance(event, StepStarted):
                call.progress(f"step {event.step}")
            elif isinstance(event, ToolStarted):
                call.progress(f"step {event.step}: {framing.one_line(event.name)}")

        asked = Asked(arguments["question"], database, client=call.client.label)
        with self._databases.one_question(database, call.stop) as workspace:
            return _answered(ask(asked, self._cell, workspace, on_event, self._databases.say))


def _own(
    name: str,
    needs: Needs,
    run: Callable[[Asking, Mapping[str, Any], str], ToolResult],
    *,
    of_one_database: bool = True,
    **properties: Mapping[str, Any],
) -> Offer:
    """A tool that only the server has."""
    example = json.dumps(dict.fromkeys(properties, "…"))
    description = prompts.load(f"tools/{name}.md")
    return Offer(name, description, arguments_of(**properties), example, needs, run, of_one_database=of_one_database)


def _database_of(offer: Offer | None, arguments: Mapping[str, Any], databases: Sequence[str]) -> str | None:
    """Return the one database a call is about, if it names one that the client may see or there is only one."""
    if offer is not None and not offer.of_one_database:
        return None
    asked = arguments.get("database")
    if asked is None and len(databases) == 1:
        return databases[0]
    return asked if isinstance(asked, str) and asked in databases else None


def _schema(offer: Offer, databases: Sequence[str]) -> dict[str, Any]:
    """The tool's arguments, with the database where there is more than one."""
    schema = dict(offer.schema)
    if len(databases) < 2 or not offer.of_one_database:
        return schema
    names: dict[str, Any] = {"type": "string"}
    if len(databases) <= NAMED_DATABASES:
        names["enum"] = [*databases]
    schema["properties"] = {"database": names, **schema["properties"]}
    schema["required"] = ["database", *schema["required"]]
    return schema


def _answered(outcome: Outcome) -> ToolResult:
    run = outcome.run
    answer = run.answer
    if answer is None:
        if run.error:
            logger.error("%s", run.error)
        ended = {"run_id": outcome.run_id, "stop_reason": run.stop_reason}
        return ToolResult(prompts.say("mcp_unanswered", **ended), failed=True, data=ended)
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
