"""Known holes and public reports that concern databases, values and connections: where each one is a test.

Those on models, loops and records are in test_reports.py.
"""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Iterator
from pathlib import Path
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

TESTS = Path(__file__).parents[1]
HERE = "agent/test_known_holes.py"
HOLES = {
    "X01": f"{HERE}::test_a_stack_changes_no_password",
    "X02": f"{HERE}::test_two_queries_are_two_transactions",
    "X03": f"{HERE}::test_ending_every_session_of_the_role_does_not_reach_a_sibling",
    "X04": "agent/sql/test_render.py::test_a_cell_cannot_end_the_rows_a_model_reads",
    "X07": "agent/test_tools.py::test_nothing_outside_the_bundle_is_read",
    "X10": "agent/commands/test_ask_command.py::test_cells_that_a_spreadsheet_would_run_can_be_guarded",
    "X12": f"{HERE}::test_a_rejected_password_is_shown_and_kept_nowhere",
    "X14": "agent/access/test_doctor.py::test_every_right_too_many_is_seen",
    "X15": "agent/sql/test_database.py::test_a_look_alike_in_the_roles_own_schema_hides_nothing",
    "X16": "agent/test_agent.py::test_an_endless_loop_of_the_same_failing_query_ends_and_runs_it_once",
    "X17": f"{HERE}::test_sql_in_a_question_is_text",
    "X19": f"{HERE}::test_a_sort_without_end_leaves_no_disk_full",
    "X20": "agent/mcp/test_http.py::test_who_may_not_come_in_is_refused",
}
"""Hole -> its test."""
REPORTS = {
    19: "agent/sql/test_database.py::test_messages_say_what_helps_next",
    25: "agent/sql/test_database.py::test_client_memory_is_bounded",
    26: "agent/commands/test_cli.py::test_calls_that_cannot_work",
    27: "agent/commands/test_cli_server.py::test_prepare_needs_a_name_where_there_are_several",
    28: "agent/sql/test_database.py::test_messages_say_what_helps_next",
    29: "agent/sql/test_sql_text.py::test_clean",
    31: "compiler/readers/test_catalogue.py::test_tables_are_all_kinds_but_parts_the_systems_and_extensions_own",
    32: "agent/sql/test_database.py::test_partitions_are_not_listed",
    33: "agent/sql/test_values.py::test_exact",
    35: "agent/sql/test_values.py::test_exact",
    37: "agent/sql/test_render.py::test_csv_is_exact",
    38: "agent/sql/test_values.py::test_cells_are_cut_at_characters_and_say_how_long_they_are",
    39: "agent/sql/test_render.py::test_what_is_missing_is_said",
    40: "agent/sql/test_database.py::test_a_killed_backend_is_replaced",
    42: "agent/engines/test_server.py::test_passwords_from_a_env_file",
    43: "agent/commands/test_ask_command.py::test_a_console_of_another_encoding_shows_what_it_can",
    44: "agent/sql/test_database.py::test_a_pooler_that_refuses_startup_options",
    46: "agent/sql/test_values.py::test_any_style_of_the_role",
    47: "agent/sql/test_sql_text.py::test_refused_in_clear_words",
    50: "agent/sql/test_database.py::test_an_unreachable_host_is_given_up_in_time",
    51: "agent/mcp/test_stdio.py::test_nothing_but_the_protocol_goes_to_standard_output",
}
"""Number of a public report -> its test."""
MORE = {
    46: "agent/sql/test_values.py::test_a_database_without_an_encoding",
    40: "agent/sql/test_database.py::test_a_restarted_server",
    37: "agent/sql/test_render.py::test_null_is_neither_empty_nor_its_name",
}
"""A second test where a report has two sides."""


@pytest.mark.parametrize("test", sorted({*HOLES.values(), *REPORTS.values(), *MORE.values()}))
def test_every_test_that_is_named_exists(test: str) -> None:
    file, name = test.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


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
