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
    server = describe("server", place(section), section.agent_user, section.pooler_project)
    if server.admin is not None:
        with connect_admin(server):
            pass
    return server


def place(section: DatabaseSection) -> dict[str, Any]:
    """Host and port as connection parameters; {} where the environment says it, which libpq reads."""
    if any(os.environ.get(name) for name in PLACE_VARIABLES):
        return {}
    return {"host": section.host, "port": section.port}


def describe(engine: str, where: dict[str, Any], agent_user: str, project: str = "") -> Server:
    """A server at `where` with the users and passwords of the environment; `project` as `database.pooler_project`."""
    admin = os.environ.get(ADMIN_USER)
    return Server(
        engine,
        {**where, **login(admin, ADMIN_PASSWORD, project)} if admin else None,
        {**where, **login(agent_user, AGENT_PASSWORD, project)},
    )


def login(role: str, variable: str, project: str = "") -> dict[str, Any]:
    """A role's login with the password that an environment variable has; without one, libpq's password file may have
    it."""
    user = login_name(role, project)
    password = os.environ.get(variable)
    return {"user": user, "password": password} if password else {"user": user}


def login_name(role: str, project: str) -> str:
    """What a role logs in as: its name, with the project behind it that a pooler asks for.

    >>> login_name("agent_ro", ""), login_name("agent_ro", "abc"), login_name("postgres.abc", "abc")
    ('agent_ro', 'agent_ro.abc', 'postgres.abc')
    """
    return role if not project or role.endswith(f".{project}") else f"{role}.{project}"


def project_of(login: str, role: str) -> str:
    """What stands behind a role's name in the login that became this role; "" where nothing does.

    >>> project_of("postgres.abc", "postgres"), project_of("a.b", "a.b")
    ('abc', '')
    """
    return login.removeprefix(f"{role}.") if login.startswith(f"{role}.") else ""
