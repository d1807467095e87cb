"""One run against its gold: the strict verdict, the lenient one, and what goes with them. Read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from okf_agent.cell import opens_files
from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.results import Result, fetch, seconds
from okf_agent.evaluation.scorers import bird, defog, judge, knowledge, livesqlbench, refusal, rows, ties
from okf_agent.evaluation.scorers.lenient import forgive
from okf_agent.evaluation.scorers.model import Difference, Scorer, Verdict
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_agent.tasks import Task

if TYPE_CHECKING:
    from okf_agent.llm import Model

SCORERS: Mapping[str, Scorer] = {
    "rows": rows.SCORER,
    "bird": bird.SCORER,
    "livesqlbench": livesqlbench.SCORER,
    "defog": defog.SCORER,
}
UNSCORED = "no gold"


@dataclass(frozen=True)
class Options:
    """How runs of one suite are scored."""

    scorer: str = "rows"
    """A name in SCORERS; a suite says which."""
    repeats: int = 0
    """Runs of each right query and its gold for R-VES (BIRD takes 100); 0: speed is not measured."""
    judge: Model | None = None
    """A model that is asked for its opinion as well."""
    bundle: Path | None = None
    """The bundle that the run read, for knowledge recall; None: not looked at."""


@dataclass(frozen=True)
class _Reference:
    """A gold query that ran."""

    sql: str
    """As written."""
    strict: Result
    """Its rows as the strict rule has it run."""
    plain: Result
    cleaned: bool
    """Whether it ran as the strict rule cleans it."""


def score(
    task: Task, gold: Gold | None, record: Mapping[str, Any], database: Database | None, options: Options
) -> Verdict:
    """The verdict on one run; `record` is its line of runs.jsonl.

    `strict` is None where it cannot be scored: there is no gold, gold fails, or the database has no content.

    Raises:
        UserError: the judge's model cannot be called.
    """
    if gold is None:
        return Verdict(None, None, reason=UNSCORED)
    recall, precision = _knowledge(gold, record, options)
    verdict = _verdict(task, gold, record, database, options)
    return replace(verdict, knowledge_recall=recall, knowledge_precision=precision)


def _knowledge(gold: Gold, record: Mapping[str, Any], options: Options) -> tuple[float | None, float | None]:
    """Only of modes whose model opens files: in the others knowledge comes without being opened."""
    if options.bundle is None or not gold.rules or not opens_files(record.get("mode")):
        return None, None
    return knowledge.recall_and_precision(gold.rules, record.get("files_opened") or (), options.bundle)


def _verdict(task: Task, gold: Gold, record: Mapping[str, Any], database: Database | None, options: Options) -> Verdict:
    if not gold.answerable:
        return refusal.score(gold, record)
    if gold.error:
        return Verdict(None, None, gold_error=gold.error)
    if database is None:
        return Verdict(None, None, reason="the database has no content: nothing was run")
    sql = refusal.answered_sql(record)
    references, error = _references(database, gold, SCORERS[options.scorer])
    if not references:
        return Verdict(None, None, gold_error=error)
    if not sql:
        reason = "no answer" if sql is None else "declined a question that can be answered"
        return Verdict(False, False, soft_f1=0.0, reason=reason)
    return _compare(task, gold, sql, references, database, options)


def _references(database: Database, gold: Gold, scorer: Scorer) -> tuple[list[_Reference], str]:
    """The gold queries that run (one is enough), and the error of the last that failed."""
    found: list[_Reference] = []
    error = "gold has no query"
    for sql in scorer.alternatives(gold):
        try:
            plain = fetch(database, sql)
        except QueryError as failed:
            error = str(failed).splitlines()[0]
            continue
        clean = scorer.clean(sql)
        strict = plain if clean == sql else _tried(database, clean)
        found.append(_Reference(sql, strict or plain, plain, strict is not None))
    return found, error


def _tried(database: Database, sql: str) -> Result | None:
    try:
        return fetch(database, sql)
    except QueryError:
        return None


def _compare(
    task: Task, gold: Gold, sql: str, references: Sequence[_Reference], database: Database, options: Options
) -> Verdict:
    """The verdict on a query, against the gold queries that ran: the first by which it is right."""
    scorer = SCORERS[options.scorer]
    try:
        plain = fetch(database, sql)
    except QueryError as error:
        return Verdict(False, False, soft_f1=0.0, reason=f"the query fails: {str(error).splitlines()[0]}")
    ordered = gold.ordered or task.ordered
    clean = scorer.clean(sql)
    cleaned = plain if clean == sql else _tried(database, clean)
    reasons = []
    for reference in references:
        predicted = cleaned if reference.cleaned else plain
        reasons.append(
            scorer.same(reference.strict, predicted, ordered)
            if predicted
            else "the query fails as the benchmark rewrites it before it compares"
        )
    right = "" in reasons
    best = references[reasons.index("")] if right else references[0]
    forgiven = () if right else _forgiven(database, references, plain, ordered)
    verdict = Verdict(
        strict=right,
        lenient=forgiven is not None,
        soft_f1=max(bird.soft_f1(reference.plain, plain) for reference in references),
        reason="" if right else reasons[0],
        differences=forgiven or (),
    )
    if options.repeats:
        verdict = replace(verdict, r_ves=_speed(database, best.sql, sql, options.repeats) if right else 0.0)
    return _judged(verdict, task, best, judge.Side(sql, plain), options.judge)


def _judged(verdict: Verdict, task: Task, reference: _Reference, predicted: judge.Side, model: Model | None) -> Verdict:
    """The verdict with a model's opinion, where one is to be asked."""
    if model is None:
        return verdict
    opinion = judge.ask(model, task.question, judge.Side(reference.sql, reference.plain), predicted)
    return replace(verdict, judge=opinion.verdict or None, judge_cost_usd=opinion.cost_usd)


def _forgiven(
    database: Database, references: Sequence[_Reference], predicted: Result, ordered: bool
) -> tuple[Difference, ...] | None:
    """What the lenient rule forgives; ties are looked at only where nothing else explains the difference."""
    for reference in references:
        found = forgive(reference.plain, predicted, ordered)
        if found is not None:
            return found
    for reference in references:
        if len(reference.plain.rows) == len(predicted.rows) and (keyed := ties.keyed(database, reference.sql)):
            found = forgive(reference.plain, predicted, ordered, keyed)
            if found is not None:
                return found
    return None


def _speed(database: Database, gold: str, sql: str, repeats: int) -> float | None:
    """The reward of a right query; None where one of the runs failed."""
    try:
        return bird.measure(lambda: seconds(database, gold), lambda: seconds(database, sql), repeats)
    except QueryError:
        return None
