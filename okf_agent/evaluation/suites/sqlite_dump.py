"""A SQLite database as an SQL dump for PostgreSQL: tables, keys that hold, and content.

SQLite does not mind what a column holds, so its values decide: whole numbers are `bigint`, numbers `double
precision`, dates and timestamps what the column is declared as if all its values are; anything else is text. Names
are in lower case, since SQLite's do not mind and PostgreSQL's do. A primary or foreign key that the content breaks is
left out.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from okf_agent.evaluation.suites.model import digest
from okf_compiler.errors import UserError
from okf_compiler.sql_names import quoted

FORMAT = 1
"""Of what is written: another one is converted again."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?")


@dataclass(frozen=True)
class _Key:
    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """A table as it will be; names as SQLite has them."""

    name: str
    types: Mapping[str, str]
    primary_key: tuple[str, ...]
    keys: tuple[_Key, ...]

    def ddl(self) -> str:
        lines = [f"{_lower(name)} {kind}" for name, kind in self.types.items()]
        if self.primary_key:
            lines.append(f"PRIMARY KEY ({_list(self.primary_key)})")
        lines += [
            f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {_lower(key.table)} ({_list(key.referred)})"
            for key in self.keys
        ]
        return f"CREATE TABLE {_lower(self.name)} (\n    " + ",\n    ".join(lines) + "\n);\n"


def convert(source: Path, out: Path) -> Path:
    """Write the dump of a SQLite file, if `out` is not that already; gives `out`.

    Raises:
        UserError: it cannot be read, or two of its names differ in letter case only.
    """
    mark = f"-- {source.name}, SHA-256 {digest(source)}, format {FORMAT}\n"
    if out.is_file():
        with out.open(encoding="utf-8") as file:
            if file.readline() == mark:
                return out
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_suffix(f".{os.getpid()}.partial")
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                file.write(mark)
                _write(connection, file)
        partial.replace(out)
    except sqlite3.Error as error:
        raise UserError(f"{source} cannot be read as a SQLite database: {error}.") from None
    finally:
        partial.unlink(missing_ok=True)
    return out


def row_counts(source: Path) -> dict[str, int]:
    """Table, as PostgreSQL will call it -> rows."""
    with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return {
            f"public.{name.lower()}": connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0]
            for name in _names(connection)
        }


def _write(connection: sqlite3.Connection, file: TextIO) -> None:
    names = _names(connection)
    for kind, each in [("tables", names), *((name, _columns(connection, name)) for name in names)]:
        if len({name.lower() for name in each}) < len(each):
            raise UserError(f"Names of {kind} differ in letter case only: they cannot be told apart in PostgreSQL.")
    tables = _in_order(_table(connection, name) for name in names)
    for table in tables:
        file.write(table.ddl())
    for table in tables:
        file.write(f"COPY {_lower(table.name)} ({_list(table.types)}) FROM stdin;\n")
        columns = ", ".join(quoted(name) for name in table.types)
        for row in connection.execute(f"SELECT {columns} FROM {quoted(table.name)}"):
            file.write("\t".join(map(_copied, row, table.types.values())) + "\n")
        file.write("\\.\n")


def _names(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )
    return [name for (name,) in found]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    info = list(connection.execute(f"PRAGMA table_info({quoted(name)})"))
    types = {column: _type(connection, name, column, declared) for _, column, declared, *_ in info}
    key = [column for *_, column in sorted((row[5], row[1]) for row in info if row[5])]
    return _Table(name, types, tuple(key) if _is_unique(connection, name, key) else (), _keys(connection, name))


