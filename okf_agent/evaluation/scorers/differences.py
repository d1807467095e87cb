"""Words for how two results differ, shared by the scorers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from okf_agent.evaluation.results import Result
from okf_agent.evaluation.values import Row, shown


def shape(gold: Result, predicted: Result) -> str:
    """ "" where both have as many columns, else the two numbers."""
    if len(gold.columns) == len(predicted.columns):
        return ""
    return f"{len(predicted.columns)} columns where gold has {len(gold.columns)}"


def missing(gold: Sequence[Row], predicted: Sequence[Row]) -> str:
    """The first row that only one of two collections of rows has, and how many there are."""
    expected, got = Counter(gold), Counter(predicted)
    lacking, surplus = expected - got, got - expected
    parts = []
    if lacking:
        example = _row(next(iter(lacking)))
        parts.append(f"{lacking.total()} of gold's {len(gold)} rows are missing, such as {example}")
    if surplus:
        example = _row(next(iter(surplus)))
        parts.append(f"{surplus.total()} of {len(predicted)} rows are not in gold, such as {example}")
    return "; ".join(parts)


def out_of_order(gold: Sequence[Row], predicted: Sequence[Row]) -> str:
    """The first place where two lists of rows differ; "" if they are the same."""
    for number, (expected, got) in enumerate(zip(gold, predicted, strict=False), 1):
        if expected != got:
            return f"row {number} is {_row(got)} where gold has {_row(expected)}"
    return "" if len(gold) == len(predicted) else f"{len(predicted)} rows where gold has {len(gold)}"


def _row(row: Row) -> str:
    text = ", ".join(shown(value) for value in row)
    return f"({text if len(text) <= 120 else text[:119] + '…'})"
