"""Clients that want more than their share: the others, and health checks, are still answered."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx2
import pytest
from support.command import SCRIPTS
from support.mcp_http import bearer, exchange, initialize, opened
from support.mcp_server import ENDLESS, SECRETS, configured, over_http, post, request, wait_until
from support.workspace import Workspace

QUERY = {"sql": "SELECT 1"}


@contextmanager
def many_files(most: int) -> Iterator[None]:
    """Let this process have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < most:
        pytest.skip(f"this process may have {hard} files open, not {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def idle(port: int, number: int, begin: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that send `begin` and nothing more."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            connection.sendall(begin)
            opened.append(connection)
        yield opened


def health(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
        return int(answer.status)


def calls(port: int, name: str = "", sql: str = ENDLESS) -> bytes:
    return exchange(port, post(port, "run_sql", {"sql": sql}, **(bearer(name) if name else {})), 60)[1]


@pytest.mark.parametrize("begin", [b"", b"POST /mcp HTTP/1.1\r\nHost: loc"], ids=["silent", "half a request"])
def test_more_connections_than_descriptors(shop: Workspace, begin: bytes) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"ulimit -n 1024; exec {SCRIPTS / 'okf-agent'} mcp --no-ask --db shop --http 127.0.0.1:{port}"
    with many_files(2048), subprocess.Popen(["sh", "-c", command], cwd=shop.root, stderr=subprocess.PIPE) as server:
        try:
            wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "the server listens")
            with idle(port, 1150, begin):
                for _ in range(3):
                    assert health(port) == 200
                status, text = exchange(port, post(port, "run_sql", QUERY))
                assert (status, b'"isError":false' in text) == (200, True)
        finally:
            server.send_signal(signal.SIGTERM)
            _, said = server.communicate(timeout=30)
    assert b"Traceback" not in said
    assert b"At most 752 clients at once, not 1000: see `ulimit -n`." in said
    assert len(said) < 1000, said


@pytest.mark.parametrize("begin", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["silent", "half a request"])
def test_idle_connections_give_way(shop: Workspace, begin: bytes) -> None:
    with over_http(configured(shop, max_clients=60)) as running, idle(running.port, 100, begin) as opened:
        assert health(running.port) == 200
        assert exchange(running.port, post(running.port, "run_sql", QUERY))[0] == 200
        opened[0].settimeout(5)
        assert opened[0].recv(1) == b"", "the one that was silent longest was closed"
        opened[-1].sendall(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" if not begin else b"Host: localhost\r\n\r\n"
        )
        assert opened[-1].recv(12) == b"HTTP/1.1 200"


def test_as_many_requests_as_there_may_be_leave_room_for_health_checks(shop: Workspace) -> None:
    with over_http(configured(shop, max_clients=3)) as running, ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(calls, running.port) for _ in range(3)]
        wait_until(lambda: len([q for q in shop.queries() if "endless" in q]) == 3, "three queries run")
        status, text = exchange(running.port, post(running.port, "run_sql", QUERY))
        assert (status, b"mcp.max_clients" in text) == (503, True)
        assert health(running.port) == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/readyz", timeout=10) as answer:
            assert answer.status == 200
        running.stop()
        assert all(b'"isError":true' in each.result(30) for each in waiting)


def test_one_token_s_queries_leave_connections_to_the_others(shop: Workspace) -> None:
    config = configured(shop, connections=6)
    with over_http(config, secrets=SECRETS) as running, ThreadPoolExecutor(36) as pool:
        waiting = [pool.submit(calls, running.port, "alice") for _ in range(36)]
        wait_until(lambda: len([q for q in shop.queries() if "endless" in q]) == 3, "three of six run")
        for _ in range(3):
            begin = time.monotonic()
            assert b'"isError":false' in calls(running.port, "bob", "SELECT 1")
            assert time.monotonic() - begin < 5
        assert len([q for q in shop.queries() if "endless" in q]) == 3
        running.stop()
        assert all(b'"isError":true' in each.result(60) for each in waiting)


def test_one_token_alone_has_all_connections(shop: Workspace) -> None:
    config = configured(shop, connections=4)
    with over_http(config, secrets={"alice": SECRETS["alice"]}) as running, ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(calls, running.port, "alice") for _ in range(6)]
        wait_until(lambda: len([q for q in shop.queries() if "endless" in q]) == 4, "four of four run")
        running.stop()
        assert all(b'"isError":true' in each.result(60) for each in waiting)


def test_one_token_s_sessions_leave_some_to_the_others(shop: Workspace) -> None:
    with over_http(configured(shop, max_sessions=30), secrets=SECRETS) as running:
        alice, bob = bearer("alice"), bearer("bob")
        sessions = [opened(running.url, **alice) for _ in range(15)]
        assert initialize(running.url, **alice).status_code == 503
        initialize(running.url, **alice, **sessions[0])  # again, in a session that is open: that opens none
        for session in sessions[:2]:
            assert httpx2.delete(running.url, headers=alice | session).status_code == 200
        for _ in range(2):
            wait_until(lambda: initialize(running.url, **alice).status_code == 200, "a place has become free", 10)
        assert initialize(running.url, **alice).status_code == 503
        assert [initialize(running.url, **bob).status_code for _ in range(9)] == [200] * 8 + [503]


