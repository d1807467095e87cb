"""Databases made for one test module, and real dumps, on the tests' own server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

from okf_agent.engines import Server
from okf_agent.loading import load
from okf_compiler.documents import Documents


@contextmanager
def made(server: Server, name: str, script: str, role: str = "") -> Iterator[dict[str, Any]]:
    """A database from an SQL script, and `role` that can log in; yields connect parameters of the role, or the
    administrator's without one. The database is dropped at the end."""
    assert server.admin is not None
    with psycopg.connect(**server.admin, dbname="postgres", autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        if role:
            with suppress(psycopg.errors.DuplicateObject):
                admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        try:
            with psycopg.connect(**server.admin, dbname=name) as connection:
                connection.execute(script.encode())
            yield server.admin | ({"user": role} if role else {})
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def url(params: dict[str, Any], dbname: str, password: str = "") -> str:
    """A connection URL for the parameters; `password` replaces theirs."""
    secret = quote(password or str(params.get("password", "")), safe="")
    user = f"{params['user']}:{secret}" if secret else params["user"]
    return f"postgresql://{user}@/{dbname}?host={quote(str(params['host']))}&port={params['port']}"


def loaded(server: Server, name: str, dump: Path) -> None:
    """A dump as the database `name`, by the agent's own loader."""
    load.load(server, name, dump)


def documents_of(root: Path, name: str) -> Documents:
    """The three files of one LiveSQLBench database."""
    folder = root / name
    files = (folder / f"{name}{suffix}" for suffix in ("_schema.txt", "_column_meaning_base.json", "_kb.jsonl"))
    return Documents(name, root, *files, None)
