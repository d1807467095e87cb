"""A suite's databases: the configuration that finds and loads them, and whether they are loaded completely.

A suite whose publisher ships other documents than LiveSQLBench's three gets those three made, below
`.okf/evaluation/<suite>/`, so that every knowledge mode can be asked; a SQLite database is converted there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from okf_agent.config import Config
from okf_agent.evaluation.suites import sqlite_dump
from okf_agent.evaluation.suites.model import Suite, SuiteDatabase
from okf_agent.loading.dump import DumpError, statements
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError
from okf_compiler.documents import MEANINGS_SUFFIX, RULES_SUFFIX, SCHEMA_SUFFIX
from okf_compiler.errors import UserError
from okf_compiler.settings import DatabaseOverride
from okf_compiler.sql_names import sql_name
from okf_compiler.whole_file import write_whole

MADE = Path(".okf") / "evaluation"


def configured(suite: Suite, config: Config) -> Config:
    """The configuration in which the suite's databases are found, its data roots first; makes what must be made.

    Raises:
        UserError: a SQLite file or a data dictionary cannot be read.
    """
    settings = config.settings
    made = settings.root / MADE / suite.name
    roots: list[Path] = []
    overrides: dict[str, DatabaseOverride] = dict(settings.databases)
    for database in suite.databases:
        if database.root:
            roots.append(database.root)
        dump = database.dump
        if database.sqlite:
            dump = sqlite_dump.convert(database.sqlite, made / database.name / f"{database.name}.sql")
        if database.columns and dump:
            _write_documents(database, dump, made / database.name)
            roots.append(made)
        if dump:
            overrides[database.name] = _with_dump(overrides.get(database.name), dump)
    data_roots = tuple(dict.fromkeys((*roots, *settings.data_roots)))
    return replace(config, settings=replace(settings, data_roots=data_roots, databases=overrides))


def check_rows(suite: Suite, database: Database) -> tuple[str, ...]:
    """The tables of a database that do not have the rows they should, in words; () where all have, or none is pinned.

    Raises:
        UserError: the database cannot be reached.
    """
    short = []
    for table, expected in _expected(suite, database.name).items():
        name = ".".join(map(sql_name, table.split(".", 1)))
        try:
            found = database.run(f"SELECT count(*) FROM {name}").rows[0][0]
        except QueryError as error:
            if error.lost:
                raise UserError(f"{database.name} cannot be reached: {error}") from None
            short.append(f"{table} cannot be read: {str(error).splitlines()[0]}")
            continue
        if int(found or 0) != expected:
            short.append(f"{table} has {int(found or 0):,} rows, not {expected:,}")
    return tuple(short)


def _expected(suite: Suite, name: str) -> Mapping[str, int]:
    """The pinned rows by table; of a SQLite database without pins its own."""
    if name in suite.row_counts:
        return suite.row_counts[name]
    source = next((each.sqlite for each in suite.databases if each.name == name), None)
    return sqlite_dump.row_counts(source) if source else {}


def _with_dump(before: DatabaseOverride | None, dump: Path) -> DatabaseOverride:
    """What config.yaml says of one database, with the suite's dump."""
    return (before or DatabaseOverride()).model_copy(update={"dump": dump.resolve()})


def _write_documents(database: SuiteDatabase, dump: Path, folder: Path) -> None:
    """LiveSQLBench's three documents of a database: the tables of its dump, and what its dictionaries say.

    Raises:
        UserError: a dictionary cannot be read.
    """
    from okf_compiler.readers import defog, dictionary  # these bring a SQL parser: 0.3 s

    meanings: dict[str, str] = {}
    rules: list[Mapping[str, object]] = []
    for source in database.columns:
        described = (defog if source.suffix == ".json" else dictionary).read(source)
        for table in described.tables:
            for column in table.columns:
                if column.meaning:
                    meanings[f"{database.name}|{table.qualified_name}|{column.name}".lower()] = column.meaning
        for rule in described.rules:
            rules.append({
                "id": len(rules), "knowledge": rule.name, "description": rule.description,
                "definition": rule.definition, "type": rule.type, "children_knowledge": -1,
            })  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        SCHEMA_SUFFIX: "\n".join(_tables_of(dump)),
        MEANINGS_SUFFIX: json.dumps(meanings, ensure_ascii=False, indent=1) + "\n",
        RULES_SUFFIX: "".join(json.dumps(rule, ensure_ascii=False) + "\n" for rule in rules),
    }
    for suffix, text in texts.items():
        _write_if_other(folder / (database.name + suffix), text)


def _tables_of(dump: Path) -> Iterator[str]:
    """Every CREATE TABLE of a dump.

    Raises:
        UserError: it cannot be read as a dump.
    """
    try:
        with dump.open("rb") as file:
            for statement in statements(file):
                if statement.words[:2] == (b"CREATE", b"TABLE"):
                    yield statement.sql.decode("utf-8", "replace").strip().rstrip(";") + ";\n"
                for _ in statement.rows or ():
                    pass  # rows have to be read past, to come to the next statement
    except (DumpError, OSError) as error:
        raise UserError(f"{dump} cannot be read: {error}.") from None


def _write_if_other(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)
