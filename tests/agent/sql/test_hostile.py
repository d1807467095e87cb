"""Hostile, huge and ordinary SQL on a real server, as a hardened role and as one that was wrongly given rights.

tests/data/hostile_sql.jsonl and hostile_more.jsonl: `deny` is refused, `bounded` ends within the limits, `allow`
works, `info` may do either; none of them changes anything, in the database or in the session.
tests/data/hostile_layers.json: what each layer alone stops of what is to be denied.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import lab
from support.memory import held_mb

from okf_agent.access.doctor import ATTACKS
from okf_agent.engines import Server
from okf_agent.sql import sql_text
from okf_agent.sql.database import Database, QueryResult
from okf_agent.sql.query_error import QueryError
from okf_agent.sql.result import describe, wrapped
from okf_agent.sql.session import open_session
from okf_compiler.settings import DatabaseSection

DATA = Path(__file__).parents[2] / "data"
LIMITS = DatabaseSection(statement_timeout_s=1)
"""Of what is huge."""
PATIENT = DatabaseSection(statement_timeout_s=30)
"""Of everything else: the machine may be busy."""
SLACK_S = 4.0
"""Above the limit: a backend that obeys no cancel is left alone after this long; the machine may be busy."""
ADDED_MB = 60
SESSION = (
    "SELECT current_user, current_setting('statement_timeout'), current_setting('role'), "
    "current_setting('default_transaction_read_only'), current_setting('log_statement'), "
    "current_setting('search_path'), (SELECT count(*) FROM pg_prepared_statements), "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_listening_channels())"
)
SECRET = "top"
"""What hidden.secret says."""


def read(name: str) -> list[dict[str, str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CASES = [*read("hostile_sql.jsonl"), *read("hostile_more.jsonl")]
LAYERS = json.loads((DATA / "hostile_layers.json").read_text(encoding="utf-8"))


@dataclass
class Lab:
    """The server, an administrator's connection that hears `ch`, and what `lab` looked like last."""

    server: Server
    admin: psycopg.Connection[Any]
    state: list[tuple[str, str]]


@pytest.fixture(scope="module", params=["18", pytest.param("15", marks=pytest.mark.slow)])
def laboratory(request: pytest.FixtureRequest) -> Iterator[Lab]:
    server: Server = request.getfixturevalue({"18": "postgres", "15": "postgres15"}[request.param])
    assert server.admin is not None
    lab.build(server)
    with psycopg.connect(**server.admin, dbname="lab", autocommit=True) as admin:
        admin.execute("LISTEN ch")
        yield Lab(server, admin, lab.durable(admin))


@dataclass
class Asked:
    """The database as one role sees it, and another session of that role, which must survive."""

    role: str
    database: Database
    sibling: psycopg.Connection[Any]


@pytest.fixture(scope="module", params=["ro", "app"])
def asked(laboratory: Lab, request: pytest.FixtureRequest) -> Iterator[Asked]:
    params = lab.as_role(laboratory.server, request.param)
    with (
        psycopg.connect(**params, dbname="lab", autocommit=True) as sibling,
        Database(params, "lab", PATIENT) as database,
    ):
        yield Asked(request.param, database, sibling)


def of(*wants: str) -> Any:
    cases = [case for case in CASES if case["want"] in wants]
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def tried(asked: Asked, case: dict[str, str]) -> QueryResult | QueryError:
    """The result or the refusal, `ro` in the text meaning the role that asks."""
    sql = re.sub(r"(user=|ROLE |BY |TO )ro\b", rf"\g<1>{asked.role}", case["sql"])
    try:
        return asked.database.run(sql)
    except QueryError as error:
        return error


@pytest.fixture
def unchanged(laboratory: Lab, asked: Asked) -> Iterator[None]:
    """Nothing durable, nothing in the session, no sibling's connection, no message to others has changed."""
    session = asked.database.run(SESSION).rows
    yield
    assert asked.database.run(SESSION).rows == session
    before, laboratory.state = laboratory.state, lab.durable(laboratory.admin)
    assert laboratory.state == before
    assert asked.sibling.execute("SELECT 1").fetchone() == (1,)
    assert not list(laboratory.admin.notifies(timeout=0))