def _type(connection: sqlite3.Connection, table: str, column: str, declared: str) -> str:
    """PostgreSQL's type for what a column holds."""
    place = f"FROM {quoted(table)} WHERE {quoted(column)} IS NOT NULL"
    kinds = {kind for (kind,) in connection.execute(f"SELECT DISTINCT typeof({quoted(column)}) {place}")}
    declared = declared.upper()
    if not kinds:
        return "bigint" if "INT" in declared else "double precision" if "REAL" in declared else "text"
    if kinds == {"integer"}:
        return "bigint"
    if kinds <= {"integer", "real"}:
        return "double precision"
    if kinds == {"blob"}:
        return "bytea"
    for words, kind, form in ((("DATE",), "date", _DAY), (("DATETIME", "TIMESTAMP"), "timestamp", _MOMENT)):
        if declared not in words or kinds != {"text"}:
            continue
        values = [text for (text,) in connection.execute(f"SELECT {quoted(column)} {place}")]
        if all(form.fullmatch(text) and _exists(text) for text in values):
            return kind
    return "text"


def _exists(moment: str) -> bool:
    """Whether a day or a moment is one: PostgreSQL takes no `0000-00-00` and no 30 February."""
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        return False
    return True


def _is_unique(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> bool:
    if not columns:
        return False
    listed = ", ".join(map(quoted, columns))
    empty = " OR ".join(f"{quoted(column)} IS NULL" for column in columns)
    twice = f"SELECT 1 FROM {quoted(table)} GROUP BY {listed} HAVING count(*) > 1 OR {empty} LIMIT 1"
    return connection.execute(twice).fetchone() is None


def _keys(connection: sqlite3.Connection, table: str) -> tuple[_Key, ...]:
    """The foreign keys that the content keeps."""
    broken = {row[3] for row in connection.execute(f"PRAGMA foreign_key_check({quoted(table)})")}
    found: dict[int, list[tuple[int, str, str, str | None]]] = {}
    for number, place, other, column, referred, *_ in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
        if number not in broken:
            found.setdefault(number, []).append((place, other, column, referred))
    keys = []
    for parts in found.values():
        parts.sort()
        referred = tuple(part[3] for part in parts if part[3])
        keys.append(_Key(tuple(part[2] for part in parts), parts[0][1], referred))
    return tuple(keys)


def _in_order(tables: Iterator[_Table]) -> list[_Table]:
    """Tables after those they refer to; a foreign key that does not fit, or closes a circle, is left out."""
    left = {table.name.lower(): table for table in tables}
    done: dict[str, _Table] = {}
    while left:
        ready = next(
            (
                name
                for name, table in left.items()
                if not {key.table.lower() for key in table.keys} & (left.keys() - {name})
            ),
            next(iter(left)),
        )
        table = left.pop(ready)
        here = {**done, ready: table}
        keys = [_fitting(table, key, here.get(key.table.lower())) for key in table.keys]
        done[ready] = _Table(table.name, table.types, table.primary_key, tuple(key for key in keys if key))
    return list(done.values())


def _fitting(table: _Table, key: _Key, other: _Table | None) -> _Key | None:
    """The key with its referred columns; None unless they are the other table's primary key, of the same types."""
    if other is None:
        return None
    referred = key.referred or other.primary_key
    names = {name.lower(): kind for name, kind in other.types.items()}
    own = {name.lower(): kind for name, kind in table.types.items()}
    same = [own.get(name.lower()) for name in key.columns] == [names.get(name.lower()) for name in referred]
    is_primary = {name.lower() for name in referred} == {name.lower() for name in other.primary_key}
    return _Key(key.columns, other.name, referred) if same and is_primary and referred else None


def _copied(value: object, kind: str) -> str:
    """A value in COPY's text format."""
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return "\\\\x" + value.hex() if kind == "bytea" else _escaped(value.decode("utf-8", "replace"))
    if isinstance(value, float):
        return repr(value)
    return _escaped(str(value))


def _escaped(text: str) -> str:
    text = text.replace("\x00", "").replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _lower(name: str) -> str:
    """A name in quotes, as PostgreSQL will have it."""
    return quoted(name.lower())


def _list(names: Sequence[str] | Mapping[str, str]) -> str:
    return ", ".join(_lower(name) for name in names)
