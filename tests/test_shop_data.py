"""The demo shop: its files fit each other, its answers run, and a reader who skips the rules goes wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from okf_agent.engines import Server
from okf_compiler.documents import find_documents
from okf_compiler.model import Database
from okf_compiler.readers import livesqlbench
from okf_compiler.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent
SHOP = ROOT / "data" / "shop"
INVALID_ORDERS = "(SELECT * FROM orders WHERE is_test OR order_state IN ('draft', 'cancelled')) o"


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


TASKS = read_lines(SHOP / "tasks.jsonl")
GOLD = {gold["instance_id"]: gold for gold in read_lines(SHOP / "gold.jsonl")}
RULES = {rule["id"]: rule for rule in read_lines(SHOP / "shop_kb.jsonl")}
NAIVE = {naive["instance_id"]: naive for naive in read_lines(ROOT / "tests" / "data" / "shop_naive.jsonl")}
"""What someone writes who knows the schema but not the rules, and the trap that makes it wrong."""
ANSWERABLE = [task["instance_id"] for task in TASKS if not GOLD[task["instance_id"]]["declined"]]


@pytest.fixture(scope="module")
def documents() -> Database:
    return livesqlbench.read(find_documents(load_settings(ROOT, {}), "shop"))


@pytest.fixture(scope="module")
def shop(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    """The dump, loaded into a database of its own."""
    assert postgres.admin is not None
    name = "shop_data_test"
    with psycopg.connect(**postgres.admin, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(**postgres.admin, dbname=name, autocommit=True) as connection:
            connection.execute((SHOP / "shop.sql").read_bytes())
            yield connection
        admin.execute(f"DROP DATABASE {name}")


def rows(connection: psycopg.Connection[Any], sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.encode()).fetchall()


def test_generator_writes_the_committed_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SHOP / "make.py"), str(tmp_path)], check=True)
    for name in ("shop.sql", "shop_schema.txt"):
        assert (tmp_path / name).read_bytes() == (SHOP / name).read_bytes(), f"run data/shop/make.py: {name} differs"


def test_documents_are_whole(documents: Database) -> None:
    assert documents.problems == ()
    assert len(documents.tables) == 12
    assert len(documents.rules) == len(RULES) == 50
    without = [(t.name, c.name) for t in documents.tables for c in t.columns if not c.meaning]
    assert without == [("customers", "referred_by")]  # on purpose: real documents have gaps, and a report names them


def test_every_meaning_has_its_column(documents: Database) -> None:
    columns = {f"shop|{table.name}|{column.name}" for table in documents.tables for column in table.columns}
    meanings = json.loads((SHOP / "shop_column_meaning_base.json").read_text(encoding="utf-8"))
    assert set(meanings) <= columns


def test_rules() -> None:
    assert list(RULES) == list(range(len(RULES)))
    assert len({rule["knowledge"] for rule in RULES.values()}) == len(RULES)
    kinds = Counter(rule["type"] for rule in RULES.values())
    assert set(kinds) == {"calculation_knowledge", "domain_knowledge", "value_illustration"}
    assert min(kinds.values()) >= 8
    for rule in RULES.values():
        children = rule["children_knowledge"]
        assert children == -1 or (children and all(child < rule["id"] for child in children)), rule


def test_tasks_and_gold_belong_together() -> None:
    assert [task["instance_id"] for task in TASKS] == [f"shop_{n}" for n in range(1, 31)] == list(GOLD)
    assert Counter(task["difficulty_tier"] for task in TASKS) == {"Simple": 11, "Moderate": 10, "Challenging": 9}
    assert len(ANSWERABLE) == 26
    fields = ["instance_id", "selected_database", "query", "category", "high_level", "conditions", "difficulty_tier"]
    for task in TASKS:
        gold = GOLD[task["instance_id"]]
        assert list(task) == fields
        assert task["selected_database"] == "shop"
        assert task["conditions"]["order"] == gold["order"]
        if gold["declined"]:
            assert gold["sol_sql"] == [] and gold["reason"]


def test_gold_names_every_rule_it_rests_on() -> None:
    for gold in GOLD.values():
        named = set(gold["external_knowledge"])
        assert named <= set(RULES)
        assert bool(named) != gold["declined"]
        for rule in named:
            children = RULES[rule]["children_knowledge"]
            assert children == -1 or set(children) <= named, (gold["instance_id"], rule)


def test_nothing_depends_on_the_day_of_asking() -> None:
    texts = [task["query"] for task in TASKS] + [sql for gold in GOLD.values() for sql in gold["sol_sql"]]
    texts += [rule["definition"] for rule in RULES.values()]
    moving = re.compile(
        r"\b(today|now|current_\w+|yesterday|(this|last|current) (day|week|month|quarter|year))\b", re.I
    )
    assert [text for text in texts if moving.search(text)] == []


def test_dump_has_the_documented_columns(documents: Database, shop: psycopg.Connection[Any]) -> None:
    listed = rows(
        shop,
        "SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY table_name, ordinal_position",
    )
    assert listed == [(t.name, c.name, c.type, c.nullable) for t in documents.tables for c in t.columns]
    keys = rows(shop, "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated")
    assert keys == [(sum(len(table.foreign_keys) for table in documents.tables),)]


@pytest.mark.parametrize(
    ("what", "sql"),
    [
        ("order without a line", "orders o LEFT JOIN order_items i USING (order_id) WHERE i.line_no IS NULL"),
        ("product name used twice", "products GROUP BY product_name HAVING COUNT(*) > 1"),
        ("order after the reporting date", "orders WHERE placed_at >= '2025-07-01'"),
        ("order before the account", "orders JOIN customers USING (customer_id) WHERE placed_at < signup_date"),
        ("parcel delivered before it left", "shipments WHERE delivered_at < shipped_at"),
        ("reserved stock that is not there", "stock_levels WHERE reserved + damaged > on_hand"),
        (
            "more back than was bought",
            "returns r JOIN order_items i USING (order_id, line_no) WHERE r.quantity > i.quantity",
        ),
        # With any of these, two readings of a rule would differ, and a question would be ambiguous.
        (
            "capture for an invalid order",
            f"payments p JOIN {INVALID_ORDERS} USING (order_id) WHERE p.state = 'captured'",
        ),
        ("parcel of an invalid order", f"shipments JOIN {INVALID_ORDERS} USING (order_id)"),
        ("return from an invalid order", f"returns JOIN {INVALID_ORDERS} USING (order_id)"),
    ],
)
def test_rows_hold_no(what: str, sql: str, shop: psycopg.Connection[Any]) -> None:
    assert rows(shop, f"SELECT 1 FROM {sql}") == [], what


@pytest.mark.parametrize("task", ANSWERABLE)
def test_gold_answers(task: str, shop: psycopg.Connection[Any]) -> None:
    (sql,) = GOLD[task]["sol_sql"]
    answer = rows(shop, sql)
    assert answer
    assert all(value is not None for row in answer for value in row)
    assert answer != [(0,)]


@pytest.mark.parametrize("task", ANSWERABLE)
def test_who_skips_the_rules_goes_wrong(task: str, shop: psycopg.Connection[Any]) -> None:
    (sql,) = GOLD[task]["sol_sql"]
    right, naive = rows(shop, sql), rows(shop, NAIVE[task]["sql"])
    assert naive, "the trap must run"
    assert Counter(naive) != Counter(right), NAIVE[task]["trap"]


@pytest.mark.parametrize(
    ("task", "answer", "naive"),
    [
        ("shop_1", 52, 207),  # the README's question
        ("shop_2", 738, 816),
        ("shop_3", 150, 60),
        ("shop_4", 47, 100),
        ("shop_11", 75, 81),
    ],
)
def test_known_answers(task: str, answer: int, naive: int, shop: psycopg.Connection[Any]) -> None:
    (sql,) = GOLD[task]["sol_sql"]
    assert rows(shop, sql) == [(answer,)]
    assert rows(shop, NAIVE[task]["sql"]) == [(naive,)]
