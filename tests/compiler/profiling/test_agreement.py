"""Every figure of a profile against its own plain query, on every dump there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import documents_of, loaded
from support.profiled import differences

from okf_agent.engines import Server
from okf_compiler.postgres import connect
from okf_compiler.profiling import run
from okf_compiler.profiling.limits import Request
from okf_compiler.readers import catalogue, livesqlbench

ROOT = Path(__file__).parents[3]
DUMPS = {
    **{
        f"full_{name}": f"livesqlbench-base-full-v1/dumps/{name}_full.sql"
        for name in ("cross_border", "disaster_relief", "households", "mental_healths", "solar_panel", "virtual_idol")
    },
    "alien": "livesqlbench-base-lite-postgres/alien_content.sql",
    **{
        f"defog_{name}": f"defog/{name}/{name}.sql"
        for name in ("academic", "advising", "atis", "broker", "ewallet", "geography", "restaurants", "scholar", "yelp")
    },
    "northwind": "samples/northwind/northwind.sql",
    **{name: f"samples/neon/{name}.sql" for name in ("chinook", "happiness_index", "pagila", "periodic_table")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DUMPS)
def test_figures_are_those_of_plain_sql(name: str, postgres: Server, test_data: Path, tmp_path: Path) -> None:
    loaded(postgres, f"profiled_{name}", test_data / DUMPS[name])
    documents = test_data / "livesqlbench-base-full-v1"
    plain = name.removeprefix("full_").replace("mental_healths", "mental_health")
    has_documents = (documents / plain / f"{plain}_schema.txt").is_file()
    check(postgres, f"profiled_{name}", tmp_path, documents_of(documents, plain) if has_documents else None)


def test_figures_of_the_shop_are_those_of_plain_sql(postgres: Server, tmp_path: Path) -> None:
    loaded(postgres, "profiled_shop", ROOT / "data" / "shop" / "shop.sql")
    check(postgres, "profiled_shop", tmp_path, documents_of(ROOT / "data", "shop"))


def check(server: Server, name: str, folder: Path, documents: object) -> None:
    documented = livesqlbench.read(documents) if documents else None  # type: ignore[arg-type]
    assert server.admin is not None
    connection: psycopg.Connection[Any]
    with connect(server.admin, name) as connection:
        done = run.profile(connection, name, folder / "profile", Request(documented))
        connection.rollback()
        live = catalogue.read(connection, name)
        populated = {t.qualified_name for t in live.tables} - set(done.profile.unmeasured)
        assert set(done.profile.tables) == populated and populated
        found = list(differences(connection, done.profile, live, folder / "profile"))
        assert not found
        assert sum(len(t.columns) for t in done.profile.tables.values()) >= sum(
            len(t.columns) for t in live.tables if t.qualified_name in populated
        )
