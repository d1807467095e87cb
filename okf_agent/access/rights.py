"""What the connected role can really do: each question to the catalogue, and what its answer means.

Nothing is taken from config.yaml or from what `role.py` granted: a right that came from anywhere is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import psycopg

from okf_agent.access.hidden import COLUMNS, USER_SCHEMA, exposing_views, hidden_columns
from okf_agent.access.role_facts import ACTING, FIRST_USER_OID, ROUTINES
from okf_agent.config import Config
from okf_agent.engines import Server
from okf_agent.engines.connection import connect_agent
from okf_compiler.catalogue_queries import LIMITED
from okf_compiler.errors import did_you_mean

Level = Literal["green", "yellow", "red"]
SHOWN = 5
RELATIONS = f"FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE {USER_SCHEMA} AND relkind IN "
ROUTINE_NAME = "quote_ident(n.nspname) || '.' || quote_ident(p.proname)"
OPERATORS = "p.oid IN (SELECT oprcode FROM pg_operator UNION SELECT castfunc FROM pg_cast) AND p.provolatile <> 'v'"
HARDEN = "`okf-agent prepare` takes that back, or shows a DBA how with --print-sql."
UNHIDDEN = (
    "Correct it, or put it under databases.<name>.hide of the database that has it; `*.column` hides a column wherever "
    "it is, and may name nothing."
)
HARDEN_ELSEWHERE = (
    "`okf-agent prepare` takes back what the role itself was given. A right of everyone goes only with "
    "database.harden_public: true; --print-sql shows a DBA both."
)
"""On a server that is not ours, where a right may have been given to everyone for somebody else's sake."""
OTHER_ROLE = "Name a role made for reading in database.agent_user; `okf-agent prepare` makes one."


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    level: Level
    """green: as it should be; yellow: works, but read it; red: `ask` refuses to run."""
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Question:
    """A query for names: those of what the role can do and should not."""

    check: str
    query: str
    """Gives one column. It may use %(allowed)s, functions allowed by name, and %(acting)s, name patterns."""
    bad: str
    """What it means that there are such names; {names} and {count} are put in."""
    good: str
    """What it means that there are none."""
    remedy: str
    level: Level = "red"
    elsewhere: Level | None = None
    """The level on a server that is not ours, where others may need the right; None for the same."""


