"""The role can read what it is to read, and by itself can do nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import made
from support.servers import debian15, own_server

from okf_agent.access import doctor, role
from okf_agent.access.rights import examine_agent
from okf_agent.access.role_sql import RoleSpec
from okf_agent.config import Config, load_config
from okf_agent.engines import Server, embedded
from okf_agent.engines.binaries import clean_environment, find_programs, server_account
from okf_agent.engines.connection import connect_admin
from okf_compiler.connections import hidden_columns
from okf_compiler.errors import UserError
from okf_compiler.readers import catalogue

DATABASE = "role_lab"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """A server of this file's own: these tests drop the role, which other tests give rights in their databases."""
    with own_server() as server:
        yield server


@pytest.fixture(scope="module")
def postgres15() -> Iterator[Server]:
    """The same with Debian's PostgreSQL 15."""
    with own_server(debian15()) as server:
        yield server


CONTENT = """
CREATE EXTENSION citext; CREATE EXTENSION dblink; CREATE EXTENSION tablefunc; CREATE EXTENSION pageinspect;
CREATE TABLE customers (id int PRIMARY KEY, name text, email citext, ssn text,
    area text GENERATED ALWAYS AS (left(ssn, 3)) STORED, initial text GENERATED ALWAYS AS (left(name, 1)) STORED);
INSERT INTO customers SELECT g, 'n' || g, 'E' || g || '@x.y', '123-45-' || g FROM generate_series(1, 20) g;
CREATE TABLE orders (id serial PRIMARY KEY, customer_id int, amount numeric(12, 2));
INSERT INTO orders (customer_id, amount) SELECT 1 + g % 20, g FROM generate_series(1, 200) g;
CREATE TABLE "Mixed Case" ("Order ID" int, "select" text);
CREATE TABLE parts (id int, secret text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE VIEW names AS SELECT id, name FROM customers;
CREATE VIEW ssns AS SELECT id, ssn AS number FROM customers;
CREATE VIEW rows AS SELECT id, to_jsonb(c) AS doc FROM customers c;
CREATE VIEW on_rows AS SELECT doc FROM rows;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM customers;
CREATE SCHEMA other; CREATE TABLE other.things (a int);
CREATE FUNCTION bump() RETURNS int LANGUAGE sql SECURITY DEFINER AS
    'INSERT INTO orders (customer_id, amount) VALUES (1, 1) RETURNING id';
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE PROCEDURE clear() LANGUAGE sql AS 'DELETE FROM orders';
GRANT INSERT, SELECT ON orders TO PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC;
"""

REFUSED = [
    "INSERT INTO orders (customer_id) VALUES (1)",
    "UPDATE orders SET amount = 0",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "SELECT * FROM orders FOR UPDATE",
    "LOCK TABLE orders IN EXCLUSIVE MODE",
    "CREATE TABLE evil (a int)",
    "CREATE TEMP TABLE evil (a int)",
    "CREATE SCHEMA evil",
    "CREATE FUNCTION evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DROP TABLE orders",
    "ALTER TABLE orders ADD x int",
    "CREATE ROLE evil",
    "SET ROLE postgres",
    "SELECT nextval('orders_id_seq')",
    "SELECT setval('orders_id_seq', 1)",
    "SELECT bump()",
    "SELECT twice(1)",
    "CALL clear()",
    "SELECT crosstab('SELECT 1, 2, 3')",
    "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t (a int)",
    "SELECT get_raw_page('orders', 0)",
    "SELECT pg_sleep(0)",
    "SELECT pg_sleep_for('0s')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_cancel_backend(pg_backend_pid())",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT setseed(0.5)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('.')",
    "COPY orders TO PROGRAM 'id'",
    "COPY orders TO '/tmp/x'",
    "SELECT query_to_xml('SELECT 1', true, false, '')",
    "SELECT database_to_xml(true, false, '')",
    "SELECT ts_stat('SELECT ''a''::tsvector')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')",
    "SELECT pg_export_snapshot()",
    "SELECT txid_current()",
    "SELECT pg_logical_emit_message(true, 'a', 'b')",
    "SELECT pg_switch_wal()",
    "SELECT pg_reload_conf()",
    "SELECT pg_stat_reset()",
    "SELECT gin_clean_pending_list('orders_pkey'::regclass)",
    "SELECT * FROM pg_authid",
    "SET temp_file_limit = -1",
    "ALTER DATABASE role_lab SET work_mem = '1GB'",
    "ALTER ROLE postgres PASSWORD 'x'",
]
ALLOWED = [
    "SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id",
    "SELECT id FROM customers WHERE email = 'e1@X.Y'",
    'SELECT "Order ID", "select" FROM "Mixed Case"',
    "SELECT * FROM names, counted, parts, other.things",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), string_agg(amount::text, ',') FROM orders",
    "SELECT lower(name), regexp_replace(name, 'n', 'm'), now(), to_char(now(), 'YYYY') FROM customers",
    "SELECT relname FROM pg_class LIMIT 1",
    "EXPLAIN SELECT * FROM orders",
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return written(tmp_path)


