"""prepare, doctor and stop by hand, and a role that can do more than read: the real command line and PostgreSQL."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import run_inside
from support.workspace import ACTIVE, QUESTION, Workspace, workspace

from okf_agent.config import load_config
from okf_agent.engines import Server, embedded
from okf_agent.engines.connection import connect_admin
from okf_agent.engines.place import find_place
from okf_agent.prepare import load_content
from okf_compiler.documents import list_databases

TINY = "CREATE TABLE cats (name text);"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The shop, a database with a dump of one table, and one that is documents only."""
    with workspace(tmp_path_factory.mktemp("server")) as made:
        for name in ("tiny", "paper"):
            (made.root / "data" / name).mkdir()
            (made.root / "data" / name / f"{name}_schema.txt").write_text(TINY, encoding="utf-8")
        (made.root / "data" / "tiny" / "tiny.sql").write_text(TINY, encoding="utf-8")
        made.configure("http://127.0.0.1:9")
        yield made
        embedded.stop(made.root)
        shutil.rmtree(find_place(made.root).home)


@contextmanager
def owning(place: Workspace) -> Iterator[None]:
    """The agent's role owns a table of the shop, which no hardening takes away."""
    with connect_admin(embedded.start(place.root, "agent_ro"), "shop") as admin:
        admin.execute("CREATE TABLE mine (a int)")
        admin.execute("ALTER TABLE mine OWNER TO agent_ro")
        try:
            yield
        finally:
            admin.execute("DROP TABLE mine")


def test_prepare_all_says_what_each_database_has(place: Workspace) -> None:
    result = run_inside("prepare", "--all", cwd=place.root)
    assert result.returncode == 0, result.stderr
    bundles = place.root / "bundles" / "compiled"
    assert result.stdout.splitlines() == [
        f"paper: bundle {bundles / 'paper'}, no content, so queries are not run",
        f"shop: bundle {bundles / 'shop'}, ready",
        f"tiny: bundle {bundles / 'tiny'}, ready",
    ]
    assert "Loading tiny from" in result.stderr
    assert "There is no content of paper on the server that was asked (embedded, " in result.stderr
    assert "Put one beside its documents (paper.sql)" in " ".join(result.stderr.split())


def test_a_server_that_lacks_the_database_is_named(place: Workspace) -> None:
    """As after `init` for a server of one's own: the demo's dump is not loaded there without an administrator."""
    config = load_config(place.root)
    agent = {**embedded.start(place.root, "agent_ro").agent, "password": "secret"}
    told: list[str] = []
    documents = list_databases(config.settings)["tiny"]
    elsewhere = replace(documents, name="elsewhere")
    assert not load_content(config, Server("server", None, agent), "elsewhere", elsewhere, told.append)
    (line,) = told
    where = ":".join(str(agent[key]) for key in ("host", "port") if agent.get(key))
    assert f"(server, {where}/elsewhere); {documents.dump} is loaded where .env names a POSTGRES_USER" in line
    assert "database.host and database.port" in line and "--db" in line and "secret" not in line


def test_prepare_again_does_nothing(place: Workspace) -> None:
    run_inside("prepare", "tiny", cwd=place.root)
    result = run_inside("prepare", "tiny", cwd=place.root)
    assert (result.returncode, result.stderr) == (0, "")


def test_prepare_needs_a_name_where_there_are_several(place: Workspace) -> None:
    result = run_inside("prepare", cwd=place.root)
    assert result.returncode == 2
    assert "Which database? Choose one with --db: paper, shop, tiny." in result.stderr


def test_a_dump_that_has_changed_is_loaded_again_on_demand_only(place: Workspace) -> None:
    run_inside("prepare", "tiny", cwd=place.root)
    (place.root / "data" / "tiny" / "tiny.sql").write_text(TINY + "INSERT INTO cats VALUES ('Tom');", encoding="utf-8")
    result = run_inside("prepare", "tiny", cwd=place.root)
    assert "has changed since it was loaded: `okf-agent prepare tiny --reload` loads it again" in result.stderr
    assert "Tom" not in run_inside("sql", "tiny", "SELECT * FROM cats", cwd=place.root).stdout
    result = run_inside("prepare", "tiny", "--reload", cwd=place.root)
    assert result.returncode == 0, result.stderr
    assert "Tom" in run_inside("sql", "tiny", "SELECT * FROM cats", cwd=place.root).stdout


