"""Which rows a query counts more than once: a join repeats rows of a table, and sum, avg or count adds a column of it.

What keys are declared says little of that (of the aggregates people write over joins, a third would be suspected), so
it is measured: beside each such aggregate, how many rows it adds and how many different rows of the table those are,
within the groups of the query. `NULL`s add nothing and do not count.

A row is told apart by its place in a table (`ctid`), or, in a view, a subquery and a table with hidden columns, by a
number it is given. A subquery that only joins hands on the rows of its own tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from okf_agent.sql.query_tree import (
    Unknown,
    added_columns,
    aggregates_of,
    argument_of,
    base_tables,
    counts_of,
    group_by,
    is_scope,
    joins,
    label,
    only_joins,
    quoted_name,
    renamed,
    scopes,
    select_of,
    shown_text,
    with_of,
)
from okf_agent.wording import count, listed
from okf_compiler.postgres import Row

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

Ask = Callable[[str], list[Row]]
"""Rows of a read-only query, run as the model's own are."""

MAX_SCOPES = 4
"""SELECTs of one query that are measured."""
MAX_AGGREGATES = 12
"""Aggregates of one SELECT that are measured."""

FACTS = """
SELECT t.name, c.relkind::text, c.relhassubclass::text, pg_catalog.has_table_privilege(c.oid, 'SELECT')::text,
    (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))::text
FROM pg_catalog.json_array_elements_text({names}::json) AS t(name)
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.name)"""
"""Of each table named: its kind, whether others inherit from it, whether all of it may be read, and which columns."""


@dataclass(frozen=True)
class _Table:
    """What the server says of a table."""

    kind: str
    inherited: bool
    whole: bool
    columns: tuple[str, ...]


@dataclass
class _Rows:
    """Rows that an aggregate adds a column of."""

    ids: list[exp.Expr] = field(default_factory=list)
    """What tells them apart, as expressions where the aggregate stands."""
    names: list[str] = field(default_factory=list)
    """The tables they are of."""
    joined: list[str] = field(default_factory=list)
    """The tables joined to those."""

    def add(self, other: _Rows) -> None:
        self.ids += [one for one in other.ids if one not in self.ids]
        self.names += [name for name in other.names if name not in self.names]
        self.joined += [name for name in other.joined if name not in self.joined]


def repeated(tree: exp.Expr, ask: Ask) -> Iterator[str]:
    """A text for each table whose rows a join of the query repeats under an aggregate.

    Raises:
        QueryError, psycopg.Error, Stopped: `ask` does.
    """
    places = [at for at, scope in enumerate(scopes(tree)) if joins(scope) and [*aggregates_of(scope)]]
    facts: Mapping[str, _Table] | None = None
    for at in places[:MAX_SCOPES]:
        if facts is None:
            facts = _facts(tree, ask)
        try:
            yield from _Measure(tree, at, facts).notes(ask)
        except Unknown:
            continue


