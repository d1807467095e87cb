"""A model as judge: MATCH or MISMATCH. An opinion beside the verdicts, never in their place, and its cost apart.

Its words are in `prompts/judge.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from okf_agent import prompts
from okf_agent.evaluation.results import Result, shown
from okf_agent.llm import ContextOverflow, Model, OutOfTime

ROWS = 20
"""Rows of each result that the judge sees."""
LINE_CHARS = 1_000
"""Characters of each row that it sees."""
SECONDS = 120.0
"""What its reply may take."""
_VERDICT = re.compile(r"\b(MISMATCH|MATCH)\b")


@dataclass(frozen=True)
class Opinion:
    """What the judge said, and what asking it cost in dollars; None where the price is unknown."""

    verdict: str
    """MATCH, MISMATCH, or "" where it said neither."""
    cost_usd: float | None


@dataclass(frozen=True)
class Side:
    """A query and its result."""

    sql: str
    result: Result


def ask(model: Model, question: str, gold: Side, predicted: Side) -> Opinion:
    """The judge's opinion of a prediction that ran.

    Raises:
        UserError: the model cannot be called: a wrong key, no such server.
    """
    text = prompts.load(
        "judge.md",
        question=question,
        gold_sql=gold.sql,
        gold_count=len(gold.result.rows),
        gold_rows=_table(gold.result),
        sql=predicted.sql,
        count=len(predicted.result.rows),
        rows=_table(predicted.result),
    )
    try:
        reply = model.complete([{"role": "user", "content": text}], seconds=SECONDS)
    except (ContextOverflow, OutOfTime):
        return Opinion("", None)
    said = _VERDICT.findall(reply.content)
    return Opinion(said[-1] if said else "", reply.usage.cost_usd)


def _table(result: Result) -> str:
    lines = [" | ".join(result.columns)]
    lines += [" | ".join(shown(value) for value in row) for row in result.rows[:ROWS]]
    return "\n".join(line if len(line) <= LINE_CHARS else line[:LINE_CHARS] + "…" for line in lines)
