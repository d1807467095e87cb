"""Functions that people wrote, run without a call to be seen, on a server whose PUBLIC may execute them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.databases import made

from okf_agent.engines import Server
from okf_agent.engines.connection import connect_admin
from okf_agent.sql import sessions
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.settings import DatabaseSection

LONG = "l" * 63
SCRIPT = f"""
CREATE TABLE shops (id int, name varchar, status text); INSERT INTO shops VALUES (1, 'Äpfel', 'open');
CREATE SCHEMA closed; CREATE TABLE closed.vault (word text); INSERT INTO closed.vault VALUES ('top');
CREATE FUNCTION leak(shops) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION leaks() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION "É"() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION {LONG}() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION allowed(shops) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'fine' $$;
CREATE DOMAIN spill AS text CHECK (public.leaks() IS NOT NULL);
CREATE TYPE pair AS (a int);
CREATE FUNCTION told(pair) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE CAST (pair AS text) WITH FUNCTION told(pair);
CREATE FUNCTION waved(shops, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE OPERATOR ~~~ (LEFTARG = shops, RIGHTARG = int, FUNCTION = waved);
CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO walker;
CREATE FUNCTION other.fine(shops, int) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'fine' $$;
CREATE OPERATOR <~> (LEFTARG = shops, RIGHTARG = int, FUNCTION = other.fine);
CREATE FUNCTION elsewhere(shops) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT word FROM closed.vault';
CREATE FUNCTION status(shops) RETURNS text LANGUAGE sql AS $$ SELECT 'its own rights only' $$;
GRANT SELECT ON shops TO walker;
"""
REFUSED = {
    "after a dot": "SELECT s.leak FROM shops s",
    "after a bracket": 'SELECT (s)."leak" FROM shops s',
    "allowed in another schema": "SELECT s.elsewhere FROM shops s",
    "a check": "SELECT 'x'::spill",
    "a cast": "SELECT row(1)::pair::text",
    "an operator": "SELECT s ~~~1 FROM shops s",
    "a name of PostgreSQL's": "SELECT lower(name) FROM shops",
    "a capital that is no ASCII": "SELECT É()",
    "a name that is cut": f"SELECT {LONG}more()",
    "behind a literal that goes on": "SELECT E'a'\n'\\' ', leaks(), '...'",
    "behind one with a comment between": "SELECT E'a' -- and\n\n -- so on\n '\\' ', leaks(), '...'",
}
RUN = {
    "SELECT s.name, s.status, (s).id FROM shops s WHERE s.id <> 2": ("Äpfel", "open", "1"),
    "SELECT pg_catalog.lower(name) FROM shops": ("äpfel",),
    "SELECT upper(name), 'leak ~~~' FROM shops -- s.leak": ("ÄPFEL", "leak ~~~"),
    "SELECT s.allowed, allowed(s) FROM shops s": ("fine", "fine"),
    "SELECT s <~> 1 FROM shops s": ("fine",),
    "SELECT E'a'\n'\\'b', 'leaks()'": ("a'b", "leaks()"),
}


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    with (
        made(postgres, "implied", SCRIPT, "walker") as params,
        Database(
            params, "implied", DatabaseSection(allow_functions=("allowed", "other.fine", "other.elsewhere"))
        ) as opened,
    ):
        yield opened


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_a_function_with_its_owners_rights_is_refused_however_it_is_called(database: Database, sql: str) -> None:
    with pytest.raises(QueryError) as refused:
        print(database.run(sql).rows)
    assert refused.value.never and refused.value.sqlstate == "", "our text says so, not the server's rights"


@pytest.mark.parametrize(("sql", "row"), RUN.items())
def test_what_only_looks_like_one_is_run(database: Database, sql: str, row: tuple[str, ...]) -> None:
    assert database.run(sql).rows == (row,)


def test_a_session_does_not_outlive_what_it_knows(
    postgres: Server, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("SELECT 1")
    with connect_admin(postgres, "implied") as admin:
        admin.execute("CREATE FUNCTION later() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'")
    monkeypatch.setattr(sessions, "SESSION_SECONDS", 0.0)
    with pytest.raises(QueryError, match="not PostgreSQL's own"):
        database.run("SELECT later()")