def written(root: Path, **database: Any) -> Config:
    lines = "".join(f"  {key}: {value!r}\n" for key, value in database.items())
    (root / "config.yaml").write_text(f"database:\n{lines}" if lines else "", encoding="utf-8")
    return load_config(root)


@pytest.fixture
def lab(each_postgres: Server) -> Iterator[Server]:
    """A server with the database `role_lab`, and the role as it comes from nowhere."""
    with connect_admin(each_postgres) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    try:
        with connect_admin(each_postgres, DATABASE) as connection:
            connection.execute(CONTENT.encode())
        yield each_postgres
    finally:
        with connect_admin(each_postgres) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            for name in ("agent_ro", "ro", "boss"):
                connection.execute(f"DROP ROLE IF EXISTS {name}")


def attempt(server: Server, query: str, user: str = "agent_ro") -> str:
    """The SQLSTATE of a statement that the role runs alone, outside every other layer; "" if it works."""
    params = {**server.agent, "user": user}
    with psycopg.connect(**params, dbname=DATABASE) as connection:
        connection.read_only = False
        try:
            connection.execute(query.encode())
        except psycopg.Error as error:
            return error.sqlstate or "?"
        finally:
            connection.rollback()
    return ""


def admin(server: Server, *queries: str) -> None:
    with connect_admin(server, DATABASE) as connection:
        for query in queries:
            connection.execute(query.encode())


def test_alone_it_can_only_read(lab: Server, config: Config) -> None:
    assert role.ensure_role(lab, DATABASE, config) == ()
    done = [query for query in REFUSED if attempt(lab, query) == ""]
    assert done == []
    states = {query: attempt(lab, query) for query in REFUSED}
    assert set(states.values()) <= {"42501", "42883", "25006", "0A000"}, states
    assert {query: attempt(lab, query) for query in ALLOWED} == dict.fromkeys(ALLOWED, "")


def test_settings(lab: Server, config: Config) -> None:
    role.ensure_role(lab, DATABASE, config)
    with psycopg.connect(**lab.agent, dbname=DATABASE) as connection:
        shown = {
            name: connection.execute(f"SHOW {name}".encode()).fetchone()
            for name in ("default_transaction_read_only", "statement_timeout", "temp_file_limit", "search_path")
        }
    assert shown == {
        "default_transaction_read_only": ("on",),
        "statement_timeout": ("30s",),
        "temp_file_limit": ("1000MB",),
        "search_path": ("public, pg_temp",),
    }


