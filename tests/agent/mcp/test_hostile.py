"""Hostile SQL through a client: refused with the words that the loop's own tool refuses it with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from mcp import Client
from support import lab
from support.mcp_server import configured, run
from support.workspace import Workspace

from okf_agent.ask import Workspace as Shared
from okf_agent.engines import Server
from okf_agent.mcp_server.databases import Databases
from okf_agent.mcp_server.server import Service
from okf_agent.prepare import Ready, Say, quiet
from okf_agent.sql.database import Database
from okf_agent.tools import Context, run_sql

DATA = Path(__file__).parents[2] / "data"
CASES = [
    json.loads(line)
    for name in ("hostile_sql.jsonl", "hostile_more.jsonl")
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()
]
REFUSED = [case for case in CASES if case["want"] == "deny"]


class Lab(Shared):
    """A workspace whose only database is the one that hostile_setup.sql makes."""

    database: Database

    def ready(self, name: str, _say: Say) -> Ready:
        return Ready(name, self.config.settings.bundles / "shop", None, self.database)


@pytest.fixture
def laboratory(shop: Workspace, postgres: Server) -> Iterator[tuple[Service, Database, Server]]:
    lab.build(postgres)
    config = configured(shop)
    with Lab(config) as shared, Database(lab.as_role(postgres, "ro"), "lab", config.settings.database) as database:
        shared.database = database
        service = Service(Databases(shared, ["shop"], quiet))
        yield service, database, postgres
        service.close()


def test_what_is_hostile_is_refused_in_the_same_words_and_changes_nothing(
    laboratory: tuple[Service, Database, Server],
) -> None:
    service, database, server = laboratory
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="lab", autocommit=True) as admin:
        before = lab.durable(admin)

        async def talk() -> None:
            async with Client(service.build()) as client:
                for case in REFUSED:
                    given = await client.call_tool("run_sql", {"sql": case["sql"]})
                    assert given.is_error, case
                    own = run_sql.run({"sql": case["sql"]}, Context(database=database))
                    assert (own.failed, own.text) == (True, given.content[0].text), case

        run(talk)
        assert lab.durable(admin) == before
