"""Known holes of SQL agents that no layer alone closes: passwords, transactions, siblings, disks, questions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from support import lab
from support.command import run
from support.endpoint import submit
from support.workspace import SQL, Workspace, workspace

from okf_agent.access.role import harden
from okf_agent.access.role_sql import RoleSpec
from okf_agent.engines import Server
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.settings import DatabaseSection


@pytest.fixture(scope="module")
def server(postgres: Server) -> Server:
    """With a database whose roles are `keeper`, who may write to its table, and `reader`, who is hardened."""
    assert postgres.admin is not None
    lab.reader_of(postgres, "holes", "CREATE TABLE orders (id int); INSERT INTO orders SELECT generate_series(1, 9)")
    with psycopg.connect(**postgres.admin, dbname="holes", autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS keeper")
        admin.execute("CREATE ROLE keeper LOGIN; GRANT SELECT, INSERT, DELETE ON orders TO keeper")
    return postgres


@pytest.fixture(params=["keeper", "reader"])
def params(server: Server, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**server.agent, "user": request.param}


@pytest.fixture
def database(params: dict[str, Any]) -> Iterator[Database]:
    with Database(params, "holes", DatabaseSection()) as opened:
        yield opened


def stored_password(server: Server, role: str) -> Any:
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="holes") as admin:
        return admin.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [role]).fetchone()


def test_a_stack_changes_no_password(server: Server, params: dict[str, Any], database: Database) -> None:
    before = stored_password(server, params["user"])
    stack = "ROLLBACK; BEGIN READ WRITE; ALTER ROLE current_user PASSWORD 'pwn'; COMMIT"
    for sql in (stack, f"SELECT 1; {stack}", "ALTER ROLE current_user PASSWORD 'pwn'"):
        with pytest.raises(QueryError) as refused:
            database.run(sql)
        assert refused.value.never
    assert stored_password(server, params["user"]) == before


def test_two_queries_are_two_transactions(database: Database) -> None:
    for sql in ("SET TRANSACTION READ WRITE", "DELETE FROM orders", "WITH gone AS (DELETE FROM orders) SELECT 1"):
        with pytest.raises(QueryError):
            database.run(sql)
    first = "SELECT current_setting('transaction_read_only'), pg_current_snapshot()::text <> '', count(*) FROM orders"
    assert database.run(first).rows == (("on", "t", "9"),)


def test_ending_every_session_of_the_role_does_not_reach_a_sibling(params: dict[str, Any]) -> None:
    everyone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user"
    found: list[Any] = []
    with Database(params, "holes", DatabaseSection()) as sibling, Database(params, "holes", DatabaseSection()) as other:
        slow = "SELECT count(*) FROM generate_series(1, 2000000)"
        thread = threading.Thread(target=lambda: found.append(sibling.run(slow).rows))
        thread.start()
        with pytest.raises(QueryError, match="never be allowed"):
            other.run(everyone)
        thread.join()
    assert found == [(("2000000",),)]


def test_a_sort_without_end_leaves_no_disk_full(server: Server) -> None:
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="holes", autocommit=True) as admin:
        harden(admin, RoleSpec(role="reader", database="holes", temp_file_limit_mb=20))
    params = {**server.agent, "user": "reader"}
    with Database(params, "holes", DatabaseSection(statement_timeout_s=60)) as database:
        with pytest.raises(QueryError, match="53400") as refused:
            database.run("SELECT * FROM generate_series(1, 1e9) ORDER BY random()")
        assert not refused.value.passing
        with pytest.raises(QueryError, match="never be allowed"):
            database.run("SET temp_file_limit = -1")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with workspace(tmp_path_factory.mktemp("holes")) as made:
        yield made


def test_sql_in_a_question_is_text(shop: Workspace) -> None:
    question = "'; DROP TABLE orders; --"
    for _ in range(2):
        result = shop.agent("ask", question, script=[submit(SQL, "52 customers are active.")])
        assert result.returncode == 0, result.stderr
        record = shop.records()[-1]
        assert (record["question"], record["answer"]["rows_total"], record["sql_attempts"]) == (question, 1, 0)


def test_a_rejected_password_is_shown_and_kept_nowhere(shop: Workspace) -> None:
    """Neither by a server that knows no such role nor where there is no server."""
    secrets = {"AGENT_DB_PASSWORD": "agent:p@ss#1", "POSTGRES_PASSWORD": "boss:p@ss#2"}
    env = {**secrets, "POSTGRES_USER": "nobody_there", "PGCONNECT_TIMEOUT": "2"}
    shop.agent("ask", "How many?", script=[submit(SQL, "52")])
    config = json.loads((shop.root / "config.yaml").read_text(encoding="utf-8"))
    socket = shop.root / ".okf" / "postgres"
    for place in ({"host": str(socket), "port": 5432}, {"host": "127.0.0.1", "port": 1}):
        database = {"engine": "server", **place}
        (shop.root / "config.yaml").write_text(json.dumps({**config, "database": database}), encoding="utf-8")
        for command in (["ask", "How many?", "--db", "shop"], ["doctor", "shop"], ["prepare", "shop"]):
            result = run("okf-agent", *command, cwd=shop.root, env=env)
            assert result.returncode == 1
            files = [f.read_text(encoding="utf-8", errors="replace") for f in (shop.root / "runs").rglob("*.jsonl")]
            for text in (result.stdout, result.stderr, *files):
                assert not any(secret in text for secret in secrets.values())


def test_the_password_of_a_models_address_is_shown_and_kept_nowhere(shop: Workspace) -> None:
    shop.configure("http://ann:s3cret-9@127.0.0.1:1/v1")
    for options in ((), ("--json",)):
        result = run("okf-agent", "ask", "How many?", "--db", "shop", *options, cwd=shop.root)
        assert result.returncode == 1 and "127.0.0.1:1" in result.stdout + result.stderr
        files = [f.read_text(encoding="utf-8", errors="replace") for f in (shop.root / "runs").rglob("*.jsonl")]
        assert not any("s3cret" in text for text in (result.stdout, result.stderr, *files))
