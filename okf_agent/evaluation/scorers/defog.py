"""Defog's SQL-Eval: alternative columns, alternative queries, extra columns allowed.

Source: github.com/defog-ai/sql-eval, `eval/eval.py` (`get_all_minimal_queries`, `compare_df`, `subset_df`,
`normalize_table`); its reports count a query as correct where the result is the same or gold is a subset of it.

- `{a, b}` in gold stands for any choice of these columns, one at least; `GROUP BY {}` repeats the choice. Several
  statements with semicolons are alternatives.
- The same: equal as they are, or after duplicate rows are dropped, columns sorted by name and rows sorted. Where an
  order is asked for, rows are sorted only by the columns that come sorted already, upwards, with the others after
  them; if none does, they stay.
- A subset: each of gold's columns has its own column among the prediction's with the same values, the first that
  fits; and the rows of those columns are the same. Numbers may differ by 1e-5 of their size, and 1e-8. An empty gold
  result is a subset of nothing.
- Numbers are pandas' doubles. NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain, combinations, pairwise

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.results import Result, Row, Value, doubles, sort_key
from okf_agent.evaluation.scorers.model import Scorer, missing, out_of_order

RELATIVE, ABSOLUTE = Decimal("1e-5"), Decimal("1e-8")
GROUPED = "GROUP BY {}"


def alternatives(gold: Gold) -> tuple[str, ...]:
    """Every query that Defog's gold text stands for."""
    return tuple(query for text in gold.sql for query in expand(text))


def expand(text: str) -> list[str]:
    """The queries of a gold text with braces and semicolons.

    >>> expand("SELECT {a,b} FROM t GROUP BY {};")
    ['SELECT a FROM t GROUP BY a', 'SELECT b FROM t GROUP BY b', 'SELECT a, b FROM t GROUP BY a, b']
    """
    return [query for part in text.split(";") if part.strip() for query in _choices(part.strip())]


def _choices(query: str) -> Iterator[str]:
    start = query.find("{")
    end = query.find("}", start + 1)
    if start < 0 or end < 0:
        yield query
        return
    columns = [column.strip() for column in query[start + 1 : end].split(",")]
    for chosen in chain.from_iterable(combinations(columns, n) for n in range(1, len(columns) + 1)):
        listed = ", ".join(chosen)
        yield query[:start] + listed + query[end + 1 :].replace(GROUPED, f"GROUP BY {listed}")


def same(gold: Result, predicted: Result, ordered: bool) -> str:
    """ "" where the prediction is the same or holds gold's columns, else how it differs."""
    one, other = (Result(each.columns, doubles(each.rows)) for each in (gold, predicted))
    if _equal(one, other, ordered) or _subset(one, other, ordered):
        return ""
    if missed := missing(one.rows, other.rows):
        return missed
    return out_of_order(one.rows, other.rows) or "the columns do not match"


def _equal(gold: Result, predicted: Result, ordered: bool) -> bool:
    if len(gold.columns) != len(predicted.columns):
        return False
    return gold.rows == predicted.rows or _normal(gold, ordered) == _normal(predicted, ordered)


def _normal(result: Result, ordered: bool) -> list[Row]:
    """Rows once each, columns by name, sorted as the rule says."""
    places = sorted(range(len(result.columns)), key=lambda place: result.columns[place])
    rows = [tuple(row[place] for place in places) for row in dict.fromkeys(result.rows)]
    by = list(range(len(places)))
    if ordered:
        sorted_already = [place for place in by if _is_sorted([row[place] for row in rows])]
        if not sorted_already:
            return rows
        by = sorted_already + [place for place in by if place not in sorted_already]
    return sorted(rows, key=lambda row: [sort_key(row[place]) for place in by])


def _is_sorted(values: Sequence[Value]) -> bool:
    keys = [sort_key(value) for value in values]
    return all(one <= other for one, other in pairwise(keys))


def _subset(gold: Result, predicted: Result, ordered: bool) -> bool:
    if not gold.rows:
        return False
    free = list(range(len(predicted.columns)))
    chosen: list[int] = []
    for place in range(len(gold.columns)):
        wanted = _column(gold, place)
        found = next((each for each in free if _near_all(wanted, _column(predicted, each))), None)
        if found is None:
            return False
        free.remove(found)
        chosen.append(found)
    matched = Result(gold.columns, tuple(tuple(row[place] for place in chosen) for row in predicted.rows))
    one, other = _normal(gold, ordered), _normal(matched, ordered)
    return len(one) == len(other) and all(_near_all(*rows) for rows in zip(one, other, strict=True))


def _column(result: Result, place: int) -> list[Value]:
    return sorted((row[place] for row in result.rows), key=sort_key)


def _near_all(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return len(one) == len(other) and all(map(_near, one, other))


def _near(one: Value, other: Value) -> bool:
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return abs(one - other) <= ABSOLUTE + RELATIVE * abs(other)
    return one == other


SCORER = Scorer(same, alternatives)
