"""A small database and its bundle, for tests of the loop: four hubs, one rule."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from psycopg import sql

from okf_agent.clock import Day
from okf_agent.engines import Server
from okf_compiler.postgres import connect

NAME = "hubs_of_the_loop"
SCRIPT = """
CREATE TABLE hubs (id integer PRIMARY KEY, name text, used numeric(10,2), capacity numeric(10,2), opened date);
INSERT INTO hubs VALUES
  (1, 'HUB-17', 45.50, 100, '2024-05-01'),
  (2, 'HUB-18', 1234567.89, 2000000, '2023-01-15'),
  (3, 'HUB-19', NULL, NULL, NULL),
  (4, 'HUB-20', 0.00, 250, '2022-12-31');
"""
FILES = {
    "index.md": "# Tables\n* [hubs](/tables/hubs.md) - Distribution hubs\n\n"
    "# Calculations\n* [Utilization](/knowledge/utilization.md) - How full a hub is, rule 63\n",
    "tables/index.md": "# Tables\n* [hubs](/tables/hubs.md) - Distribution hubs, 61 columns in 62 files\n",
    "tables/hubs.md": "---\ntype: PostgreSQL Table\ntitle: hubs\ndescription: Distribution hubs\n---\n\n"
    "# Schema\n\n| column | type |\n|---|---|\n| id | integer |\n| name | text |\n| used | numeric |\n",
    "knowledge/utilization.md": "---\ntype: Calculation\ntitle: Utilization\ndescription: How full a hub is\n---\n\n"
    "# Definition\n\nused / capacity; above 0.85 a hub is full.\n",
}


def make_database(server: Server) -> str:
    """Create the database with its rows, readable by the agent's role, if it is not there; gives its name."""
    assert server.admin is not None
    with connect(server.admin, "postgres", read_only=False, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", (NAME,)).fetchone() is not None:
            return NAME
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
    with connect(server.admin, NAME, read_only=False) as connection:
        connection.execute(SCRIPT)
        role = sql.Identifier(str(server.agent["user"]))
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (server.agent["user"],)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(sql.SQL("GRANT SELECT ON hubs TO {}").format(role))
    return NAME


def write_bundle(root: Path) -> Path:
    """Write the bundle into `root`, and give it."""
    for path, content in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8", newline="\n")
    return root


DAY = Day(date(2026, 12, 1), "Europe/Berlin")
"""What tests tell a model of the day."""