QUESTIONS = (
    Question(
        "attributes",
        "SELECT a FROM pg_roles r, unnest(ARRAY[rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication], "
        "ARRAY['superuser', 'BYPASSRLS', 'CREATEROLE', 'CREATEDB', 'REPLICATION']) AS u(yes, a) "
        "WHERE rolname = current_user AND yes",
        "The role is {names}.",
        "The role is no superuser and may not make roles or databases, replicate, or pass over row security.",
        OTHER_ROLE,
    ),
    Question(
        "memberships",
        "SELECT rolname FROM pg_roles WHERE rolname <> current_user AND pg_has_role(oid, 'MEMBER')",
        "The role can act as {names}.",
        "The role is a member of no other role.",
        HARDEN,
    ),
    Question(
        "ownership",
        "SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = relnamespace WHERE pg_get_userbyid(relowner) = current_user "
        "UNION ALL SELECT quote_ident(nspname) FROM pg_namespace WHERE pg_get_userbyid(nspowner) = current_user "
        f"UNION ALL SELECT {ROUTINE_NAME} {ROUTINES} WHERE pg_get_userbyid(proowner) = current_user "
        "UNION ALL SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = current_user",
        "The role owns {names}: an owner can do anything with it.",
        "The role owns nothing.",
        "Give it another owner: ALTER … OWNER TO, or REASSIGN OWNED BY.",
    ),
    Question(
        "writes",
        f"SELECT quote_ident(nspname) || '.' || quote_ident(relname) {RELATIONS} ('r', 'v', 'm', 'f', 'p') AND ("
        "has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') "
        "OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')) ORDER BY 1",
        "The role may write to {count} tables: {names}.",
        "The role may write to no table.",
        HARDEN,
    ),
    Question(
        "sequences",
        "SELECT quote_ident(nspname) || '.' || quote_ident(relname) "
        # CASE: the planner may ask about a table first, and the function fails for that.
        f"{RELATIONS} ('S') AND CASE relkind WHEN 'S' THEN has_sequence_privilege(c.oid, 'USAGE, UPDATE') END "
        "ORDER BY 1",
        "The role may move {count} sequences: {names}.",
        "The role may move no sequence.",
        HARDEN,
    ),
    Question(
        "creates",
        f"SELECT 'schema ' || quote_ident(nspname) FROM pg_namespace n WHERE {USER_SCHEMA} "
        "AND has_schema_privilege(n.oid, 'CREATE') UNION ALL SELECT 'database ' || quote_ident(current_database()) "
        "WHERE has_database_privilege(current_database(), 'CREATE')",
        "The role may create in {names}.",
        "The role may create nothing.",
        HARDEN,
    ),
    Question(
        "temporary tables",
        "SELECT current_database() WHERE has_database_privilege(current_database(), 'TEMPORARY')",
        "The role may create temporary tables: everyone may, on this server. A read-only transaction refuses it too.",
        "The role may create no temporary table.",
        HARDEN,
        "yellow",
    ),
    Question(
        "SECURITY DEFINER",
        f"SELECT {ROUTINE_NAME} {ROUTINES} WHERE p.oid >= {FIRST_USER_OID} AND p.prosecdef "
        "AND has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE') "
        "AND NOT (p.proname = ANY (%(allowed)s) OR n.nspname || '.' || p.proname = ANY (%(allowed)s)) ORDER BY 1",
        "The role may run {count} functions with their owner's rights: {names}.",
        "The role may run no function with its owner's rights.",
        HARDEN,
        elsewhere="yellow",
    ),
    Question(
        "functions",
        f"SELECT {ROUTINE_NAME} {ROUTINES} WHERE p.oid >= {FIRST_USER_OID} AND NOT p.prosecdef "
        f"AND has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE') AND NOT ({OPERATORS}) "
        "AND NOT (p.proname = ANY (%(allowed)s) OR n.nspname || '.' || p.proname = ANY (%(allowed)s)) ORDER BY 1",
        "The role may run {count} functions that people wrote or extensions brought: {names}.",
        "The role may run no function that people wrote or extensions brought, those allowed by name apart.",
        HARDEN,
        "yellow",
    ),
    Question(
        "catalogue functions",
        "SELECT DISTINCT p.proname::text FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace "
        "AND p.proname LIKE ANY (%(acting)s) AND has_function_privilege(p.oid, 'EXECUTE') "
        "AND NOT p.proname = ANY (%(allowed)s) ORDER BY 1",
        "The role may run {count} catalogue functions that act: {names}. A query is rolled back, which undoes most.",
        "The catalogue functions that act are taken from the role.",
        "On a server of your own, database.harden_public: true takes them from everyone.",
        "yellow",
    ),
    Question(
        "reading",
        f"SELECT 'anything' WHERE NOT EXISTS (SELECT {RELATIONS} ('r', 'v', 'm', 'f', 'p') "
        "AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT'))",
        "The role cannot read {names} in this database.",
        "The role can read tables of this database.",
        "`okf-agent prepare` grants it, or shows a DBA how with --print-sql.",
        "yellow",
    ),
    Question(
        "row security",
        f"SELECT CASE nspname WHEN 'public' THEN '' ELSE quote_ident(nspname) || '.' END || quote_ident(relname) "
        f"FROM ({LIMITED}) AS limited",
        "Row security may keep rows from the role in {count} tables: {names}. Counts are of what it sees.",
        "Row security keeps no row from the role.",
        "Give the role a policy that shows it all rows (CREATE POLICY … FOR SELECT TO … USING (true)), or ask only of "
        "what it sees.",
        "yellow",
    ),
    Question(
        "other databases",
        "SELECT datname FROM pg_database WHERE datallowconn AND datname <> current_database() "
        "AND has_database_privilege(oid, 'CONNECT') ORDER BY 1",
        "With its password the role may also connect to {count} other databases: {names}. A query cannot.",
        "The role may connect to no other database.",
        "REVOKE CONNECT ON DATABASE … FROM PUBLIC, where that suits the others.",
        "green",
        elsewhere="yellow",
    ),
    Question(
        "settings",
        "SELECT name FROM pg_settings WHERE (name = 'default_transaction_read_only' AND setting = 'off') "
        "OR (name IN ('statement_timeout', 'idle_in_transaction_session_timeout') AND setting = '0') "
        "OR (name = 'temp_file_limit' AND setting = '-1')",
        "These settings of the role have no bound: {names}.",
        "The role's settings bound time and disk, and begin every transaction read-only.",
        HARDEN,
        "yellow",
    ),
)


