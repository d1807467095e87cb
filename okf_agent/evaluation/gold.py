"""Gold: answers, the rules they need and evidence hints. Nothing that a model is asked with imports this: only what
scores, reports and looks for leaks, and the runner for the hints of cells that ask for them.

Where a publisher keeps question and gold in one record, the suite's loader reads the question's fields and this
reads the gold's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from okf_agent.entries import Entry, read_entries
from okf_agent.evaluation.suites import defog, user
from okf_agent.evaluation.suites.model import Suite
from okf_compiler.errors import UserError


@dataclass(frozen=True)
class Gold:
    """The answer to one task."""

    task_id: str
    sql: tuple[str, ...]
    """Queries for PostgreSQL, any of which is right; empty for a question that cannot be answered."""
    rules: tuple[int | str, ...] = ()
    """Ids of the rules that the task needs, as the database's knowledge has them."""
    ordered: bool = False
    answerable: bool = True
    """False: the right answer is to decline, and to say what is missing."""
    hint: str = ""
    """Evidence that the benchmark gives with the question in its easier setting."""
    refusals: tuple[str, ...] = ()
    """Queries that the benchmark takes for declining: Defog's constants."""
    error: str = ""
    """Why the file's gold could not be turned into PostgreSQL."""


def load(suite: Suite) -> Mapping[str, Gold]:
    """The gold of every task that has some, by task id; {} for a suite that ships without.

    Raises:
        UserError: a line that is no gold, with file and line.
    """
    if suite.gold is None or not suite.gold.exists():
        return {}
    if suite.gold_format == "user":
        return {task_id: _user(entry, task_id) for task_id, entry in user.entries(suite.gold)}
    found: dict[str, Gold] = {}
    for entry in read_entries(suite.gold):
        try:
            for gold in READERS[suite.gold_format](entry):
                found[gold.task_id] = gold
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{entry.where}: not gold ({type(error).__name__}: {error}).") from None
    return found


def hints(suite: Suite) -> Mapping[str, str]:
    """The evidence of every task that has some, by task id: for cells with `hints`, never otherwise."""
    return {task_id: gold.hint for task_id, gold in load(suite).items() if gold.hint}


def _livesqlbench(entry: Entry) -> Iterator[Gold]:
    """An entry of the authors' answers, of the tasks file with them filled in, or of the shop's gold.jsonl.

    A task's statements run one after the other and the last one's rows count: a query task has one.
    """
    values = entry.values
    sql = _texts(values.get("sol_sql"))
    declined = bool(values.get("declined"))
    if not sql and not declined:
        return
    conditions = values.get("conditions") or {}
    yield Gold(
        task_id=entry.text("instance_id"),
        sql=sql[-1:],
        rules=tuple(values.get("external_knowledge") or ()),
        ordered=bool(values.get("order", conditions.get("order"))),
        answerable=not declined,
    )


def _texts(value: Any) -> tuple[str, ...]:
    """A text or a list of them."""
    return (value,) if isinstance(value, str) else tuple(str(each) for each in value or ())


def _defog(entry: Entry) -> Iterator[Gold]:
    task_id, query = entry.text("instance_id"), entry.text("query")
    if defog.is_answerable(entry):
        yield Gold(task_id, (query,), ordered=defog.is_ordered(entry))
    else:
        yield Gold(task_id, (), answerable=False, refusals=(query,))


def _bird(entry: Entry) -> Iterator[Gold]:
    from okf_agent.evaluation.transpile import to_postgres

    sql, error = to_postgres(entry.text("SQL"))
    evidence = entry.text("evidence", default="")
    yield Gold(entry.text("question_id"), (sql,) if sql else (), hint=evidence, error=error)


def _user(entry: Entry, task_id: str) -> Gold:
    values = entry.values
    return Gold(
        task_id=task_id,
        sql=_texts(next((values[key] for key in user.GOLD if values.get(key) is not None), None)),
        rules=tuple(values.get("rules") or ()),
        ordered=bool(values.get("ordered")),
        answerable=values.get("answerable") is not False,
        hint=entry.text(*user.HINTS, default=""),
    )


READERS: Mapping[str, Callable[[Entry], Iterator[Gold]]] = {
    "livesqlbench": _livesqlbench,
    "defog": _defog,
    "bird": _bird,
}
