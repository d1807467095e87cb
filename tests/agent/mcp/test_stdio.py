"""Clients that start the server themselves: the protocol alone on standard output, and every end leaves a record."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from contextlib import suppress
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.command import SCRIPTS, run_inside
from support.endpoint import Endpoint, error
from support.mcp_lines import started
from support.mcp_server import ENDLESS, INFO, run, wait_until
from support.workspace import SQL, Workspace

from okf_agent.tools import Context, read_file


def test_the_sdk_s_client_does_the_whole_way(shop: Workspace) -> None:
    command = StdioServerParameters(command=str(SCRIPTS / "okf-agent"), args=["mcp", "--db", "shop"], cwd=shop.root)

    async def talk() -> None:
        async with Client(command, client_info=INFO) as client:
            assert (await client.list_tools()).tools
            read = await client.call_tool("read_file", {"paths": ["/knowledge/active-customer"]})
            bundle = shop.root / "bundles" / "compiled" / "shop"
            own = read_file.run({"paths": ["/knowledge/active-customer"]}, Context(bundle))
            assert read.content[0].text == own.text
            assert "active-customer" in (await client.call_tool("search", {"query": "active"})).content[0].text
            rows = await client.call_tool("run_sql", {"sql": SQL})
            assert rows.structured_content["rows"] == [["52"]]

    run(talk)
    (record,) = shop.records()
    assert (record["client"], record["stop_reason"]) == ("mcp tester 1.2", "no_tool_calls")
    assert record["tool_calls"] == {"read_file": 1, "search": 1, "run_sql": 1}


@pytest.mark.parametrize("end", ["leaves", "SIGTERM"])
def test_a_query_does_not_outlive_its_client_or_its_server(shop: Workspace, end: str) -> None:
    with started(shop) as client:
        client.hello()
        client.call("read_file", {"paths": ["/"]}, 1)
        client.answer(1)
        client.call("run_sql", {"sql": ENDLESS}, 2)
        wait_until(shop.queries, "the query runs")
        if end == "leaves":
            assert client.process.stdin
            client.process.stdin.close()
        else:
            client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(60) == (0 if end == "leaves" else 143)
        assert client.process.stdout
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.process.stdout)
    wait_until(lambda: not shop.queries(), "the query has ended")
    (record,) = shop.records()
    assert record["stop_reason"] == "interrupted"
    assert record["tool_calls"] == {"read_file": 1, "run_sql": 1}


def test_a_client_that_hears_no_more_ends_its_server(shop: Workspace) -> None:
    """It keeps its own end of standard input open, so that nothing but the failed answer tells of it."""
    with started(shop) as client:
        client.hello()
        client.call("run_sql", {"sql": ENDLESS}, 1)
        wait_until(shop.queries, "the query runs")
        assert client.process.stdout
        client.process.stdout.close()
        with suppress(BrokenPipeError):
            for number in range(2, 20):
                client.call("read_file", {"paths": ["/"]}, number)
        assert client.process.wait(30) is not None
        assert client.process.stderr
        assert "Traceback" not in client.process.stderr.read()
    wait_until(lambda: not shop.queries(), "the query has ended")
    (record,) = shop.records()
    assert record["stop_reason"] == "interrupted"


@pytest.mark.slow
def test_a_client_that_takes_no_answers_is_left(shop: Workspace) -> None:
    """It has closed its own end, and never reads the answers that fill the pipe."""
    with started(shop) as client:
        client.hello()
        for number in range(1, 61):
            client.call("run_sql", {"sql": "SELECT repeat('x', 1000) FROM generate_series(1, 20)"}, number)
        steps = shop.root / "runs" / "steps"
        wait_until(
            lambda: sum(f.read_text(encoding="utf-8").count("ToolFinished") for f in steps.glob("*.jsonl")) > 10,
            "there are more answers than a pipe holds",
        )
        assert client.process.stdin
        client.process.stdin.close()
        assert client.process.wait(60) == 1
        assert client.process.stderr
        assert "takes no answers" in client.process.stderr.read()
    (record,) = shop.records()
    assert record["tool_calls"]["run_sql"] > 0


def test_a_cancel_between_garbage_still_stops_its_query(shop: Workspace) -> None:
    garbage = [
        "",
        "not json",
        "{",
        "[]",
        "null",
        '{"jsonrpc": "2.0"}',
        '"\\ud800"',
        "[" * 5_000,
        "\x00\ufffd",
        "x" * 100_000,
    ]

    def endless() -> list[str]:
        """The query itself, not one that a new session asks for its own sake."""
        return [query for query in shop.queries() if "endless" in query]

    with started(shop) as client:
        client.hello()
        assert client.process.stdin
        for line in garbage:
            client.process.stdin.write(line + "\n")
        client.call("run_sql", {"sql": ENDLESS}, 1)
        wait_until(lambda: endless() != [], "the query runs")
        for line in garbage:
            client.process.stdin.write(line + "\n")
        for wrong in ({"requestId": 99}, {"requestId": "one"}, {"requestId": [1]}, {}):  # the SDK takes "1" for 1
            client.send("notifications/cancelled", wrong)
        client.process.stdin.flush()
        client.send("ping", {}, 2)
        client.answer(2)
        assert endless(), "none of these names the call"
        client.send("notifications/cancelled", {"requestId": 1, "reason": "over"})
        for line in garbage:
            client.process.stdin.write(line + "\n")
        client.process.stdin.flush()
        wait_until(lambda: not shop.queries(), "the query has ended")
        client.call("run_sql", {"sql": "SELECT 1"}, 3)
        assert not client.answer(3)["result"]["isError"]


@pytest.mark.slow
def test_the_record_of_a_server_that_was_killed_is_closed_at_the_next_start(shop: Workspace) -> None:
    with started(shop) as client:
        client.hello()
        client.call("read_file", {"paths": ["/"]}, 1)
        client.answer(1)
        steps = shop.root / "runs" / "steps"
        wait_until(lambda: any("ToolFinished" in f.read_text() for f in steps.glob("*.jsonl")), "the step is kept")
        client.process.kill()
        client.process.wait()
    assert not (shop.root / "runs" / "runs.jsonl").exists()
    with started(shop) as client:
        client.hello()
    (record,) = shop.records()
    assert (record["stop_reason"], record["tool_calls"]) == ("interrupted", {"read_file": 1})


@pytest.mark.slow
def test_nothing_but_the_protocol_goes_to_standard_output(shop: Workspace) -> None:
    with Endpoint([error(500, "out of order")], forever=True) as endpoint:
        shop.configure(endpoint.url)
        with started(shop) as client:
            client.hello()
            client.call("ask", {"question": "How many customers?"}, 1)  # LiteLLM has words of its own for an error
            assert client.answer(1)["result"]["isError"]
            assert client.process.stdin
            client.process.stdin.close()
            assert client.process.stdout
            assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.process.stdout)
    assert [record["stop_reason"] for record in shop.records()] == ["error", "no_tool_calls"]


def test_without_the_extra_the_command_names_it(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else real(name))
    ended = run_inside("mcp", cwd=shop.root)
    assert ended.returncode == 2
    assert "pip install 'okf-sql-agent[mcp]'" in ended.stderr


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode", "codex", "goose"])
@pytest.mark.parametrize("http", [False, True])
def test_the_configuration_of_a_client_starts_or_reaches_the_server(shop: Workspace, client: str, http: bool) -> None:
    options = ["--http", "127.0.0.1:8765"] if http else ["--db", "shop"]
    env = {"OKF_MCP_TOKENS": "alice=a-secret-that-nobody-sees"}
    ended = run_inside("mcp", *options, "--print-config", client, cwd=shop.root, env=env)
    assert ended.returncode == 0, ended.stderr
    assert "a-secret" not in ended.stdout
    if http:
        assert "http://127.0.0.1:8765/mcp" in ended.stdout
        assert "OKF_MCP_TOKEN" in ended.stdout
        return
    entry = _entry(client, ended.stdout)
    command = [entry.get("command") or entry["cmd"], *entry["args"]]
    assert command[1:] == ["mcp", "--config", str(shop.root / "config.yaml"), "--db", "shop"]
    assert os.access(command[0], os.X_OK)


def _entry(client: str, text: str) -> dict[str, Any]:
    if client == "codex":
        import tomllib

        return tomllib.loads(text)["mcp_servers"]["okf"]  # type: ignore[no-any-return]
    if client == "goose":
        import yaml

        return yaml.safe_load(text)["extensions"]["okf"]  # type: ignore[no-any-return]
    return json.loads(text)["servers" if client == "vscode" else "mcpServers"]["okf"]  # type: ignore[no-any-return]
