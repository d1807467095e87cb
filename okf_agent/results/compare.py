"""A question asked twice, with different knowledge: the two runs, as `runs compare` shows two of the record."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from okf_agent.ask import Outcome
from okf_agent.cell import Cell
from okf_agent.records.runs import Comparison, Rows, compare
from okf_agent.records.view import comparison_view
from okf_agent.sql.database import QueryResult

OneRun = tuple[Cell, Outcome]
"""How a question was asked, and what became of it."""


def other_knowledge(knowledge: str) -> str:
    """What a way of giving knowledge is compared with, where nothing else is asked for."""
    return "bundle" if knowledge == "raw" else "raw"


def compared(first: OneRun, second: OneRun) -> Comparison:
    """Both runs, with the rows that were shown and those that differ."""
    (_, one), (_, other) = first, second
    return compare({**one.line}, {**other.line}, _rows(one.run.result), _rows(other.run.result))


def names(first: OneRun, second: OneRun) -> tuple[str, str]:
    """What tells the two runs apart."""
    one, other = first[0], second[0]
    return (one.knowledge, other.knowledge) if one.knowledge != other.knowledge else (one.model, other.model)


def side_by_side(first: OneRun, second: OneRun) -> Iterator[RenderableType]:
    """A column a run, and below it what only one of them has."""
    return comparison_view(compared(first, second), names(first, second))


def _rows(result: QueryResult | None) -> Rows | None:
    return Rows(result.columns, result.rows, bool(result.cut)) if result else None