def unsafe_role(server: Server, database: str, config: Config) -> tuple[str, ...]:
    """Why a question should not be asked as this role; () if it is safe. The reds of the role, in about 15 ms.

    Raises:
        UserError: no connection.
    """
    reds = (finding for finding in examine_agent(server, database, config) if finding.level == "red")
    return tuple(f"{red.text} {red.remedy}" if red.check == "hide" else red.text for red in reds)


def examine_agent(server: Server, database: str, config: Config) -> list[Finding]:
    """What the role that runs queries can do in one database.

    Raises:
        UserError: no connection.
    """
    allowed = config.settings.database.allow_functions
    with connect_agent(server, database) as connection:
        return examine_role(
            connection, ours=server.ours, hide=config.settings.hidden(database), allowed=allowed,
            place=lambda entry: config.settings.hide_place(database, entry),
        )  # fmt: skip


def examine_role(
    connection: psycopg.Connection[Any],
    *,
    ours: bool,
    hide: Iterable[str],
    allowed: Iterable[str],
    place: Callable[[str], str] = str,
) -> list[Finding]:
    """Examine what the connection's role can do in its database.

    `ours`: nobody else works on the server. `place` says where config.yaml has an entry of `hide`.
    """
    values = {"allowed": list(allowed), "acting": [name.replace("_", r"\_") for name in ACTING]}
    findings = []
    for question in QUESTIONS:
        names = [str(row[0]) for row in connection.execute(question.query.encode(), values)]
        level = question.level if ours else question.elsewhere or question.level
        if names:
            text = question.bad.format(names=_names(names), count=len(names))
            remedy = HARDEN_ELSEWHERE if question.remedy == HARDEN and not ours else question.remedy
            findings.append(Finding(question.check, level, text, remedy if level != "green" else ""))
        else:
            findings.append(Finding(question.check, "green", question.good))
    findings += _hidden(connection, tuple(hide), place)
    return findings


def _hidden(connection: psycopg.Connection[Any], hide: tuple[str, ...], place: Callable[[str], str]) -> list[Finding]:
    if not hide:
        return []
    columns, unmatched = hidden_columns(connection, hide)
    seen = [
        f"{column.schema}.{column.table}.{column.name}"
        for column in columns
        if _true(connection, "has_column_privilege(%s::oid, %s::int2, 'SELECT')", column.oid, column.number)
    ]
    seen += [
        f"{space}.{view}"
        for space, view in exposing_views(connection, columns)
        if _true(connection, "has_table_privilege(format('%%I.%%I', %s::text, %s::text), 'SELECT')", space, view)
    ]
    if seen:
        text = f"The role can read what `hide` names: {_names(seen)}."
        return [Finding("hidden columns", "red", text, HARDEN)]
    findings = [Finding("hidden columns", "green", f"The role cannot read the {len(columns)} hidden columns.")]
    anywhere = [entry for entry in unmatched if "*" in entry]
    if anywhere:
        text = f"`hide` names what this database does not have: {_names(anywhere)}."
        findings.append(Finding("hidden columns", "yellow", text, "Correct it, if it is meant for this database."))
    if missed := [entry for entry in unmatched if "*" not in entry]:
        there = [f"{table}.{name}" for _, table, name, *_ in connection.execute(COLUMNS.encode()).fetchall()]
        near = [f"{place(entry)}: {entry}{did_you_mean(entry, there)}" for entry in missed]
        text = f"`hide` names no column and no table of this database, so that it hides nothing: {' '.join(near)}"
        findings.append(Finding("hide", "red", text, UNHIDDEN))
    return findings


def _true(connection: psycopg.Connection[Any], expression: str, *values: Any) -> bool:
    return connection.execute(f"SELECT {expression}".encode(), values).fetchone() == (True,)


def _names(names: Iterable[str]) -> str:
    names = list(names)
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest
