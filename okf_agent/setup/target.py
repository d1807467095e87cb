"""Which server and database `okf-agent init` is about, and a first connection to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from okf_agent.config import Config
from okf_agent.engines.connection import ADMIN_PASSWORD, ADMIN_USER, AGENT_PASSWORD, MissingDatabase, explain
from okf_agent.engines.server import PLACE_VARIABLES, login, place, project_of
from okf_compiler.connections import parse_url
from okf_compiler.errors import UserError, did_you_mean
from okf_compiler.postgres import connect

KEPT = {
    "service": "PGSERVICE",
    "servicefile": "PGSERVICEFILE",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "channel_binding": "PGCHANNELBINDING",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""Connection parameters that later connections need too, and the variables of `.env` that keep them."""


@dataclass(frozen=True)
class Target:
    """A database and how to reach it, as it was named."""

    name: str
    params: Mapping[str, Any] = field(repr=False)
    """psycopg connect parameters without dbname; what is not in them libpq takes from PG* variables."""
    origin: str
    """What named it, for messages: `--from`, `the PG* variables`, `config.yaml`."""


@dataclass(frozen=True)
class Reached:
    """A target that answered."""

    target: Target
    params: Mapping[str, Any] = field(repr=False)
    """Host, port and login that worked."""
    version: str
    user: str
    """The role; a pooler's login has a project behind it."""
    project: str
    may_make_roles: bool
    variables: Mapping[str, str]
    """Lines for `.env`: how to connect, no secret among them."""

    @property
    def place(self) -> dict[str, Any]:
        return {"host": self.params["host"], "port": self.params["port"]}


def find_target(config: Config, name: str | None, url: str | None) -> Target:
    """The database that is meant: by URL, by PG* variables, or by the server of config.yaml.

    Raises:
        UserError: none is named, or two different ones.
    """
    if url is not None:
        params, dbname = parse_url(url)
        if name not in (None, dbname):
            raise UserError(f"--from leads to {dbname}, and a database here has its own name, not {name!r}.", status=2)
        clash = [variable for variable in PLACE_VARIABLES if os.environ.get(variable)]
        if clash and any(params.get(k) and str(params[k]) != os.environ.get(v) for k, v in _PLACES.items()):
            raise UserError(f"{clash[0]} is set and outweighs --from in later connections: unset it first.", status=2)
        return Target(_checked(dbname), params, "--from")
    wanted = name or os.environ.get("PGDATABASE")
    if any(os.environ.get(variable) for variable in (*PLACE_VARIABLES, "PGDATABASE", "PGUSER")):
        target = Target("", {}, "the PG* variables")
    elif config.settings.database.engine == "server":
        target = Target("", {**place(config.settings.database), **_configured_login(config)}, "config.yaml")
    else:
        raise UserError(
            "Which server? okf-agent init --from postgresql://user@host:5432/database, or set PGHOST, PGUSER and "
            "PGDATABASE.\nA password in neither is taken from PGPASSWORD or libpq's password file.",
            status=2,
        )
    if not wanted:
        raise UserError("Which database? okf-agent init NAME, or set PGDATABASE.", status=2)
    return Target(_checked(wanted), target.params, target.origin)


_PLACES = {"host": "PGHOST", "port": "PGPORT", "hostaddr": "PGHOSTADDR", "service": "PGSERVICE"}


def _configured_login(config: Config) -> dict[str, Any]:
    """The administrator if `.env` has one, else the agent's role."""
    admin = os.environ.get(ADMIN_USER)
    section = config.settings.database
    role, variable = (admin, ADMIN_PASSWORD) if admin else (section.agent_user, AGENT_PASSWORD)
    return login(role, variable, section.pooler_project)


def _checked(name: str) -> str:
    if name in (".", "..") or Path(name).name != name or "\\" in name:
        raise UserError(f"A database called {name!r} cannot have a folder of its own: rename it, or link it.", status=2)
    return name


def reach(target: Target) -> Reached:
    """Connect once, and see who we are.

    Raises:
        UserError: no connection; says why and what to do. No password is in it.
    """
    try:
        connection: psycopg.Connection[Any] = connect(target.params, target.name)
        with connection:
            info = connection.info
            row = connection.execute(
                "SELECT current_user, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            user, may = row or (info.user, "f")
            password = target.params.get("password") or info.password
            params = {**target.params, "host": info.host, "port": info.port, "user": info.user}
            variables = {variable: str(target.params[key]) for key, variable in KEPT.items() if target.params.get(key)}
            from_shell = {variable: os.environ[variable] for variable in KEPT.values() if os.environ.get(variable)}
            return Reached(
                target,
                {**params, "password": password} if password else params,
                (info.parameter_status("server_version") or "?").partition(" ")[0],
                str(user),
                project_of(info.user, str(user)),
                may == "t",
                {**from_shell, **variables},
            )
    except psycopg.Error as error:
        raise explained(target, str(error)) from None


def explained(target: Target, message: str) -> UserError:
    """Why a first connection failed with libpq's message, and what to do about what was given for it."""
    user = target.params.get("user") or os.environ.get("PGUSER") or "you"
    secret = ADMIN_PASSWORD if user == os.environ.get(ADMIN_USER) else AGENT_PASSWORD
    told = explain(message, {**target.params, "user": user}, target.name, secret)
    if isinstance(told, MissingDatabase):
        return UserError(f"{told}{_near(target)}")
    none = "no password supplied" in message
    if none or "password authentication failed" in message:
        if target.origin == "config.yaml":
            return told
        given = "password" in target.params
        where = "in --from: characters like @ : / ? are written %40 %3A %2F %3F in a URL" if given else "in PGPASSWORD"
        if none:
            return UserError(
                f"The server asks for the password of {user}, and none was given: put it into PGPASSWORD, the URL of "
                "--from or libpq's password file."
            )
        return UserError(
            f"The server rejects the login of {user} to {target.name}. Correct the password {where}; libpq's password "
            "file works too."
        )
    first, _, _ = str(told).partition("\n")
    if any(sign in message for sign in ("refused", "No such file", "translate", "resolve", "timeout")):
        return UserError(f"{first}\nCheck that the server runs, and host and port in {target.origin}.")
    return told


def _near(target: Target) -> str:
    """Which databases the server has, if it tells."""
    try:
        connection: psycopg.Connection[Any] = connect(target.params, "postgres")
        with connection:
            rows = connection.execute(
                "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1"
            ).fetchall()
    except psycopg.Error:
        return ""
    names = [str(name) for (name,) in rows]
    return f" It has: {', '.join(names)}{did_you_mean(target.name, names)}"
