"""Questions that cannot be answered: right is to decline, and to say what is missing.

Strict: the run handed in no SQL and a text, or the very query that the benchmark takes for a refusal (Defog's
`SELECT 'I do not know' AS answer`). Lenient: also any query that reads no table and gives texts only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.scorers.model import Verdict
from okf_agent.evaluation.sql_shape import select_of


def answered_sql(record: Mapping[str, Any]) -> str | None:
    """The SQL a run handed in, "" where it declined; None where it gave no answer at all."""
    answer = record.get("answer")
    if not isinstance(answer, Mapping):
        return None
    return str(answer.get("sql") or "").strip()


def score(gold: Gold, record: Mapping[str, Any]) -> Verdict:
    """The verdict on a run whose question cannot be answered."""
    sql = answered_sql(record)
    if sql is None:
        reason = "no answer: declining is one, and says what is missing"
        return Verdict(False, False, reason=reason)
    if not sql or _plain(sql) in map(_plain, gold.refusals):
        return Verdict(True, True)
    if _is_constant(sql):
        reason = "a query that reads no table, in the place of declining"
        return Verdict(False, True, reason=reason, differences=("declined by a constant",))
    return Verdict(False, False, reason="answered a question that cannot be answered")


def _plain(sql: str) -> str:
    return " ".join(sql.rstrip("; \n").split()).casefold()


def _is_constant(sql: str) -> bool:
    """Whether a query is one SELECT of texts, without a table."""
    query = select_of(sql)
    if query is None or query.find(exp.Table):
        return False
    return all(isinstance(each.unalias(), exp.Literal) and each.unalias().is_string for each in query.selects)
