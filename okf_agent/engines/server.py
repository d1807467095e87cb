"""The server engine: a PostgreSQL of yours, by host and port or libpq's own PG* variables."""

from __future__ import annotations

import os
from typing import Any

from okf_agent.engines import Server
from okf_agent.engines.connection import ADMIN_PASSWORD, ADMIN_USER, AGENT_PASSWORD, connect_admin
from okf_compiler.settings import DatabaseSection

PLACE_VARIABLES = ("PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT")


def start(section: DatabaseSection) -> Server:
    """The server, reached once as its administrator if one is named.

    Where: any of PGSERVICE, PGHOST, PGHOSTADDR, PGPORT, else `database.host` and `database.port`; libpq reads
    these and every other PG* variable (PGSSLMODE, PGSSLROOTCERT, PGPASSFILE, …) itself. Who: `agent_user`
    with AGENT_DB_PASSWORD runs queries; POSTGRES_USER with POSTGRES_PASSWORD, if set, loads dumps and makes
    that role. A password that is not set may come from libpq's password file.

    Raises:
        UserError: the administrator cannot connect.
    """
    server = describe("server", place(section), section.agent_user)
    if server.admin is not None:
        with connect_admin(server):
            pass
    return server


def place(section: DatabaseSection) -> dict[str, Any]:
    """Host and port as connection parameters; {} where the environment says it, which libpq reads."""
    if any(os.environ.get(name) for name in PLACE_VARIABLES):
        return {}
    return {"host": section.host, "port": section.port}


def describe(engine: str, where: dict[str, Any], agent_user: str) -> Server:
    """A server at `where` with the users and passwords of the environment."""
    admin = os.environ.get(ADMIN_USER)
    return Server(
        engine,
        {**where, **login(admin, ADMIN_PASSWORD)} if admin else None,
        {**where, **login(agent_user, AGENT_PASSWORD)},
    )


def login(user: str, variable: str) -> dict[str, Any]:
    """A user with the password that an environment variable has; without one, libpq's password file may have it."""
    password = os.environ.get(variable)
    return {"user": user, "password": password} if password else {"user": user}