@of("deny")
@pytest.mark.usefixtures("unchanged")
def test_what_acts_is_refused(asked: Asked, case: dict[str, str]) -> None:
    answer = tried(asked, case)
    assert isinstance(answer, QueryError), f"ran: {answer}"
    assert SECRET not in str(answer)
    assert answer.sqlstate in ("", "42501", "25006", "42601", "0A000", "42704", "42P01", "26000", "42883"), answer


@of("info")
@pytest.mark.usefixtures("unchanged")
def test_what_asks_learns_nothing_hidden(asked: Asked, case: dict[str, str]) -> None:
    answer = tried(asked, case)
    cells = [c for row in answer.rows for c in row] if isinstance(answer, QueryResult) else [str(answer)]
    assert SECRET not in cells


@of("allow")
def test_ordinary_queries_work(asked: Asked, case: dict[str, str]) -> None:
    answer = tried(asked, case)
    assert isinstance(answer, QueryResult), answer


def test_the_page_on_security_has_these_numbers() -> None:
    page = (DATA.parents[1] / "docs" / "security.md").read_text(encoding="utf-8")
    for_all = sum(len(stopping.split()) == 4 for stopping in LAYERS.values())
    text = " ".join(page.split())
    assert f"Each of the {len(LAYERS)} is stopped" in text and f"{for_all} of them by all four" in text
    assert f"{len(CASES)} inputs to a real server" in text and f"tries {len(ATTACKS)} short" in text


@of("bounded")
@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
def test_what_is_huge_is_bounded(asked: Asked, case: dict[str, str]) -> None:
    asked.database.limits = LIMITS
    before, started = held_mb(), time.monotonic()
    try:
        tried(asked, case)
    finally:
        asked.database.limits = PATIENT
    assert time.monotonic() - started < LIMITS.statement_timeout_s + SLACK_S
    assert held_mb() - before < ADDED_MB


# What each layer alone stops: `gate` the text before any server, `brackets` the SELECT around the query and the
# extended protocol, `transaction` READ ONLY over the extended protocol, `grants` the hardened role and nothing
# else, over the simple protocol in autocommit.


@pytest.mark.slow
def test_each_layer_alone_stops_what_the_table_says(laboratory: Lab) -> None:
    found = {case["id"]: layers(laboratory, case["sql"]) for case in CASES if case["want"] == "deny"}
    assert found == LAYERS
    assert all(len(stopping.split()) > 1 for stopping in found.values()), "no input is left to one layer"


def layers(laboratory: Lab, sql: str) -> str:
    server = laboratory.server
    stops = {
        "gate": gate(sql),
        "brackets": brackets(server, sql),
        "transaction": transaction(server, sql),
        "grants": grants(server, sql),
    }
    return " ".join(name for name, stopped in stops.items() if stopped)


def gate(sql: str) -> bool:
    try:
        sql_text.refuse_functions(sql_text.parse(sql).text, (), ())
    except sql_text.SqlTextError:
        return True
    return False


def brackets(server: Server, sql: str) -> bool:
    """As the role with write rights, in a transaction that may write."""
    session = open_session(lab.as_role(server, "app"), "lab")
    try:
        session.execute("BEGIN READ WRITE; SET LOCAL statement_timeout = 2000")
        shape = describe(session, sql)
        session.pgconn.send_query_params(wrapped(sql, shape, 100).encode(), None)
        session.request()
    except (psycopg.Error, AssertionError):
        return True
    finally:
        session.close()
    return False


def transaction(server: Server, sql: str) -> bool:
    """As the role with write rights, READ ONLY and rolled back, without the brackets."""
    session = open_session(lab.as_role(server, "app"), "lab")
    try:
        session.execute("BEGIN READ ONLY; SET LOCAL statement_timeout = 2000")
        session.pgconn.send_query_params(sql.encode(), None)
        session.request()
    except psycopg.Error:
        return True
    finally:
        session.close()
    return False


def grants(server: Server, sql: str) -> bool:
    """As the hardened role, the plain way: simple protocol, autocommit. What it changes for good is mended."""
    assert server.admin is not None
    refused = False
    with psycopg.connect(**server.admin, dbname="lab", autocommit=True) as admin:
        before = lab.durable(admin)
        plain = psycopg.connect(**lab.as_role(server, "ro"), dbname="lab", autocommit=True)
        try:
            plain.execute("SET statement_timeout = 2000")
            plain.execute(sql.encode())
        except psycopg.Error:
            refused = True
        finally:
            plain.close()
        changed = lab.durable(admin) != before
    if changed:
        lab.build(server)
    return refused and not changed
