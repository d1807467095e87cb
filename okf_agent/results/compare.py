"""Two runs of one question side by side: answers, rows that differ, and what each took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from okf_agent.ask import Outcome
from okf_agent.cell import Cell
from okf_agent.results.answers import words
from okf_agent.sql.database import QueryResult
from okf_agent.sql.render import shown_rows
from okf_compiler.inert import inert
from okf_compiler.postgres import Row

MAX_SHOWN = 10
"""Rows of each side that are shown where they differ."""


@dataclass(frozen=True)
class RowDiff:
    """Rows that only one of two results has. Column names and the order of rows do not count."""

    only_first: tuple[Row, ...]
    only_second: tuple[Row, ...]
    partial: bool
    """One of the results was cut: rows that were not seen were not compared."""

    @property
    def equal(self) -> bool:
        return not self.only_first and not self.only_second


def diff_rows(first: QueryResult | None, second: QueryResult | None) -> RowDiff | None:
    """How the rows of two results differ; None where one of the runs has none to compare."""
    if first is None or second is None:
        return None
    ours, theirs = Counter(first.rows), Counter(second.rows)
    return RowDiff(
        tuple((ours - theirs).elements()),
        tuple((theirs - ours).elements()),
        bool(first.cut or second.cut),
    )


def side_by_side(runs: Sequence[tuple[Cell, Outcome]]) -> Iterator[RenderableType]:
    """A column a run, and below it what only one of two has."""
    models = {cell.model for cell, _ in runs}
    grid = Table(show_lines=True)
    grid.add_column("")
    for cell, _ in runs:
        model = "" if len(models) == 1 else f", {inert(cell.model)}"
        grid.add_column(Text(cell.knowledge + model), overflow="fold")
    for label, fact in FACTS:
        grid.add_row(Text(label, "dim"), *(Text(fact(outcome)) for _, outcome in runs))
    yield grid
    (first, one), (second, two) = runs[0], runs[1]
    yield from _differences(diff_rows(one.run.result, two.run.result), _names(first, second))


def _names(first: Cell, second: Cell) -> tuple[str, str]:
    return (first.knowledge, second.knowledge) if first.knowledge != second.knowledge else (first.model, second.model)


def _differences(diff: RowDiff | None, names: tuple[str, str]) -> Iterator[Text]:
    if diff is None:
        yield Text("Rows were not compared: one of the runs has none.")
        return
    part = " (of the rows shown; not all were compared)" if diff.partial else ""
    if diff.equal:
        yield Text(f"Both give the same rows{part}.", "green")
        return
    yield Text(f"The rows differ{part}:", "magenta")
    for name, rows in zip(names, (diff.only_first, diff.only_second), strict=True):
        for row in rows[:MAX_SHOWN]:
            cells = ", ".join("NULL" if cell is None else inert(cell) for cell in row)
            yield Text(f"  only {name}: {cells}")
        if len(rows) > MAX_SHOWN:
            yield Text(f"  only {name}: {len(rows) - MAX_SHOWN} more")


def _answer(outcome: Outcome) -> str:
    answer = outcome.run.answer
    if answer is None:
        return words(outcome.run.error).plain or "none"
    return words(answer.answer).plain


def _sql(outcome: Outcome) -> str:
    answer = outcome.run.answer
    return words(answer.sql).plain if answer else ""


def _rows(outcome: Outcome) -> str:
    result = outcome.run.result
    return shown_rows(result) if result else "none"


def _tokens(outcome: Outcome) -> str:
    tally = outcome.run.tally
    cached = f", {tally.cached_tokens:,} cached" if tally.cached_tokens else ""
    return f"{tally.input_tokens:,} in{cached}, {tally.output_tokens:,} out"


def cost(outcome: Outcome) -> str:
    """What a run cost, as far as it is known."""
    dollars = outcome.run.tally.cost_usd
    return "unknown" if dollars is None else f"${dollars:.4f}"


FACTS: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
    ("answer", _answer),
    ("SQL", _sql),
    ("rows", _rows),
    ("ended", lambda outcome: outcome.run.stop_reason),
    ("model calls", lambda outcome: str(outcome.run.tally.llm_calls)),
    ("tokens", _tokens),
    ("cost", cost),
    ("seconds", lambda outcome: f"{outcome.run.seconds:.1f}"),
    ("files read", lambda outcome: str(len(outcome.run.tally.files_opened))),
    ("SQL errors", lambda outcome: str(outcome.run.tally.sql_errors)),
)
