"""The database that the hostile SQL is tried on, and a look at everything it could have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from okf_agent.access.role import harden
from okf_agent.access.role_sql import RoleSpec
from okf_agent.engines import Server
from okf_agent.sql.lexer import tokens

SETUP = Path(__file__).parents[1] / "data" / "hostile_setup.sql"
ROLES = ("ro", "boss", "app")
DURABLE = """
SELECT 'role', rolname || coalesce(rolpassword, '') || r::text FROM pg_authid r WHERE rolname !~ '^pg_'
UNION ALL SELECT 'setting', setdatabase::text || setrole::text || setconfig::text FROM pg_db_role_setting
UNION ALL SELECT 'database', datname || coalesce(datacl::text, '') FROM pg_database
UNION ALL SELECT 'relation', oid::regclass || relkind::text || relnatts || coalesce(relacl::text, '') || relowner
          FROM pg_class WHERE oid >= 16384
UNION ALL SELECT 'column', concat(attrelid::regclass, attname, attacl, attstattarget)
          FROM pg_attribute WHERE attrelid >= 16384
UNION ALL SELECT 'function', oid::regprocedure || prosrc || coalesce(proacl::text, '') FROM pg_proc
          WHERE oid >= 16384
UNION ALL SELECT 'type', typname || typowner FROM pg_type WHERE oid >= 16384
UNION ALL SELECT 'schema', nspname || coalesce(nspacl::text, '') FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'
UNION ALL SELECT 'comment', objoid || description FROM pg_description WHERE objoid >= 16384
UNION ALL SELECT 'large object', oid::text FROM pg_largeobject_metadata
UNION ALL SELECT 'collation', count(*)::text FROM pg_collation
UNION ALL SELECT 'extension', extname FROM pg_extension
UNION ALL SELECT 'slot', slot_name FROM pg_replication_slots
UNION ALL SELECT 'sequence', sequencename || coalesce(last_value, 0) FROM pg_sequences
UNION ALL SELECT 'customers', concat(count(*), ' ', sum(hashtextextended(c::text, 0))) FROM customers c
UNION ALL SELECT 'orders', concat(count(*), ' ', sum(hashtextextended(o::text, 0))) FROM orders o
UNION ALL SELECT 'secret', string_agg(k, '') FROM hidden.secret
UNION ALL SELECT 'mixed', count(*)::text FROM "Mixed Case"
UNION ALL SELECT 'statistics reset', coalesce(max(stats_reset)::text, '') FROM pg_stat_database
UNION ALL SELECT 'advisory lock', objid::text FROM pg_locks WHERE locktype = 'advisory'
UNION ALL SELECT 'prepared transaction', gid FROM pg_prepared_xacts
ORDER BY 1, 2"""


def build(server: Server) -> None:
    """Make roles and database `lab` anew, as hostile_setup.sql says, and harden `ro` with the grants it has."""
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="postgres", autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS lab WITH (FORCE)")
        for role in ROLES:
            admin.execute(f"DROP ROLE IF EXISTS {role}".encode())
        first, rest = SETUP.read_text(encoding="utf-8").split("-- in lab:\n")
        run(admin, first)
    with psycopg.connect(**server.admin, dbname="lab", autocommit=True) as admin:
        run(admin, rest)
        admin.execute("SELECT lo_from_bytea(4711, 'kept'::bytea)")
        harden(admin, RoleSpec(role="ro", database="lab", grants=False))


def run(admin: psycopg.Connection[Any], script: str) -> None:
    """Run statements one by one; an extension the server lacks is left out."""
    statement = ""
    for token in tokens(script):
        if token.kind != "comment":
            statement += token.text
        if token.text == ";" and token.kind == "other":
            try:
                admin.execute(statement.encode())
            except psycopg.errors.FeatureNotSupported:
                if "extension" not in statement:
                    raise
            statement = ""


def durable(admin: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Everything in `lab` and of its server that a query could have changed for good."""
    return admin.execute(DURABLE).fetchall()


def as_role(server: Server, role: str) -> dict[str, Any]:
    """How to connect as one of the lab's roles."""
    assert server.admin is not None
    return {**server.admin, "user": role, "password": "x"}


def reader_of(server: Server, name: str, script: str) -> dict[str, Any]:
    """Make a database with this content; how to connect as a hardened role `reader` that reads all of it."""
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(**server.admin, dbname=name, autocommit=True) as admin:
        admin.execute(script.encode())
        harden(admin, RoleSpec(role="reader", database=name))
    return {**server.admin, "user": "reader"}
