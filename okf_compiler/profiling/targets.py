"""What is measured of one table: its columns and the paths inside its JSON columns, each as SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import sql

from okf_compiler.catalogue_queries import catalogue_names
from okf_compiler.model import Column, Database, Table

Kind = Literal["text", "number", "date", "json", "bytes", "other"]

NUMBERS = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8", "money"))
WITH_NAN = frozenset(("numeric", "float4", "float8"))
DATES = frozenset(("date", "timestamp", "timestamptz", "interval"))
TIMES = frozenset(("time", "timetz"))
"""They have a range and no infinity."""
SAMPLED_KINDS = frozenset(("table", "materialized view", "partitioned table"))
"""What TABLESAMPLE takes."""

_RELATIONS = """
    SELECT n.nspname::text, c.relname::text, c.relispopulated::text,
           CASE WHEN c.relkind IN ('r', 'm') THEN pg_table_size(c.oid) ELSE
                (SELECT coalesce(sum(pg_table_size(t.relid)), 0) FROM pg_partition_tree(c.oid) t) END::text,
           greatest(c.reltuples, 0)::bigint::text
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
_COLUMNS = """
    WITH RECURSIVE bases AS (
        SELECT t.oid AS type, t.oid AS base, t.typtype, t.typbasetype FROM pg_type t WHERE t.typtype <> 'c'
        UNION ALL
        SELECT b.type, t.oid, t.typtype, t.typbasetype FROM bases b JOIN pg_type t ON t.oid = b.typbasetype
        WHERE b.typtype = 'd')
    SELECT n.nspname::text, c.relname::text, a.attname::text, t.typname::text, t.typcategory::text,
           (t.typtype IN ('e', 'r') OR t.typcategory = 'S' OR EXISTS (
               SELECT FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'
               WHERE o.opcdefault AND o.opcintype IN (t.oid, CASE t.typcategory WHEN 'A' THEN t.typelem ELSE t.oid END)
           ))::text,
           coalesce(l.collisdeterministic, true)::text, coalesce(e.typcategory, '')::text
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN bases b ON b.type = a.atttypid AND b.typtype <> 'd'
    JOIN pg_type t ON t.oid = b.base
    LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""


@dataclass(frozen=True, slots=True)
class Target:
    """One column, or one path inside a JSON column."""

    name: str
    """As the compiler names it: `column`, or `column.key.key`."""
    type: str
    kind: Kind
    value: sql.Composable
    """The value with its own type, as far as PostgreSQL can tell values of it apart; else its text."""
    text: sql.Composable
    finite: sql.Composable | None = None
    """For numbers and dates that may be infinite or NaN: whether `value` is not."""
    path: tuple[str, ...] = ()
    known_unique: bool = False
    """A constraint says that no value stands in two rows."""
    has_empty: bool = False
    """Whether '' is a value of the type."""
    shown: bool = True
    """Whether its values may be examples: whole JSON objects and bytes say nothing."""
    elements: sql.Composable | None = None
    """For arrays with texts: the function in FROM that gives them one by one."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is to be measured."""

    table: Table
    populated: bool
    size: int
    """Bytes on disk, without indexes."""
    estimate: int
    """Rows by the planner's books; 0 where it has none."""
    types: Mapping[str, TypeFacts]
    """By column."""

    @property
    def name(self) -> str:
        return self.table.qualified_name

    @property
    def source(self) -> sql.Composable:
        return sql.Identifier(self.table.schema or "public", self.table.name)


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """Of a column's type, under all domains."""

    base: str
    category: str
    """pg_type.typcategory: S for strings, E for enums, A for arrays, …"""
    comparable: bool
    deterministic: bool
    """Whether texts that are equal in its collation have the same characters."""
    element: str = ""
    """The category of an array's elements."""