class _Measure:
    """The measuring of one SELECT, in a copy of the whole query that is changed on the way."""

    def __init__(self, tree: exp.Expr, at: int, facts: Mapping[str, _Table]) -> None:
        self.scope = scopes(tree.copy())[at]
        self.facts = facts
        self.ids: dict[tuple[int, str], exp.Expr] = {}
        """The expression that tells the rows of a source apart, by scope and alias."""
        self.columns: dict[int, frozenset[str]] = {}
        """The names of a subquery's columns, by the id of its scope."""
        self.exposed = 0

    def notes(self, ask: Ask) -> Iterator[str]:
        found: list[tuple[str, _Rows, tuple[exp.Expr, exp.Expr]]] = []
        for node in [*aggregates_of(self.scope)][:MAX_AGGREGATES]:
            try:
                rows = self.rows_of(node)
            except Unknown:
                continue
            if rows.joined:
                found.append((shown_text(node), rows, counts_of(node, rows.ids)))
        if not found:
            return
        row = ask(self.query([counts for *_, counts in found]).sql(dialect="postgres"))[0]
        pairs = [(int(row[i] or 0), int(row[i + 1] or 0)) for i in range(0, len(row), 2)]
        said: dict[str, list[str]] = {}
        for (aggregate, rows, _), (added, different) in zip(found, pairs, strict=True):
            if added > different:
                became = f"{listed(rows.names)}: {count(different, 'row')} became {added:,}"
                join = f"by the join{'s' * (len(rows.joined) > 1)} with {listed(rows.joined)}"
                said.setdefault(f"{became} {join}", []).append(aggregate)
        for text, aggregates in said.items():
            names = dict.fromkeys(aggregates)
            yield (
                f"{text}; {listed(names)} count{'s' * (len(names) == 1)} a row more than once. "
                "Where each row should count once, aggregate before the join, or use EXISTS."
            )

    def rows_of(self, aggregate: exp.Expr) -> _Rows:
        """The rows of the tables whose columns are added."""
        columns = [*added_columns(argument_of(aggregate))]
        if not columns:
            raise Unknown
        return self.rows_behind(self.scope, columns)

    def rows_behind(self, scope: Scope, columns: Sequence[exp.Column], depth: int = 0) -> _Rows:
        """The rows that columns of one SELECT come from; what a plain subquery joins is looked into."""
        sources = scope.selected_sources
        rows = _Rows()
        if any(column.table and column.table not in scope.sources for column in scope.columns):
            raise Unknown  # it asks for the rows of an outer SELECT
        aliases = dict.fromkeys(self.alias_of(scope, column) for column in columns)
        for alias in aliases:
            node, source = sources[alias]
            if renamed(node, source):
                raise Unknown
            if is_scope(source) and only_joins(source) and depth < MAX_SCOPES:
                names = [column.name for column in columns if self.alias_of(scope, column) == alias]
                inner = self.rows_behind(source, self.behind(source, names), depth + 1)
                inner.ids = [self.expose(source, alias, one) for one in inner.ids]
                rows.add(inner)
            else:
                rows.add(_Rows([self.id_of(scope, alias)], [label(scope, alias)]))
        rows.joined += [
            name for alias in sources if alias not in aliases and (name := label(scope, alias)) not in rows.joined
        ]
        return rows

    def alias_of(self, scope: Scope, column: exp.Column) -> str:
        """The source of one SELECT that a column belongs to.

        Raises:
            Unknown: none of them, or it cannot be told.
        """
        sources = scope.selected_sources
        if column.table:
            if column.table in sources:
                return column.table
            raise Unknown
        found = [alias for alias, (_, source) in sources.items() if column.name in self.columns_of(source)]
        if len(found) != 1:
            raise Unknown
        return found[0]

    def columns_of(self, source: Any) -> frozenset[str]:
        """The names of a source's columns. Each source is looked at once: a chain of `SELECT * FROM a, a` doubles."""
        if not is_scope(source):
            return frozenset(self.table(source).columns)
        if id(source) in self.columns:
            return self.columns[id(source)]
        names: set[str] = set()
        for one in select_of(source).selects:
            if one.is_star:
                inner = source.selected_sources
                wanted = [one.text("table")] if one.text("table") else [*inner]
                names.update(*(self.columns_of(inner[alias][1]) for alias in wanted if alias in inner))
            else:
                names.add(one.alias_or_name)
        self.columns[id(source)] = frozenset(names)
        return self.columns[id(source)]

    def behind(self, source: Scope, names: Sequence[str]) -> list[exp.Column]:
        """The columns of a subquery's own tables that stand behind its columns of these names."""
        from sqlglot import exp

        own = {one.alias_or_name: one.unalias() for one in select_of(source).selects if not one.is_star}
        found: list[exp.Column] = []
        for name in names:
            found += [*added_columns(own[name])] if name in own else [exp.column(name)]
        if not found:
            raise Unknown
        return found

    def expose(self, source: Scope, alias: str, one: exp.Expr) -> exp.Expr:
        """An expression of a subquery, as a column of it where it is selected from under `alias`."""
        from sqlglot import exp

        known = next((s for s in select_of(source).selects if isinstance(s, exp.Alias) and s.this == one), None)
        if known is None:
            self.exposed += 1
            known = cast(exp.Alias, exp.alias_(one.copy(), f"okf_{self.exposed}"))
            source.expression.append("expressions", known)
        return exp.column(known.alias, table=exp.to_identifier(alias, quoted=True))

    def id_of(self, scope: Scope, alias: str) -> exp.Expr:
        """What tells the rows of a source apart; a source whose rows have no place of their own gets numbers."""
        key = (id(scope), alias)
        if key not in self.ids:
            self.ids[key] = self.place_of(scope, alias)
        return self.ids[key]

    def place_of(self, scope: Scope, alias: str) -> exp.Expr:
        from sqlglot import exp

        node, source = scope.selected_sources[alias]
        where = exp.to_identifier(alias, quoted=True)
        if isinstance(source, exp.Table):
            table = self.table(source)
            if table.kind in ("r", "m") and table.whole and not table.inherited:
                return exp.column("ctid", table=where)
            if table.kind in ("r", "p") and table.whole:
                place = [exp.cast(exp.column(name, table=where), "text") for name in ("tableoid", "ctid")]
                return exp.DPipe(this=place[0], expression=place[1])
            if table.kind not in ("r", "p", "v"):
                raise Unknown
            self.number(node, exp.select(*(exp.column(name, quoted=True) for name in table.columns)), alias)
        elif isinstance(node, exp.Table) or isinstance(source.expression, exp.Query):
            self.number(node, exp.select("*"), alias)
        else:
            raise Unknown
        return exp.column("okf_row", table=where)

    def number(self, node: exp.Expr, select: exp.Select, alias: str) -> None:
        """Put a subquery that numbers its rows in the place of a source."""
        from sqlglot import exp

        if isinstance(node.parent, exp.Subquery):
            node = node.parent  # a subquery in FROM is its SELECT for sqlglot's scope
        if node.args.get("sample"):
            raise Unknown
        inner = node.copy()
        if isinstance(inner, exp.Subquery | exp.Table):
            inner.set("alias", exp.TableAlias(this=exp.to_identifier("okf_q")))
            inner.set("joins", None)
        numbered = select.from_(inner).select("ROW_NUMBER() OVER () AS okf_row", dialect="postgres")
        name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        outer = exp.Subquery(this=numbered, alias=name, joins=node.args.get("joins"))
        node.replace(outer)

    def table(self, source: exp.Table) -> _Table:
        found = self.facts.get(quoted_name(source))
        if found is None:
            raise Unknown
        return found

    def query(self, counts: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
        """One row: for each pair of counts, its sums over the groups of the SELECT."""
        from sqlglot import exp

        select = select_of(self.scope)
        groups = group_by(select, self.scope.selected_sources, self.columns_of)
        measured = exp.Select(
            **{key: select.args.get(key) for key in ("from_", "joins", "laterals", "where", "having")}
        )
        if groups:
            measured.set("group", exp.Group(expressions=groups))
        names = [f"okf_{i}" for i in range(2 * len(counts))]
        both = [one for pair in counts for one in pair]
        measured.set("expressions", [exp.alias_(one, name) for one, name in zip(both, names, strict=True)])
        outer = exp.select(*(f"SUM({name})" for name in names)).from_(measured.subquery("okf_g"))
        return with_of(outer, select)


def _facts(tree: exp.Expr, ask: Ask) -> dict[str, _Table]:
    """What the server says of the tables of a query."""
    from sqlglot import exp

    names = sorted({quoted_name(table) for scope in scopes(tree) for table in base_tables(scope).values()})
    literal = exp.Literal.string(json.dumps(names)).sql(dialect="postgres")
    return {
        str(name): _Table(str(kind), inherited == "true", whole == "true", tuple(json.loads(columns or "[]")))
        for name, kind, inherited, whole, columns in ask(FACTS.format(names=literal))
    }
