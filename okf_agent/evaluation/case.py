"""A wrong answer beside what it is compared with: the run, its gold, and the shapes of their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.navigation import Needed
from okf_agent.evaluation.sql_shape import Condition, Shape, parse


@dataclass(frozen=True)
class Case:
    """A wrong answer, and what it is compared with."""

    record: Mapping[str, Any]
    """The run's line of runs.jsonl."""
    gold: tuple[str, ...]
    """Queries, any of which is right."""
    answerable: bool = True
    rules: tuple[str, ...] = ()
    """Bundle paths of the rules that the task needs, as far as they are known."""
    lenient: bool | None = None
    differences: tuple[str, ...] = ()
    """What the lenient verdict forgave."""
    reason: str = ""
    """The scorer's own words."""

    @property
    def sql(self) -> str:
        answer = self.record.get("answer")
        return str(answer.get("sql") or "").strip() if isinstance(answer, Mapping) else ""

    @cached_property
    def shapes(self) -> Pair | None:
        """The answer's query and the gold query that is nearest to it; None if one of them cannot be parsed."""
        given = parse(self.sql)
        pairs = [Pair(shape, given) for sql in self.gold if given and (shape := parse(sql))]
        return min(pairs, key=lambda pair: pair.distance, default=None)


def case_of(record: Mapping[str, Any], score: Mapping[str, Any], answer: Gold, needed: Needed) -> Case:
    """A run's line of runs.jsonl, its line of scores.jsonl, its task's gold and what of the bundle that needs."""
    return Case(
        record=record,
        gold=answer.sql,
        answerable=answer.answerable,
        rules=needed.rules,
        lenient=score.get("lenient"),
        differences=tuple(score.get("differences") or ()),
        reason=str(score.get("reason") or ""),
    )


@dataclass(frozen=True)
class Pair:
    """A gold query and an answer."""

    gold: Shape
    given: Shape

    @cached_property
    def missing(self) -> list[Condition]:
        """Conditions of gold that the answer lacks."""
        return sorted(self.gold.conditions - self.given.conditions, key=str)

    @cached_property
    def added(self) -> list[Condition]:
        """Conditions of the answer that gold lacks."""
        return sorted(self.given.conditions - self.gold.conditions, key=str)

    @property
    def left_out(self) -> set[str]:
        """What one of them gives besides all that the other gives: a difference of output and not of formula."""
        gold, given = set(self.gold.outputs), set(self.given.outputs)
        return gold ^ given if gold < given or given < gold else set()

    @property
    def distance(self) -> int:
        """How many parts differ."""
        names = ("tables", "columns", "joins", "conditions", "groups", "calculations")
        parts = sum(len(getattr(self.gold, name) ^ getattr(self.given, name)) for name in names)
        return parts + (self.gold.outputs != self.given.outputs) + (self.gold.order != self.given.order)
