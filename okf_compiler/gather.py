"""Which sources a compile takes, read and combined: a database to start from, and files that say more of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from okf_compiler.model import Database
from okf_compiler.readers import dbt, defog, dictionary, glossary, livesqlbench
from okf_compiler.settings import Settings, UserError, find_documents
from okf_compiler.sources import combine


@dataclass(frozen=True)
class Sources:
    """What a person names on the command line. Never written anywhere: `live` may hold a password."""

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


def gather(settings: Settings, name: str, sources: Sources) -> Database:
    """The database `name`: live or from its documents, with what the files say of it; else from the files alone.

    Where two differ in words, a dbt project outweighs the base, and a dictionary both; of two dictionaries, the one
    that is named later. Every such conflict is among the problems.

    Raises:
        UserError: there is nothing to start from, or one of the sources cannot be read at all.
    """
    files = [
        *(dbt.read(path) for path in sources.dbt),
        *((defog.read if path.suffix.lower() == ".json" else dictionary.read)(path) for path in sources.columns),
        *(glossary.read(path) for path in sources.rules),
    ]
    base = _base(settings, name, sources, any(database.tables for database in files))
    if base is None:
        base = next(database for database in files if database.tables)
        files.remove(base)
    elif not files:
        return base
    return combine(replace(base, name=name), *files)


def _base(settings: Settings, name: str, sources: Sources, files_have_tables: bool) -> Database | None:
    """The live database or the documents; None where there are neither, and the files have tables of their own."""
    if sources.live is not None:
        from okf_compiler.connections import read_live

        return read_live(sources.live, name, settings, hide=sources.hide)
    try:
        documents = find_documents(settings, name)
    except UserError:
        if files_have_tables:
            return None
        raise
    return livesqlbench.read(documents)
