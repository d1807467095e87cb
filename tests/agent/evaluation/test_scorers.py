"""Scorers against verdicts written by hand from each benchmark's rule, over a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.databases import made

from okf_agent.engines import Server
from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.scorers import Options, score
from okf_agent.evaluation.scorers.model import Verdict
from okf_agent.evaluation.suites import Task
from okf_agent.sql.database import Database
from okf_compiler.settings import DatabaseSection

FIXTURES = Path(__file__).parent / "fixtures"
PAIRS = [
    (scorer, pair)
    for scorer, pairs in yaml.safe_load((FIXTURES / "pairs.yaml").read_text(encoding="utf-8")).items()
    for pair in pairs
]
TABLES = """
CREATE TABLE score (id int PRIMARY KEY, name text, points int);
INSERT INTO score VALUES (1, 'ann', 10), (2, 'bob', 10), (3, 'cid', 7), (4, 'dee', 7), (5, 'eve', 3);
CREATE TABLE twice (name text);
INSERT INTO twice VALUES ('ann'), ('ann'), ('bob');
"""


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    with made(postgres, "scorers", TABLES) as params, Database(params, "scorers", DatabaseSection()) as opened:
        yield opened


def judged(database: Database, pair: dict[str, Any], options: Options) -> Verdict:
    ordered = pair.get("ordered", False)
    refusal = pair.get("refusal")
    gold = Gold("t", (pair["gold"],) if "gold" in pair else (), ordered=ordered, answerable=refusal is None,
                refusals=(refusal,) if refusal else ())  # fmt: skip
    record = {"answer": None if pair["sql"] is None else {"sql": pair["sql"], "answer": "…"}}
    return score(Task("t", "scorers", "?", ordered=ordered), gold, record, database, options)


@pytest.mark.parametrize(("scorer", "pair"), PAIRS, ids=[f"{scorer}: {pair['shows']}" for scorer, pair in PAIRS])
def test_pair(database: Database, scorer: str, pair: dict[str, Any]) -> None:
    verdict = judged(database, pair, Options(scorer))
    assert (verdict.strict, verdict.lenient) == (pair["strict"], pair["lenient"]), verdict
    assert bool(verdict.gold_error) == (pair["strict"] is None)
    assert bool(verdict.reason) == (pair["strict"] is False)
    assert pair.get("reason", "") in verdict.reason
    assert list(verdict.differences) == pair.get("differences", [])
    if "soft_f1" in pair:
        assert verdict.soft_f1 == pytest.approx(pair["soft_f1"], abs=1e-6)


def test_the_table_is_long_enough() -> None:
    assert len(PAIRS) >= 120
    assert {scorer for scorer, _ in PAIRS} == {"rows", "bird", "livesqlbench", "defog"}
