"""What is said beside the rows of a query: rows that a join repeats under an aggregate, and row security."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from support import lab

from okf_agent.engines import Server
from okf_agent.sql.database import Database
from okf_agent.sql.render import for_program, model_text
from okf_compiler.settings import DatabaseSection

SCRIPT = """
CREATE TABLE customers (id int PRIMARY KEY, name text, credit numeric, ssn text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, amount numeric, placed date);
CREATE TABLE lines (order_id int, product text, qty int, price numeric);
CREATE TABLE payments (order_id int, paid numeric);
INSERT INTO customers SELECT g, 'c' || g, 100 * g, 'secret' FROM generate_series(1, 2) g;
INSERT INTO orders VALUES (1, 1, 100, '2024-01-01'), (2, 1, 100, '2024-01-02'), (3, 2, 100, '2024-02-01');
INSERT INTO lines VALUES (1, 'a', 1, 5), (1, 'b', 1, 5), (1, 'c', 1, 5), (2, 'a', 2, 5), (2, 'b', 1, 5), (3, 'a', 1, 5),
    (3, 'c', 1, 5);
INSERT INTO payments VALUES (1, 60), (1, 40), (2, 100);
CREATE VIEW recent AS SELECT id, amount FROM orders;
CREATE TABLE events (id int, order_id int, cost numeric) PARTITION BY LIST (id);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES IN (2);
INSERT INTO events VALUES (1, 1, 10), (2, 1, 10);
CREATE TABLE staff (id int, boss int, pay numeric);
INSERT INTO staff VALUES (1, NULL, 9), (2, 1, 5), (3, 1, 5);
CREATE TABLE tenants (id int PRIMARY KEY, tenant text);
INSERT INTO tenants SELECT g, 't' || g % 3 FROM generate_series(1, 9) g;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants USING (tenant = current_setting('app.tenant', true));
CREATE TABLE shown (id int);
INSERT INTO shown VALUES (1);
ALTER TABLE shown ENABLE ROW LEVEL SECURITY;
CREATE POLICY everybody ON shown FOR SELECT USING (true);
CREATE VIEW of_owner AS SELECT * FROM tenants;
CREATE VIEW of_asker WITH (security_invoker) AS SELECT * FROM tenants;
CREATE VIEW of_view AS SELECT * FROM of_asker;
"""

REPEATS = [
    ("SELECT sum(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id", "orders", 3, 7, "lines"),
    ("SELECT avg(amount) FROM orders, lines WHERE order_id = id", "orders", 3, 7, "lines"),
    ("SELECT count(o.id), count(*) FROM orders o LEFT JOIN lines l ON l.order_id = o.id", "orders", 3, 7, "lines"),
    ("SELECT sum(amount) FROM lines RIGHT JOIN orders ON order_id = id AND product = 'b'", None, 0, 0, ""),
    ("SELECT sum(amount) FROM lines FULL JOIN orders ON order_id = id", "orders", 3, 7, "lines"),
    ("SELECT o.id, sum(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY 1", "orders", 3, 7, "lines"),
    ("SELECT date_trunc('month', placed) AS m, sum(amount) FROM orders JOIN lines ON order_id = id GROUP BY m",
     "orders", 3, 7, "lines"),
    ("SELECT sum(o.amount) FROM orders AS O JOIN (SELECT order_id AS id FROM lines) l USING (id)", "orders", 3, 7, "l"),
    ("WITH j AS (SELECT o.*, l.product FROM orders o JOIN lines l ON l.order_id = o.id) SELECT sum(amount) FROM j",
     "orders", 3, 7, "lines"),
    ("WITH j AS (SELECT o.amount AS v, l.product FROM orders o JOIN lines l ON l.order_id = o.id), "
     "k AS (SELECT v * 2 AS w FROM j WHERE product <> 'c') SELECT sum(w) FROM k", "orders", 3, 5, "lines"),
    ("WITH t AS (SELECT customer_id, sum(amount) AS total FROM orders GROUP BY 1) "
     "SELECT sum(t.total) FROM t JOIN orders o ON o.customer_id = t.customer_id", "t", 2, 3, "orders"),
    ("SELECT sum(t.total) FROM (SELECT customer_id AS c, sum(amount) AS total FROM orders GROUP BY 1) AS t "
     "JOIN orders o ON o.customer_id = t.c", "t", 2, 3, "orders"),
    ("SELECT sum(r.amount) FROM recent r JOIN lines l ON l.order_id = r.id", "recent", 3, 7, "lines"),
    ("SELECT sum(e.cost) FROM events e JOIN lines l ON l.order_id = e.order_id", "events", 2, 6, "lines"),
    ("SELECT sum(a.pay) FROM staff a JOIN staff b ON b.boss = a.id", "staff (a)", 1, 2, "staff (b)"),
    ("SELECT sum(c.credit) FROM customers c JOIN orders o ON o.customer_id = c.id", "customers", 2, 3, "orders"),
    ("SELECT sum(o.amount) FILTER (WHERE l.qty = 1) FROM orders o JOIN lines l ON l.order_id = o.id", "orders", 3, 6,
     "lines"),
    ("SELECT sum(CASE WHEN l.product < 'c' THEN o.amount ELSE 0 END) FROM orders o JOIN lines l ON l.order_id = o.id",
     "orders", 3, 5, "lines"),
    ("SELECT (SELECT sum(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id)", "orders", 3, 7, "lines"),
    ("SELECT sum(o.amount) FROM orders o, LATERAL (SELECT 1 FROM lines l WHERE l.order_id = o.id) x", "orders", 3, 7,
     "x"),
    ("SELECT sum(o.amount) FROM orders o CROSS JOIN generate_series(1, 2) g", "orders", 3, 6, "g"),
    ("SELECT c.name, sum(o.amount) FROM customers c JOIN orders o ON o.customer_id = c.id JOIN payments p "
     "ON p.order_id = o.id GROUP BY c.name HAVING sum(o.amount) > 0", "orders", 2, 3, "customers and payments"),
]  # fmt: skip

SILENT = [
    "SELECT sum(l.qty) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT sum(l.qty * o.amount) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT count(*) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT count(DISTINCT o.id), sum(DISTINCT o.amount) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT min(o.amount), max(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT sum(o.amount) FROM orders o WHERE EXISTS (SELECT FROM lines l WHERE l.order_id = o.id)",
    "SELECT sum(amount) FROM orders WHERE id IN (SELECT order_id FROM lines)",
    "SELECT sum(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id WHERE l.product = 'a'",
    "SELECT l.product, sum(o.amount) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY l.product",
    "SELECT o.id, sum(l.qty) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.id",
    "SELECT sum(a) FROM (SELECT DISTINCT o.id, o.amount AS a FROM orders o JOIN lines l ON l.order_id = o.id) x",
    "SELECT sum(o.amount) FROM orders o JOIN (SELECT order_id, count(*) FROM lines GROUP BY 1) l ON l.order_id = o.id",
    "SELECT sum(CASE WHEN o.amount > 5 THEN 1 ELSE 0 END) FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT sum(o.amount) OVER () FROM orders o JOIN lines l ON l.order_id = o.id",
    "SELECT sum(amount) FROM orders",
    "SELECT (SELECT sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.id = x.id) "
    "FROM customers x",
]


@pytest.fixture(scope="module")
def params(postgres: Server) -> dict[str, Any]:
    reader = lab.reader_of(postgres, "notes", SCRIPT)
    assert postgres.admin is not None
    with psycopg.connect(**postgres.admin, dbname="notes") as admin:
        admin.execute("REVOKE ALL ON customers FROM reader; GRANT SELECT (id, name, credit) ON customers TO reader")
    return reader


@pytest.fixture(scope="module")
def database(params: dict[str, Any]) -> Iterator[Database]:
    with Database(params, "notes", DatabaseSection(statement_timeout_s=5)) as opened:
        yield opened


def texts(database: Database, sql: str) -> list[str]:
    return [note.text for note in database.run(sql).notes]


@pytest.mark.parametrize(("sql", "table", "different", "added", "others"), REPEATS)
def test_an_aggregate_over_repeated_rows_is_noted(
    database: Database, sql: str, table: str | None, different: int, added: int, others: str
) -> None:
    notes = database.run(sql).notes
    if table is None:
        assert not notes
        return
    (note,) = notes
    assert note.kind == "repeated_rows"
    rows = f"{different} row{'s' * (different != 1)}"
    assert note.text.startswith(
        f"{table}: {rows} became {added} by the join{'s' * (' and ' in others)} with {others}; "
    )


@pytest.mark.parametrize("sql", SILENT)
def test_an_aggregate_of_rows_that_count_once_is_not(database: Database, sql: str) -> None:
    assert not database.run(sql).notes


def test_two_tables_that_repeat_each_other_are_both_named(database: Database) -> None:
    lines, payments = texts(
        database,
        "SELECT sum(l.qty), sum(p.paid) FROM orders o JOIN lines l ON l.order_id = o.id "
        "JOIN payments p ON p.order_id = o.id",
    )
    assert lines.startswith("lines: 5 rows became 8") and payments.startswith("payments: 3 rows became 8")
    assert "sum(l.qty) counts a row more than once" in lines


def test_the_note_stands_under_the_rows_for_a_model_and_beside_them_for_a_program(database: Database) -> None:
    result = database.run(REPEATS[0][0])
    assert result.rows == (("700",),)
    last = model_text(result).splitlines()[-1]
    assert last == (
        "Note: orders: 3 rows became 7 by the join with lines; sum(o.amount) counts a row more than once. Where each "
        "row should count once, aggregate before the join, or use EXISTS."
    )
    assert for_program(result)["notes"] == [{"kind": "repeated_rows", "text": last.removeprefix("Note: ")}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a.pay) FROM staff a JOIN staff b ON true WHERE " + "(" * 90 + "true" + ")" * 90,
        "SELECT sum(a.pay) FROM staff a JOIN staff b ON b.boss = a.id GROUP BY ROLLUP (a.id)",
        "SELECT sum(v) FROM (VALUES (1), (2)) AS t(v) JOIN staff ON true",
        "SELECT sum(x.pay) FROM staff AS x(a, b, pay) JOIN staff y ON true",
        "SELECT sum(a.pay) FROM staff a TABLESAMPLE SYSTEM (100) JOIN staff b ON true",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT sum(r.n) FROM r "
        "JOIN staff ON true",
        'SELECT sum(s.pay) FROM staff s, jsonb_to_recordset(\'[{"a": 1}, {"a": 2}]\') AS x(a int) -- from sum(',
    ],
)
def test_what_cannot_be_taken_apart_fails_no_query(database: Database, sql: str) -> None:
    assert database.run(sql).rows


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c0 AS (SELECT pay FROM staff), "
        + ", ".join(f"c{n + 1} AS (SELECT x.* FROM c{n} x, c{n} y LIMIT 3)" for n in range(30))
        + " SELECT sum(pay) FROM c30 JOIN (SELECT 1 AS one) z ON true",
        "WITH c0 AS (SELECT pay FROM staff), "
        + ", ".join(f"c{n + 1} AS (SELECT * FROM c{n})" for n in range(60))
        + " SELECT sum(pay) FROM c60 JOIN (SELECT 1 AS one) z ON true",
        " UNION ALL ".join(["SELECT sum(a.pay) FROM staff a JOIN staff b ON b.boss = a.id"] * 200),
        "SELECT sum(a.pay" + "+1" * 4_000 + ") FROM staff a JOIN staff b ON b.boss = a.id",
    ],
    ids=["doubling", "chain", "union", "sum"],
)
def test_a_query_made_to_be_hard_to_take_apart_costs_little(database: Database, sql: str) -> None:
    begin = time.monotonic()
    result = database.run(sql)
    assert result.rows and time.monotonic() - begin < 2 * result.seconds + 5


def test_measuring_ends_in_time(params: dict[str, Any]) -> None:
    """The query itself is quick; to tell ten million joined rows apart is not."""
    sql = "SELECT count(s.id) FROM staff s CROSS JOIN generate_series(1, 4000000) g"
    with Database(params, "notes", DatabaseSection(statement_timeout_s=30)) as database:
        database.run("SELECT 1")
        begin = time.monotonic()
        result = database.run(sql)
        assert result.rows == (("12000000",),)
        assert time.monotonic() - begin < 3 * result.seconds + 2


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT count(*) FROM tenants", "tenants"),
        ("SELECT * FROM public.tenants JOIN shown USING (id)", "tenants"),
        ("SELECT count(*) FROM of_asker", "of_asker"),
        ("SELECT count(*) FROM of_view, tenants", "of_view and tenants"),
        ("SELECT 1 WHERE EXISTS (SELECT FROM tenants)", "tenants"),
        ("SELECT * FROM shown", ""),
        ("SELECT tenants.id FROM orders AS tenants", ""),
        ("WITH tenants AS (SELECT 1) SELECT * FROM tenants", ""),
    ],
)
def test_row_security_is_noted_where_a_query_reads_such_a_table(database: Database, sql: str, names: str) -> None:
    notes = texts(database, sql)
    assert notes == ([f"Row security: of {names} only the rows that this role may see are counted and shown; there may "
                      "be more."] if names else [])  # fmt: skip


def test_a_view_of_an_owner_who_sees_all_rows_is_not_noted(database: Database) -> None:
    result = database.run("SELECT count(*) FROM of_owner")
    assert result.rows == (("9",),) and not result.notes
