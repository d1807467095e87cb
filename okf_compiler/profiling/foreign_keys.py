"""Foreign keys measured: how many rows a join along them leaves out on either side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import sql

from okf_compiler.model import Database, ForeignKey, Table
from okf_compiler.pairs import pair_tables
from okf_compiler.profiling.facts import ForeignKeyProfile
from okf_compiler.profiling.limits import Limits, asking, reason, source_of
from okf_compiler.profiling.targets import Relation


def measure(
    connection: psycopg.Connection[Any],
    relation: Relation,
    others: Mapping[str, Relation],
    keys: list[tuple[ForeignKey, Table]],
    limits: Limits,
    rows: int,
) -> tuple[list[ForeignKeyProfile], dict[str, str]]:
    """The foreign keys of one table of `rows` rows; and of those that could not be measured, why.

    Raises:
        UserError: the connection is lost.
    """
    found: list[ForeignKeyProfile] = []
    unmeasured: dict[str, str] = {}
    source, sampled = source_of(relation, rows, limits)
    for key, target in keys:
        other = others[target.qualified_name]
        try:
            with asking(connection, limits.seconds) as ask:
                cells = [int(cell or 0) for cell in ask(_query(source, relation, other, key))[0]]
        except psycopg.DatabaseError as error:
            place = f"{relation.name}.{', '.join(key.columns)} -> {other.name}"
            unmeasured[place] = reason(error, limits)
        else:
            names = (relation.name, key.columns, other.name, key.ref_columns)
            found.append(ForeignKeyProfile(*names, cells[0], cells[1], cells[2], cells[3], sampled))
    return found, unmeasured


def keys_of(live: Database, documented: Database | None) -> dict[str, list[tuple[ForeignKey, Table]]]:
    """Every foreign key that the database enforces or the documents state, with the table it refers to, by the
    qualified name of its table; columns are named as the database does."""
    keys: dict[str, list[tuple[ForeignKey, Table]]] = {}
    for table, key in _all(live, documented):
        target = live.table(key.ref_table, key.ref_schema)
        columns = [table.column(name) for name in key.columns]
        if target is None or not key.columns:
            continue
        others = [target.column(name) for name in key.ref_columns or target.primary_key]
        if len(columns) != len(others):
            continue
        held = tuple(c.name for c in columns if c), tuple(c.name for c in others if c)
        if len(held[0]) < len(columns) or len(held[1]) < len(others):
            continue
        found = ForeignKey(held[0], target.name, held[1], target.schema)
        of_table = keys.setdefault(table.qualified_name, [])
        if (found, target) not in of_table:
            of_table.append((found, target))
    return keys


def _all(live: Database, documented: Database | None) -> Iterator[tuple[Table, ForeignKey]]:
    for table in live.tables:
        yield from ((table, key) for key in table.foreign_keys)
    pairs = pair_tables(documented, live) if documented else []
    named = {pair.documented.qualified_name.lower(): pair.live for pair in pairs}
    for pair in pairs:
        for key in pair.documented.foreign_keys:
            schema = "" if key.ref_schema in ("public", "") else f"{key.ref_schema}."
            target = named.get(f"{schema}{key.ref_table}".lower())
            if target is not None and not _is_part(key, pair.live, target):
                yield pair.live, ForeignKey(key.columns, target.name, key.ref_columns, target.schema)


def _is_part(key: ForeignKey, table: Table, target: Table) -> bool:
    """Whether the database has the key itself, or one of more columns that documents list column by column."""
    names = {name.lower() for name in key.columns}
    return any(
        (held.ref_schema, held.ref_table) == (target.schema, target.name) and names <= {c.lower() for c in held.columns}
        for held in table.foreign_keys
    )


def _query(source: sql.Composable, relation: Relation, other: Relation, key: ForeignKey) -> sql.Composed:
    """Rows without a partner, rows, rows that nothing refers to, rows of the other table."""
    joined = sql.SQL(" AND ").join(
        sql.SQL("a.{} = b.{}").format(sql.Identifier(mine), sql.Identifier(theirs))
        for mine, theirs in zip(key.columns, key.ref_columns, strict=True)
    )
    return sql.SQL(
        """SELECT (SELECT count(*) FROM {mine} WHERE NOT EXISTS (SELECT FROM {other} b WHERE {joined}))::text,
                  (SELECT count(*) FROM {mine})::text,
                  (SELECT count(*) FROM {other} b WHERE NOT EXISTS (SELECT FROM {all} a WHERE {joined}))::text,
                  (SELECT count(*) FROM {other})::text"""
    ).format(mine=source, all=relation.source, other=other.source, joined=joined)
