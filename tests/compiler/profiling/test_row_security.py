"""Row security in what is said of a live database: a concept has a line, a profile says what was counted."""

from __future__ import annotations

from pathlib import Path

from support.databases import made

from okf_agent.bundles.measured import of_table
from okf_agent.engines import Server
from okf_compiler.concepts import concepts
from okf_compiler.link import link
from okf_compiler.names import assign
from okf_compiler.postgres import connect
from okf_compiler.profiling.run import profile
from okf_compiler.readers import catalogue

SCRIPT = """
CREATE TABLE tenants (id int, tenant text);
INSERT INTO tenants SELECT g, 't' || g FROM generate_series(1, 9) g;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants USING (tenant = current_setting('app.tenant', true));
CREATE TABLE plain (id int);
INSERT INTO plain VALUES (1);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO guarded_reader;
"""
LINE = "* row security: a role sees only the rows that its policies let through"


def test_a_concept_and_a_profile_say_that_rows_may_be_kept_back(postgres: Server, tmp_path: Path) -> None:
    with made(postgres, "guarded", SCRIPT, "guarded_reader") as params, connect(params, "guarded") as connection:
        database = catalogue.read(connection, "guarded")
        bodies = {c.title: c.body for c in concepts(database, link(database), assign(database))}
        assert LINE in bodies["tenants"] and LINE not in bodies["plain"]
        connection.rollback()
        profile(connection, "guarded", tmp_path)
    assert "0 rows, as far as row security lets the measuring role see them" in of_table(tmp_path, "tenants")
    assert "1 row, never to be given" in of_table(tmp_path, "plain")
