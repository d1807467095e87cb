"""The role that runs the model's SQL: made, hardened, and hardened again whenever a right has changed.

The role may connect, see the schemas it is to read, and SELECT. It is one layer of several: a role may change
its own settings and password, which only the way a query is run stops.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg import sql as psycopg_sql

from okf_agent.access.role_facts import ACTING_ROUTINES, NEEDED_ROUTINES, STATE, Facts, read_facts
from okf_agent.config import Config
from okf_agent.engines import Server
from okf_agent.engines.connection import connect_admin, connect_agent
from okf_compiler.errors import UserError
from okf_compiler.whole_file import write_whole

LOCK = 0x6F6B67
LOCK_TIMEOUT_S = 5
IDLE_IN_TRANSACTION_S = 300
TOO_MUCH = ("superuser", "createdb", "createrole", "replication", "bypassrls")
WRITES = "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"


@dataclass(frozen=True)
class Wanted:
    """What the role is to be in one database."""

    role: str
    database: str
    schema: str | None = None
    """The only schema it reads, and the first of its search path; None for all of them and public."""
    everyone: bool = True
    """Also take from PUBLIC what the role would share: for a server that nobody else works on."""
    grants: bool = True
    """Grant what it is to read; False keeps the SELECT rights it has."""
    hide: tuple[str, ...] = ()
    allow_functions: tuple[str, ...] = ()
    connection_limit: int = 50
    statement_timeout_s: float = 30
    temp_file_limit_mb: int = 1_000


def wanted(config: Config, database: str, server: Server) -> Wanted:
    """What config.yaml says of the role in one database."""
    section, override = config.settings.database, config.settings.databases.get(database)
    return Wanted(
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


def ensure_roles(server: Server, config: Config) -> dict[str, tuple[str, ...]]:
    """The same for every database of the server that takes connections."""
    with connect_admin(server) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1"
            )
        ]
    return {name: ensure_role(server, name, config) for name in names if name != "postgres"}


def harden(connection: psycopg.Connection[Any], want: Wanted, password: str | None = None) -> tuple[str, ...]:
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
        for statement in _role(want, facts, _verifier(connection, want.role, password)):
            connection.execute(statement.encode())
        for statement in itertools.chain(_rights(want, facts), _everyone(want, facts) if want.everyone else ()):
            try:
                with connection.transaction():
                    connection.execute(statement.encode())
            except errors.InsufficientPrivilege as error:
                missed.append(f"{statement[:100]}: {error.diag.message_primary}")
    return tuple(missed)


def statements(server: Server, database: str, config: Config) -> list[str]:
    """The statements for a DBA to run in that database, comments between them included.

    Without an administrator's connection the role itself looks, if it can connect; else they are those of a plain
    database with one schema.

    Raises:
        UserError: columns are to be hidden, and nobody can look which there are.
    """
    want = wanted(config, database, server)
    facts = _facts_for_dba(server, want)
    return [
        f"-- In the database {want.database}, as a superuser or the owner of everything in it.",
        *(f"{s};" for s in _role(want, facts, None)),
        f"-- Its password, which goes into .env as AGENT_DB_PASSWORD: \\password {want.role}",
        *(f"{s};" for s in _rights(want, facts)),
        "-- What follows takes rights from everyone else too. Leave it out if others need them here.",
        *(f"{s};" for s in _everyone(want, facts)),
        *(f"{s};" for s in (_looked_up(want) if server.admin is None else ())),
    ]


def _facts_for_dba(server: Server, want: Wanted) -> Facts:
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


def _role(want: Wanted, facts: Facts, verifier: str | None) -> Iterator[str]:
    """The role itself and its settings. An attribute is only named if it has to change: that needs a superuser."""
    role, row = _name(want.role), facts.role
    if row is None:
        yield f"CREATE ROLE {role} LOGIN NOINHERIT CONNECTION LIMIT {want.connection_limit}"
    else:
        excess = "".join(f" NO{a.upper()}" for a in TOO_MUCH if row[{"superuser": "rolsuper"}.get(a, f"rol{a}")])
        yield f"ALTER ROLE {role} LOGIN NOINHERIT CONNECTION LIMIT {want.connection_limit}{excess}"
    if verifier:
        yield f"ALTER ROLE {role} PASSWORD {_text(verifier)}"
    for group, grantor in facts.memberships:
        by = f" GRANTED BY {_name(grantor)}" if facts.version >= 160000 else ""
        yield f"REVOKE {_name(group)} FROM {role}{by}"
    database = _name(want.database)
    yield f"ALTER ROLE {role} RESET ALL"
    yield f"ALTER ROLE {role} IN DATABASE {database} RESET ALL"
    settings = {
        "default_transaction_read_only": "on",
        "statement_timeout": f"{want.statement_timeout_s * 1000:.0f}ms",
        "lock_timeout": f"{LOCK_TIMEOUT_S}s",
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
    }
    if facts.superuser:
        settings["temp_file_limit"] = f"{want.temp_file_limit_mb}MB"
    for key, value in settings.items():
        yield f"ALTER ROLE {role} SET {key} = {_text(value)}"
    # pg_temp last: a temporary table never hides a real one.
    yield f"ALTER ROLE {role} IN DATABASE {database} SET search_path = {_name(want.schema or 'public')}, pg_temp"


def _rights(want: Wanted, facts: Facts) -> Iterator[str]:
    """The role's own rights in the database: what it had beyond reading goes, what it is to read comes."""
    role, database = _name(want.role), _name(want.database)
    yield f"REVOKE ALL ON DATABASE {database} FROM {role}"
    yield f"GRANT CONNECT ON DATABASE {database} TO {role}"
    for schema in facts.schemas:
        yield f"REVOKE CREATE ON SCHEMA {_name(schema)} FROM {role}"
        yield from _take(facts, schema, role)
        if not want.grants:
            continue
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {_name(schema)} FROM {role}"
        if want.schema in (None, schema):
            yield f"GRANT USAGE ON SCHEMA {_name(schema)} TO {role}"
            yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {_name(schema)} TO {role}"
            for owner in facts.owners:
                # With hidden columns, a later table is granted at the next start, column by column.
                verb, link = ("REVOKE", "FROM") if want.hide else ("GRANT", "TO")
                yield (
                    f"ALTER DEFAULT PRIVILEGES FOR ROLE {_name(owner)} IN SCHEMA {_name(schema)} "
                    f"{verb} SELECT ON TABLES {link} {role}"
                )
        else:
            yield f"REVOKE USAGE ON SCHEMA {_name(schema)} FROM {role}"
    for table in facts.hidden:
        path = f"{_name(table.schema)}.{_name(table.name)}"
        yield f"REVOKE ALL ON {path} FROM {role}"
        if table.readable and want.schema in (None, table.schema):
            yield f"GRANT SELECT ({', '.join(map(_name, table.readable))}) ON {path} TO {role}"
    if routines := [*facts.allowed, *(facts.needed if want.everyone else ())]:
        yield f"GRANT EXECUTE ON ROUTINE {', '.join(routines)} TO {role}"


