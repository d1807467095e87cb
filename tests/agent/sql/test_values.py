"""What PostgreSQL prints is what arrives, for every type, style and encoding; psql is the judge."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from support import lab

from okf_agent.engines import Server
from okf_agent.engines.binaries import find_programs
from okf_agent.results import export
from okf_agent.results.formats import Written
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.settings import DatabaseSection

VALUES = {
    "2047948614742839297": "2047948614742839297",
    "0.10::numeric(10,2)": "0.10",
    "12345678901234567890123456789012345678::numeric": "12345678901234567890123456789012345678",
    "1e-30::numeric": "0.000000000000000000000000000001",
    "'NaN'::numeric": "NaN",
    "'-Infinity'::numeric": "-Infinity",
    "0.1::float8 + 0.2::float8": "0.30000000000000004",
    "1e308::float8 * 10 / 10": None,
    "'-0'::float8": "-0",
    "'Infinity'::float4": "Infinity",
    "'infinity'::timestamptz": "infinity",
    "'-infinity'::date": "-infinity",
    "'0044-03-15 BC'::date": "0044-03-15 BC",
    "'99999-01-01'::date": "99999-01-01",
    "'24:00'::time": "24:00:00",
    "'23:59:60'::time": "24:00:00",
    "'1 year 2 months -3 days 04:05:06.7'::interval": "1 year 2 mons -3 days +04:05:06.7",
    "'{1,NULL,3}'::int[]": "{1,NULL,3}",
    "ARRAY['a,b', '\"', NULL, 'NULL', '']": '{"a,b","\\"",NULL,"NULL",""}',
    "'[2:3]={1,2}'::int[]": "[2:3]={1,2}",
    '\'{"b":1,  "a":[1.0]}\'::json': '{"b":1,  "a":[1.0]}',
    '\'{"b":1,  "a":[1.0]}\'::jsonb': '{"a": [1.0], "b": 1}',
    "'\\x00ff'::bytea": "\\x00ff",
    "'[1,5)'::int4range": "[1,5)",
    "'{[1,2),[5,6)}'::int4multirange": "{[1,2),[5,6)}",
    "'ab'::char(5)": "ab   ",
    "true": "t",
    "NULL": None,
    "''": "",
    "'NULL'": "NULL",
    "'10.0.0.1'::inet": "10.0.0.1",
    "'10.0.0.0/8'::cidr": "10.0.0.0/8",
    "'(1,2)'::point": "(1,2)",
    "ROW(1, NULL, 'a b')": '(1,,"a b")',
    "ROW(NULL, NULL)": "(,)",
    "'happy'::mood": "happy",
    "'{happy,sad}'::mood[]": "{happy,sad}",
    "'x'::\"char\"": "x",
    "'B101'::varbit": None,
    "b'101'": "101",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "'fat & rat'::tsquery": "'fat' & 'rat'",
    "'<a>b</a>'::xml": None,
    "'1.50'::money": None,
    "'pg_class'::regclass": "pg_class",
    "1::oid": "1",
    "E'a\\tb\\nc\\rd'": "a\tb\nc\rd",
    "'é\U0001f600 \u202e'": "é\U0001f600 \u202e",
    "7::postal": "7",
}
"""Expression -> what is printed; None where psql alone says it (or says that it is an error)."""
STYLES = [
    "SET datestyle = 'SQL, DMY'",
    "SET datestyle = 'German'",
    "SET intervalstyle = 'iso_8601'",
    "SET extra_float_digits = -3",
    "SET bytea_output = 'escape'",
    "SET timezone = 'Asia/Kolkata'",
    "SET client_encoding = 'LATIN1'",
    "SET standard_conforming_strings = off",
]
STYLED = (
    "SELECT timestamptz '2024-02-29 12:00+00', date '2024-02-29', interval '1 day 2 hours', 0.1::float8 + 0.2, "
    "'\\x00ff'::bytea, 'é', '\\'"
)


@pytest.fixture(scope="module")
def server(postgres: Server) -> Server:
    lab.reader_of(postgres, "printed", "CREATE TYPE mood AS ENUM ('happy', 'sad'); CREATE DOMAIN postal AS int")
    return postgres


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    with Database({**server.agent, "user": "reader"}, "printed", DatabaseSection()) as opened:
        yield opened


def psql(server: Server, sql: str) -> list[str | None]:
    """The cells of one row as psql prints them, or its error."""
    assert server.admin is not None
    command = [find_programs() / "psql", "-XAtq", "-F", "\x01", "-R", "\x02", "-P", "null=\x03", "-c", sql]
    where = ["-h", server.admin["host"], "-p", server.admin["port"], "-U", "reader", "printed"]
    done = subprocess.run([*map(str, (*command, *where))], capture_output=True, env={"PGCLIENTENCODING": "UTF8"})
    if done.returncode:
        return [done.stderr.decode().splitlines()[0].removeprefix("ERROR:  ")]
    return [None if cell == "\x03" else cell for cell in done.stdout.decode().removesuffix("\n").split("\x01")]


@pytest.mark.parametrize(("expression", "printed"), VALUES.items())
def test_exact(server: Server, database: Database, expression: str, printed: str | None) -> None:
    sql = f"SELECT {expression}"
    expected = psql(server, sql)
    if printed is not None:
        assert expected == [printed]
    try:
        (row,) = database.run(sql).rows
        found: list[str | None] = list(row)
    except Exception as error:
        found = [str(error).splitlines()[0].removeprefix("ERROR: ").rsplit(" (SQLSTATE", 1)[0]]
    assert found == expected
    if expected == [printed]:
        with database.stream(sql) as whole:
            assert [row for batch in whole for row in batch] == [(printed,)]


@pytest.mark.parametrize("style", STYLES)
def test_any_style_of_the_role(server: Server, style: str) -> None:
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="printed", autocommit=True) as admin:
        admin.execute(f"ALTER ROLE reader {style}".encode())
        try:
            with Database({**server.agent, "user": "reader"}, "printed", DatabaseSection()) as database:
                (row,) = database.run(STYLED).rows
            lexed_as_asked = STYLED.replace("'\\x00ff'", "E'\\\\x00ff'").replace("'\\'", "E'\\\\'")
            assert list(row) == psql(server, lexed_as_asked)
        finally:
            admin.execute(f"ALTER ROLE reader RESET {style.split()[1]}".encode())


def test_a_database_without_an_encoding(server: Server) -> None:
    assert server.admin is not None
    params = {**server.admin, "user": "reader"}
    with psycopg.connect(**server.admin, dbname="postgres", autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS bytes")
        admin.execute("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    sql = "SELECT 'é', convert_from('\\xe9'::bytea, 'SQL_ASCII')"
    with Database(params, "bytes", DatabaseSection(max_cell_chars=10)) as database:
        result = database.run(sql + ", repeat('é', 100), 'é' || repeat('x', 20)")
        with database.stream(sql) as whole:
            assert list(whole) == [[("é", "\\xe9")]]
        with database.stream_csv(sql) as pieces:
            assert b"".join(piece for _, piece in pieces).splitlines()[1].decode() == "é,\\xe9"
        as_json = r"""SELECT convert_from('{"a": "\351 \\\\x41"}'::bytea, 'SQL_ASCII')::json AS j"""
        with database.stream(as_json) as whole:
            text = "".join(export.pieces_of(Written("json"), whole.columns, whole.types, whole))
        assert json.loads(text) == [{"j": {"a": "\\xe9 \\x41"}}]
        with pytest.raises(QueryError, match="é"):
            database.run('SELECT "é"')
    assert result.rows == (("é", "\\xe9", "é" * 5, "é" + "x" * 8),)
    assert result.cut.cells == {(0, 2): 200, (0, 3): 22}


def test_column_names_and_types(database: Database) -> None:
    sql = "SELECT 1 AS a, 2 AS a, 'x'::varchar(3) AS \"A b\", 1.5::numeric(4,1), NULL, '{happy}'::mood[], now()"
    result = database.run(sql)
    assert result.columns == ("a", "a", "A b", "numeric", "?column?", "mood", "now")
    assert result.types == (
        "integer",
        "integer",
        "character varying(3)",
        "numeric(4,1)",
        "text",
        "mood[]",
        "timestamp with time zone",
    )


def test_cells_are_cut_at_characters_and_say_how_long_they_are(server: Server) -> None:
    cells: dict[str, tuple[str | None, int | None]] = {
        "repeat('é', 10)": ("é" * 10, None),
        "repeat('é', 11)": ("é" * 10, 11),
        "repeat('\U0001f600', 300000)": ("\U0001f600" * 10, 300_000),
        "repeat('x', 9) || chr(1) || '77'": ("x" * 9 + "\x01", 12),
        "array_fill(1, ARRAY[1000])": ("{1,1,1,1,1", 2001),
        "rpad('', 1000, 'ab')::char(1000)": ("ababababab", 1000),
        "NULL::json": (None, None),
        "12345678901234567890::numeric": ("1234567890", 20),
        "timestamp '2024-02-29 12:34:56'": ("2024-02-29", 19),
        "true": ("t", None),
    }
    limits = DatabaseSection(max_cell_chars=10)
    with Database({**server.agent, "user": "reader"}, "printed", limits) as database:
        result = database.run("SELECT " + ", ".join(cells))
    assert dict(zip(cells, result.rows[0], strict=True)) == {sql: cell for sql, (cell, _) in cells.items()}
    lengths = {sql: result.cut.cells.get((0, i)) for i, sql in enumerate(cells)}
    assert lengths == {sql: length for sql, (_, length) in cells.items()}


def test_every_type_there_is_arrives_as_psql_prints_it(server: Server, database: Database) -> None:
    """NULL of each type, and a catalogue row of each catalogue, whose columns have the oddest types."""
    types = [
        row[0]
        for row in database.run(
            "SELECT format_type(oid, NULL) FROM pg_type WHERE typtype IN ('b', 'r', 'm', 'e') AND typisdefined "
            "AND typname !~ '^_' AND typnamespace = 11 ORDER BY 1",
            max_rows=1000,
        ).rows
    ]
    assert len(types) > 60
    (row,) = database.run("SELECT " + ", ".join(f"NULL::{t}" for t in types)).rows
    assert set(row) == {None}
    catalogues = [
        "pg_type",
        "pg_proc",
        "pg_class",
        "pg_attribute",
        "pg_index",
        "pg_aggregate",
        "pg_settings",
    ]
    for catalogue in catalogues:
        sql = f"SELECT * FROM {catalogue} ORDER BY 1 LIMIT 1"
        (row,) = database.run(sql).rows
        assert list(row) == psql(server, sql)
