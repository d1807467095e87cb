"""What goes wrong on the server's side: its log says it, and a client sees no folder, host or user of its machine."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from support.mcp_server import INFO, configured, run, service
from support.workspace import SHOP, Workspace

from okf_agent.cell import Cell
from okf_agent.mcp_server.server import Service
from okf_agent.sql.database import Database

UNABLE = "The server cannot do this now"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_databases", {}),
    ("read_file", {"paths": ["/index.md", "/"]}),
    ("search", {"query": "active"}),
    ("find_value", {"values": ["shipped"]}),
    ("run_sql", {"sql": "SELECT 1"}),
    ("ask", {"question": "How many customers are active?"}),
]


def _asked(made: Service) -> dict[str, str]:
    """What a client is told by each call, and by each other request that reads a bundle."""

    async def talk() -> dict[str, str]:
        async with Client(made.build(), mode="auto", client_info=INFO) as client:
            said = {name: (await client.call_tool(name, arguments)).content[0].text for name, arguments in CALLS}
            for way, request in {
                "resources": client.list_resources(),
                "resource": client.read_resource("okf://shop/index.md"),
                "prompt": client.get_prompt("explain_rule", {"rule": "Active Customer"}),
            }.items():
                try:
                    said[way] = (await request).model_dump_json()
                except MCPError as error:
                    said[way] = str(error)
            return said

    return run(talk)


@contextmanager
def _without_bundle(shop: Workspace, folder: Path) -> Iterator[Service]:
    with service(configured(shop), cell=Cell("openai/scripted")) as made:
        made.databases.bundles["shop"] = folder / "bundle-that-is-gone"
        yield made


@contextmanager
def _without_records(shop: Workspace, folder: Path) -> Iterator[Service]:
    (folder / "runs").write_text("no folder", encoding="utf-8")
    with service(configured(shop), cell=Cell("openai/scripted")) as made:
        made.calls.records._runs = folder / "runs"
        yield made


@contextmanager
def _without_content(shop: Workspace, _folder: Path) -> Iterator[Service]:
    """A second workspace database whose dump is broken."""
    data = shop.root / "data" / "broken"
    shutil.copytree(SHOP, data, dirs_exist_ok=True)
    for file in data.glob("shop*"):
        file.rename(file.with_name(file.name.replace("shop", "broken", 1)))
    (data / "broken.sql").write_text("CREATE TABLE t (a nonsense_type);\n", encoding="utf-8")
    try:
        with service(configured(shop), names=("broken",), cell=Cell("openai/scripted")) as made:
            yield made
    finally:
        shutil.rmtree(data)
        shutil.rmtree(shop.root / "bundles" / "compiled" / "broken", ignore_errors=True)


@pytest.mark.parametrize(
    ("broken", "unable", "logged"),
    [
        (_without_bundle, {"list_databases", "ask", "resources", "prompt"}, "bundle-that-is-gone"),
        (_without_records, {name for name, _ in CALLS} | {"resource"}, "runs"),
        (_without_content, {"run_sql", "ask"}, "broken.sql, line 1"),
    ],
)
def test_a_client_sees_nothing_of_the_server_s_machine(
    shop: Workspace, tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: Any, unable: set[str], logged: str
) -> None:
    with caplog.at_level(logging.ERROR), broken(shop, tmp_path) as made:
        said = _asked(made)
    for way, text in said.items():
        for place in (shop.root, tmp_path, "/tmp", "127.0.0.1", "agent_ro", "Traceback"):
            assert str(place) not in text, (way, text)
    assert {way for way, text in said.items() if UNABLE in text} >= unable - {"ask"}
    assert UNABLE in said["ask"] or "There is no answer" in said["ask"] or "ask" not in unable
    assert logged in caplog.text


def test_a_database_that_went_away_is_not_named(shop: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), service(configured(shop)) as made:
        ready = made.databases.ready("shop")
        gone = Database({"host": "127.0.0.1", "port": 1, "user": "agent_ro"}, "shop", made.config.settings.database)
        made.databases.workspace._ready["shop"] = replace(ready, database=gone)
        said = _asked(made)
    assert said["run_sql"].endswith("The database does not answer. The same query can be sent again.")
    assert "127.0.0.1" in caplog.text
