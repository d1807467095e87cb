"""Connections to a server for our own work, and what to say when there is none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from okf_agent.engines import Server
from okf_compiler import postgres
from okf_compiler.errors import UserError

RECOVERY_SECONDS = 30
"""How long a server that recovers from a crash is waited for."""
ADMIN_USER = "POSTGRES_USER"
ADMIN_PASSWORD = "POSTGRES_PASSWORD"
AGENT_PASSWORD = "AGENT_DB_PASSWORD"


class MissingDatabase(UserError):
    """The server has no database of that name."""


@contextmanager
def connect_admin(server: Server, dbname: str | None = None) -> Iterator[psycopg.Connection[Any]]:
    """A connection that may change things, each statement committed at once; by default to no database of ours.

    Raises:
        UserError: no connection, or a server that we may not administer.
    """
    if server.admin is None:
        raise UserError(
            "Nobody is named who may administer this server: add POSTGRES_USER and POSTGRES_PASSWORD to .env "
            "(see .env.example)."
        )
    if dbname is None:
        dbname = (os.environ.get("PGDATABASE") if server.engine == "server" else None) or "postgres"
    with _connect(server.admin, dbname, ADMIN_PASSWORD, server.revive) as connection:
        yield connection


@contextmanager
def connect_agent(server: Server, dbname: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the model's role, each statement a transaction of its own; not for the model's SQL.

    Raises:
        UserError: no connection.
    """
    with _connect(server.agent, dbname, AGENT_PASSWORD, server.revive) as connection:
        yield connection


def _connect(
    params: Mapping[str, Any], dbname: str, secret: str, revive: Callable[[], None] | None
) -> psycopg.Connection[Any]:
    settings = {
        "connect_timeout": postgres.CONNECT_TIMEOUT_S,
        "application_name": "okf-agent",
        **params,
        "dbname": dbname,
        "client_encoding": "UTF8",
        "autocommit": True,
    }
    end = time.monotonic() + RECOVERY_SECONDS
    while True:
        try:
            return psycopg.connect(**settings)
        except psycopg.Error as error:
            if revive is not None and postgres.is_gone(error):
                revive()
                revive = None
                continue
            if not postgres.is_starting(error) or time.monotonic() > end:
                raise explain(str(error), params, dbname, secret) from None
            time.sleep(0.2)


def where_of(params: Mapping[str, Any]) -> str:
    """Which server connect parameters lead to, without a user or a password."""
    said = {"host": os.environ.get("PGHOST") or os.environ.get("PGHOSTADDR"), "port": os.environ.get("PGPORT")}
    places = (params.get(name) or said[name] for name in ("host", "port"))
    return ":".join(_bare(str(place)) for place in places if place) or "the server of PG* variables"


def _bare(host: str) -> str:
    """A host without a login that was written before it."""
    return host.rpartition("@")[2]


def explain(message: str, params: Mapping[str, Any], dbname: str, secret: str) -> UserError:
    """Why there is no connection and what to do, from libpq's message. No password is in it."""
    host = str(params.get("host") or os.environ.get("PGHOST") or "")
    message = " ".join(postgres.without_secrets(message, params).replace(host, _bare(host)).split())
    where = where_of(params)
    user = params.get("user", "you")
    if "password authentication failed" in message:
        return UserError(f"{where} rejects the password of {user}: correct {secret} in .env (see .env.example).")
    if "no password supplied" in message:
        return UserError(f"{where} asks for the password of {user}: add {secret} to .env (see .env.example).")
    if f'database "{dbname}" does not exist' in message:
        return MissingDatabase(f"{where} has no database {dbname!r}.")
    remedies = {
        f'role "{user}" does not exist': "Run `okf-agent prepare` with POSTGRES_USER and POSTGRES_PASSWORD in "
        ".env, or let a DBA run what `okf-agent prepare --print-sql` shows.",
        "no pg_hba.conf entry": "The server's pg_hba.conf has to allow this user, database and address; "
        "if it wants TLS, set PGSSLMODE=require in .env.",
        "certificate": "Put the server's root certificate where PGSSLROOTCERT in .env points (see .env.example).",
        "SSL": "Set PGSSLMODE in .env to what the server offers (see .env.example).",
        "too many connections": "Wait for other programs, or raise the limit of this role or server.",
        "definition of service": "Correct PGSERVICE, or the file that PGSERVICEFILE names.",
        "service file": "Correct PGSERVICE, or the file that PGSERVICEFILE names.",
    }
    remedy = next((advice for sign, advice in remedies.items() if sign in message), None)
    remedy = remedy or "Check that it runs, and database.host and database.port in config.yaml (or PGHOST, PGPORT)."
    return UserError(f"No connection to {dbname!r} on {where} as {user}: {message}\n{remedy}")
