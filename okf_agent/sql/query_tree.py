"""What a query is made of, as sqlglot's scopes tell it: sources, joins, aggregates and the columns that they add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, cast

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

SHOWN_CHARS = 60
"""Of an aggregate in a note."""


class Unknown(Exception):
    """Something that this module cannot take apart: no note comes of it."""


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
    return {(table.db, table.name) for scope in scopes(tree) for table in base_tables(scope).values()}


def scopes(tree: exp.Expr) -> list[Scope]:
    """The SELECTs of a query, inner ones first; none where sqlglot cannot tell what they select from."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    try:
        return [scope for scope in traverse_scope(tree) if isinstance(scope.expression, exp.Select)]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return []


def is_scope(source: Any) -> TypeGuard[Scope]:
    from sqlglot.optimizer.scope import Scope

    return isinstance(source, Scope)


def select_of(scope: Scope) -> exp.Select:
    return cast("exp.Select", scope.expression)


def renamed(node: exp.Expr, source: Any) -> bool:
    """Whether a source gives its columns other names: `AS t(a, b)`."""
    outer = source.expression.parent if is_scope(source) else None
    aliases = [one.args.get("alias") for one in (node, outer) if one is not None]
    return any(alias is not None and alias.args.get("columns") for alias in aliases)


def base_tables(scope: Scope) -> dict[str, exp.Table]:
    from sqlglot import exp

    return {alias: source for alias, (_, source) in scope.selected_sources.items() if isinstance(source, exp.Table)}


def joins(scope: Scope) -> bool:
    """Whether a SELECT joins, itself or in a subquery that does nothing else."""
    sources = [source for _, source in scope.selected_sources.values()]
    return len(sources) > 1 or any(is_scope(s) and only_joins(s) and joins(s) for s in sources)


def only_joins(scope: Scope) -> bool:
    """Whether each row of a subquery is one of its joined rows: it groups, merges and numbers nothing."""
    from sqlglot import exp

    select = scope.expression
    if not isinstance(select, exp.Select) or any(select.args.get(key) for key in ("group", "distinct", "having")):
        return False
    return not any(one.find(exp.AggFunc, exp.Window) for one in select.selects)


def aggregates_of(scope: Scope) -> Iterator[exp.Expr]:
    """The sum, avg and count calls of a SELECT that add a column row by row."""
    from sqlglot import exp

    for node in scope.find_all(exp.Sum, exp.Avg, exp.Count):
        above = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        if isinstance(above, exp.Window) or isinstance(node.this, exp.Distinct | exp.Star) or not node.this:
            continue
        if node.expressions or node.this.find(exp.Query) or not [*added_columns(argument_of(node))]:
            continue
        yield node


def argument_of(aggregate: exp.Expr) -> exp.Expr:
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


def added_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns whose values an expression passes on; those that it only compares are not among them."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        if not isinstance(node.this, exp.Star):
            yield node
    elif isinstance(node, exp.Case):
        branches = [*node.args["ifs"], *filter(None, [node.args.get("default")])]
        for branch in branches:
            yield from added_columns(branch.args["true"] if isinstance(branch, exp.If) else branch)
    elif isinstance(node, exp.Nullif):
        yield from added_columns(node.this)
    elif not isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Query):
        for child in node.iter_expressions():
            yield from added_columns(child)


def counts_of(aggregate: exp.Expr, ids: Sequence[exp.Expr]) -> tuple[exp.Expr, exp.Expr]:
    """How many rows an aggregate adds, and how many different ones."""
    from sqlglot import exp

    some = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in ids]
    added = exp.Paren(this=argument_of(aggregate).copy())
    conditions: list[exp.Expr] = [exp.Not(this=exp.Is(this=added, expression=exp.Null())), *some]
    if isinstance(aggregate.parent, exp.Filter):
        conditions.append(exp.Paren(this=aggregate.parent.expression.this.copy()))
    where = exp.Where(this=exp.and_(*conditions))
    one = ids[0].copy() if len(ids) == 1 else exp.Tuple(expressions=[each.copy() for each in ids])
    return (
        exp.Filter(this=exp.Count(this=exp.Star()), expression=where),
        exp.Filter(this=exp.Count(this=exp.Distinct(expressions=[one])), expression=where.copy()),
    )


def group_by(select: exp.Select, sources: Any, columns_of: Callable[[Any], frozenset[str]]) -> list[exp.Expr]:
    """What a SELECT groups by, positions and aliases resolved.

    Raises:
        Unknown: grouping sets.
    """
    from sqlglot import exp

    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "all")):
        raise Unknown
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


def with_of(outer: exp.Select, select: exp.Select) -> exp.Select:
    """A query with every WITH that a SELECT stands under.

    Raises:
        Unknown: two of their names are the same.
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
        raise Unknown
    if ctes:
        outer.set("with_", exp.With(expressions=[cte.copy() for cte in ctes], recursive=recursive))
    return outer


def quoted_name(table: exp.Table) -> str:
    """A table's name as `to_regclass` reads it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (table.db, table.name) if part)


def label(scope: Scope, alias: str) -> str:
    """What a note calls a source: its name, with the alias where the same name stands twice."""
    from sqlglot import exp

    def name_of(node: Any) -> str:
        return shown_name(node.db, node.name) if isinstance(node, exp.Table) and node.name else node.alias_or_name

    names = {other: name_of(node) for other, (node, _) in scope.selected_sources.items()}
    twice = [*names.values()].count(names[alias]) > 1
    return f"{names[alias]} ({alias})" if twice else names[alias] or alias


def shown_text(node: exp.Expr) -> str:
    text = " ".join(node.sql(dialect="postgres", normalize_functions="lower").split())
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