def test_a_request_that_opens_no_session_takes_no_place(shop: Workspace) -> None:
    with over_http(configured(shop, max_sessions=2)) as running:
        for _ in range(5):
            listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            accept = {"Accept": "application/json, text/event-stream"}
            assert httpx2.post(running.url, json=listed, headers=accept).status_code == 400
        assert [initialize(running.url).status_code for _ in range(3)] == [200, 200, 503]


@pytest.mark.parametrize("stateless", [False, True])
def test_opening_a_session_is_a_call(shop: Workspace, stateless: bool) -> None:
    config = configured(shop, calls_per_minute=3)
    with over_http(config, secrets=SECRETS, stateless=stateless) as running:
        answers = [initialize(running.url, **bearer("alice")).text for _ in range(4)]
        assert ["3 calls a minute" in answer for answer in answers] == [False, False, False, True]
        assert "3 calls a minute" in calls(running.port, "alice", "SELECT 1").decode()
        assert b'"isError":false' in calls(running.port, "bob", "SELECT 1")


def test_each_server_counts_for_itself_from_its_start(shop: Workspace) -> None:
    config = configured(shop, calls_per_minute=1)
    for _ in range(2):
        with over_http(config, secrets=SECRETS) as running, over_http(config, secrets=SECRETS) as other:
            for each in (running, other):
                answers = [calls(each.port, "alice", "SELECT 1") for _ in range(2)]
                assert [b"1 calls a minute" in answer for answer in answers] == [False, True]


def test_a_session_that_is_silent_ends_and_frees_its_place(shop: Workspace) -> None:
    with over_http(configured(shop, session_idle_s=0.5, max_sessions=1)) as running:
        session = opened(running.url)
        assert initialize(running.url).status_code == 503
        wait_until(lambda: initialize(running.url).status_code == 200, "the silent session ends", 20)
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        assert httpx2.post(running.url, json=ping, headers=accept | session).status_code == 404


HOSTS: list[tuple[list[tuple[str, str]], int]] = [
    ([("Host", "localhost")], 200),
    ([("Host", "shop.example")], 200),
    ([("Host", "shop.example:8443")], 200),
    ([("Host", "Shop.Example:8443")], 200),
    ([("Host", "evil.shop.example")], 421),
    ([("Host", "shop.example.evil")], 421),
    ([("Host", "localhost#evil")], 421),
    ([("Host", "localhost/evil")], 421),
    ([("Host", "localhost:80#evil")], 421),
    ([("Host", "localhost:evil")], 421),
    ([("Host", "localhost?evil")], 421),
    ([("Host", "localhost\\evil")], 421),
    ([("Host", "localhost, evil")], 421),
    ([("Host", "")], 421),
    ([("Host", "localhost"), ("Host", "evil.example")], 400),
    ([("Host", "localhost"), ("Origin", "http://localhost:5173")], 200),
    ([("Host", "localhost"), ("Origin", "https://tool.example")], 200),
    ([("Host", "localhost"), ("Origin", "https://tool.example:444")], 403),
    ([("Host", "localhost"), ("Origin", "http://tool.example")], 403),
    ([("Host", "localhost"), ("Origin", "https://evil.example")], 403),
    ([("Host", "localhost"), ("Origin", "http://localhost:80@evil.example")], 403),
    ([("Host", "localhost"), ("Origin", "http://localhost:80/evil")], 403),
    ([("Host", "localhost"), ("Origin", "http://localhost"), ("Origin", "https://evil.example")], 403),
    ([("Host", "localhost"), ("Origin", "http://localhost, https://evil.example")], 403),
]


def test_hosts_and_pages_that_may_call(shop: Workspace) -> None:
    config = configured(shop, allowed_hosts=["shop.example"], allowed_origins=["https://Tool.example/"])
    with over_http(config) as running:
        for headers, status in HOSTS:
            head, _, body = request(running.port, "tools/list", {}).partition(b"\r\n\r\n")
            lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Host")]
            lines += [f"{name}: {value}".encode() for name, value in headers]
            answer = exchange(running.port, b"\r\n".join(lines) + b"\r\n\r\n" + body)
            assert answer[0] == status, (headers, answer)


def test_a_client_that_takes_no_answer_is_cut_off(shop: Workspace) -> None:
    wide = {"sql": "SELECT repeat('x', 1000) FROM generate_series(1, 20)"}
    with over_http(configured(shop, request_timeout_s=1)) as running:
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        with small:
            small.connect(("127.0.0.1", running.port))
            many = post(running.port, "run_sql", wide, Connection="keep-alive")
            begin = time.monotonic()
            with pytest.raises(OSError):
                while time.monotonic() - begin < 30:
                    small.sendall(many)
        assert health(running.port) == 200
