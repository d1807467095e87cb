"""`okf-compiler compile --from` and `check --live`: the real command over a real server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.databases import made, url

import okf_compiler
from okf_agent import prepare
from okf_agent.engines import Server, embedded
from okf_compiler.connections import CONFIGURED, SERVER, parse_url, read_live, with_connection
from okf_compiler.errors import UserError
from okf_compiler.settings import load_settings

SHOP = Path(__file__).parents[2] / "data" / "shop"
NAME = "connections_test"
SCRIPT = """
CREATE TABLE fruit (id int PRIMARY KEY, name text, secret text);
COMMENT ON TABLE fruit IS 'What grows';
INSERT INTO fruit VALUES (1, 'apple', 'x');
"""
PASSWORD = "s3cr@t/word"
DOCUMENTS = (
    'CREATE TABLE "fruit" (\nid bigint NOT NULL,\nname text NULL,\ncolour text NULL,\n    PRIMARY KEY (id)\n);\n'
)


@pytest.fixture(scope="module")
def params(postgres: Server) -> Iterator[dict[str, Any]]:
    with made(postgres, NAME, SCRIPT) as found:
        yield found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("databases: {fruit: {hide: [fruit.secret]}}\n", encoding="utf-8")
    return tmp_path


def test_a_live_database_compiles_without_its_hidden_columns_or_any_secret(
    workspace: Path, params: dict[str, Any]
) -> None:
    result = run("okf-compiler", "compile", "fruit", "--from", url(params, NAME, PASSWORD), cwd=workspace)
    assert result.returncode == 0, result.stderr
    assert "fruit: 1 tables, 2 columns" in result.stdout
    texts = [p.read_text(encoding="utf-8") for p in (workspace / "bundles").rglob("*.md")]
    assert any("What grows" in text and "postgresql:fruit" in text for text in texts)
    for text in [result.stdout, result.stderr, *texts]:
        for secret in ("s3cr", PASSWORD, "secret", "postgresql://", str(params["host"])):
            assert secret not in text


def test_compiling_the_same_again_changes_nothing(workspace: Path, params: dict[str, Any]) -> None:
    for state in ("1 added", "unchanged"):
        result = run("okf-compiler", "compile", "fruit", "--from", url(params, NAME), cwd=workspace)
        assert state in result.stdout


def test_files_say_more_of_a_live_database(workspace: Path, params: dict[str, Any]) -> None:
    rows = ["table,column,description", "fruit,name,What it is called", "fruit,secret,hidden later", "fruit,nam,none"]
    (workspace / "columns.csv").write_text("\n".join(rows), encoding="utf-8")
    arguments = ("compile", "fruit", "--from", url(params, NAME), "--columns", "columns.csv")
    result = run("okf-compiler", *arguments, cwd=workspace)
    assert result.returncode == 0, result.stderr
    text = (workspace / "bundles/compiled/fruit/tables/fruit.md").read_text(encoding="utf-8")
    assert "What it is called" in text
    assert "there is no column 'nam' in fruit; did you mean 'name'?" in result.stdout + result.stderr
    assert "'secret'" not in result.stdout + result.stderr
    assert "postgresql:fruit" in text


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("postgresql://u:s3cr@t/word@nowhere.invalid/db", 2),
        ("postgresql://u:12/s3cr@nowhere.invalid/db", 2),
        ("postgresql://u:word?s3cr@nowhere.invalid/db", 2),
        ("postgresql://u:s3cr%40t@nowhere.invalid/db", 1),
        ("postgresql://u:s3cr%40t%2Fword@127.0.0.1:1/db", 1),
        ("postgresql://u:s3cr@t/word@127.0.0.1:port/db", 2),
        ("host=127.0.0.1 password=s3cr@t/word", 2),
        ("postgresql://u:s3cr%40t%2Fword@127.0.0.1", 2),
        ("postgresql://u:12?s3cr=t", 2),
        ("postgresql+psycopg2://u:s3cr@t/word@nowhere.invalid/db", 2),
    ],
)
def test_no_message_holds_a_password(source: str, status: int) -> None:
    with pytest.raises(UserError) as raised:
        with_connection(source, "fruit", lambda _: None)
    assert raised.value.status == status
    for part in ("s3cr", "t/word", "word@", "%40t"):
        assert part not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://HOST?sslmod=require", "libpq knows no parameter `sslmod`; did you mean 'sslmode'?"),
        ("postgresql://HOST?schema=sales", "databases.NAME.schema"),
        ("postgres://HOST?applicationname=x&sslmode=disable", "`applicationname`; did you mean 'application_name'?"),
    ],
)
def test_a_parameter_that_libpq_does_not_know_is_named(url: str, said: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_url(url.replace("HOST", "u:s3cr%40t@h/db"))
    assert said in str(raised.value) and "s3cr" not in str(raised.value) and raised.value.status == 2


@pytest.mark.parametrize(
    ("url", "left_out"),
    [
        ("postgresql://u:p%26w@h:6543/db?pgbouncer=true", "pgbouncer"),
        ("postgresql://u:p%26w@h:6543/db?uselibpqcompat=true&sslmode=require", "uselibpqcompat"),
        ("postgresql://u:p%26w@h:6543/db?schema=public&connection_limit=1", "schema, connection_limit"),
        ("postgresql+psycopg2://u:p%26w@h:6543/db", ""),
        ("postgres+asyncpg://u:p%26w@h:6543/db?prepared_statement_cache_size=0", "prepared_statement_cache_size"),
    ],
)
def test_what_other_programs_write_into_a_url_is_left_out(
    url: str, left_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    params, dbname = parse_url(url)
    more = {"sslmode": "require"} if "sslmode" in url else {}
    assert (params, dbname) == ({"user": "u", "password": "p&w", "host": "h", "port": "6543", **more}, "db")
    said = " ".join(capsys.readouterr().err.split())
    assert said == (f"--from: left out, since only other programs read it: {left_out}." if left_out else "")


def test_a_broken_url_is_one_message(workspace: Path) -> None:
    result = run("okf-compiler", "compile", "fruit", "--from", "postgresql://u:s3cr@t/word@h/db", cwd=workspace)
    assert (result.returncode, "s3cr" in result.stdout + result.stderr, "Traceback" in result.stderr) == (
        2,
        False,
        False,
    )
    assert "%40" in result.stderr


def test_check_says_where_documents_and_database_differ(workspace: Path, params: dict[str, Any]) -> None:
    folder = workspace / "data" / "fruit"
    folder.mkdir(parents=True)
    (folder / "fruit_schema.txt").write_text(DOCUMENTS, encoding="utf-8")
    arguments = ("check", "fruit", "--live", "--from", url(params, NAME))
    result = run("okf-compiler", *arguments, cwd=workspace)
    assert result.returncode == 1
    assert "error: fruit.colour: documented, but the table has no such column [missing-column]" in result.stdout
    assert "secret" not in result.stdout
    printed = run("okf-compiler", *arguments, "--json", cwd=workspace).stdout
    found = [json.loads(line) for line in printed.splitlines()]
    assert [f["code"] for f in found if f["severity"] == "error"] == ["missing-column"]
    assert set(found[0]) == {"code", "severity", "place", "text"}


@pytest.mark.parametrize(("name", "status"), [("all", 2), ("..", 2)])
def test_a_live_database_needs_a_plain_name(workspace: Path, name: str, status: int) -> None:
    result = run("okf-compiler", "compile", name, "--from", "postgresql://u@h/d", cwd=workspace)
    assert (result.returncode, "plain name" in result.stderr) == (status, True)


def test_a_database_that_is_not_there_is_named(workspace: Path, params: dict[str, Any]) -> None:
    with pytest.raises(UserError, match='database "nowhere" does not exist'):
        read_live(url(params, "nowhere"), "fruit", load_settings(workspace))


def test_the_agent_offers_its_server_and_the_compiler_imports_nothing_of_it() -> None:
    (offered,) = entry_points(group=SERVER, name=CONFIGURED)
    assert offered.load() is prepare.configured_parameters
    files = [*Path(okf_compiler.__file__).parent.rglob("*.py")]
    assert [f.name for f in files if re.search(r"(import|from) okf_agent|[\"']okf_agent", f.read_text("utf-8"))] == [
        "launch.py"
    ]


@pytest.mark.slow
def test_the_configured_server_is_started_and_filled(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    shutil.copytree(SHOP, tmp_path / "data" / "shop")
    try:
        result = run("okf-compiler", "check", "shop", "--live", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "shop: 0 errors" in result.stdout
        result = run("okf-compiler", "compile", "shop", "--from", "configured", "--out", "live", cwd=tmp_path)
        assert "shop: 12 tables, 85 columns" in result.stdout
    finally:
        embedded.stop(tmp_path)