def relations(connection: psycopg.Connection[Any], database: Database) -> list[Relation]:
    """The tables of `database`, as read from this connection's catalogue, with what measuring them needs to know."""
    with catalogue_names(connection) as cursor:
        found = cursor.execute(_RELATIONS).fetchall()
        columns = cursor.execute(_COLUMNS).fetchall()
    facts = {(schema, name): rest for schema, name, *rest in found}
    types: dict[tuple[Any, Any], dict[str, TypeFacts]] = {}
    for schema, name, column, base, category, comparable, deterministic, element in columns:
        types.setdefault((schema, name), {})[column or ""] = TypeFacts(
            base or "", category or "", comparable == "true", deterministic == "true", element or ""
        )
    return [
        Relation(table, facts[key][0] == "true", int(facts[key][1] or 0), int(facts[key][2] or 0), types.get(key, {}))
        for table in database.tables
        if (key := (table.schema, table.name)) in facts
    ]


def column_targets(relation: Relation) -> list[Target]:
    """The table's columns, without those that are made from hidden ones."""
    unique = {key[0] for key in (relation.table.primary_key, *relation.table.unique) if len(key) == 1}
    return [
        _column(column, relation.types.get(column.name, _UNKNOWN), column.name in unique)
        for column in relation.table.columns
        if column.generated != "from columns that are hidden"
    ]


_UNKNOWN = TypeFacts("record", "C", comparable=False, deterministic=True)
"""A composite type."""


def _column(column: Column, facts: TypeFacts, known_unique: bool) -> Target:
    name = sql.Identifier(column.name)
    text = sql.SQL("{}::text").format(name)
    kind = _kind(facts)
    value: sql.Composable = name
    if not facts.comparable:
        value = text
    if kind == "text" and facts.deterministic and facts.base != "citext" and facts.category == "S":
        value = sql.SQL('{} COLLATE "C"').format(text)  # a language's own order of words is slow to sort by
    return Target(
        column.name,
        column.type,
        kind,
        value,
        text,
        finite=_finite(name, facts.base),
        known_unique=known_unique,
        has_empty=facts.category == "S",
        shown=kind not in ("json", "bytes"),
        elements=sql.SQL("unnest({}::text[])").format(name) if facts.element in ("S", "E") else None,
    )


def _kind(facts: TypeFacts) -> Kind:
    if facts.category in ("S", "E"):
        return "text"
    if facts.base in NUMBERS:
        return "number"
    if facts.base in DATES | TIMES:
        return "date"
    if facts.base in ("json", "jsonb"):
        return "json"
    return "bytes" if facts.base == "bytea" else "other"


def _finite(name: sql.Composable, base: str) -> sql.Composable | None:
    if base in WITH_NAN:
        return sql.SQL("{0}::text NOT IN ('NaN', 'Infinity', '-Infinity')").format(name)
    return sql.SQL("isfinite({})").format(name) if base in DATES else None


def path_target(column: str, path: Sequence[str], kinds: Iterable[str]) -> Target:
    """A path inside a JSON column, at which values of these kinds (`jsonb_typeof`) stand."""
    held = sorted(set(kinds) - {"null"})
    keys = sql.SQL(", ").join(sql.Literal(key) for key in path)
    node = sql.SQL("({}::jsonb #> ARRAY[{}]::text[])").format(sql.Identifier(column), keys)
    text = sql.SQL("({} #>> '{{}}')").format(node)
    value: sql.Composable = sql.SQL('{} COLLATE "C"').format(text)
    kind: Kind = "other"
    if held == ["number"]:
        kind = "number"
        value = sql.SQL("CASE jsonb_typeof({}) WHEN 'number' THEN {}::numeric END").format(node, text)
    elif "string" in held:
        kind = "text"
    return Target(
        ".".join((column, *path)),
        " or ".join(held) or "null",
        kind,
        value,
        text,
        path=tuple(path),
        has_empty="string" in held,
        shown="object" not in held,
        elements=_json_texts(node) if held == ["array"] else None,
    )


def _json_texts(node: sql.Composable) -> sql.Composable:
    """The texts among the elements of a JSON array, one by one."""
    return sql.SQL(
        "(SELECT x #>> '{{}}' FROM jsonb_array_elements(CASE jsonb_typeof({node}) WHEN 'array' THEN {node} END) x "
        "WHERE jsonb_typeof(x) = 'string')"
    ).format(node=node)
