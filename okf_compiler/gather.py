"""Which sources a compile takes, read and combined: a database to start from, and files that say more of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from okf_compiler.documents import find_documents
from okf_compiler.errors import UserError
from okf_compiler.hide import is_hidden
from okf_compiler.model import Database, Table
from okf_compiler.readers import dbt, defog, dictionary, glossary, livesqlbench
from okf_compiler.settings import DatabaseOverride, Settings
from okf_compiler.sources import combine

if TYPE_CHECKING:
    from okf_compiler.connections import Reach


@dataclass(frozen=True)
class Sources:
    """What a person names on the command line, or config.yaml records. Never written: `live` may hold a password."""

    live: str | None = field(default=None, repr=False)
    """A connection URL, or `configured`; None for the database's documents."""
    columns: tuple[Path, ...] = ()
    """Data dictionaries: CSV files, folders of them, or Defog metadata files."""
    rules: tuple[Path, ...] = ()
    """Glossaries: YAML, JSON or CSV files, or folders of them."""
    dbt: tuple[Path, ...] = ()
    """Folders of dbt projects."""
    hide: tuple[str, ...] = ()
    """Columns of the live database to leave out, as `table.column`; `*` stands for anything."""


NOTHING_MORE = Sources()


def recorded(settings: Settings, name: str, more: Sources = NOTHING_MORE) -> Sources:
    """The sources of a database that config.yaml records, and those that `more` names beside them."""
    override = settings.databases.get(name, DatabaseOverride())

    def both(ours: tuple[Path, ...], named: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(dict.fromkeys([*(settings.root / path for path in ours), *named]))

    return Sources(
        live=more.live or override.live,
        columns=both(override.columns, more.columns),
        rules=both(override.rules, more.rules),
        dbt=both(override.dbt, more.dbt),
        hide=more.hide,
    )


def gather(settings: Settings, name: str, more: Sources = NOTHING_MORE, reach: Reach | None = None) -> Database:
    """The database `name`: live or from its documents, with what the files say of it; else from the files alone.

    Its sources are those of config.yaml and of `more`. `reach` gives connect parameters of the configured server,
    where the caller has reached it already.

    Where two differ in words, a dbt project outweighs the base, and a dictionary both; of two dictionaries, the one
    that is named later. Every such conflict is among the problems.

    Raises:
        UserError: there is nothing to start from, or one of the sources cannot be read at all.
    """
    sources = recorded(settings, name, more)
    files = [
        *(dbt.read(path) for path in sources.dbt),
        *((defog.read if path.suffix.lower() == ".json" else dictionary.read)(path) for path in sources.columns),
        *(glossary.read(path) for path in sources.rules),
    ]
    base = _base(settings, name, sources, any(database.tables for database in files), reach)
    if base is None:
        base = next(database for database in files if database.tables)
        files.remove(base)
    elif not files:
        return base
    if sources.live is not None:  # a dictionary made before they were hidden has them still
        hide = (*settings.hidden(name), *sources.hide)
        files = [_without(hide, database) for database in files]
    return combine(replace(base, name=name), *files)


def _without(hide: Sequence[str], database: Database) -> Database:
    """What a file says, without the tables and columns that `hide` keeps back."""

    def hidden(table: Table, column: str = "") -> bool:
        return is_hidden(hide, table.schema or "public", table.name, column)

    shown = (t for t in database.tables if not hidden(t))
    tables = (replace(t, columns=tuple(c for c in t.columns if not hidden(t, c.name))) for t in shown)
    return replace(database, tables=tuple(tables))


def _base(
    settings: Settings,
    name: str,
    sources: Sources,
    files_have_tables: bool,
    reach: Reach | None,
) -> Database | None:
    """The live database or the documents; None where there are neither, and the files have tables of their own."""
    if sources.live is not None:
        from okf_compiler.connections import read_live

        return read_live(sources.live, name, settings, hide=sources.hide, reach=reach)
    try:
        documents = find_documents(settings, name)
    except UserError:
        if files_have_tables:
            return None
        raise
    return livesqlbench.read(documents)
