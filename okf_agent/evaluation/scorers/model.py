"""A scorer, the verdict it contributes to, and words for how two results differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.results import Result, Row, shown

Difference: TypeAlias = Literal[
    "column order",
    "extra columns",
    "ties",
    "letter case",
    "spaces",
    "number as text",
    "date as text",
    "date with time",
    "last digit",
    "declined by a constant",
]
"""What the lenient verdict forgives: scorers/lenient.py and scorers/refusal.py say when."""


@dataclass(frozen=True)
class Verdict:
    """One scored run. `strict` is the benchmark's own rule; None where it could not be scored."""

    strict: bool | None
    lenient: bool | None
    """Right but for differences that do not matter to a reader, which `differences` names."""
    soft_f1: float | None = None
    """BIRD's soft F1, 0 to 1."""
    r_ves: float | None = None
    """BIRD's reward for speed, the square root of 0 to 1.25; its mean times 100 is R-VES. None: not measured."""
    reason: str = ""
    """Why it is not right, in words; "" where it is."""
    gold_error: str = ""
    """Why the gold query gave nothing to compare with: then the run is not counted."""
    differences: tuple[Difference, ...] = ()
    """What the lenient verdict forgave."""
    knowledge_recall: float | None = None
    """Of the rules the task needs, the part that the run opened; None where that is not known."""
    knowledge_precision: float | None = None
    """Of the rules the run opened, the part that the task needs; None where that is not known or it opened none."""
    judge: str | None = None
    """MATCH or MISMATCH, where a model was asked."""
    judge_cost_usd: float | None = None
    """What asking it cost; None where its price is unknown or nobody was asked."""

    def to_json(self) -> Mapping[str, Any]:
        """The fields by name, for scores.jsonl."""
        return {**asdict(self), "differences": list(self.differences)}


def unchanged(sql: str) -> str:
    """The query as it is."""
    return sql


def as_listed(gold: Gold) -> tuple[str, ...]:
    """The gold queries as the gold file lists them."""
    return gold.sql


@dataclass(frozen=True)
class Scorer:
    """The strict rule of one benchmark."""

    same: Callable[[Result, Result, bool], str]
    """`same(gold, predicted, ordered)`: "" where the prediction is right, else why it is not."""
    alternatives: Callable[[Gold], tuple[str, ...]] = as_listed
    """The queries any of which is right."""
    clean: Callable[[str], str] = unchanged
    """What both queries go through before they run."""


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
