"""What a scorer is: how gold and prediction are made ready, and when two results are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.results import Result


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