def test_later_tables_can_be_read_and_later_functions_not_run(lab: Server, config: Config) -> None:
    role.ensure_role(lab, DATABASE, config)
    admin(lab, "CREATE TABLE later (a int)", "CREATE FUNCTION later() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert attempt(lab, "SELECT * FROM later") == ""
    assert attempt(lab, "INSERT INTO later VALUES (1)") != ""
    assert attempt(lab, "SELECT later()") == "42501"


TAMPERED = {
    "write right": ("GRANT INSERT ON customers TO agent_ro", "INSERT INTO customers (id) VALUES (99)"),
    "column write right": ("GRANT UPDATE (name) ON customers TO agent_ro", "UPDATE customers SET name = 'x'"),
    "superuser": ("ALTER ROLE agent_ro SUPERUSER", "SELECT * FROM pg_authid"),
    "membership": ("GRANT pg_read_server_files TO agent_ro", "SET ROLE pg_read_server_files"),
    "function": ("GRANT EXECUTE ON FUNCTION bump() TO PUBLIC", "SELECT bump()"),
    "catalogue function": ("GRANT EXECUTE ON FUNCTION pg_sleep(float8) TO agent_ro", "SELECT pg_sleep(0)"),
    "temporary tables": (f"GRANT TEMPORARY ON DATABASE {DATABASE} TO PUBLIC", "CREATE TEMP TABLE t (a int)"),
    "schema": ("GRANT CREATE ON SCHEMA public TO agent_ro", "CREATE TABLE evil (a int)"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_right_that_came_later_is_taken_back(postgres: Server, config: Config, name: str) -> None:
    grant, query = TAMPERED[name]
    query = f"SET TRANSACTION READ WRITE; {query}"
    with connect_admin(postgres) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    try:
        admin(postgres, CONTENT)
        role.ensure_role(postgres, DATABASE, config)
        assert attempt(postgres, query) == "42501"
        admin(postgres, grant)
        assert attempt(postgres, query) == "", "the grant opens it, or this test shows nothing"
        role.ensure_role(postgres, DATABASE, config)
        assert attempt(postgres, query) == "42501"
    finally:
        with connect_admin(postgres) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            connection.execute("DROP ROLE agent_ro")


def test_nothing_is_done_twice(lab: Server, config: Config) -> None:
    role.ensure_role(lab, DATABASE, config)
    count = "SELECT xmin::text FROM pg_class WHERE relname = 'customers'"
    with connect_admin(lab, DATABASE) as connection:
        before = connection.execute(count.encode()).fetchone()
        role.ensure_role(lab, DATABASE, config)
        assert connection.execute(count.encode()).fetchone() == before
        connection.execute("GRANT INSERT ON orders TO agent_ro")
        role.ensure_role(lab, DATABASE, config)
        assert connection.execute(count.encode()).fetchone() != before


def test_hidden_columns(lab: Server, tmp_path: Path) -> None:
    config = written(tmp_path, hide=["customers.ssn", "Mixed Case.select", "parts.secret", "other.things", "typo.x"])
    assert role.ensure_role(lab, DATABASE, config) == ("hide: typo.x names nothing in role_lab",)
    refused = [
        "SELECT ssn FROM customers", "SELECT * FROM customers", "SELECT c::text FROM customers c",
        "SELECT to_jsonb(c) FROM customers c", "SELECT 1 FROM customers WHERE ssn = '1'",
        "SELECT number FROM ssns", "SELECT doc FROM rows", "SELECT doc FROM on_rows",
        "SELECT area FROM customers",
        'SELECT "select" FROM "Mixed Case"', "SELECT secret FROM parts", "SELECT secret FROM parts_1",
        "SELECT * FROM other.things",
    ]  # fmt: skip
    assert [query for query in refused if attempt(lab, query) != "42501"] == []
    allowed = [
        "SELECT id, name, initial FROM customers", "SELECT count(*) FROM customers", "SELECT * FROM names",
        'SELECT "Order ID" FROM "Mixed Case"', "SELECT id FROM parts_1", "SELECT n FROM counted",
    ]  # fmt: skip
    assert [query for query in allowed if attempt(lab, query) != ""] == []
    with psycopg.connect(**lab.agent, dbname=DATABASE) as connection:
        assert connection.execute("SELECT attname FROM pg_stats WHERE attname = 'ssn'").fetchall() == []


HIDDEN_IN = {
    "everywhere": "database: {hide: ['*.ssn', other]}\n",
    "here": "databases: {role_lab: {hide: ['*.ssn', other]}}\n",
    "both": "database: {hide: ['CUSTOMERS.ssn']}\ndatabases: {role_lab: {hide: [other]}}\n",
}


@pytest.mark.parametrize("text", HIDDEN_IN.values(), ids=HIDDEN_IN)
def test_what_is_hidden_is_hidden_from_the_role_the_reader_and_by_the_doctor_s_word(
    postgres: Server, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path)
    with made(postgres, DATABASE, "CREATE TABLE customers (id int, ssn text); CREATE TABLE other (a int)"):
        admin(postgres, "CREATE ROLE agent_ro LOGIN; GRANT SELECT ON customers, other TO agent_ro")
        try:
            looked = {f.check: f for f in examine_agent(postgres, DATABASE, config)}["hidden columns"]
            assert (looked.level, "public.customers.ssn, public.other.a" in looked.text) == ("red", True)
            with psycopg.connect(**postgres.agent, dbname=DATABASE) as connection:  # the role may still read it
                seen = catalogue.read(connection, DATABASE, hide=hidden_columns(config.settings, DATABASE))
            assert [(t.name, [c.name for c in t.columns]) for t in seen.tables] == [("customers", ["id"])]
            assert role.ensure_role(postgres, DATABASE, config) == ()
            refused = ["SELECT ssn FROM customers", "SELECT a FROM other", "SELECT * FROM customers"]
            assert [attempt(postgres, query) for query in refused] == ["42501"] * 3
            assert attempt(postgres, "SELECT id FROM customers") == ""
            looked = {f.check: f for f in examine_agent(postgres, DATABASE, config)}["hidden columns"]
            assert looked.level == "green"
        finally:
            admin(postgres, "DROP OWNED BY agent_ro")
    with connect_admin(postgres) as connection:
        connection.execute("DROP ROLE agent_ro")


def test_functions_allowed_by_name(lab: Server, tmp_path: Path) -> None:
    role.ensure_role(lab, DATABASE, written(tmp_path, allow_functions=["twice", "public.crosstab", "set_config"]))
    assert attempt(lab, "SELECT twice(2), set_config('a.b', 'c', true)") == ""
    assert attempt(lab, "SELECT * FROM crosstab('SELECT 1, 2, 3') AS t (a int, b int)") == ""
    assert attempt(lab, "SELECT bump()") == "42501"


def test_only_one_schema(lab: Server, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"databases:\n  {DATABASE}: {{schema: other}}\n", encoding="utf-8")
    role.ensure_role(lab, DATABASE, load_config(tmp_path))
    assert attempt(lab, "SELECT * FROM things") == ""
    assert attempt(lab, "SELECT * FROM public.customers") == "42501"


def test_keeping_the_grants_a_role_has(lab: Server) -> None:
    admin(lab, "CREATE ROLE ro LOGIN", "GRANT SELECT ON customers TO ro", "GRANT DELETE ON customers TO ro")
    with connect_admin(lab, DATABASE) as connection:
        role.harden(connection, RoleSpec("ro", DATABASE, grants=False))
    assert attempt(lab, "SELECT * FROM customers", "ro") == ""
    assert attempt(lab, "SELECT * FROM names", "ro") == "42501"
    assert attempt(lab, "DELETE FROM customers", "ro") != ""


def test_others_keep_their_rights_on_a_server_that_is_not_ours(lab: Server, tmp_path: Path) -> None:
    theirs = Server("server", lab.admin, lab.agent)
    admin(lab, "CREATE ROLE boss LOGIN")
    role.ensure_role(theirs, DATABASE, written(tmp_path))
    assert attempt(lab, "SELECT twice(1), pg_sleep(0)", "boss") == ""
    assert attempt(lab, "CREATE TEMP TABLE t (a int)", "boss") == ""
    role.ensure_role(theirs, DATABASE, written(tmp_path, harden_public=True))
    assert attempt(lab, "SELECT twice(1)", "boss") == "42501"


@pytest.mark.parametrize("seen", [True, False], ids=["of this database", "of a database nobody could look into"])
def test_printed_statements_are_what_is_run(lab: Server, config: Config, tmp_path: Path, seen: bool) -> None:
    assert lab.admin is not None
    script = tmp_path / "role.sql"
    printed = role.statements(lab if seen else Server("server", None, lab.agent), DATABASE, config)
    script.write_text(str(printed), encoding="utf-8")
    assert "AGENT_DB_PASSWORD" in script.read_text(encoding="utf-8")
    where = ["-h", lab.admin["host"], "-U", lab.admin["user"], "-d", DATABASE]
    psql = [find_programs() / "psql", *where, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script]
    subprocess.run(psql, check=True, env=clean_environment())
    assert [query for query in REFUSED if attempt(lab, query) == ""] == []
    assert [q for q in ALLOWED if attempt(lab, q) != "" and (seen or "other." not in q)] == []
    admin(lab, "CREATE TABLE later (a int)", "CREATE FUNCTION later() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert (attempt(lab, "SELECT * FROM later"), attempt(lab, "SELECT later()")) == ("", "42501")


def test_the_role_itself_can_look_what_is_to_be_hidden(lab: Server, tmp_path: Path) -> None:
    assert lab.admin is not None
    theirs = Server("server", None, lab.agent)
    with pytest.raises(UserError, match="hide needs"):
        role.statements(theirs, DATABASE, written(tmp_path, hide=["customers.ssn"]))
    role.ensure_role(lab, DATABASE, written(tmp_path))
    printed = role.statements(theirs, DATABASE, written(tmp_path, hide=["customers.ssn"]))
    admin(lab, str(printed))
    assert (attempt(lab, "SELECT ssn FROM customers"), attempt(lab, "SELECT number FROM ssns")) == ("42501", "42501")
    assert attempt(lab, "SELECT id, name FROM customers, other.things") == ""


def test_the_password_is_set_and_not_in_the_log(lab: Server, config: Config) -> None:
    admin(lab, "ALTER DATABASE role_lab SET log_statement = 'all'")
    with_password = Server("embedded", lab.admin, {**lab.agent, "password": "p@ss#w%rd/:x'\"\\ é"})
    role.ensure_role(with_password, DATABASE, config)
    with connect_admin(lab, DATABASE) as connection:
        row = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'agent_ro'").fetchone()
    assert row is not None
    assert row[0].startswith("SCRAM-SHA-256$")


def test_the_administrator_is_not_hardened(lab: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="agent_user is postgres"):
        role.ensure_role(lab, DATABASE, written(tmp_path, agent_user="postgres"))
    admin(lab, "CREATE ROLE boss SUPERUSER LOGIN")
    theirs = Server("server", lab.admin, lab.agent)
    with pytest.raises(UserError, match="superuser"):
        role.ensure_role(theirs, DATABASE, written(tmp_path, agent_user="boss"))


def test_without_an_administrator_nothing_is_done(lab: Server, config: Config) -> None:
    assert role.ensure_role(Server("server", None, lab.agent), DATABASE, config) == ()
    assert can_read(lab) is False
    printed = role.statements(Server("server", None, lab.agent), DATABASE, config)
    assert 'CREATE ROLE "agent_ro" LOGIN NOINHERIT CONNECTION LIMIT 50;' in printed.of_role
    later = 'ALTER DEFAULT PRIVILEGES IN SCHEMA "public" GRANT SELECT ON TABLES TO "agent_ro";'
    assert later in printed.of_role
    assert later not in printed.of_everyone


def can_read(server: Server) -> bool:
    """Whether the role is there and reads `t`; a replica refuses transactions that `attempt` makes writable."""
    try:
        with psycopg.connect(**server.agent, dbname=DATABASE) as connection:
            connection.execute("SELECT * FROM t")
    except psycopg.Error:
        return False
    return True


def test_several_at_once(postgres: Server, config: Config) -> None:
    with connect_admin(postgres) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    try:
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda _: role.ensure_role(postgres, DATABASE, config), range(4)))
        assert done == [()] * 4
        assert attempt(postgres, "SELECT 1") == ""
    finally:
        with connect_admin(postgres) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            connection.execute("DROP ROLE agent_ro")


@pytest.mark.slow
def test_read_replica(postgres: Server, config: Config) -> None:
    """A real one, streaming from the primary: the role comes from there, and nothing is tried here."""
    assert postgres.admin is not None
    root = Path(tempfile.mkdtemp(prefix="okf-replica-"))
    root.chmod(0o755)
    data = root / ".okf" / "postgres"
    data.mkdir(mode=0o700, parents=True)
    account = server_account(data)
    who: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    if account:
        os.chown(data, account.uid, account.gid)
    copy = [find_programs() / "pg_basebackup", "-h", postgres.admin["host"], "-U", postgres.admin["user"]]
    with connect_admin(postgres) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    try:
        admin(postgres, "CREATE TABLE t AS SELECT 1 AS a")
        subprocess.run(
            [*copy, "-D", data, "-R", "-c", "fast", "--no-sync"], check=True, env=clean_environment(), cwd=root, **who
        )
        replica = embedded.start(root, "agent_ro")
        with pytest.raises(UserError, match="make the role agent_ro on its primary"):
            role.ensure_role(replica, DATABASE, config)
        role.ensure_role(postgres, DATABASE, config)
        end = time.monotonic() + 30
        while not can_read(replica):
            assert time.monotonic() < end, "the role has not come over"
            time.sleep(0.1)
        assert role.ensure_role(replica, DATABASE, config) == ()
        assert [f for f in doctor._database(replica, config, DATABASE, None)[1] if f.level != "green"] == []
    finally:
        embedded.stop(root)
        shutil.rmtree(root)
        with connect_admin(postgres) as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
            connection.execute("DROP ROLE IF EXISTS agent_ro")
