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
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from okf_agent.wording import count, listed
from okf_compiler.postgres import Row

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

Ask = Callable[[str], list[Row]]

MAX_SCOPES = 4
"""SELECTs of one query that are measured."""
MAX_AGGREGATES = 12
"""Aggregates of one SELECT that are measured."""
SHOWN_CHARS = 60
"""Of an aggregate in a note."""

FACTS = """
SELECT t.name, c.relkind::text, c.relhassubclass::text, pg_catalog.has_table_privilege(c.oid, 'SELECT')::text,
    (SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))::text
FROM pg_catalog.json_array_elements_text({names}::json) AS t(name)
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(t.name)"""
"""Of each table named: its kind, whether others inherit from it, whether all of it may be read, and which columns."""


class _Unknown(Exception):
    """Something that this module cannot take apart: no note comes of it."""


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


def parsed(sql: str) -> exp.Expr | None:
    """The query as sqlglot reads it, names folded as PostgreSQL folds them; None where it cannot."""
    import sqlglot
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    try:
        return normalize_identifiers(sqlglot.parse_one(sql, dialect="postgres"), dialect="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def shown_name(schema: str, name: str) -> str:
    """A table's name for a note: bare in `public`."""
    return name if schema in ("", "public") else f"{schema}.{name}"


def tables_read(tree: exp.Expr) -> set[tuple[str, str]]:
    """The tables and views that a query reads, as (schema or "", name); not its own WITH."""
    return {(table.db, table.name) for scope in _scopes(tree) for table in _base_tables(scope).values()}


def repeated(tree: exp.Expr, ask: Ask) -> Iterator[str]:
    """A text for each table whose rows a join of the query repeats under an aggregate.

    Raises:
        QueryError, psycopg.Error, Stopped: `ask` does.
    """
    places = [at for at, scope in enumerate(_scopes(tree)) if _joins(scope) and [*_aggregates(scope)]]
    facts: Mapping[str, _Table] | None = None
    for at in places[:MAX_SCOPES]:
        if facts is None:
            facts = _facts(tree, ask)
        try:
            yield from _Measure(tree, at, facts).notes(ask)
        except _Unknown:
            continue


class _Measure:
    """The measuring of one SELECT, in a copy of the whole query that is changed on the way."""

    def __init__(self, tree: exp.Expr, at: int, facts: Mapping[str, _Table]) -> None:
        self.scope = _scopes(tree.copy())[at]
        self.facts = facts
        self.ids: dict[tuple[int, str], exp.Expr] = {}
        """The expression that tells the rows of a source apart, by scope and alias."""
        self.columns: dict[int, frozenset[str]] = {}
        """The names of a subquery's columns, by the id of its scope."""
        self.exposed = 0

    def notes(self, ask: Ask) -> Iterator[str]:
        found: list[tuple[str, _Rows, tuple[exp.Expr, exp.Expr]]] = []
        for node in [*_aggregates(self.scope)][:MAX_AGGREGATES]:
            try:
                rows = self.rows_of(node)
            except _Unknown:
                continue
            if rows.joined:
                found.append((_shown(node), rows, _counts(node, rows.ids)))
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
        columns = [*_added(_argument(aggregate))]
        if not columns:
            raise _Unknown
        return self.rows_behind(self.scope, columns)

    def rows_behind(self, scope: Scope, columns: Sequence[exp.Column], depth: int = 0) -> _Rows:
        """The rows that columns of one SELECT come from; what a plain subquery joins is looked into."""
        sources = scope.selected_sources
        rows = _Rows()
        if any(column.table and column.table not in scope.sources for column in scope.columns):
            raise _Unknown  # it asks for the rows of an outer SELECT
        aliases = dict.fromkeys(self.alias_of(scope, column) for column in columns)
        for alias in aliases:
            node, source = sources[alias]
            if _renamed(node, source):
                raise _Unknown
            if _is_scope(source) and _only_joins(source) and depth < MAX_SCOPES:
                names = [column.name for column in columns if self.alias_of(scope, column) == alias]
                inner = self.rows_behind(source, self.behind(source, names), depth + 1)
                inner.ids = [self.expose(source, alias, one) for one in inner.ids]
                rows.add(inner)
            else:
                rows.add(_Rows([self.id_of(scope, alias)], [_label(scope, alias)]))
        rows.joined += [
            name for alias in sources if alias not in aliases and (name := _label(scope, alias)) not in rows.joined
        ]
        return rows

    def alias_of(self, scope: Scope, column: exp.Column) -> str:
        """The source of one SELECT that a column belongs to.

        Raises:
            _Unknown: none of them, or it cannot be told.
        """
        sources = scope.selected_sources
        if column.table:
            if column.table in sources:
                return column.table
            raise _Unknown
        found = [alias for alias, (_, source) in sources.items() if column.name in self.columns_of(source)]
        if len(found) != 1:
            raise _Unknown
        return found[0]

    def columns_of(self, source: Any) -> frozenset[str]:
        """The names of a source's columns. Each source is looked at once: a chain of `SELECT * FROM a, a` doubles."""
        if not _is_scope(source):
            return frozenset(self.table(source).columns)
        if id(source) in self.columns:
            return self.columns[id(source)]
        names: set[str] = set()
        for one in _select(source).selects:
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

        own = {one.alias_or_name: one.unalias() for one in _select(source).selects if not one.is_star}
        found: list[exp.Column] = []
        for name in names:
            found += [*_added(own[name])] if name in own else [exp.column(name)]
        if not found:
            raise _Unknown
        return found

    def expose(self, source: Scope, alias: str, one: exp.Expr) -> exp.Expr:
        """An expression of a subquery, as a column of it where it is selected from under `alias`."""
        from sqlglot import exp

        known = next((s for s in _select(source).selects if isinstance(s, exp.Alias) and s.this == one), None)
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
                raise _Unknown
            self.number(node, exp.select(*(exp.column(name, quoted=True) for name in table.columns)), alias)
        elif isinstance(node, exp.Table) or isinstance(source.expression, exp.Query):
            self.number(node, exp.select("*"), alias)
        else:
            raise _Unknown
        return exp.column("okf_row", table=where)

    def number(self, node: exp.Expr, select: exp.Select, alias: str) -> None:
        """Put a subquery that numbers its rows in the place of a source."""
        from sqlglot import exp

        if isinstance(node.parent, exp.Subquery):
            node = node.parent  # a subquery in FROM is its SELECT for sqlglot's scope
        if node.args.get("sample"):
            raise _Unknown
        inner = node.copy()
        if isinstance(inner, exp.Subquery | exp.Table):
            inner.set("alias", exp.TableAlias(this=exp.to_identifier("okf_q")))
            inner.set("joins", None)
        numbered = select.from_(inner).select("ROW_NUMBER() OVER () AS okf_row", dialect="postgres")
        name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        outer = exp.Subquery(this=numbered, alias=name, joins=node.args.get("joins"))
        node.replace(outer)

    def table(self, source: exp.Table) -> _Table:
        found = self.facts.get(_name(source))
        if found is None:
            raise _Unknown
        return found

    def query(self, counts: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
        """One row: for each pair of counts, its sums over the groups of the SELECT."""
        from sqlglot import exp

        select = _select(self.scope)
        groups = _group_by(select, self.scope.selected_sources, self.columns_of)
        measured = exp.Select(
            **{key: select.args.get(key) for key in ("from_", "joins", "laterals", "where", "having")}
        )
        if groups:
            measured.set("group", exp.Group(expressions=groups))
        names = [f"okf_{i}" for i in range(2 * len(counts))]
        both = [one for pair in counts for one in pair]
        measured.set("expressions", [exp.alias_(one, name) for one, name in zip(both, names, strict=True)])
        outer = exp.select(*(f"SUM({name})" for name in names)).from_(measured.subquery("okf_g"))
        return _with(outer, select)


def _scopes(tree: exp.Expr) -> list[Scope]:
    """The SELECTs of a query, inner ones first; none where sqlglot cannot tell what they select from."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    try:
        return [scope for scope in traverse_scope(tree) if isinstance(scope.expression, exp.Select)]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return []


def _is_scope(source: Any) -> TypeGuard[Scope]:
    from sqlglot.optimizer.scope import Scope

    return isinstance(source, Scope)


def _select(scope: Scope) -> exp.Select:
    return cast("exp.Select", scope.expression)


def _renamed(node: exp.Expr, source: Any) -> bool:
    """Whether a source gives its columns other names: `AS t(a, b)`."""
    outer = source.expression.parent if _is_scope(source) else None
    aliases = [one.args.get("alias") for one in (node, outer) if one is not None]
    return any(alias is not None and alias.args.get("columns") for alias in aliases)


def _base_tables(scope: Scope) -> dict[str, exp.Table]:
    from sqlglot import exp

    return {alias: source for alias, (_, source) in scope.selected_sources.items() if isinstance(source, exp.Table)}


def _joins(scope: Scope) -> bool:
    """Whether a SELECT joins, itself or in a subquery that does nothing else."""
    sources = [source for _, source in scope.selected_sources.values()]
    return len(sources) > 1 or any(_is_scope(s) and _only_joins(s) and _joins(s) for s in sources)


def _only_joins(scope: Scope) -> bool:
    """Whether each row of a subquery is one of its joined rows: it groups, merges and numbers nothing."""
    from sqlglot import exp

    select = scope.expression
    if not isinstance(select, exp.Select) or any(select.args.get(key) for key in ("group", "distinct", "having")):
        return False
    return not any(one.find(exp.AggFunc, exp.Window) for one in select.selects)


def _aggregates(scope: Scope) -> Iterator[exp.Expr]:
    """The sum, avg and count calls of a SELECT that add a column row by row."""
    from sqlglot import exp

    for node in scope.find_all(exp.Sum, exp.Avg, exp.Count):
        above = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        if isinstance(above, exp.Window) or isinstance(node.this, exp.Distinct | exp.Star) or not node.this:
            continue
        if node.expressions or node.this.find(exp.Query) or not [*_added(_argument(node))]:
            continue
        yield node


def _argument(aggregate: exp.Expr) -> exp.Expr:
    """What is added; a sum adds nothing where a CASE falls to ELSE 0."""
    from sqlglot import exp

    argument: exp.Expr = aggregate.this
    case = argument.unnest()
    if isinstance(aggregate, exp.Sum) and isinstance(case, exp.Case):
        other = case.args.get("default")
        if isinstance(other, exp.Literal) and other.name == "0":
            argument = case.copy()
            argument.set("default", None)
    return argument


def _added(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns whose values an expression passes on; those that it only compares are not among them."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        if not isinstance(node.this, exp.Star):
            yield node
    elif isinstance(node, exp.Case):
        branches = [*node.args["ifs"], *filter(None, [node.args.get("default")])]
        for branch in branches:
            yield from _added(branch.args["true"] if isinstance(branch, exp.If) else branch)
    elif isinstance(node, exp.Nullif):
        yield from _added(node.this)
    elif not isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Query):
        for child in node.iter_expressions():
            yield from _added(child)


def _counts(aggregate: exp.Expr, ids: Sequence[exp.Expr]) -> tuple[exp.Expr, exp.Expr]:
    """How many rows an aggregate adds, and how many different ones."""
    from sqlglot import exp

    some = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in ids]
    added = exp.Paren(this=_argument(aggregate).copy())
    conditions: list[exp.Expr] = [exp.Not(this=exp.Is(this=added, expression=exp.Null())), *some]
    if isinstance(aggregate.parent, exp.Filter):
        conditions.append(exp.Paren(this=aggregate.parent.expression.this.copy()))
    where = exp.Where(this=exp.and_(*conditions))
    one = ids[0].copy() if len(ids) == 1 else exp.Tuple(expressions=[each.copy() for each in ids])
    return (
        exp.Filter(this=exp.Count(this=exp.Star()), expression=where),
        exp.Filter(this=exp.Count(this=exp.Distinct(expressions=[one])), expression=where.copy()),
    )


def _group_by(select: exp.Select, sources: Any, columns_of: Callable[[Any], frozenset[str]]) -> list[exp.Expr]:
    """What a SELECT groups by, positions and aliases resolved.

    Raises:
        _Unknown: grouping sets.
    """
    from sqlglot import exp

    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "all")):
        raise _Unknown
    own = {one.alias: one.unalias() for one in select.selects if one.alias}
    taken = {name for _, source in sources.values() for name in columns_of(source)}  # they go before such an alias
    resolved = []
    for one in group.expressions:
        if isinstance(one, exp.Literal) and one.name.isdecimal() and 0 < int(one.name) <= len(select.selects):
            one = select.selects[int(one.name) - 1].unalias()
        elif isinstance(one, exp.Column) and not one.table and one.name in own and one.name not in taken:
            one = own[one.name]
        resolved.append(one.copy())
    return resolved


def _with(outer: exp.Select, select: exp.Select) -> exp.Select:
    """A query with every WITH that a SELECT stands under.

    Raises:
        _Unknown: two of their names are the same.
    """
    from sqlglot import exp

    ctes: list[exp.Expr] = []
    recursive = False
    node: exp.Expr | None = select
    while node is not None:
        if found := node.args.get("with_"):
            ctes = [*found.expressions, *ctes]
            recursive = recursive or bool(found.args.get("recursive"))
        node = node.parent
    if len({cte.alias for cte in ctes}) < len(ctes):
        raise _Unknown
    if ctes:
        outer.set("with_", exp.With(expressions=[cte.copy() for cte in ctes], recursive=recursive))
    return outer


def _facts(tree: exp.Expr, ask: Ask) -> dict[str, _Table]:
    """What the server says of the tables of a query."""
    from sqlglot import exp

    names = sorted({_name(table) for scope in _scopes(tree) for table in _base_tables(scope).values()})
    literal = exp.Literal.string(json.dumps(names)).sql(dialect="postgres")
    return {
        str(name): _Table(str(kind), inherited == "true", whole == "true", tuple(json.loads(columns or "[]")))
        for name, kind, inherited, whole, columns in ask(FACTS.format(names=literal))
    }


def _name(table: exp.Table) -> str:
    """A table's name as `to_regclass` reads it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (table.db, table.name) if part)


def _label(scope: Scope, alias: str) -> str:
    """What a note calls a source: its name, with the alias where the same name stands twice."""
    from sqlglot import exp

    def name_of(node: Any) -> str:
        return shown_name(node.db, node.name) if isinstance(node, exp.Table) and node.name else node.alias_or_name

    names = {other: name_of(node) for other, (node, _) in scope.selected_sources.items()}
    twice = [*names.values()].count(names[alias]) > 1
    return f"{names[alias]} ({alias})" if twice else names[alias] or alias


def _shown(node: exp.Expr) -> str:
    text = " ".join(node.sql(dialect="postgres", normalize_functions="lower").split())
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
