"""The role that runs the model's SQL: made, hardened, and hardened again whenever a right has changed.

The role may connect, see the schemas it is to read, and SELECT. It is one layer of several: a role may change
its own settings and password, which only the way a query is run stops.
"""

from __future__ import annotations

import hashlib
import itertools
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

from okf_agent.access.role_facts import STATE, Facts, read_facts
from okf_agent.access.role_sql import (
    RoleSpec,
    later_tables,
    looked_up_there,
    own_rights,
    rights_of_everyone,
    role_itself,
)
from okf_agent.config import Config
from okf_agent.engines import Server
from okf_agent.engines.connection import connect_admin, connect_agent
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

LOCK = 0x6F6B67


def wanted(config: Config, database: str, server: Server) -> RoleSpec:
    """What config.yaml says of the role in one database."""
    section, override = config.settings.database, config.settings.databases.get(database)
    return RoleSpec(
        role=section.agent_user,
        database=database,
        schema=override.schema_name if override else None,
        everyone=server.ours if section.harden_public is None else section.harden_public,
        hide=config.settings.hidden(database),
        allow_functions=section.allow_functions,
        connection_limit=section.connection_limit,
        statement_timeout_s=section.statement_timeout_s,
        temp_file_limit_mb=section.temp_file_limit_mb,
    )


def ensure_role(server: Server, database: str, config: Config) -> tuple[str, ...]:
    """Make and harden the role in one database, if its rights are not as they were left; what could not be done.

    Where we may not administer the server, the role has to exist, and nothing is done. On a read replica
    nothing can be done: the role comes from its primary.

    Raises:
        UserError: no connection, or `database.agent_user` names a role that must not be hardened.
    """
    if server.admin is None:
        return ()
    want = wanted(config, database, server)
    password = server.agent.get("password")
    with connect_admin(server, database) as connection:
        if _one(connection, "SELECT pg_is_in_recovery()"):
            if _one(connection, "SELECT count(*) FROM pg_roles WHERE rolname = %s", want.role):
                return ()
            raise UserError(f"This server is a read replica: make the role {want.role} on its primary.")
        note = _note(config, database, server)
        if _is_kept(note, connection, want, password):
            return ()
        with connect_admin(server) as control:  # one at a time: roles belong to all databases
            control.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            if _is_kept(note, connection, want, password):
                return ()
            missed = harden(connection, want, password)
        _keep(note, _state(connection, want, password))
        return missed


def harden(connection: psycopg.Connection[Any], want: RoleSpec, password: str | None = None) -> tuple[str, ...]:
    """Run the role's statements in the connection's database, in one transaction; what was refused.

    Raises:
        UserError: the role is the connection's own or may administer a server that is not ours.
    """
    facts = read_facts(connection, want.role, want.hide, want.allow_functions)
    if want.role == facts.admin:
        raise UserError(
            f"database.agent_user is {want.role}, who administers the server: name a role of its own.", status=2
        )
    if facts.role and facts.role["rolsuper"] and not want.everyone:
        raise UserError(
            f"{want.role} is a superuser here: name another role in database.agent_user, one made for reading."
        )
    missed = [f"hide: {entry} names nothing in {want.database}" for entry in facts.unmatched]
    with connection.transaction():
        for statement in role_itself(want, facts, _verifier(connection, want.role, password)):
            connection.execute(statement.encode())
        everyone = rights_of_everyone(want, facts) if want.everyone else ()
        for statement in itertools.chain(own_rights(want, facts), everyone):
            try:
                with connection.transaction():
                    connection.execute(statement.encode())
            except errors.InsufficientPrivilege as error:
                missed.append(f"{statement[:100]}: {error.diag.message_primary}")
    return tuple(missed)


@dataclass(frozen=True)
class Printed:
    """The statements for a DBA, with comments between them."""

    of_role: tuple[str, ...]
    """Those that the role needs."""
    of_everyone: tuple[str, ...]
    """Those that take rights from everyone else too, which a server with other users may not want."""

    def __str__(self) -> str:
        return "\n".join((*self.of_role, *self.of_everyone))


def statements(server: Server, database: str, config: Config) -> Printed:
    """The statements for a DBA to run in that database.

    Without an administrator's connection the role itself looks, if it can connect; else they are those of a plain
    database with one schema.

    Raises:
        UserError: columns are to be hidden, and nobody can look which there are.
    """
    want = wanted(config, database, server)
    facts = _facts_for_dba(server, want)
    return Printed(
        (
            f"-- In the database {want.database}, as a superuser or the owner of everything in it.",
            *(f"{s};" for s in role_itself(want, facts, None)),
            f"-- Its password, which goes into .env as AGENT_DB_PASSWORD: \\password {want.role}",
            *(f"{s};" for s in own_rights(want, facts)),
            *(f"{s};" for s in (later_tables(want) if server.admin is None else ())),
        ),
        (
            "-- What follows takes rights from everyone else too. Leave it out if others need them here.",
            *(f"{s};" for s in rights_of_everyone(want, facts)),
            *(f"{s};" for s in (looked_up_there(want) if server.admin is None else ())),
        ),
    )


def _facts_for_dba(server: Server, want: RoleSpec) -> Facts:
    """What is known of the database to whoever may look."""
    try:
        with connect_admin(server, want.database) if server.admin else connect_agent(server, want.database) as found:
            facts = read_facts(found, want.role, want.hide, want.allow_functions)
    except UserError:
        if server.admin:
            raise
        if want.hide:
            raise UserError(
                "hide needs the database's columns, and neither an administrator nor the role can look: add "
                "POSTGRES_USER and POSTGRES_PASSWORD to .env (see .env.example), or print without hide first, and "
                "again once the role is there."
            ) from None
        facts = Facts(schemas=(want.schema or "public",))
    # A DBA runs the statements, and knows who owns what.
    return facts if server.admin else replace(facts, superuser=True, owners=())


def _verifier(connection: psycopg.Connection[Any], role: str, password: str | None) -> str | None:
    """What the server stores for a password: the password itself would show in its log."""
    if password is None:
        return None
    return connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()


def _state(connection: psycopg.Connection[Any], want: RoleSpec, password: str | None) -> str:
    """A digest of what is wanted and of every right there is."""
    secret = hashlib.sha256((password or "").encode()).hexdigest()
    found = _one(connection, STATE, role=want.role)
    return hashlib.sha256(f"{want} {secret} {found}".encode()).hexdigest()


def _note(config: Config, database: str, server: Server) -> Path:
    """The file that remembers the state a database was left in."""
    place = {key: value for key, value in (server.admin or {}).items() if key != "password"}
    where = hashlib.sha256(repr(sorted(place.items())).encode()).hexdigest()[:10]
    name = hashlib.sha256(database.encode()).hexdigest()[:10]
    return config.settings.root / ".okf" / "roles" / f"{where}-{name}"


def _is_kept(note: Path, connection: psycopg.Connection[Any], want: RoleSpec, password: str | None) -> bool:
    return note.is_file() and note.read_text(encoding="utf-8") == _state(connection, want, password)


def _keep(note: Path, state: str) -> None:
    with suppress(OSError):  # it only saves time: without it the role is hardened again at the next start
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, state)


def _one(connection: psycopg.Connection[Any], query: str, *values: Any, **named: Any) -> Any:
    row = connection.execute(query.encode(), named or values or None).fetchone()
    return row[0] if row else None
