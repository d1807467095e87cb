"""Clients over HTTP: who is let in, what each may use, and what is left behind when one misbehaves or leaves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from mcp import MCPError
from support.command import SCRIPTS, run_inside
from support.mcp_http import bearer, exchange, opened, read_answer
from support.mcp_server import (
    ENDLESS,
    SECRETS,
    Running,
    add_store,
    client,
    configured,
    over_http,
    post,
    request,
    run,
    wait_until,
)
from support.workspace import SQL, Workspace

from okf_agent.engines import embedded
from okf_agent.tools import Context, read_file


def connections(workspace: Workspace) -> int:
    """How many the agent's role holds."""
    admin = embedded.start(workspace.root, "agent_ro").admin
    assert admin is not None
    with psycopg.connect(**admin, dbname="postgres") as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'agent_ro'").fetchone()
    assert found
    return int(found[0])


@pytest.fixture
def guarded(shop: Workspace) -> Iterator[Running]:
    """A server with two tokens, of which one sees the shop alone."""
    add_store(shop)
    config = configured(shop, tokens={"bob": {"databases": ["store"]}})
    with over_http(config, names=("shop", "store"), secrets=SECRETS) as running:
        yield running


def test_the_sdk_s_client_has_one_session_and_one_record(shop: Workspace, guarded: Running) -> None:
    async def talk() -> None:
        async with client(guarded.url, SECRETS["alice"]) as alice:
            assert "/knowledge/active-customer.md" in alice.instructions
            read = await alice.call_tool("read_file", {"database": "shop", "paths": ["/knowledge/active-customer"]})
            bundle = guarded.service.databases.bundles["shop"]
            assert (
                read.content[0].text == read_file.run({"paths": ["/knowledge/active-customer"]}, Context(bundle)).text
            )
            found = await alice.call_tool("search", {"database": "shop", "query": "active"})
            assert "active-customer" in found.content[0].text
            rows = await alice.call_tool("run_sql", {"database": "shop", "sql": SQL})
            assert rows.structured_content["rows"] == [["52"]]

    run(talk)
    wait_until(lambda: (shop.root / "runs" / "runs.jsonl").exists() and shop.records(), "the session's record")
    (record,) = shop.records()
    assert record["client"] == "mcp tester 1.2, token alice"
    assert record["tool_calls"] == {"read_file": 1, "search": 1, "run_sql": 1}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_without_sessions_each_call_is_a_record(shop: Workspace, mode: str) -> None:
    with over_http(configured(shop), secrets=SECRETS, stateless=True) as running:

        async def talk() -> None:
            async with client(running.url, SECRETS["alice"], mode) as alice:
                for _ in range(2):
                    assert not (await alice.call_tool("run_sql", {"sql": "SELECT 1"})).is_error

        run(talk)
    records = shop.records()
    assert [record["tool_calls"] for record in records] == [{"run_sql": 1}] * 2
    assert all("token alice" in record["client"] for record in records)
    assert (records[0]["client"] == "mcp tester 1.2, token alice") == (mode != "legacy")


def test_a_token_sees_its_databases_and_no_others(guarded: Running) -> None:
    async def talk() -> None:
        async with client(guarded.url, SECRETS["bob"]) as bob:
            assert "shop" not in bob.instructions.partition("Databases: ")[2].partition("\n")[0]
            assert (await bob.call_tool("list_databases", {})).structured_content["databases"][0]["name"] == "store"
            assert "database" not in (await bob.list_tools()).tools[0].input_schema["properties"]
            refused = await bob.call_tool("run_sql", {"database": "shop", "sql": "SELECT 1"})
            assert refused.is_error
            assert "There is no database 'shop' here" in refused.content[0].text
            assert all(each.uri.startswith("okf://store/") for each in (await bob.list_resources()).resources)
            with pytest.raises(MCPError, match="There is no database 'shop' here"):
                await bob.read_resource("okf://shop/index.md")

    run(talk)


HEADERS: list[tuple[dict[str, str], int]] = [
    ({}, 401),
    ({"Authorization": "Bearer wrong"}, 401),
    ({"Authorization": f"Basic {SECRETS['alice']}"}, 401),
    ({"Authorization": SECRETS["alice"]}, 401),
    (bearer("alice"), 200),
    (bearer("alice") | {"Origin": "https://evil.example"}, 403),
    (bearer("alice") | {"Origin": "null"}, 403),
    (bearer("alice") | {"Origin": "http://localhost.evil.example"}, 403),
    (bearer("alice") | {"Origin": "http://localhost:3000"}, 200),
    (bearer("alice") | {"Origin": "http://[::1]:3000"}, 200),
    (bearer("alice") | {"Origin": "HTTP://LOCALHOST"}, 200),
    (bearer("alice") | {"Origin": "http://[::1"}, 403),
    (bearer("alice") | {"Origin": "http://localhost@evil.example"}, 403),
    (bearer("alice") | {"Host": "rebound.example"}, 421),
    (bearer("alice") | {"Host": "[::1]:8765"}, 200),
    (bearer("alice") | {"Host": "LOCALHOST:1"}, 200),
    (bearer("alice") | {"Host": "localhost."}, 421),
    (bearer("alice") | {"Host": "me@localhost"}, 421),
    (bearer("alice") | {"Host": "[::1"}, 421),
    (bearer("alice") | {"Host": "127.0.0.1.evil.example:80"}, 421),
    (bearer("alice") | {"Host": "localhost"}, 200),
    (bearer("alice") | {"Content-Length": "50000000"}, 413),
]