def test_print_sql_is_what_a_dba_runs(place: Workspace) -> None:
    run_inside("prepare", "shop", cwd=place.root)
    result = run_inside("prepare", "shop", "--print-sql", cwd=place.root)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "-- In the database shop, as a superuser or the owner of everything in it."
    assert 'GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "agent_ro";' in lines
    assert all(line.startswith("--") or line.endswith(";") for line in lines)
    with connect_admin(embedded.start(place.root, "agent_ro"), "shop") as admin, admin.transaction():
        for line in lines:
            admin.execute(line.encode())


def test_doctor_is_green_and_leaves_with_0(place: Workspace) -> None:
    run_inside("prepare", "shop", cwd=place.root)
    result = run_inside("doctor", "shop", "--model", "local", cwd=place.root)
    assert result.returncode == 0, result.stdout
    assert "attack: run a program" in result.stdout and "red " not in result.stdout


def test_doctor_in_json_is_one_finding_a_line_and_leaves_with_1_on_red(place: Workspace) -> None:
    run_inside("prepare", "shop", cwd=place.root)
    with owning(place):
        result = run_inside("doctor", "shop", "--model", "local", "--json", cwd=place.root)
    findings = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 1
    assert all(finding.keys() == {"check", "level", "text", "remedy"} for finding in findings)
    reds = {finding["check"]: finding["text"] for finding in findings if finding["level"] == "red"}
    assert "public.mine" in reds["ownership"]


def test_ask_refuses_a_role_that_can_do_more_than_read(place: Workspace) -> None:
    run_inside("prepare", "shop", cwd=place.root)
    with owning(place):
        prepared = run_inside("prepare", "shop", cwd=place.root)
        result = place.agent("ask", QUESTION, "--db", "shop", script=ACTIVE)
    assert (prepared.returncode, prepared.stdout) == (1, "")
    assert "shop is not safe to ask as agent_ro: The role owns public.mine" in prepared.stderr
    assert "with --print-sql it prints what a DBA runs" in prepared.stderr
    assert result.returncode == 1
    assert "shop is not safe to ask as agent_ro: The role owns public.mine" in result.stderr
    assert "--unsafe-role" in result.stderr
    assert place.endpoint.requests == []
    assert place.records()[-1]["stop_reason"] == "error"


def test_ask_with_unsafe_role_says_so_in_the_record(place: Workspace) -> None:
    run_inside("prepare", "shop", cwd=place.root)
    with owning(place):
        result = place.agent("ask", QUESTION, "--db", "shop", "--unsafe-role", script=ACTIVE)
    assert result.returncode == 0, result.stderr
    assert place.records()[-1]["unsafe_role"] is True
    place.agent("ask", QUESTION, "--db", "shop", script=ACTIVE)
    assert place.records()[-1]["unsafe_role"] is False


@pytest.fixture
def own_cache(tmp_path: Path) -> dict[str, str]:
    """An environment with no model's server: whoever runs the tests may just be using theirs."""
    return {"OKF_MODEL_CACHE": str(tmp_path)}


def test_stop_ends_the_server_and_says_whether_there_was_one(place: Workspace, own_cache: dict[str, str]) -> None:
    run_inside("prepare", "tiny", cwd=place.root)
    embedded.start(place.root, "agent_ro")
    assert [run_inside("stop", cwd=place.root, env=own_cache).stdout for _ in range(2)] == [
        "PostgreSQL stopped.\n",
        "PostgreSQL was not running.\n",
    ]


def test_config_says_whose_server_is_stopped(place: Workspace, own_cache: dict[str, str]) -> None:
    embedded.start(place.root, "agent_ro")
    file = place.root / "config.yaml"
    stopped = run_inside("stop", "--config", file, cwd=place.root.parent, env=own_cache)
    assert (stopped.returncode, stopped.stdout) == (0, "PostgreSQL stopped.\n")
    broken = run_inside("stop", "--set", "database.prot=1", cwd=place.root)
    assert broken.returncode == 2 and "did you mean 'port'?" in broken.stderr
    assert "1" in run_inside("sql", "tiny", "SELECT 1", cwd=place.root).stdout
