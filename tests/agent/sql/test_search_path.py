"""Names without a schema: where they are found, and where they must not be."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.databases import made

from okf_agent.access.role import harden
from okf_agent.access.role_sql import RoleSpec
from okf_agent.engines import Server
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.settings import DatabaseSection

SCRIPT = """
CREATE TABLE customers (place text); INSERT INTO customers VALUES ('public');
CREATE SCHEMA consumer_div;
CREATE TABLE consumer_div.users (id int, place text); INSERT INTO consumer_div.users VALUES (1, 'consumer_div');
CREATE TABLE consumer_div.customers (place text); INSERT INTO consumer_div.customers VALUES ('consumer_div');
CREATE SCHEMA "Odd ""one%s";
CREATE TABLE "Odd ""one%s"."Größe" (place text); INSERT INTO "Odd ""one%s"."Größe" VALUES ('odd');
CREATE SCHEMA east; CREATE SCHEMA west;
CREATE TABLE east.shops (place text); CREATE VIEW west.shops AS SELECT 'west' AS place;
CREATE TABLE east.only_east (place text);
CREATE SCHEMA brings_function; CREATE TABLE brings_function.lures (place varchar);
CREATE FUNCTION brings_function.lower(varchar) RETURNS text LANGUAGE sql AS $$ SELECT 'hijacked' $$;
CREATE SCHEMA brings_operator; CREATE TABLE brings_operator.baits (place varchar);
CREATE FUNCTION brings_operator.always(text, int) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR brings_operator.= (LEFTARG = text, RIGHTARG = int, FUNCTION = brings_operator.always);
CREATE SCHEMA closed; CREATE TABLE closed.vault (place text);
CREATE SCHEMA unreadable; CREATE TABLE unreadable.files (place text);
GRANT USAGE ON SCHEMA consumer_div, "Odd ""one%s", east, west, brings_function, brings_operator, unreadable TO walker;
GRANT SELECT ON ALL TABLES IN SCHEMA public, consumer_div, "Odd ""one%s", east, west, brings_function, brings_operator,
  closed TO walker;
"""
LIMITS = DatabaseSection(statement_timeout_s=5)


@pytest.fixture(scope="module", params=["granted", "hardened"])
def database(postgres: Server, request: pytest.FixtureRequest) -> Iterator[Database]:
    """As a role with grants of its own on a server that is not ours, and as the one that `harden` leaves."""
    with made(postgres, "paths", SCRIPT, "walker") as params:
        if request.param == "hardened":
            _harden(postgres)
        with Database(params, "paths", LIMITS) as opened:
            yield opened


def _harden(postgres: Server) -> None:
    assert postgres.admin is not None
    with psycopg.connect(**postgres.admin, dbname="paths", autocommit=True) as admin:
        harden(admin, RoleSpec(role="walker", database="paths", grants=False))


FOUND = [
    ("SELECT place FROM users", "consumer_div"),
    ("WITH u AS (SELECT * FROM users) SELECT place FROM u", "consumer_div"),
    ("SELECT u.place FROM consumer_div.users u JOIN users USING (id)", "consumer_div"),
    ("SELECT place FROM customers", "public"),
    ("SELECT place FROM consumer_div.customers", "consumer_div"),
    ('SELECT place FROM "Größe"', "odd"),
    ("SELECT place FROM west.shops", "west"),
    ("SELECT lower('X'::varchar)", "x"),
    ("SHOW search_path", 'public, "Odd ""one%s", consumer_div, pg_temp'),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_names_without_a_schema_are_found(database: Database, query: str, expected: str) -> None:
    assert database.run(query).rows == ((expected,),)


AMBIGUOUS_OR_NOT_OURS = [
    ("SELECT * FROM shops", "east.shops, west.shops"),
    ("SELECT * FROM only_east", "east.only_east"),
    ("SELECT * FROM lures", "brings_function.lures"),
    ("SELECT * FROM baits", "brings_operator.baits"),
    ("SELECT * FROM vault", ""),
    ("SELECT * FROM files", ""),
    ("SELECT * FROM userss", " users,"),
]


@pytest.mark.parametrize(("query", "hint"), AMBIGUOUS_OR_NOT_OURS)
def test_names_that_could_mean_something_else_stay_qualified(database: Database, query: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        database.run(query)
    assert "does not exist" in str(caught.value) and hint in str(caught.value)


def test_the_roles_own_path_comes_first(postgres: Server) -> None:
    script = SCRIPT + "ALTER ROLE walker IN DATABASE paths_own SET search_path = west, consumer_div;"
    with made(postgres, "paths_own", script, "walker") as params, Database(params, "paths_own", LIMITS) as database:
        for query, expected in (("SELECT place FROM shops", "west"), ("SELECT place FROM customers", "consumer_div")):
            assert database.run(query).rows == ((expected,),)
        (path,) = database.run("SHOW search_path").rows[0]
        assert path == 'west, consumer_div, "Odd ""one%s", east, public, pg_temp'


def test_a_path_that_is_enough_is_left_alone(postgres: Server) -> None:
    script = """CREATE TABLE t (); GRANT SELECT ON t TO walker;
                ALTER ROLE walker IN DATABASE paths_plain SET search_path = public"""
    with made(postgres, "paths_plain", script, "walker") as params, Database(params, "paths_plain", LIMITS) as database:
        assert database.run("SHOW search_path").rows == (("public",),)


def test_each_query_finds_the_path_as_the_first_did(database: Database) -> None:
    for _ in range(2):
        assert database.run("SELECT place FROM users").rows == (("consumer_div",),)
    with pytest.raises(QueryError):
        database.run("SELECT set_config('search_path', 'west', false)")
    assert database.run("SELECT place FROM users").rows == (("consumer_div",),)