def test_who_may_not_come_in_is_refused(guarded: Running, capfd: pytest.CaptureFixture[str]) -> None:
    for headers, status in HEADERS:
        answer = exchange(guarded.port, request(guarded.port, "tools/list", {}, **headers))
        assert answer[0] == status, (headers, answer)
    said = "".join(capfd.readouterr())
    assert not any(secret in said for secret in SECRETS.values())


def test_a_session_belongs_to_the_token_that_opened_it(guarded: Running) -> None:
    session = opened(guarded.url, **bearer("alice"))
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    with httpx2.Client(headers={"Accept": "application/json, text/event-stream"} | session) as web:
        for name, status in (("alice", 200), ("bob", 404)):
            assert web.post(guarded.url, json=ping, headers=bearer(name)).status_code == status


def test_a_huge_request_is_refused_before_it_is_sent(guarded: Running) -> None:
    head = request(guarded.port, "tools/list", {}, **bearer("alice"), **{"Content-Length": "50000000"})
    head = head.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as connection:
        connection.sendall(head)
        assert read_answer(connection)[0] == 413
    chunked = head.replace(b"Content-Length: 50000000", b"Transfer-Encoding: chunked")
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as connection:
        connection.sendall(chunked)
        with pytest.raises(OSError), connection:
            for _ in range(50):
                connection.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")
                time.sleep(0.01)
    assert time.monotonic() - begin < 10


def test_a_slow_client_is_left(shop: Workspace) -> None:
    with over_http(configured(shop, request_timeout_s=0.5)) as running:
        whole = post(running.port, "run_sql", {"sql": "SELECT 1"})
        for begin, status in ((b"", 0), (whole[:40], 0), (whole[:-20], 408)):
            with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
                connection.sendall(begin)
                assert read_answer(connection)[0] == status, begin[:50]
        assert exchange(running.port, whole)[0] == 200


def test_health_and_readiness_need_no_token(guarded: Running) -> None:
    for path, text in (("healthz", "alive"), ("readyz", "ready")):
        with urllib.request.urlopen(f"http://127.0.0.1:{guarded.port}/{path}") as answer:
            assert json.load(answer) == {"status": text}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"calls_per_minute": 2}, "2 calls a minute"),
        ({"rows_per_hour": 20}, "20 rows an hour"),
        ({"seconds_per_hour": 0.001}, "seconds of queries an hour"),
    ],
)
def test_each_token_has_its_own_limits(shop: Workspace, limits: dict[str, float], said: str) -> None:
    with over_http(configured(shop, **limits), secrets=SECRETS) as running:

        async def talk() -> None:
            query = {"sql": "SELECT * FROM generate_series(1, 10) ORDER BY 1"}
            async with client(running.url, SECRETS["alice"]) as alice, client(running.url, SECRETS["bob"]) as bob:
                for _ in range(3):
                    last = await alice.call_tool("run_sql", query)
                assert last.is_error
                assert said in last.content[0].text
                assert "Try again in" in last.content[0].text
                assert not (await bob.call_tool("run_sql", query)).is_error

        run(talk)


@pytest.mark.slow
def test_two_hundred_clients_share_a_few_connections(shop: Workspace) -> None:
    with over_http(configured(shop, connections=5)) as running:
        body = post(running.port, "run_sql", {"sql": "SELECT count(*) FROM orders"})
        most = 0
        with ThreadPoolExecutor(200) as clients:
            answers = [clients.submit(exchange, running.port, body, 60) for _ in range(200)]
            while not all(answer.done() for answer in answers):
                most = max(most, connections(shop))
                time.sleep(0.05)
        results = [answer.result() for answer in answers]
        assert [status for status, _ in results] == [200] * 200
        assert all(b'"isError":false' in body for _, body in results)
        assert 0 < most <= 5
    wait_until(lambda: connections(shop) == 0, "the connections are closed")
    assert len(shop.records()) == 200


