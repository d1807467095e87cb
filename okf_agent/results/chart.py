"""A result as bars in the terminal, where a category or a date stands against a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from okf_agent.sql.database import QueryResult
from okf_agent.sql.render import is_number_type
from okf_agent.tools.submit_answer import CHART_ROWS
from okf_compiler.inert import inert

MAX_BARS = CHART_ROWS
MAX_LABEL = 30
_FINITE = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PERIOD = re.compile(r"(^|_)(year|quarter|month|week|day|hour|date|period)(_|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Bars:
    """Labels and their numbers; `texts` are the numbers as PostgreSQL printed them."""

    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    texts: tuple[str, ...]


def bars(result: QueryResult, *, force: bool = False) -> Bars | None:
    """What of a result can be drawn, None where a chart would not help.

    The label is the one column that is no number, or the first that names a period; the number is the first other
    one. Drawn unasked where there are few columns and every label is another; `force` draws whatever has a number.
    """
    numbers = [c for c, kind in enumerate(result.types) if is_number_type(kind)]
    others = [c for c in range(len(result.columns)) if c not in numbers]
    label = others[0] if others else next((c for c in numbers if _PERIOD.search(result.columns[c])), None)
    if label is None and force and len(numbers) > 1:
        label = numbers[0]
    number = next((c for c in numbers if c != label), None)
    if label is None or number is None or not 2 <= len(result.rows) <= (10_000 if force else MAX_BARS):
        return None
    rows = [(row[label], row[number]) for row in result.rows if _FINITE.fullmatch(row[number] or "")][:MAX_BARS]
    labels = tuple("NULL" if name is None else inert(name) for name, _ in rows)
    distinct = len(set(labels)) == len(labels) and len(rows) == len(result.rows)
    if len(rows) < 2 or (not force and (len(result.columns) > 3 or len(others) > 1 or not distinct or result.cut)):
        return None
    texts = tuple(text or "" for _, text in rows)
    values = tuple(map(float, texts))
    if not any(values) or max(map(abs, values)) == float("inf"):
        return None
    return Bars(result.columns[number], labels, values, texts)


def draw(drawn: Bars, width: int, *, ascii_only: bool = False) -> Iterator[Text]:
    """One line a row, at most `width` cells wide: label, bar, number. Bars below zero go to the left of the axis."""
    label_width = min(MAX_LABEL, max(map(cell_len, drawn.labels)), max(8, width // 3))
    number_width = max(map(cell_len, drawn.texts))
    room = max(4, min(60, width - label_width - number_width - 4))
    most = max(map(abs, drawn.values))
    values = [value / most for value in drawn.values]  # a float may hold neither the span of large ones nor its inverse
    low, high = min(0.0, *values), max(0.0, *values)
    scale = room / (high - low)
    left = round(-low * scale)
    yield Text(f"{' ' * label_width}  {inert(drawn.name)}"[:width], "dim")
    for label, value, text in zip(drawn.labels, values, drawn.texts, strict=True):
        if cell_len(label) > label_width:
            label = set_cell_size(label, label_width - 1) + ("~" if ascii_only else "…")
        line = Text(set_cell_size(label, label_width) + "  ")
        before, bar = (left, _bar(value * scale, ascii_only)) if value >= 0 else _below(value * scale, left, ascii_only)
        line.append(" " * before + bar, "cyan")
        line.append(f" {text}")
        yield line


def _bar(length: float, ascii_only: bool) -> str:
    """A bar to an eighth of a cell; what is not nothing is seen."""
    eighths = max(1, round(length * 8)) if length > 0 else 0
    if ascii_only:
        return "#" * max(1, round(length)) if length > 0 else ""
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _below(length: float, left: int, ascii_only: bool) -> tuple[int, str]:
    """A bar that ends at the axis: the cells before it, and the bar."""
    cells = min(left, max(1, round(-length)))
    return left - cells, ("#" if ascii_only else "█") * cells