def _everyone(want: Wanted, facts: Facts) -> Iterator[str]:
    """What PUBLIC gives every role, this one included."""
    yield f"REVOKE CREATE, TEMPORARY ON DATABASE {_name(want.database)} FROM PUBLIC"
    for schema in facts.schemas:
        yield f"REVOKE CREATE ON SCHEMA {_name(schema)} FROM PUBLIC"
        yield from _take(facts, schema, "PUBLIC")
    for table in facts.hidden:
        yield f"REVOKE ALL ON {_name(table.schema)}.{_name(table.name)} FROM PUBLIC"
    for owner in facts.owners:
        yield f"ALTER DEFAULT PRIVILEGES FOR ROLE {_name(owner)} REVOKE EXECUTE ON ROUTINES FROM PUBLIC"
    if acting := [routine for routine in facts.acting if routine not in facts.allowed]:
        yield f"REVOKE EXECUTE ON ROUTINE {', '.join(acting)} FROM PUBLIC, {_name(want.role)}"


def _looked_up(want: Wanted) -> Iterator[str]:
    """What depends on the catalogue, for a database that we could not look into: blocks that look for themselves."""
    role = _name(want.role)
    if not want.hide:  # a later table may have such a column: it is granted by running all this again
        yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA {_name(want.schema or 'public')} GRANT SELECT ON TABLES TO {role}"
    yield "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON ROUTINES FROM PUBLIC"
    for query, verb, link in (
        (ACTING_ROUTINES, "REVOKE", f"FROM PUBLIC, {role}"),
        (NEEDED_ROUTINES, "GRANT", f"TO {role}"),
    ):
        loop = f"EXECUTE {_text(f'{verb} EXECUTE ON ROUTINE ')} || routine || {_text(f' {link}')}"
        yield f"DO $do$ DECLARE routine text; BEGIN FOR routine IN {query} LOOP {loop}; END LOOP; END $do$"


def _take(facts: Facts, schema: str, who: str) -> Iterator[str]:
    writes = WRITES + (", MAINTAIN" if facts.version >= 170000 else "")
    yield f"REVOKE {writes} ON ALL TABLES IN SCHEMA {_name(schema)} FROM {who}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {_name(schema)} FROM {who}"
    yield f"REVOKE ALL ON ALL ROUTINES IN SCHEMA {_name(schema)} FROM {who}"


def _verifier(connection: psycopg.Connection[Any], role: str, password: str | None) -> str | None:
    """What the server stores for a password: the password itself would show in its log."""
    if password is None:
        return None
    return connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()


def _state(connection: psycopg.Connection[Any], want: Wanted, password: str | None) -> str:
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


def _is_kept(note: Path, connection: psycopg.Connection[Any], want: Wanted, password: str | None) -> bool:
    return note.is_file() and note.read_text(encoding="utf-8") == _state(connection, want, password)


def _keep(note: Path, state: str) -> None:
    with suppress(OSError):  # it only saves time: without it the role is hardened again at the next start
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, state)


def _one(connection: psycopg.Connection[Any], query: str, *values: Any, **named: Any) -> Any:
    row = connection.execute(query.encode(), named or values or None).fetchone()
    return row[0] if row else None


def _name(name: str) -> str:
    return psycopg_sql.Identifier(name).as_string(None)


def _text(text: str) -> str:
    return psycopg_sql.Literal(text).as_string(None)