@pytest.mark.parametrize("way", ["program", "session", "no session"])
def test_the_query_of_a_client_that_vanishes_is_stopped(shop: Workspace, way: str) -> None:
    with over_http(configured(shop)) as running:
        if way == "program":

            async def talk() -> None:
                async with client(running.url, mode="legacy") as own, anyio.create_task_group() as tasks:
                    tasks.start_soon(own.call_tool, "run_sql", {"sql": ENDLESS})
                    await anyio.to_thread.run_sync(wait_until, shop.queries, "the query runs")
                    raise KeyError  # the client's program fails, and its connections close

            with pytest.raises(BaseExceptionGroup):
                run(talk)
        else:
            call = post(running.port, "run_sql", {"sql": ENDLESS}, **(opened(running.url) if way == "session" else {}))
            with socket.create_connection(("127.0.0.1", running.port)) as connection:
                connection.sendall(call)
                wait_until(shop.queries, "the query runs")
        wait_until(lambda: not shop.queries(), "the query has ended")
    (record,) = shop.records()
    assert (record["stop_reason"], record["tool_calls"]) == ("interrupted", {"run_sql": 1})


def test_a_session_that_is_silent_ends_with_a_record_and_goes_on_in_another(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("okf_agent.mcp_server.server.LOOK_SECONDS", 0.05)
    with over_http(configured(shop, session_idle_s=0.5)) as running:

        async def talk() -> None:
            async with client(running.url) as own:  # its open stream keeps the session itself
                await own.call_tool("read_file", {"paths": ["/"]})
                await anyio.to_thread.run_sync(wait_until, (shop.root / "runs" / "runs.jsonl").exists, "the record")
                await own.call_tool("read_file", {"paths": ["/"]})

        run(talk)
    first, second = shop.records()
    assert second["follows"] == first["run_id"]


@contextmanager
def process(shop: Workspace, **env: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(SCRIPTS / "okf-agent"), "mcp", "--db", "shop", "--http", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=shop.root, stderr=subprocess.PIPE, encoding="utf-8", env=os.environ | env)
    try:
        wait_until(lambda: _listens(port), "the server listens", 30)
        yield server, port
    finally:
        server.kill()
        server.communicate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_that_is_stopped_in_mid_query_leaves_nothing(shop: Workspace) -> None:
    secret = SECRETS["alice"]
    with process(shop, OKF_MCP_TOKENS=f"alice={secret}") as (server, port), ThreadPoolExecutor() as clients:
        body = post(port, "run_sql", {"sql": ENDLESS}, Authorization=f"Bearer {secret}")
        answer = clients.submit(exchange, port, body)
        wait_until(shop.queries, "the query runs")
        server.send_signal(signal.SIGTERM)
        status, text = answer.result(20)
        assert status == 200
        assert b'"isError":true' in text
        assert server.wait(20) == -signal.SIGTERM
        assert server.stderr
        assert secret not in server.stderr.read()
    assert not shop.queries()
    assert connections(shop) == 0
    (record,) = shop.records()
    assert (record["stop_reason"], record["client"]) == ("interrupted", "mcp raw 0, token alice")


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["--http", "0.0.0.0:8765"], {}, "no token is set"),
        (["--http", "8765"], {}, "write an address and a port"),
        (["--http", "nonsense", "--print-config", "claude"], {}, "write an address and a port"),
        (["--http", "127.0.0.1:0"], {"OKF_MCP_TOKENS": "alice=short"}, "shorter than 16 characters"),
        (["--http", "127.0.0.1:0"], {"OKF_MCP_TOKENS": "no-name-but-long-enough"}, "must be name=token"),
        (["--http", "127.0.0.1:0", "--tokens", "nowhere"], {}, "cannot be read"),
        (["--stateless"], {}, "go with --http"),
        (["--set", "mcp.connections=1000"], {}, "must be below database.connection_limit"),
        (["--db", "shp"], {}, "did you mean 'shop'?"),
        (
            ["--http", "127.0.0.1:0", "--set", "mcp.tokens={alcie: {databases: [shop]}}"],
            {"OKF_MCP_TOKENS": "alice=long-enough-for-us-all"},
            "there is no such token; did you mean 'alice'?",
        ),
        (
            ["--http", "127.0.0.1:0", "--set", "mcp.tokens={alice: {databases: [shp]}}"],
            {"OKF_MCP_TOKENS": "alice=long-enough-for-us-all"},
            "is not served; did you mean 'shop'?",
        ),
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    shop: Workspace, arguments: list[str], env: dict[str, Any], said: str
) -> None:
    ended = run_inside("mcp", *arguments, cwd=shop.root, env=env)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_an_address_that_is_not_there_is_no_traceback(shop: Workspace) -> None:
    env = {"OKF_MCP_TOKENS": "alice=long-enough-for-us-all"}
    for host in ("a..b", "x" * 70, "192.0.2.1"):
        ended = run_inside("mcp", "--http", f"{host}:8765", cwd=shop.root, env=env)
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
        assert f"--http {host}:8765 cannot be listened on: " in ended.stderr
