"""(gold, answer, record) -> class, by hand. Where two classes would fit, the order of misses.RULES decides."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlglot
from sqlglot import exp

from okf_agent.evaluation.case import Case
from okf_agent.evaluation.misses import FORGIVEN, KINDS, classify
from okf_agent.evaluation.navigation import Needed, navigate, needed_concepts
from okf_agent.evaluation.scorers.model import Difference
from okf_compiler.bundle import Bundle, Concept

COUNT = "SELECT count(*) FROM orders"
ACTIVE = (
    "SELECT COUNT(DISTINCT o.customer_id) FROM orders o WHERE o.is_test = false "
    "AND o.state NOT IN ('draft', 'cancelled') AND o.placed_at >= '2025-04-01'"
)
REVENUE = "SELECT c.region, SUM(i.qty * i.price) AS revenue FROM orders o JOIN items i ON i.order_id = o.id JOIN customers c ON c.id = o.customer_id GROUP BY c.region ORDER BY revenue DESC LIMIT 5"  # noqa: E501
SQI = "SELECT AVG(snr - 0.1 * ABS(noise)) FROM signals WHERE snr > 0"
TABLE, VALUE, GRAIN, FORMULA, OUTPUT = (
    "wrong table or column",
    "wrong value",
    "wrong grain or join",
    "formula differs",
    "wrong output columns",
)

QUERIES = [
    # gold, answer, class, a piece of the evidence
    (COUNT, "SELECT count(*) FROM customers", TABLE, "customers instead"),
    (COUNT, "SELECT 42", TABLE, "no table instead"),
    (COUNT, "SELECT count(*) FROM sales.order_items oi", TABLE, "order_items"),
    ("SELECT sum(net) FROM orders", "SELECT sum(gross) FROM orders", TABLE, "orders.net, the answer uses orders.gross"),
    ("SELECT count(*) FROM c WHERE status = 'a'", "SELECT count(*) FROM c WHERE state = 'a'", TABLE, "c.status"),
    ("SELECT region, count(*) FROM c GROUP BY 1", "SELECT country, count(*) FROM c GROUP BY 1", TABLE, "c.country"),
    ("SELECT avg((d->'a'->>'x')::numeric) FROM s", "SELECT avg((d->'a'->>'y')::numeric) FROM s", TABLE, "s.d->a->y"),
    (
        "WITH v AS (SELECT id, net FROM orders) SELECT sum(net) FROM v",
        "WITH v AS (SELECT id, gross FROM orders) SELECT sum(gross) FROM v",
        TABLE,
        "net, the answer uses gross",
    ),
    (COUNT + " WHERE state = 'paid'", COUNT + " WHERE state = 'Paid'", VALUE, "'Paid'"),
    (COUNT + " WHERE state IN ('a', 'b')", COUNT + " WHERE state IN ('a', 'b', 'c')", VALUE, "'c'"),
    (COUNT + " WHERE state IN ('a', 'b')", COUNT + " WHERE state = 'a'", VALUE, "orders.state"),
    (COUNT + " WHERE total > 100", COUNT + " WHERE total > 1000", VALUE, "1000"),
    (COUNT + " WHERE total > 100", COUNT + " WHERE 50 < total", VALUE, "50"),
    (COUNT + " WHERE state = 'paid'", COUNT + " WHERE state ILIKE '%paid%'", VALUE, "%paid%"),
    (COUNT + " WHERE lower(trim(land)) IN ('de', 'germany')", COUNT + " WHERE land = 'Germany'", VALUE, "'Germany'"),
    (COUNT + " WHERE is_test = false", COUNT + " WHERE is_test", VALUE, "orders.is_test"),
    (
        COUNT + " WHERE d BETWEEN '2025-01-01' AND '2025-02-01'",
        COUNT + " WHERE d BETWEEN '2025-01-01' AND '2025-03-01'",
        VALUE,
        "2025-03-01",
    ),
    (ACTIVE, ACTIVE.replace("2025-04-01", "2025-06-30"), VALUE, "2025-06-30"),
    (ACTIVE, ACTIVE.replace("DISTINCT ", ""), GRAIN, "count(DISTINCT orders.customer_id)"),
    ("SELECT a, avg(b), sum(c) FROM t GROUP BY a", "SELECT a, avg(b) FROM t GROUP BY a", OUTPUT, "sum(t.c)"),
    (
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM t)",
        "SELECT a FROM t WHERE b > (SELECT sum(b) FROM t)",
        FORMULA,
        "avg",
    ),
    (COUNT, "SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id", GRAIN, "items"),
    (
        "SELECT count(*) FROM orders o LEFT JOIN items i ON i.order_id = o.id",
        "SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id",
        GRAIN,
        "outer",
    ),
    ("SELECT count(*) FROM a JOIN b ON b.a_id = a.id", "SELECT count(*) FROM a JOIN b ON b.id = a.id", GRAIN, "b.a_id"),
    (REVENUE, REVENUE.replace("GROUP BY c.region", "GROUP BY c.region, c.id"), GRAIN, "customers.id"),
    ("SELECT a, b, sum(x) FROM t GROUP BY a, b", "SELECT a, sum(x) FROM t GROUP BY a", GRAIN, "t.b"),
    ("SELECT name FROM t", "SELECT DISTINCT name FROM t", GRAIN, "distinct"),
    (ACTIVE, ACTIVE.replace("o.is_test = false AND ", ""), FORMULA, "orders.is_test = false"),
    (COUNT + " WHERE total > 100", COUNT + " WHERE total >= 100", FORMULA, ">= 100"),
    (COUNT, COUNT + " WHERE state = 'paid'", FORMULA, "only the answer has the condition"),
    (SQI, SQI.replace("0.1", "0.2"), FORMULA, "0.2"),
    (SQI, "SELECT AVG(snr) FROM signals WHERE snr > 0", FORMULA, "avg(signals.snr)"),
    (SQI, SQI.replace("AVG", "SUM"), FORMULA, "sum("),
    ("SELECT sum(a) / count(*) FROM t", "SELECT sum(a) / count(b) FROM t", FORMULA, "count(t.b)"),
    ("SELECT count(*) FROM t WHERE x IS NULL", "SELECT count(*) FROM t WHERE NOT x IS NULL", FORMULA, "not is"),
    (
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t",
        "SELECT CASE WHEN a > 1 THEN 'x' END FROM t",
        FORMULA,
        "CASE",
    ),
    (REVENUE, REVENUE.replace("SELECT c.region, ", "SELECT "), OUTPUT, "customers.region"),
    ("SELECT id FROM t", "SELECT id, name FROM t", OUTPUT, "t.name"),
    ("SELECT name FROM t", "SELECT id FROM t", OUTPUT, "t.id"),
    ("SELECT a, b FROM t", "SELECT b, a FROM t", OUTPUT, "t.b, t.a"),
    (REVENUE, REVENUE.replace(" DESC", ""), "order", "desc"),
    (REVENUE, REVENUE.replace("LIMIT 5", "LIMIT 10"), "order", "10"),
    ("SELECT id FROM t ORDER BY a", "SELECT id FROM t", "order", "nothing"),
    (COUNT, "SELECT COUNT(*)::int AS n FROM public.orders AS x", FORMULA, "show no difference"),
    (COUNT, "SELECT count(* FROM orders", FORMULA, "cannot be parsed"),
]


def record(sql: str = "", **changes: Any) -> dict[str, Any]:
    answer = {"sql": sql, "answer": "It is so.", "rows_total": 1, "checked": "ran" if sql else "not_run"}
    base = {"mode": "pack", "stop_reason": "submitted" if sql else "declined", "error": "", "answer": answer}
    return {**base, "files_opened": [], "failed_reads": 0, **changes}


@pytest.mark.parametrize(("gold", "given", "kind", "evidence"), QUERIES)
def test_two_queries(gold: str, given: str, kind: str, evidence: str) -> None:
    miss = classify(Case(record(given), (gold,)))
    assert miss.kind == kind, miss
    assert evidence in miss.evidence


FAILED = {"sql": "SELECT nope", "answer": "", "rows_total": None, "checked": "error"}
RULES = ("/knowledge/active-customer.md", "/knowledge/valid-order.md")
RUNS = [
    # record, other facts of the case, class, a piece of the evidence
    (record(answer=FAILED), {"reason": "column nope does not exist"}, "error", "nope does not exist"),
    (record(COUNT), {"reason": "the query fails: no column x"}, "error", "no column x"),
    (record(COUNT), {"lenient": True, "differences": ("number as text",)}, VALUE, "number as text"),
    (record(COUNT), {"lenient": True, "differences": ("date as text", "column order")}, OUTPUT, "date as text"),
    (record(answer=None, stop_reason="error", error="the provider said no"), {}, "error", "the provider said no"),
    (record(answer=None, stop_reason="interrupted"), {}, "error", "interrupted"),
    (record(answer=None, stop_reason="step_limit"), {}, "gave up", "step_limit"),
    (record(stop_reason="no_tool_calls"), {}, "gave up", "no_tool_calls"),
    (record(stop_reason="cost_limit"), {"answerable": False}, "gave up", "cost_limit"),
    (record(), {}, "wrongly declined", "It is so."),
    (record(COUNT), {"answerable": False}, "wrongly answered", "cannot be answered"),
    (record("SELECT 1", stop_reason="step_limit"), {}, TABLE, "no table"),
    (record(COUNT, mode="bundle", files_opened=[RULES[0]]), {"rules": RULES}, "knowledge not opened", RULES[1]),
    (record("SELECT 1", mode="search"), {"rules": RULES}, "knowledge not opened", RULES[0]),
    (record("SELECT 1", mode="bundle", files_opened=[*RULES]), {"rules": RULES}, TABLE, "no table"),
    (record("SELECT 1", mode="pack"), {"rules": RULES}, TABLE, "no table"),
    (record(COUNT, mode="bundle"), {"rules": RULES, "lenient": True, "differences": ("ties",)}, "order", "ties"),
    (record(COUNT), {"lenient": True, "differences": ("extra columns",)}, OUTPUT, "extra columns"),
    (record(COUNT), {"lenient": True, "differences": ("column order",)}, OUTPUT, "column order"),
    (record(COUNT), {"lenient": True, "differences": ("letter case",)}, VALUE, "letter case"),
    (record(COUNT), {"lenient": True, "differences": ("last digit",)}, FORMULA, "last digit"),
    (record(COUNT), {"lenient": True, "differences": ("ties",)}, "order", "ties"),
]


@pytest.mark.parametrize(("line", "facts", "kind", "evidence"), RUNS)
def test_a_run(line: dict[str, Any], facts: dict[str, Any], kind: str, evidence: str) -> None:
    miss = classify(Case(line, (ACTIVE,), **facts))
    assert miss.kind == kind, miss
    assert evidence in miss.evidence


def test_everything_that_is_forgiven_has_a_class() -> None:
    assert set(FORGIVEN) == set(get_args(Difference))
    assert set(FORGIVEN.values()) <= set(KINDS)


def test_every_class_is_tried() -> None:
    assert {kind for *_, kind, _ in (*QUERIES, *RUNS)} == set(KINDS)
    assert len(QUERIES) + len(RUNS) >= 40


def mutated(sql: str) -> Iterator[tuple[str, str]]:
    """(class, query) of queries that differ from a query in one way."""
    for kind, cls, change in MUTATIONS:
        tree = sqlglot.parse_one(sql, read="postgres")
        if any(change(node) for node in [*tree.find_all(cls)]):
            yield kind, tree.sql("postgres")


def _other_text(node: exp.Expression) -> bool:
    constant = node.args["expression"]
    if not (isinstance(constant, exp.Literal) and constant.is_string):
        return False
    constant.set("this", constant.this + "x")
    return True


def _other_operator(node: exp.Expression) -> bool:
    node.replace(exp.GTE(this=node.this, expression=node.args["expression"]))
    return True


def _other_aggregate(node: exp.Expression) -> bool:
    node.replace(exp.Sum(this=node.this))
    return True


def _other_direction(node: exp.Expression) -> bool:
    node.set("desc", not node.args.get("desc"))
    return not node.find_ancestor(exp.Window)


MUTATIONS = (
    (VALUE, exp.EQ, _other_text),
    (FORMULA, exp.GT, _other_operator),
    (FORMULA, exp.Avg, _other_aggregate),
    ("order", exp.Ordered, _other_direction),
)


def test_real_gold_queries_changed_in_one_way(test_data: Path) -> None:
    tasks = json.loads((test_data / "bird-superhero" / "questions.json").read_text(encoding="utf-8"))
    golds = [sqlglot.transpile(task["SQL"], read="sqlite", write="postgres")[0] for task in tasks]
    found = [(kind, classify(Case(record(sql), (gold,)))) for gold in golds for kind, sql in mutated(gold)]
    assert len(golds) == 129 and len(found) > 120
    assert [(kind, miss) for kind, miss in found if miss.kind != kind] == []
    same = [
        classify(Case(record(sqlglot.transpile(gold, "postgres", "postgres", pretty=True)[0]), (gold,)))
        for gold in golds
    ]
    assert all("show no difference" in miss.evidence for miss in same)


def test_the_nearest_gold_query_counts() -> None:
    near, far = COUNT + " WHERE state = 'paid'", "SELECT sum(x) FROM elsewhere"
    for gold in ((near, far), (far, near)):
        assert classify(Case(record(COUNT + " WHERE state = 'PAID'"), gold)).kind == VALUE


def bundle() -> Bundle:
    titles = {"knowledge/active-customer": "rule 3", "knowledge/valid-order": "rule 2", "knowledge/other": "rule 33"}
    concepts = {
        **{id: Concept(id, {"sources": [{"id": "kb", "title": f"Rules, {t}"}]}, "") for id, t in titles.items()},
        "tables/orders": Concept(
            "tables/orders", {"type": "PostgreSQL Table", "sources": [{"id": "schema", "title": "Schema"}]}, ""
        ),
        "tables/sales.items": Concept("tables/sales.items", {"type": "PostgreSQL Table"}, ""),
    }
    return Bundle(root=None, concepts=concepts)  # type: ignore[arg-type]


def test_what_a_task_needs() -> None:
    assert needed_concepts(
        bundle(), (3, "2", 99), ("SELECT (", "SELECT 1 FROM orders JOIN sales.items USING (id)")
    ) == Needed(RULES, ("/tables/sales.items.md", "/tables/orders.md"))
    assert needed_concepts(bundle(), (), ()) == Needed()


def test_navigation_counts_detours_and_what_was_missed() -> None:
    opened = ["/index.md", RULES[0], "/knowledge/other.md", RULES[0], "/tables/index.md", "/tables/orders.md"]
    found = navigate(record(files_opened=opened, failed_reads=2), Needed(RULES, ("/tables/orders.md",)))
    assert (found.reads, found.failed, found.detours) == (4, 2, ("/knowledge/other.md",))
    assert found.missed == (RULES[1],) and found.reads_per_needed == pytest.approx(4 / 3)
    unknown = navigate(record(files_opened=opened), Needed())
    assert unknown.detours == () and unknown.reads_per_needed is None
