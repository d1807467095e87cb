"""The statements that make the role what it is to be, as text, from what is wanted and what the catalogue says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psycopg import sql

from okf_agent.access.role_facts import ACTING_ROUTINES, NEEDED_ROUTINES, Facts

LOCK_TIMEOUT_S = 5
IDLE_IN_TRANSACTION_S = 300
TOO_MUCH = ("superuser", "createdb", "createrole", "replication", "bypassrls")
WRITES = "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER"


@dataclass(frozen=True)
class RoleSpec:
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


def role_itself(want: RoleSpec, facts: Facts, verifier: str | None) -> Iterator[str]:
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


def own_rights(want: RoleSpec, facts: Facts) -> Iterator[str]:
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


def rights_of_everyone(want: RoleSpec, facts: Facts) -> Iterator[str]:
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


def later_tables(want: RoleSpec) -> Iterator[str]:
    """What lets the role read tables that whoever runs it makes later, for a database that we could not look into."""
    if not want.hide:  # a later table may have such a column: it is granted by running all this again
        schema = _name(want.schema or "public")
        yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {_name(want.role)}"


def looked_up_there(want: RoleSpec) -> Iterator[str]:
    """What depends on the catalogue, for a database that we could not look into: blocks that look for themselves."""
    role = _name(want.role)
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


def _name(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _text(text: str) -> str:
    return sql.Literal(text).as_string(None)
