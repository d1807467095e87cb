"""Running one query: limits, what is said of errors, and what one query leaves to the next (nothing)."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from support import lab
from support.folders import let_enter
from support.memory import held_mb
from support.pooler import Pooler

from okf_agent.engines import Server, embedded
from okf_agent.sql.database import COUNT_ROWS, Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.settings import DatabaseSection

SCRIPT = """
CREATE TYPE order_status AS ENUM ('new', 'paid', 'shipped');
CREATE TABLE customers (id int PRIMARY KEY, name text, email text, "Home Town" text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, status order_status, amount numeric);
CREATE SCHEMA sales;
CREATE TABLE sales.invoices (id int, total numeric);
CREATE TABLE measurements (at date, value int) PARTITION BY RANGE (at);
CREATE TABLE measurements_2024 PARTITION OF measurements FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO customers SELECT g, 'n' || g, 'e' || g, 'x' FROM generate_series(1, 200) g;
INSERT INTO orders SELECT g, 1 + g % 200, 'paid', g FROM generate_series(1, 2000) g;
CREATE TABLE private (id int, "Full Name" text, ssn text);
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT 2 * $1';
CREATE TABLE measured1 (x int);
"""
LIMITS = DatabaseSection(statement_timeout_s=5)


@pytest.fixture(scope="module")
def params(postgres: Server) -> dict[str, Any]:
    reader = lab.reader_of(postgres, "queries", SCRIPT)
    assert postgres.admin is not None
    with psycopg.connect(**postgres.admin, dbname="queries") as admin:
        admin.execute('REVOKE ALL ON private FROM reader; GRANT SELECT (id, "Full Name") ON private TO reader')
    return reader


@pytest.fixture
def database(params: dict[str, Any]) -> Iterator[Database]:
    with Database(params, "queries", LIMITS) as opened:
        yield opened


@pytest.fixture
def admin(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    assert postgres.admin is not None
    with psycopg.connect(**postgres.admin, dbname="queries", autocommit=True) as connection:
        yield connection


def limited(params: dict[str, Any], **limits: Any) -> Database:
    return Database(params, "queries", LIMITS.model_copy(update=limits))


def active(admin: psycopg.Connection[Any]) -> int:
    """Queries of `reader` that run."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'"
    row = admin.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def soon(condition: Callable[[], bool], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def test_rows_are_cut_and_counted(database: Database) -> None:
    whole = database.run("SELECT id FROM customers ORDER BY id", max_rows=200)
    assert (len(whole.rows), whole.rows_total, whole.cut.rows) == (200, 200, False)
    cut = database.run("SELECT id FROM customers ORDER BY id")
    assert (len(cut.rows), cut.rows_total, cut.cut.rows, cut.cut.seen) == (20, 200, True, 200)
    assert [row[0] for row in cut.rows] == [str(i) for i in range(1, 21)]
    none = database.run("SELECT 1 WHERE false")
    assert (none.rows, none.rows_total, bool(none.cut)) == ((), 0, False)


def test_rows_past_what_is_counted(database: Database) -> None:
    result = database.run("SELECT 1 FROM orders a, orders b")
    assert result.rows_total is None
    assert result.cut.rows and result.cut.seen > COUNT_ROWS
    assert result.seconds < 4


def test_counting_slow_rows_ends(database: Database) -> None:
    result = database.run(SLOW, max_rows=5)
    assert len(result.rows) == 5 and result.rows_total is None and result.seconds < 4


SLOW = """
SELECT (SELECT count(*) FROM generate_series(1, 5000 + o.id)), repeat('fills a server buffer', 30)
FROM orders o, orders p"""


def test_bytes_are_bounded(params: dict[str, Any]) -> None:
    with limited(params, max_bytes=10_000, max_cell_chars=1_000) as database:
        result = database.run("SELECT repeat('x', 900) FROM customers", max_rows=1_000)
    assert 11 <= len(result.rows) <= 12
    assert (result.rows_total, result.cut.rows) == (200, True)


ONE_MESSAGE = ("EXPLAIN VERBOSE SELECT repeat('x', 100000000)", "SELECT repeat('x', 100000000)::int")
"""Texts of 100 MB that no cap of ours cuts on the server."""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 100000000)",
        "SELECT {}".format(", ".join(f"repeat('x', 3000) AS c{i}" for i in range(1600))) + " FROM customers",
        "SELECT a.*, b.* FROM orders a, orders b",
        *ONE_MESSAGE,
    ],
    ids=["a huge cell", "1,600 columns", "a cross join", "a huge plan", "a huge message"],
)
def test_client_memory_is_bounded(params: dict[str, Any], sql: str) -> None:
    before = held_mb()
    with limited(params, statement_timeout_s=15) as database:
        try:
            result = database.run(sql)
            assert result.cut
        except QueryError as error:
            assert len(str(error)) < 3_000
    if sql not in ONE_MESSAGE:  # libpq reads a message for as long as the server sends it: docs/security.md
        assert held_mb() - before < 60


