"""What goes with a verdict: speed, the judge, knowledge opened, limits, and that nothing is written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.databases import made
from support.endpoint import Endpoint, text

from okf_agent.config import ModelSection, Price
from okf_agent.engines import Server
from okf_agent.evaluation import results
from okf_agent.evaluation.gold import Gold
from okf_agent.evaluation.scorers import Options, bird, lenient, livesqlbench, score
from okf_agent.evaluation.scorers.knowledge import recall_and_precision, rules_of
from okf_agent.evaluation.scorers.model import Verdict
from okf_agent.evaluation.scorers.ties import keyed
from okf_agent.evaluation.suites import Task
from okf_agent.llm import Model
from okf_agent.sql.database import Database
from okf_compiler.settings import DatabaseSection

SHOP = Path(__file__).parents[3] / "bundles" / "compiled" / "shop"
TASK = Task("t", "scoring", "How many are there?")
SLOW = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    script = "CREATE TABLE n AS SELECT g AS id, g % 3 AS part FROM generate_series(1, 30) g"
    limits = DatabaseSection(statement_timeout_s=0.5)
    with made(postgres, "scoring", script) as params, Database(params, "scoring", limits) as opened:
        yield opened


def verdict(
    database: Database | None, sql: str | None, gold: Gold | None, options: Options | None = None, **record: Any
) -> Verdict:
    answer = None if sql is None else {"sql": sql, "answer": "…"}
    return score(TASK, gold, {"answer": answer, **record}, database, options or Options())


ONE = Gold("t", ("SELECT 1",), rules=(0, 2))


# --- The same verdict each time ---


def test_floats_are_added_up_in_one_order(postgres: Server) -> None:
    settings = ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size")
    script = "CREATE TABLE f AS SELECT sqrt(g)::real AS c FROM generate_series(1, 300000) g; ANALYZE f;"
    script += "".join(f"ALTER DATABASE steady SET {name} = 0;" for name in settings)
    script += "ALTER DATABASE steady SET max_parallel_workers_per_gather = 4;"
    sql = "SELECT avg(c), sum(c), stddev(c) FROM f"
    with made(postgres, "steady", script) as params, Database(params, "steady", DatabaseSection()) as plain:
        assert "Gather" in str(plain.run(f"EXPLAIN {sql}").rows)
        with plain.steady() as steady:
            assert "Gather" not in str(steady.run(f"EXPLAIN {sql}").rows)
            assert steady.run("SHOW synchronize_seqscans").rows == (("off",),)
            assert len({steady.run(sql).rows for _ in range(5)}) == 1
            assert verdict(steady, sql, Gold("t", (sql,))).strict is True


# --- What cannot be scored ---


def test_without_gold_a_run_is_unscored(database: Database) -> None:
    found = verdict(database, "SELECT 1", None)
    assert (found.strict, found.lenient, found.gold_error, found.reason) == (None, None, "", "no gold")


def test_without_content_a_run_is_unscored() -> None:
    found = verdict(None, "SELECT 1", ONE)
    assert (found.strict, found.gold_error) == (None, "")
    assert "no content" in found.reason


def test_declining_can_be_scored_without_content() -> None:
    assert verdict(None, "", Gold("t", (), answerable=False)).strict is True


def test_gold_that_could_not_be_read_is_reported(database: Database) -> None:
    found = verdict(database, "SELECT 1", Gold("t", (), error="sqlglot: no such thing"))
    assert (found.strict, found.gold_error) == (None, "sqlglot: no such thing")


def test_slow_queries_are_stopped(database: Database) -> None:
    slow = verdict(database, SLOW, ONE)
    assert slow.strict is False and "stopped after 0.5 s" in slow.reason
    assert "stopped after 0.5 s" in verdict(database, "SELECT 1", Gold("t", (SLOW,))).gold_error


def test_results_too_long_to_compare(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_ROWS", 10)
    assert "more than 10 rows" in verdict(database, "SELECT id FROM n", ONE).reason
    assert "more than 10 rows" in verdict(database, "SELECT 1", Gold("t", ("SELECT id FROM n",))).gold_error


def test_nothing_is_forgiven_in_long_results(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = Gold("t", ("SELECT id FROM n",))
    assert verdict(database, "SELECT id::text FROM n", gold).differences == ("number as text",)
    monkeypatch.setattr(lenient, "MOST_ROWS", 29)
    assert verdict(database, "SELECT id::text FROM n", gold).lenient is False
    assert verdict(database, "SELECT id FROM n", gold).lenient is True


@pytest.mark.parametrize("sql", ["DROP TABLE n", "INSERT INTO n VALUES (0, 0)", "SELECT 1; DROP TABLE n"])
def test_nothing_is_written(database: Database, sql: str) -> None:
    assert verdict(database, sql, ONE).reason.startswith("the query fails")
    assert verdict(database, "SELECT 1", Gold("t", (sql,))).gold_error
    assert database.run("SELECT count(*) FROM n").rows == (("30",),)


# --- Speed ---


@pytest.mark.parametrize(
    ("ratios", "step"),
    [
        ([2.0], 1.25), ([5.0, 3.0], 1.25), ([1.999], 1.0), ([1.0, 1.0], 1.0), ([0.999], 0.75), ([0.5], 0.75),
        ([0.49], 0.5), ([0.25], 0.5), ([0.24], 0.25), ([0.01], 0.25), ([1.0] * 30 + [500.0], 1.0),
    ],
)  # fmt: skip
def test_reward(ratios: list[float], step: float) -> None:
    assert bird.reward(ratios) == pytest.approx(math.sqrt(step))


def test_speed_is_measured_where_asked_for(database: Database) -> None:
    gold = Gold("t", ("SELECT count(*) FROM n",))
    options = Options("bird", repeats=3)
    assert verdict(database, "SELECT count(*) FROM n", gold).r_ves is None
    right = verdict(database, "SELECT count(id) FROM n", gold, options).r_ves
    assert right is not None and 0.25**0.5 <= right <= 1.25**0.5
    assert verdict(database, "SELECT 1", gold, options).r_ves == 0.0
    costly = "SELECT count(*) FROM n WHERE (SELECT count(*) FROM generate_series(1, 200000)) > 0"
    assert verdict(database, costly, gold, options).r_ves == 0.5


# --- The judge ---


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("MATCH", "MATCH"),
        ("The MATCH of rows fails.\nMISMATCH", "MISMATCH"),
        ("I cannot say.", None),
    ],
)
def test_judge(database: Database, said: str, heard: str | None) -> None:
    with Endpoint([text(said)]) as endpoint:
        prices = {"openai/judge": Price(input=1.0, output=10.0)}
        model = Model(ModelSection(name="openai/judge", api_base=endpoint.url, retries=0, prices=prices))
        found = verdict(database, "SELECT 2 AS two", ONE, Options(judge=model))
    assert (found.strict, found.judge) == (False, heard)
    assert found.judge_cost_usd == pytest.approx(100 * 1e-6 + 10 * 1e-5)
    asked = endpoint.requests[0]["messages"][0]["content"]
    for words in ("How many are there?", "SELECT 1", "SELECT 2 AS two", "two\n2"):
        assert words in asked


def test_judge_is_not_asked_of_a_query_that_fails(database: Database) -> None:
    with Endpoint([]) as endpoint:
        model = Model(ModelSection(name="openai/judge", api_base=endpoint.url, retries=0))
        assert verdict(database, "SELECT nope", ONE, Options(judge=model)).judge is None
    assert not endpoint.requests


# --- Knowledge ---


def test_rules_of_a_bundle() -> None:
    rules = rules_of(SHOP)
    assert rules["/knowledge/valid-order.md"] == "2"
    assert len(rules) == len(set(rules.values())) == len(list((SHOP / "knowledge").glob("*.md"))) - 1


@pytest.mark.parametrize(
    ("needed", "opened", "recall", "precision"),
    [
        ([2], ["/knowledge/valid-order.md"], 1.0, 1.0),
        ([2, 1], ["knowledge/valid-order"], 0.5, 1.0),
        ([2], ["/knowledge/valid-order.md", "/knowledge/order-state.md", "/tables/orders.md"], 1.0, 0.5),
        ([2], ["/tables/orders.md", "/index.md"], 0.0, None),
        ([2], [], 0.0, None),
        ([], ["/knowledge/valid-order.md"], None, None),
        (["/knowledge/valid-order.md"], ["/knowledge/valid-order.md"], 1.0, 1.0),
        ([9999], ["/knowledge/valid-order.md"], 0.0, 0.0),
    ],
)
def test_recall_and_precision(
    needed: list[int | str], opened: list[str], recall: float | None, precision: float | None
) -> None:
    assert recall_and_precision(needed, opened, SHOP) == (recall, precision)


@pytest.mark.parametrize(("mode", "recall"), [("bundle", 0.5), ("search", 0.5), ("pack", None), ("raw", None)])
def test_knowledge_counts_where_a_model_opens_files(database: Database, mode: str, recall: float | None) -> None:
    options = Options(bundle=SHOP)
    found = verdict(database, "SELECT 1", ONE, options, mode=mode, files_opened=["/knowledge/valid-order.md"])
    assert (found.strict, found.knowledge_recall) == (True, recall)


# --- Parts of the rules ---


@pytest.mark.parametrize(
    ("sql", "clean"),
    [
        ("SELECT DISTINCT a FROM t", "SELECT  a FROM t"),
        ("SELECT count(distinct a) FROM t", "SELECT count( a) FROM t"),
        ("SELECT DISTINCT ON (a) a FROM t", "SELECT DISTINCT ON (a) a FROM t"),
        ("SELECT DISTINCT a FROM t JOIN u ON a = b", "SELECT DISTINCT a FROM t JOIN u ON a = b"),
        ("SELECT ROUND (a, 2)", "SELECT a"),
        ("SELECT round(f(a, ')'), 2) + round(b)", "SELECT f(a, ')') + b"),
        ('SELECT "round(x)" FROM t', 'SELECT "round(x)" FROM t'),
        ("SELECT $$round(1)$$", "SELECT $$round(1)$$"),
        ("SELECT 1 -- round(2)\n+ 1", "SELECT 1  \n+ 1"),
        ("SELECT round(1", "SELECT round(1"),
        ("SELECT background(1)", "SELECT background(1)"),
    ],
)
def test_livesqlbench_cleans(sql: str, clean: str) -> None:
    assert livesqlbench.clean(sql) == clean


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT id FROM n ORDER BY part DESC, id LIMIT 2", [("2", "2"), ("2", "5")]),
        ("SELECT part + 1 AS p FROM n ORDER BY p LIMIT 1", [("1",)]),
        ("SELECT part, count(*) FROM n GROUP BY part ORDER BY 2 DESC, 1", [("10", "0")]),
        ("WITH t AS (SELECT * FROM n) SELECT id FROM t ORDER BY part", [("0",)]),
        ("SELECT id FROM n", None),
        ("SELECT DISTINCT part FROM n ORDER BY part", None),
        ("SELECT * FROM n ORDER BY part", None),
        ("SELECT id FROM n UNION SELECT 1 ORDER BY 1", None),
        ("SELECT id FROM n ORDER BY 7", None),
    ],
)
def test_sort_keys(database: Database, sql: str, keys: list[tuple[str, ...]] | None) -> None:
    found = keyed(database, sql)
    if keys is None:
        assert found is None
        return
    assert found is not None
    assert [tuple(f"{value}" for value in row) for row in found.keys[: len(keys)]] == keys
    assert len(found.rows) == len(found.keys) > len(keys)
