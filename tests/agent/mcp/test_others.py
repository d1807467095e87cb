"""Clients that are none of ours, and the whole way over a database of LiveSQLBench through every door."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.command import SCRIPTS, run_inside
from support.mcp_server import INFO, SECRETS, client, configured, over_http, run, service
from support.workspace import SQL, Workspace
from support.workspace import workspace as make

from okf_agent.tools import Context, Tool, read_file, run_sql, search

pytestmark = pytest.mark.slow
INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
FASTMCP = "fastmcp==4.2.3"
CLIENT = Path(__file__).parents[2] / "support" / "fastmcp_client.py"
CALLS = {
    "list_databases": {},
    "read_file": {"paths": '["/knowledge/active-customer"]'},
    "search": {"query": "active customer"},
    "find_value": {"values": '["shipped"]'},
    "run_sql": {"sql": SQL},
}
RELIEF: list[tuple[Tool, dict[str, Any]]] = [
    (read_file.tool(), {"paths": ["/index.md"]}),
    (search.tool(), {"query": "resource utilization"}),
    (read_file.tool(), {"paths": ["/knowledge", "/tables"]}),
    (run_sql.tool(20), {"sql": "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"}),
    (run_sql.tool(20), {"sql": "SELECT * FROM operations ORDER BY 1"}),
    (run_sql.tool(20), {"sql": "SELECT nothing FROM operations"}),
]


def _run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False, **options)


@pytest.fixture(scope="module")
def inspector() -> str:
    """The inspector's program, fetched once."""
    if not shutil.which("npx"):
        pytest.skip("no node: npx is missing")
    command = ["npx", "--prefer-offline", "--yes", f"--package={INSPECTOR}", "which", "mcp-inspector"]
    try:
        found = _run(command)
    except subprocess.TimeoutExpired:
        pytest.skip("the inspector could not be fetched in two minutes")
    if found.returncode:
        pytest.skip(f"the inspector cannot be fetched: {found.stderr[-300:]}")
    return found.stdout.strip().splitlines()[-1]


def test_the_inspector_lists_and_calls_every_tool(shop: Workspace, inspector: str) -> None:
    def inspect(*arguments: str) -> dict[str, Any]:
        ended = subprocess.run(
            [inspector, "--cli", *arguments],
            cwd=shop.root,
            capture_output=True,
            encoding="utf-8",
            timeout=90,
            check=True,
        )
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    with over_http(configured(shop)) as running:
        listed = inspect(running.url, "--method", "tools/list")
        assert {tool["name"] for tool in listed["tools"]} == set(CALLS)
        for name, arguments in CALLS.items():
            given = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
            result = inspect(running.url, "--method", "tools/call", "--tool-name", name, *given)
            # Nothing has been measured in the shop, so find_value says how to do that.
            assert result.get("isError", False) == (name == "find_value"), (name, result)
    over_stdio = inspect(str(SCRIPTS / "okf-agent"), "mcp", "--db", "shop", "--method", "resources/list")
    assert "okf://shop/knowledge/active-customer.md" in [each["uri"] for each in over_stdio["resources"]]


@pytest.mark.parametrize("http", [True, False])
def test_the_client_of_another_project_has_a_conversation(shop: Workspace, http: bool) -> None:
    uv = shutil.which("uv")
    if not uv:
        pytest.skip("no uv, which brings fastmcp into an environment of its own")
    start = [uv, "run", "--no-project", "--isolated", "--with", FASTMCP, "python"]
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    ready = subprocess.run(
        [*start, "-c", "import fastmcp"], capture_output=True, encoding="utf-8", env=env, check=False
    )
    if ready.returncode:
        pytest.skip(f"{FASTMCP} cannot be fetched: {ready.stderr[-300:]}")

    def talk(*way: str) -> dict[str, Any]:
        ended = subprocess.run(
            [*start, str(CLIENT), *way, SQL], capture_output=True, encoding="utf-8", env=env, check=False
        )
        assert ended.returncode == 0, ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return found

    if http:
        with over_http(configured(shop), secrets=SECRETS) as running:
            seen = talk(running.url, SECRETS["alice"])
    else:
        seen = talk(str(SCRIPTS / "okf-agent"), str(shop.root))
    assert {"read_file", "search", "find_value", "run_sql", "list_databases"} <= set(seen["tools"])
    assert seen["read"] == f"=== /knowledge/active-customer.md ===\n{seen['resource']}"
    assert seen["rows"] == [["52"]]
    assert seen["refused"]
    assert "/knowledge/active-customer.md" in seen["found"]
    assert "/knowledge/active-customer.md" in seen["prompt"]
    (record,) = shop.records()
    assert ("token alice" in record["client"]) == http
    assert record["tool_calls"] == {"read_file": 1, "search": 1, "run_sql": 2, "read_resource": 1}


@pytest.fixture(scope="module")
def relief(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Iterator[Workspace]:
    """A workspace with the dump of `disaster_relief` loaded."""
    with make(tmp_path_factory.mktemp("relief")) as made:
        made.roots = [test_data / "livesqlbench-base-full-v1"]
        made.configure("http://127.0.0.1:1/v1")
        prepared = run_inside("prepare", "disaster_relief", cwd=made.root)
        assert prepared.returncode == 0, prepared.stderr
        yield made


@pytest.mark.parametrize("door", ["inside", "stdio", "http"])
def test_every_door_gives_what_the_loop_has(relief: Workspace, door: str) -> None:
    config = configured(relief)
    with service(config, names=("disaster_relief",)) as made, over_http(config, names=("disaster_relief",)) as running:
        context_of = made.databases.bundles["disaster_relief"], made.databases.ready("disaster_relief").database

        @asynccontextmanager
        async def connected() -> Any:
            if door == "http":
                async with client(running.url) as own:
                    yield own
                return
            start = StdioServerParameters(
                command=str(SCRIPTS / "okf-agent"), args=["mcp", "--db", "disaster_relief"], cwd=relief.root
            )
            async with Client(made.build() if door == "inside" else start, client_info=INFO) as own:
                yield own

        async def talk() -> None:
            async with connected() as own:
                found = await own.call_tool("list_databases", {})
                assert found.structured_content["databases"][0]["name"] == "disaster_relief"
                for tool, arguments in RELIEF:
                    expected = tool.run(arguments, Context(*context_of))
                    given = await own.call_tool(tool.name, arguments)
                    assert (given.content[0].text, given.is_error) == (expected.text, expected.failed), arguments

        run(talk)
