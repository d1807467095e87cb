"""The tools of the model, one file a tool: what each is called, what it takes, what it does.

Beside them, grounding.py keeps the numbers that a run has seen, and existing.py asks what the database still has.

One definition for the loop and for MCP. A tool never raises for what the model wrote: its errors are text that says
what exists and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from okf_agent import prompts
from okf_agent.events import Answer, ToolFinished
from okf_agent.models.arguments import Declared, quote
from okf_agent.sql.database import QueryResult
from okf_agent.tools.grounding import Evidence
from okf_compiler.errors import did_you_mean


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
    profiles: Path | None = None
    """The folder with what was measured in the data; None where nothing was, or where it is not shown."""
    values: Path | None = None
    """The folder with the value index, for find_value; None where nothing was measured."""
    hide: tuple[str, ...] = ()
    """Columns kept back by now, measured or not."""
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
    """What a call gives: the text for the model, and the facts for the record."""

    text: str
    failed: bool = False
    files: tuple[str, ...] = ()
    failed_reads: int = 0
    sql_attempts: int = 0
    sql_errors: int = 0
    rows: int | None = None
    database_seconds: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same as `text` for a program, where there is more in it than text: JSON values."""

    def finished(self, step: int, name: str) -> ToolFinished:
        """The event of the call that gave this."""
        return ToolFinished(
            step,
            name,
            self.text,
            failed=self.failed,
            files=self.files,
            failed_reads=self.failed_reads,
            sql_attempts=self.sql_attempts,
            sql_errors=self.sql_errors,
            rows=self.rows,
            database_seconds=self.database_seconds,
        )


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


@dataclass(frozen=True)
class Check:
    """An answer whose SQL was run. `problem` says to the model what is wrong with it, "" if nothing is."""

    answer: Answer
    problem: str = ""
    result: QueryResult | None = None
    ungrounded_numbers: tuple[str, ...] = ()
    seconds: float = 0.0
    sql_error: str = ""
    """Why the SQL does not run, in PostgreSQL's words; "" if it does."""
    document_numbers: tuple[str, ...] = ()
    """Numbers of the answer that stand in documents alone."""


def arguments_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, all of them required."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def unknown_tool(name: str, tools: Sequence[Declared]) -> str:
    """What to tell a model that called a tool which does not exist."""
    names = [tool.name for tool in tools]
    near = did_you_mean(name, names)
    hint = "" if near == "." else f" {near[2:].capitalize()}"
    return prompts.say("unknown_tool", name=quote(name) or '""', tools=", ".join(names), near=hint)
