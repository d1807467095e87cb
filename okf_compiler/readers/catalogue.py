"""A live PostgreSQL, read through its catalogue as a role that can only read.

What the role may not read and what is to stay hidden is left out, and said so among the problems.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from okf_compiler import catalogue_queries
from okf_compiler.hide import is_hidden, widened
from okf_compiler.model import Column, Database, ForeignKey, Problem, Source, Table
from okf_compiler.postgres import Row

KINDS = {"r": "table", "v": "view", "m": "materialized view", "f": "foreign table", "p": "partitioned table"}
NAMES_SHOWN = 10


@dataclass(frozen=True)
class _Type:
    """An enum, a domain, or an array of one."""

    kind: str
    name: str
    inner: str
    """oid of a domain's base type or an array's element type."""
    base: str
    """The base type of a domain, as PostgreSQL writes it."""
    not_null: bool
    comment: str | None
    labels: tuple[str, ...]
    checks: tuple[str, ...]


@dataclass
class _Relation:
    """A table while it is put together."""

    schema: str
    name: str
    kind: str
    reachable: bool
    description: str | None
    row_security: bool
    columns: list[Column] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    unique: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    def shows(self, columns: Iterable[str]) -> bool:
        """Whether every one of these columns is there to be seen."""
        return set(columns) <= {c.name for c in self.columns}

    def table(self) -> Table:
        return Table(
            name=self.name,
            columns=tuple(self.columns),
            schema=self.schema,
            kind=self.kind,
            primary_key=self.primary_key,
            foreign_keys=tuple(self.foreign_keys),
            unique=tuple(dict.fromkeys(self.unique)),
            checks=tuple(self.checks),
            description=self.description,
            row_security=self.row_security,
        )


def read(connection: psycopg.Connection[Any], name: str, *, hide: Sequence[str] = ()) -> Database:
    """The database that `connection` leads to, called `name`: facts of its catalogue, none of its content.

    `hide` lists columns to leave out, as `hide.is_hidden` reads it. A view that reads a hidden column is left out
    whole, unless `hide` names a column of the view itself: then someone has looked at it.

    Raises:
        psycopg.Error: the connection breaks, or a query takes longer than the role is allowed.
    """
    place = f"postgresql:{name}"
    problems: list[str] = []
    with catalogue_queries.catalogue_names(connection) as cursor:

        def rows(query: str) -> list[Row]:
            return cursor.execute(query).fetchall()

        types = _types(rows(catalogue_queries.TYPES))
        relations = {
            oid: _Relation(
                schema or "", label or "", KINDS[kind or "r"], reachable == "true", comment, secured == "true"
            )
            for oid, schema, label, kind, reachable, comment, secured in rows(catalogue_queries.TABLES)
        }
        every = rows(catalogue_queries.COLUMNS)
        hide = widened(hide, _paths(relations, every))
        _add_columns(relations, every, types, hide)
        _hide_views(relations, rows(catalogue_queries.VIEW_USES) if hide else [], problems)
        _add_constraints(relations, rows(catalogue_queries.CONSTRAINTS), problems)
        for oid, columns in rows(catalogue_queries.UNIQUE):
            if oid in relations and columns and relations[oid].shows(json.loads(columns)):
                relations[oid].unique.append(tuple(json.loads(columns)))
    problems += _left_out(relations.values(), hide)
    return Database(
        name=name,
        tables=tuple(r.table() for r in relations.values() if r.columns or not (r.unreadable or r.hidden)),
        sources=(Source("schema", place, f"Catalogue of {name}"),),
        problems=tuple(Problem(message, place) for message in problems),
    )


def _types(found: Sequence[Row]) -> dict[str | None, _Type]:
    return {
        oid: _Type(kind or "", label or "", inner or "", base or "", not_null == "true", comment,
                   tuple(json.loads(labels or "[]")), tuple(json.loads(checks or "[]")))
        for oid, kind, label, inner, base, not_null, comment, labels, checks in found
    }  # fmt: skip


def _chain(oid: str | None, types: Mapping[str | None, _Type]) -> list[_Type]:
    """A type and what it is made of, from the outside in; empty for a plain type."""
    found = []
    while type_ := types.get(oid):
        found.append(type_)
        oid = type_.inner
    return found


def _paths(relations: Mapping[str | None, _Relation], found: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """The schema, table and name of every column."""
    for oid, column, *_ in found:
        if (relation := relations.get(oid)) and column is not None:
            yield relation.schema, relation.name, column


def _add_columns(
    relations: Mapping[str | None, _Relation],
    found: Sequence[Row],
    types: Mapping[str | None, _Type],
    hide: Sequence[str],
) -> None:
    for oid, column, type_oid, type_name, nullable, default, identity, generated, readable, comment in found:
        relation = relations.get(oid)
        if relation is None or column is None:
            continue
        if is_hidden(hide, relation.schema, relation.name, column):
            relation.hidden.add(column)
        elif readable != "true":
            relation.unreadable.append(column)
        else:
            chain = _chain(type_oid, types)
            domain = chain[0] if chain and chain[0].kind == "d" else None
            relation.columns.append(
                Column(
                    name=column,
                    type=f"{_base(chain)} (domain {domain.name})" if domain else type_name or "",
                    nullable=nullable == "true" and not any(t.kind == "d" and t.not_null for t in chain),
                    default=None if identity or generated else default,
                    meaning=comment or next((t.comment for t in chain if t.comment), None),
                    enum_labels=next((t.labels for t in chain if t.labels), ()),
                    generated="identity" if identity else default if generated else None,
                )
            )
            relation.checks += [f"{column} (domain {t.name}): {check}" for t in chain for check in t.checks]
    for relation in relations.values():
        if relation.hidden:
            relation.columns = [_without(column, relation.hidden) for column in relation.columns]


def _base(chain: Sequence[_Type]) -> str:
    """The type under a domain, through domains over domains."""
    return [t.base for t in chain if t.kind == "d"][-1]


def _without(column: Column, hidden: set[str]) -> Column:
    """The column, its expression withheld if that names a hidden one."""
    if column.generated and _names_any(column.generated, hidden):
        return Column(column.name, column.type, column.nullable, None, column.meaning, (), column.enum_labels,
                      "from columns that are hidden")  # fmt: skip
    return column


def _names_any(expression: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", expression) for name in names)


def _hide_views(relations: Mapping[str | None, _Relation], uses: Sequence[Row], problems: list[str]) -> None:
    """Leave out views that read a hidden column, through other views too."""
    sources: dict[str, list[tuple[str, str | None, bool]]] = defaultdict(list)
    for view, source, column, whole_rows in uses:
        if view in relations and source in relations:
            sources[view or ""].append((source or "", column, whole_rows == "true"))
    leaking: dict[str, str] = {}

    def leak(view: str) -> str | None:
        for source, column, whole_rows in sources[view]:
            hidden = relations[source].hidden
            if source in leaking or column in hidden or (whole_rows and hidden):
                return source
        return None

    waiting = [view for view in sources if not relations[view].hidden]
    while found := {view: source for view in waiting if (source := leak(view))}:
        leaking |= found
        waiting = [view for view in waiting if view not in found]
    for view, source in leaking.items():
        relation = relations[view]
        problems.append(
            f"{relation.kind} {relation.label} is left out, because it reads hidden columns of "
            f"{relations[source].label}. To keep it, name its own columns to hide."
        )
        relation.hidden.update(c.name for c in relation.columns)
        relation.columns.clear()


def _add_constraints(relations: Mapping[str | None, _Relation], found: Sequence[Row], problems: list[str]) -> None:
    by_name = {(r.schema, r.name): r for r in relations.values()}
    for oid, kind, name, definition, columns, ref_schema, ref_table, ref_columns in found:
        relation = relations.get(oid)
        names = tuple(json.loads(columns or "[]"))
        if relation is None or definition is None or not relation.shows(names):
            continue
        if kind == "p":
            relation.primary_key = names
        elif kind == "c":
            relation.checks.append(definition)
        elif kind == "f" and ref_schema and ref_table:
            refs = tuple(json.loads(ref_columns or "[]"))
            target = by_name.get((ref_schema, ref_table))
            if target is not None and not target.shows(refs):
                continue
            relation.foreign_keys.append(ForeignKey(names, ref_table, refs, ref_schema))
            if definition.endswith(("NOT VALID", "NOT ENFORCED")):
                problems.append(
                    f"foreign key {name} of {relation.label} is {definition[definition.rindex('NOT') :]}: "
                    "rows may break it"
                )


def _left_out(relations: Iterable[_Relation], hide: Sequence[str]) -> list[str]:
    """One message for each reason and schema, with names up to a limit."""
    problems = []
    closed: dict[str, list[str]] = defaultdict(list)
    for relation in relations:
        if relation.unreadable and not relation.columns and not relation.hidden:
            closed[relation.schema].append(relation.name)
        elif relation.unreadable:
            problems.append(
                f"{_some(relation.unreadable, 'column')} of {relation.label} left out: the role may not read them"
            )
    for schema, tables in closed.items():
        problems.append(f"{_some(tables, 'table')} of schema {schema} left out: the role may not read them")
    for pattern in hide:
        if not any(is_hidden([pattern], r.schema, r.name, column) for r in relations for column in r.hidden):
            problems.append(f"hide names {pattern}, which is no column here")
    return problems


def _some(names: Sequence[str], what: str) -> str:
    shown = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
    return f"{len(names)} {what}{'s' * (len(names) != 1)} ({shown})"