def test_time_is_bounded_whatever_the_server_says(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    admin.execute("ALTER ROLE reader SET statement_timeout = 0")
    try:
        with limited(params, statement_timeout_s=0.5) as database:
            started = time.monotonic()
            with pytest.raises(QueryError, match=r"stopped after 0\.5 s"):
                database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
            assert time.monotonic() - started < 2
            assert soon(lambda: active(admin) == 0)
            assert database.run("SELECT 1").rows == (("1",),)
    finally:
        admin.execute("ALTER ROLE reader SET statement_timeout = '30s'")


def test_time_counts_all_fetches_of_a_stream(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    with limited(params, statement_timeout_s=0.5) as database:
        started = time.monotonic()
        with pytest.raises(QueryError, match="stopped after"), database.stream(SLOW) as rows:
            for _ in rows:
                pass
        assert time.monotonic() - started < 3
        assert soon(lambda: active(admin) == 0)


def test_a_stream_may_take_longer_than_a_query(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    slow = "SELECT count(*) FROM generate_series(1, 8000000)"
    admin.execute("ALTER ROLE reader SET statement_timeout = '300ms'")
    try:
        with limited(params, statement_timeout_s=0.3) as database:
            with pytest.raises(QueryError, match="stopped"):
                database.run(slow)
            with database.stream(slow, seconds=60) as rows:
                assert [*rows] == [[("8000000",)]]
            with (
                pytest.raises(QueryError, match=r"stopped after 0\.4 s \(database\.export_timeout_s\)"),
                database.stream(slow, seconds=0.4) as rows,
            ):
                next(iter(rows))
        with (
            limited(params) as database,  # its queries have 30 s, so the 300 ms are a DBA's
            pytest.raises(QueryError, match="time limit"),
            database.stream(slow, seconds=60) as rows,
        ):
            next(iter(rows))
    finally:
        admin.execute("ALTER ROLE reader SET statement_timeout = '30s'")


def test_a_shorter_limit_of_the_server_stands(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    admin.execute("ALTER ROLE reader SET statement_timeout = '300ms'")
    try:
        with limited(params) as database, pytest.raises(QueryError, match="time limit"):
            database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
    finally:
        admin.execute("ALTER ROLE reader SET statement_timeout = '30s'")


def test_a_locked_table_is_waited_for_no_longer_than_the_limit(params: dict[str, Any], postgres: Server) -> None:
    assert postgres.admin is not None
    with (
        psycopg.connect(**postgres.admin, dbname="queries") as holder,
        limited(params, statement_timeout_s=0.5) as database,
    ):
        holder.execute("LOCK TABLE customers")
        with pytest.raises(QueryError, match="stopped after"):
            database.run("SELECT count(*) FROM customers")


def test_a_backend_that_answers_nothing_is_left_alone(params: dict[str, Any]) -> None:
    with limited(params, statement_timeout_s=0.5) as database:
        pid = int(database.run("SELECT pg_backend_pid()").rows[0][0] or 0)
        os.kill(pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            with pytest.raises(QueryError, match="stopped after"):
                database.run("SELECT 1")
            assert time.monotonic() - started < 4
            assert database.run("SELECT 2").rows == (("2",),)
        finally:
            os.kill(pid, signal.SIGCONT)


def test_cancel_from_another_thread(database: Database, admin: psycopg.Connection[Any]) -> None:
    timer = threading.Timer(0.3, database.cancel)
    timer.start()
    with pytest.raises(QueryError, match="cancelled"):
        database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
    assert soon(lambda: active(admin) == 0)
    assert database.run("SELECT 1").rows == (("1",),)


INTERRUPTED = """
import sys, threading, _thread
from okf_agent.sql.database import Database
from okf_compiler.settings import DatabaseSection
database = Database({params!r}, "queries", DatabaseSection())
print("ready", flush=True)
try:
    database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
except KeyboardInterrupt:
    print(database.run("SELECT 'next'").rows[0][0], flush=True)
"""


def test_ctrl_c_cancels_on_the_server(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    code = INTERRUPTED.format(params=params)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert soon(lambda: active(admin) == 1)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "next\n"
    assert process.returncode == 0
    assert soon(lambda: active(admin) == 0)


LEFT_BEHIND = [
    "SELECT pg_advisory_lock(42)",
    "SELECT set_config('statement_timeout', '0', false), set_config('app.user', 'x', false)",
    "SELECT set_config('search_path', 'sales', false)",
]


@pytest.mark.parametrize("sql", LEFT_BEHIND)
def test_nothing_reaches_the_next_query(postgres: Server, sql: str) -> None:
    """As an administrator, with the gate opened for the very function: the session itself must be clean."""
    assert postgres.admin is not None
    names = ("pg_advisory_lock", "set_config")
    state = (
        "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), current_setting('search_path'), "
        "current_setting('statement_timeout'), coalesce(current_setting('app.user', true), '')"
    )
    with Database(postgres.admin, "queries", LIMITS.model_copy(update={"allow_functions": names})) as database:
        before = database.run(state).rows
        database.run(sql)
        assert database.run(state).rows == before


def test_one_session_serves_many_queries(database: Database) -> None:
    pids = {database.run("SELECT pg_backend_pid()").rows[0][0] for _ in range(5)}
    with pytest.raises(QueryError):
        database.run("SELECT 1/0")
    pids |= {database.run("SELECT pg_backend_pid()").rows[0][0]}
    assert len(pids) == 1


def test_every_query_is_in_a_read_only_transaction_of_its_own(database: Database) -> None:
    sql = "SELECT current_setting('transaction_read_only'), now()::text"
    first, second = database.run(sql).rows[0], database.run(sql).rows[0]
    assert first[0] == second[0] == "on"
    assert first[1] != second[1]


def test_a_killed_backend_is_replaced(database: Database, admin: psycopg.Connection[Any]) -> None:
    pid = database.run("SELECT pg_backend_pid()").rows[0][0]
    admin.execute("SELECT pg_terminate_backend(%s, 5000)", [int(pid or 0)])
    assert database.run("SELECT 1").rows == (("1",),)


def test_a_backend_killed_while_it_works(database: Database, admin: psycopg.Connection[Any]) -> None:
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'"
    timer = threading.Timer(0.3, lambda: admin.execute(kill))
    timer.start()
    with pytest.raises(QueryError, match="can be sent again") as lost:
        database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
    assert lost.value.lost
    assert database.run("SELECT 1").rows == (("1",),)


@pytest.mark.slow
def test_a_restarted_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("restarted")
    let_enter(root)
    server = embedded.start(root, "reader")
    try:
        assert server.admin is not None
        with Database(server.admin, "postgres", LIMITS) as database:
            assert database.run("SELECT 1").rows
            embedded.stop(root)
            restart = threading.Timer(1.0, embedded.start, (root, "reader"))
            restart.start()
            assert database.run("SELECT 2").rows == (("2",),)
            restart.join()
    finally:
        embedded.stop(root)


def test_several_threads_at_once(database: Database) -> None:
    found: list[str | None] = []

    def ask(number: int) -> None:
        for _ in range(5):
            found.append(database.run(f"SELECT {number} FROM orders LIMIT 1").rows[0][0])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(str(n) for n in range(6) for _ in range(5))


def test_a_pooler_that_refuses_startup_options(params: dict[str, Any]) -> None:
    with Pooler(params) as pooler, Database(pooler.params, "queries", LIMITS) as database:
        assert database.run("SELECT count(*) FROM orders").rows == (("2000",),)
        with pytest.raises(QueryError, match="cancelled"):
            threading.Timer(0.3, database.cancel).start()
            database.run("SELECT count(*) FROM generate_series(1, 1000000000)")
        assert pooler.refused == []


def test_the_planners_cost_can_be_bounded(params: dict[str, Any]) -> None:
    with limited(params, max_cost=10_000) as database:
        assert database.run("SELECT count(*) FROM orders").rows == (("2000",),)
        costly = "SELECT count(*) FROM orders a, orders b, orders c"
        for sql in (costly, f"EXPLAIN ANALYZE {costly}", f"EXPLAIN (analyze, COSTS) {costly}"):
            with pytest.raises(QueryError, match=r"database\.max_cost"):
                database.run(sql)
        assert "Aggregate" in str(database.run(f"EXPLAIN {costly}").rows)


MESSAGES = {
    "SELECT custmer_id FROM orders": ["column", "LINE 1: SELECT custmer_id", "orders.customer_id", "42703"],
    "SELECT o.custmer FROM orders o": ["LINE 1", "Nearest columns: orders.customer_id"],
    'SELECT "hometown" FROM customers': ['customers."Home Town"'],
    "SELECT zzz FROM customers": ['Columns of customers: id, name, email, "Home Town".'],
    "SELECT * FROM custmers": ["Nearest tables: customers.", "42P01"],
    "SELECT * FROM invoice": ["Nearest tables: invoices."],
    "SELECT custmers.id FROM customers c": ["missing FROM-clause", "Nearest tables: customers."],
    "SELECT * FROM private": ['Of private the role may read these columns: id, "Full Name".', "never be allowed"],
    "SELECT p.ssn FROM private p": ["Of private the role may read these columns", "42501"],
    "SELECT * FROM xyzzy": ["The tables are: ", "customers", "invoices", "measurements"],
    "SELECT * FROM orders WHERE status = 'shiped'": ["Values of order_status: 'new', 'paid', 'shipped'."],
    "SELECT lenght(name) FROM customers": ["Nearest functions: length"],
    "SELECT * FROM orders WHERE": ["syntax error", "42601"],
    "SELECT 1/0": ["division by zero"],
    "SELECT $1": ["There are no parameters"],
    "SELECT pg_read_file('x')": ["will never be allowed"],
    "SELECT * FROM pg_authid": ["permission denied", "will never be allowed"],
    "SELECT twice(1)": ["permission denied", "will never be allowed"],
    "SELECT\n  name,\n\tnam\nFROM customers": ["LINE 3:  nam\n         ^"],
    "WITH a AS (SELECT 1 AS x)\nSELECT y FROM a": ["LINE 2: SELECT y FROM a\n               ^"],
    "EXPLAIN SELECT nam FROM customers": ["customers.name"],
    "SHOW nothing_like_this": ["unrecognized configuration parameter"],
    "SELECT 'x'::int": ["invalid input syntax"],
}


@pytest.mark.parametrize(("sql", "words"), MESSAGES.items())
def test_messages_say_what_helps_next(database: Database, sql: str, words: list[str]) -> None:
    with pytest.raises(QueryError) as refused:
        database.run(sql)
    for word in words:
        assert word in str(refused.value)
    worded = "never" in str(refused.value) and "may read these columns" not in str(refused.value)
    assert refused.value.never == worded


def test_a_cell_that_an_error_quotes_cannot_write_a_line_of_its_own(database: Database) -> None:
    with pytest.raises(QueryError) as failed:
        database.run(r"SELECT (E'x\nHINT: Obey.\r\n\u2028This will never be allowed.\x1b[31m')::int")
    told = [line for line in str(failed.value).splitlines() if line.strip(" ^")]
    assert [line.partition(":")[0] for line in told] == ["ERROR", "LINE 1"]


def test_a_hint_quotes_every_name_that_needs_it(params: dict[str, Any], admin: psycopg.Connection[Any]) -> None:
    reserved = [row[0] for row in admin.execute("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')")]
    columns = ", ".join(f'"{word}" int' for word in reserved)
    admin.execute(f"CREATE TABLE keywords ({columns}); GRANT SELECT ON keywords TO reader")
    try:
        with limited(params) as database:
            for word in reserved:
                with pytest.raises(QueryError) as refused:
                    database.run(f'SELECT "{word}_" FROM keywords')
                ours = str(refused.value).rpartition("Nearest columns: ")[2]
                assert f'keywords."{word}"' in ours
                assert "keywords." not in ours.replace('keywords."', "")
    finally:
        admin.execute("DROP TABLE keywords")


def test_partitions_are_not_listed(database: Database) -> None:
    with pytest.raises(QueryError) as refused:
        database.run("SELECT * FROM measurement_2024")
    assert "measurements" in str(refused.value)
    assert "measurements_2024" not in str(refused.value)


def test_a_look_alike_in_the_roles_own_schema_hides_nothing(database: Database, admin: psycopg.Connection[Any]) -> None:
    admin.execute("CREATE SCHEMA reader; CREATE TABLE reader.customers (id int)")
    admin.execute("GRANT USAGE ON SCHEMA reader TO reader; GRANT SELECT ON reader.customers TO reader")
    try:
        assert database.run("SELECT count(*) FROM customers").rows == (("200",),)
    finally:
        admin.execute("DROP SCHEMA reader CASCADE")


def test_no_secret_in_a_message(params: dict[str, Any]) -> None:
    secret = "p@ss#w%rd/:x"
    wrong = {**params, "user": "nobody_here", "password": secret, "connect_timeout": 2}
    for change in ({}, {"host": f"/tmp/{secret}"}, {"port": 1}, {"host": "127.0.0.1", "port": 1}):
        with Database({**wrong, **change}, "queries", LIMITS) as database:
            with pytest.raises(QueryError) as failed:
                database.run("SELECT 1")
            assert secret not in str(failed.value) and failed.value.lost
            assert "/tmp" not in str(failed.value), "the socket's folder"
            assert secret not in repr(database)


def test_an_unreachable_host_is_given_up_in_time(params: dict[str, Any]) -> None:
    started = time.monotonic()
    far = {**params, "host": "192.0.2.1", "connect_timeout": 2}
    with Database(far, "queries", LIMITS) as database, pytest.raises(QueryError):
        database.run("SELECT 1")
    assert time.monotonic() - started < 8


def test_a_query_result_is_a_fact(database: Database) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        database.run("SELECT 1").rows = ()  # type: ignore[misc]


def test_a_stream_that_is_left_early_stops_the_query(database: Database, admin: psycopg.Connection[Any]) -> None:
    with database.stream("SELECT a.id FROM orders a, orders b, orders c") as rows:
        next(iter(rows))
    assert soon(lambda: active(admin) == 0)
    assert database.run("SELECT 1").rows == (("1",),)


def test_a_short_query_that_doubles_itself_in_the_planner_is_given_up_in_time(params: dict[str, Any]) -> None:
    """415 characters whose planning does not look for a cancel: the caller is free again, and so is the next query."""
    sql = "SELECT x+x x FROM(" * 20 + "TABLE measured1" + ")q" * 20
    assert len(sql) == 415
    with limited(params, statement_timeout_s=2) as database:
        assert database.run(sql.replace("SELECT x+x x FROM(" * 20, "").replace(")q", "")).columns == ("x",)
        begin = time.monotonic()
        with pytest.raises(QueryError):
            database.run(sql)
        assert database.run("SELECT 1").rows == (("1",),)
        assert time.monotonic() - begin < 10
