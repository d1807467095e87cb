"""Public gold queries score as right against themselves, and changed ones as wrong.

What makes a changed query wrong is decided here by another way: other rows as a driver's own Python values, and for
Defog a value or a number of rows that no choice of columns can bring back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from support.folders import let_enter
from support.mutations import KINDS, mutations

from okf_agent.config import load_config
from okf_agent.engines import Server
from okf_agent.evaluation import gold, suites
from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.scorers import SCORERS, Options, score
from okf_agent.evaluation.scorers.model import Verdict
from okf_agent.evaluation.suites import Suite, Task, databases, pins
from okf_agent.loading import load
from okf_agent.sql.database import Database
from okf_compiler.documents import find_documents
from okf_compiler.settings import DatabaseSection

pytestmark = pytest.mark.slow
SEED = 240
WANTED = {"bird-superhero": 40, "defog": 40, "shop": 20}
"""Changed queries, a hundred together."""
TRIES = 400


@dataclass(frozen=True)
class Loaded:
    """A suite with its databases on the tests' server."""

    suite: Suite
    gold: Mapping[str, Gold]
    databases: Mapping[str, Database]
    admin: Mapping[str, Any]

    def score(self, task: Task, sql: str) -> Verdict:
        record = {"answer": {"sql": sql, "answer": "…"}}
        return score(task, self.gold[task.id], record, self.databases[task.database], Options(self.suite.scorer))

    def alternatives(self, task: Task) -> tuple[str, ...]:
        return SCORERS[self.suite.scorer].alternatives(self.gold[task.id])

    @property
    def answerable(self) -> list[Task]:
        return [task for task in self.suite.tasks if self.gold[task.id].answerable]


@pytest.fixture(scope="module")
def everything(
    postgres: Server, test_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Loaded]]:
    root = tmp_path_factory.mktemp("suites")
    let_enter(root)
    data = Path(__file__).parents[3] / "data"
    config = load_config(root, changes=[f"agent.raw_docs=[{test_data.as_posix()}, {data.as_posix()}]"])
    assert postgres.admin is not None
    with ExitStack() as stack:
        found = {}
        for name in WANTED:
            suite = suites.load(name, config)
            own = databases.configured(suite, config).settings
            opened = {}
            for each in suite.databases:
                load.load(postgres, each.name, find_documents(own, each.name).dump)
                opened[each.name] = stack.enter_context(Database(postgres.admin, each.name, DatabaseSection()))
            found[name] = Loaded(suite, gold.load(suite), opened, postgres.admin)
        yield found


@pytest.mark.parametrize(("name", "tasks"), [("bird-superhero", 129), ("defog", 252), ("shop", 26)])
def test_gold_is_right_against_itself(everything: dict[str, Loaded], name: str, tasks: int) -> None:
    loaded = everything[name]
    assert len(loaded.answerable) == tasks
    for task in loaded.answerable:
        for sql in loaded.alternatives(task)[:1] + loaded.alternatives(task)[1:][-1:]:
            verdict = loaded.score(task, sql)
            assert (verdict.strict, verdict.lenient, verdict.gold_error) == (True, True, ""), (task.id, sql, verdict)


@pytest.mark.parametrize("name", ["bird-superhero", "defog", "shop"])
def test_inputs_and_rows_are_as_pinned(everything: dict[str, Loaded], name: str) -> None:
    suite = everything[name].suite
    assert suite.pins and pins.differences(suite) == {}
    assert suite.row_counts.keys() == {each.name for each in suite.databases}
    for database in everything[name].databases.values():
        assert databases.check_rows(suite, database) == ()


@pytest.mark.parametrize("name", WANTED)
def test_changed_gold_is_wrong(everything: dict[str, Loaded], name: str) -> None:
    loaded = everything[name]
    random = Random(SEED)
    kinds: Counter[str] = Counter()
    for _ in range(TRIES):
        if kinds.total() == WANTED[name]:
            break
        task = random.choice(loaded.answerable)
        with psycopg.connect(**{**loaded.admin, "dbname": task.database}) as connection:
            connection.read_only = True
            right = [rows for sql in loaded.alternatives(task) if (rows := _rows(connection, sql)) is not None]
            for kind, sql in mutations(random.choice(loaded.alternatives(task)), random):
                rows = _rows(connection, sql)
                ordered = loaded.gold[task.id].ordered
                if rows is None or not all(DIFFER[loaded.suite.scorer](each, rows, ordered) for each in right):
                    continue
                verdict = loaded.score(task, sql)
                assert verdict.strict is False, (task.id, kind, sql, verdict)
                assert verdict.reason
                kinds[kind] += 1
                break
    assert kinds.total() == WANTED[name]
    assert len(kinds) >= len(KINDS) - 3, kinds


Rows = list[tuple[Any, ...]]


def _rows(connection: psycopg.Connection[Any], sql: str) -> Rows | None:
    """The rows as the driver has them; None where the query fails."""
    try:
        with connection.transaction():
            return connection.execute(sql.encode()).fetchall()
    except psycopg.Error:
        return None


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _other_set(gold: Rows, rows: Rows, _ordered: bool) -> bool:
    """BIRD: other sets of rows."""
    return {tuple(map(_plain, row)) for row in gold} != {tuple(map(_plain, row)) for row in rows}


def _other_bag(gold: Rows, rows: Rows, ordered: bool) -> bool:
    """Ours: other rows, or another order where one is asked for."""
    return (
        gold != rows
        if ordered
        else Counter(map(repr, gold)) != Counter(map(repr, rows)) and _other_set(gold, rows, False)
    )


def _nothing_like(gold: Rows, rows: Rows, _ordered: bool) -> bool:
    """Defog: gold has a value that is nowhere near in the other rows, or other numbers of rows by any count."""
    return bool(_values(gold) - _values(rows)) or (len(gold) != len(rows) and len(set(gold)) != len(set(rows)))


def _values(rows: Rows) -> set[str]:
    return {f"{float(v):.4g}" if isinstance(v, int | float | Decimal) else repr(v) for row in rows for v in row}


DIFFER = {"bird": _other_set, "rows": _other_bag, "defog": _nothing_like}
