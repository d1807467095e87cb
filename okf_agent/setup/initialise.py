"""`okf-agent init`: from a connection to a working agent on a database of one's own, step by step.

Every step looks first and does only what is missing; no file that a person may have edited is written again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from okf_agent.bundles import freshness
from okf_agent.config import Config, load_config
from okf_agent.engines.connection import AGENT_PASSWORD
from okf_agent.prepare import Say
from okf_agent.setup import access, drafts, target
from okf_agent.setup.access import Person
from okf_agent.setup.config_file import add_variables, ignore_files, set_keys
from okf_agent.setup.gaps import Gap, Labels, gaps
from okf_agent.setup.target import Reached
from okf_compiler.documents import list_databases
from okf_compiler.errors import UserError
from okf_compiler.model import Database
from okf_compiler.postgres import connect

Ask = Callable[[str], bool]
"""Puts a question to the person; True for yes."""
GAPS_SHOWN = 10


@dataclass(frozen=True)
class InitOptions:
    """The arguments of `init`."""

    file: Path
    """The config.yaml to write to."""
    name: str | None = None
    url: str | None = None
    changes: tuple[str, ...] = ()
    """Keys of config.yaml given for this call."""


@dataclass(frozen=True)
class Done:
    """What `init` leaves."""

    config: Config
    name: str
    todo: str
    """What is to be done before questions can be asked; "" if they can."""
    example: str
    """A first question that fits."""


def initialise(config: Config, wanted: InitOptions, say: Say, ask: Ask) -> Done:
    """Set up one database: connection, role, files, configuration, bundle. `ask` is only asked about the role.

    Raises:
        UserError: a step failed; says which and what to do. The steps before it are done.
    """
    goal = target.find_target(config, wanted.name, wanted.url)
    _refuse_documents(config, goal.name)
    reached = target.reach(goal)
    say(f"1. Connection: {goal.name} on {reached.place['host']}:{reached.place['port']}, "
        f"PostgreSQL {reached.version}, as {reached.user}.")  # fmt: skip
    root = config.settings.root
    if added := ignore_files(root):
        say(f"   .gitignore: {', '.join(added)}")
    _announce(say, wanted.file, set_keys(wanted.file, _server_keys(_of_file(root, wanted.file), reached)))
    _keep_variables(root, reached.variables, say)
    say("   by hand: the keys of database: in config.yaml, the PG* variables in .env")
    config = load_config(root, file=wanted.file, changes=wanted.changes)

    say(f"2. Read-only role {config.settings.database.agent_user}:")
    person = Person(say, ask, lambda password: _keep_variables(root, {AGENT_PASSWORD: password}, say))
    granted = access.settle(config, reached, person)
    if granted.user != _of_file(root, wanted.file).settings.database.agent_user:
        _announce(say, wanted.file, set_keys(wanted.file, {("database", "agent_user"): granted.user}))
    say(f"   by hand: okf-agent prepare {shlex.quote(goal.name)} --print-sql")

    database, labels, views = _look(config, goal.name, granted.params)
    say(f"3. Files to fill in, in {_shown(root, root / 'data' / goal.name)}:")
    keys = _draft(config, database, gaps(database, labels), views, say)
    _announce(say, wanted.file, set_keys(wanted.file, keys))
    say(f"   by hand: the keys of databases.{goal.name}: in config.yaml, any CSV and YAML files of yours")

    config = load_config(root, file=wanted.file, changes=wanted.changes)
    say(f"4. Bundle: {_shown(root, config.settings.bundles / goal.name)}")
    stamp = freshness.stamp(config, goal.name)
    report = freshness.compile(config, goal.name, config.settings.bundles / goal.name, lambda: granted.params)
    freshness.keep(config, goal.name, stamp)
    for line in report.lines():
        say(f"   {line}")
    _name_gaps(gaps(report.database, labels), say)
    say(f"   by hand, after every edit: okf-compiler compile {shlex.quote(goal.name)}")
    return Done(config, goal.name, granted.todo, _example(database))


def _refuse_documents(config: Config, name: str) -> None:
    documents = list_databases(config.settings).get(name)
    if documents is not None and not documents.live:
        raise UserError(
            f"{name} has documents already, in {documents.folder}: `okf-agent prepare {name}` gets it ready.\n"
            "Move them away if its tables are to come from the server's catalogue.",
            status=2,
        )


def _of_file(root: Path, file: Path) -> Config:
    """The configuration without what was given for this call."""
    return load_config(root, file=file if file.is_file() else None)


def _keep_variables(root: Path, variables: Mapping[str, str], say: Say) -> None:
    if added := add_variables(root / ".env", variables):
        say(f"   .env: {', '.join(added)}")


def _server_keys(config: Config, reached: Reached) -> Mapping[tuple[str, ...], Any]:
    """What config.yaml has to say of the server; nothing that `.env` says."""
    keys: dict[tuple[str, ...], Any] = {("database", "engine"): "server"}
    section = config.settings.database
    place = reached.place
    if place["host"] != section.host and "PGSERVICE" not in reached.variables:
        keys["database", "host"] = place["host"]
    if place["port"] != section.port and "PGSERVICE" not in reached.variables:
        keys["database", "port"] = place["port"]
    if reached.project != section.pooler_project:
        keys["database", "pooler_project"] = reached.project
    return keys if section.engine != "server" or len(keys) > 1 else {}


def _look(config: Config, name: str, params: Mapping[str, Any]) -> tuple[Database, Labels, dict[str, str]]:
    """The catalogue, how many values its columns seem to have, and the queries of its views."""
    from okf_compiler.connections import hidden_columns
    from okf_compiler.readers import catalogue

    connection: psycopg.Connection[Any] = connect(params, name)
    with closing(connection):
        database = catalogue.read(connection, name, hide=hidden_columns(config.settings, name))
        if not database.tables:
            told = "\n".join(problem.message for problem in database.problems[:3])
            raise UserError(f"{name} has no table that can be read.\n{told}".strip())
        views = drafts.view_definitions(connection, database)
        return database, drafts.count_labels(connection, database), views


def _draft(
    config: Config, database: Database, found: list[Gap], views: dict[str, str], say: Say
) -> dict[tuple[str, ...], Any]:
    """Write the dictionary and the glossary where there is none; the keys of config.yaml that record them."""
    root, name = config.settings.root, database.name
    override = config.settings.databases.get(name)
    keys: dict[tuple[str, ...], Any] = {("databases", name, "from"): "configured"}
    for key, file, text in (
        ("columns", "dictionary.csv", drafts.dictionary(database, found)),
        ("rules", "glossary.yaml", drafts.glossary(database, found, views)),
    ):
        recorded = getattr(override, key, ())
        path = Path("data") / name / file
        if recorded and path not in recorded:
            say(f"   {', '.join(p.as_posix() for p in recorded)} stays what config.yaml names for {key}")
            continue
        if not recorded:
            keys["databases", name, key] = [path.as_posix()]
        if (root / path).exists():
            say(f"   {file} is kept as it is{_missing(root / path, database) if key == 'columns' else ''}")
            continue
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        encoding = "utf-8-sig" if path.suffix == ".csv" else "utf-8"  # spreadsheets take it for something else without
        (root / path).write_text(text, encoding=encoding, newline="\n")
        say(f"   {file}: {_summary(key, database, len(views))}")
    return keys


def _summary(key: str, database: Database, views: int) -> str:
    if key == "rules":
        return f"{views} rules from views; yours go there, one entry each"
    columns = [column for table in database.tables for column in table.columns]
    known = sum(bool(column.meaning) for column in columns)
    return f"{len(columns)} columns, {known} described in the catalogue, the others marked `describe`"


def _missing(file: Path, database: Database) -> str:
    """Which columns are newer than a dictionary that is kept."""
    from okf_compiler.readers import dictionary

    try:
        rows = {(t.qualified_name.lower(), c.name.lower()) for t in dictionary.read(file).tables for c in t.columns}
    except UserError as error:
        return f"; {str(error).splitlines()[0]}"
    columns = [(t.qualified_name, c.name) for t in database.tables for c in t.columns]
    names = [f"{table}.{column}" for table, column in columns if (table.lower(), column.lower()) not in rows]
    return f"; not in it: {', '.join(names[:GAPS_SHOWN])}{', …' if len(names) > GAPS_SHOWN else ''}" if names else ""


def _name_gaps(found: list[Gap], say: Say) -> None:
    if not found:
        return
    shown = found[:GAPS_SHOWN]
    say(f"   What matters most and nobody has described ({len(shown)} of {len(found)}):")
    width = max(len(gap.path) for gap in shown)
    for gap in shown:
        say(f"     {gap.path:<{width}}  {'; '.join(gap.reasons)}")


def _example(database: Database) -> str:
    """A question about the table that most others refer to."""
    keys = Counter((key.ref_schema, key.ref_table) for table in database.tables for key in table.foreign_keys)
    bases = [t for t in database.tables if "view" not in t.kind] or list(database.tables)
    hub = max(bases, key=lambda t: keys[t.schema, t.name])
    return f"How many rows does the table {hub.qualified_name} have?"


def _announce(say: Say, file: Path, changed: list[str]) -> None:
    for line in changed:
        say(f"   {file.name}: {line}")


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
