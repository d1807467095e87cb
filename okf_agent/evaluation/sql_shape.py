"""What a query is made of, so that two can be compared: tables, columns, conditions, joins, calculations, output.

Names are resolved through aliases, subqueries and WITH by sqlglot's scopes, so that two spellings of one query have
one shape. Casts, brackets, ROUND and COALESCE are left out of expressions: they change how a value looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

DRESS = (exp.Cast, exp.TryCast, exp.Paren, exp.Round, exp.Coalesce)
"""What is dropped around an expression."""
SIGNS = {"eq": "=", "neq": "=", "in": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
SPELLING = (exp.Lower, exp.Upper, exp.Trim)
COMPARISONS: tuple[type[exp.Expr], ...] = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.In,
    exp.Between,
    exp.Is,
)
COMPARISONS += (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo)
CALCULATIONS = (exp.AggFunc, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Case, exp.Window)
JSON_STEPS = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)


@dataclass(frozen=True)
class Condition:
    """One comparison of something with constants: `orders.state IN ('draft', 'cancelled')`."""

    subject: str
    """What is compared, canonical: `orders.state`, `count(*)`."""
    operator: str
    """`=` (IN too), `<`, `like`, `is`, `between`, …; negated ones begin with `not `."""
    values: frozenset[str]
    """What it is compared with: texts with quotes, numbers as written."""
    column: str = ""
    """The subject without lower, upper and trim around it."""

    def __str__(self) -> str:
        return f"{self.subject} {self.operator} {', '.join(sorted(self.values))}"


@dataclass
class Shape:
    """One query. Names are in lower case, columns `table.column` or `column` where the table is not sure."""

    tables: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    """All that are used; a path into JSON is a column of its own, `signals.data->a->b`."""
    substance: set[str] = field(default_factory=set)
    """The columns that decide values and rows: in conditions, calculations and groups, not only joined on or shown."""
    joins: set[frozenset[str]] = field(default_factory=set)
    """Pairs of columns that are set equal."""
    outer: int = 0
    """Outer joins."""
    conditions: set[Condition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    distinct: bool = False
    """SELECT DISTINCT, at any depth; DISTINCT within an aggregate is part of the calculation."""
    calculations: set[str] = field(default_factory=set)
    """The outermost calculations and aggregates, canonical."""
    outputs: list[str] = field(default_factory=list)
    """The columns of the result, canonical expressions."""
    order: list[str] = field(default_factory=list)
    limit: str = ""


def parse(sql: str) -> Shape | None:
    """The shape of a PostgreSQL query; None if it is no query that can be parsed."""
    try:
        statements = [each for each in sqlglot.parse(sql, read="postgres") if each is not None]
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            return None
        return _shape(statements[0])
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def select_of(sql: str) -> exp.Select | None:
    """The SELECT of PostgreSQL that a text is; None for anything else."""
    try:
        query = sqlglot.parse_one(sql, read="postgres")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    return query if isinstance(query, exp.Select) else None


def _shape(tree: exp.Query) -> Shape:
    shape = Shape()
    scopes = traverse_scope(tree)
    aliases = {name for scope in scopes for name in _output_names(scope)}
    for scope in scopes:
        _resolve(scope, shape, aliases)
    for node in tree.walk():
        _add(node, shape)
    select = tree.find(exp.Select)
    shape.outputs = [text(_bare(each)) for each in (select.expressions if select else [])]
    for order in (tree.args.get("order"), *(scope.expression.args.get("order") for scope in scopes)):
        for each in order.expressions if isinstance(order, exp.Order) else ():
            entry = _order_entry(each, select)
            if entry not in shape.order:
                shape.order.append(entry)
    limit = tree.find(exp.Limit, exp.Fetch)
    if limit is not None:
        shape.limit = text(limit.args.get("expression") or limit.args.get("count") or limit)
    return shape


def _output_names(scope: Scope) -> Iterator[str]:
    """The names that a subquery gives to what it computes: they are no columns of a table."""
    for each in scope.expression.selects if isinstance(scope.expression, exp.Query) else ():
        if isinstance(each, exp.Alias) and not isinstance(each.this, exp.Column):
            yield each.alias.lower()


def _resolve(scope: Scope, shape: Shape, aliases: set[str]) -> None:
    """Put the table's name before every column of a scope, and collect both."""
    tables = {name.lower(): each.name.lower() for name, each in scope.sources.items() if isinstance(each, exp.Table)}
    shape.tables |= set(tables.values())
    for column in scope.columns:
        name, qualifier = column.name.lower(), column.table.lower()
        only = next(iter(tables.values())) if len(tables) == 1 and len(scope.sources) == 1 else ""
        table = tables.get(qualifier, "") if qualifier else only
        column.set("this", exp.to_identifier(name))
        column.set("table", exp.to_identifier(table) if table else None)
        column.set("db", None)
        if table or (not qualifier and name not in aliases):
            whole = _json_path(column)
            shape.columns.add(text(whole))
            if _decides(whole):
                shape.substance.add(text(whole))


def _json_path(column: exp.Column) -> exp.Expr:
    """The column, or the whole path into its JSON."""
    whole: exp.Expr = column
    while isinstance(whole.parent, JSON_STEPS) and whole.parent.this is whole:
        whole = whole.parent
    return whole


def _decides(node: exp.Expr) -> bool:
    """Whether a column does more than to be joined on, sorted by or shown."""
    if node.find_ancestor(*CALCULATIONS, exp.Group):
        return True
    comparison = node.find_ancestor(*COMPARISONS)
    if isinstance(comparison, exp.EQ):
        return not all(isinstance(_bare(side), exp.Column) for side in (comparison.left, comparison.right))
    return bool(comparison or node.find_ancestor(exp.Where, exp.Having))


def _add(node: exp.Expr, shape: Shape) -> None:
    """Collect what one node of the tree adds to a shape."""
    if isinstance(node, COMPARISONS):
        _add_comparison(node, shape)
    elif isinstance(node, exp.Join):
        shape.outer += bool(node.side)
    elif isinstance(node, exp.Group):
        shape.groups |= {_group_entry(each, node) for each in node.expressions}
    elif isinstance(node, exp.Distinct):
        shape.distinct |= isinstance(node.parent, exp.Select)
    if isinstance(node, CALCULATIONS) and not node.find_ancestor(*CALCULATIONS):
        shape.calculations.add(text(node))
    if isinstance(node, exp.Column) and isinstance(node.parent, exp.Where | exp.And | exp.Or | exp.Not):
        value = "false" if isinstance(node.parent, exp.Not) else "true"
        shape.conditions.add(Condition(text(node), "=", frozenset({value}), text(node)))


def _add_comparison(node: exp.Expr, shape: Shape) -> None:
    """A pair of columns that are set equal is a join; a comparison with constants or computed values a condition."""
    query = node.args.get("query")
    right = query.this if isinstance(query, exp.Subquery) else query
    other = right.selects[0] if isinstance(right, exp.Query) and right.selects else node.args.get("expression")
    left, right = _bare(node.this), _bare(other)
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        if isinstance(node, exp.EQ | exp.In):
            shape.joins.add(frozenset({text(left), text(right)}))
        return  # compared by size: what surrounds it shows in the calculations
    parts = [each for each in (node.args.get("expression"), *node.args.get("expressions", ())) if each is not None]
    parts += [node.args[name] for name in ("low", "high") if node.args.get(name) is not None]
    operator = SIGNS.get(node.key, node.key)
    if _is_constant(left) and right is not None and not _is_constant(right):
        left, parts, operator = right, [node.this], MIRRORED.get(operator, operator)
    if isinstance(node, exp.Is) and isinstance(right, exp.Boolean):
        operator = "="
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    # Two of the three take each other back.
    negated = isinstance(around, exp.Not) ^ isinstance(node, exp.NEQ) ^ bool(node.args.get("negate"))
    values = frozenset(text(_bare(each)) for each in parts)
    subject = left
    while isinstance(subject, (*SPELLING, *DRESS)):
        subject = subject.this
    shape.conditions.add(Condition(text(left), ("not " if negated else "") + operator, values, text(subject)))


def _is_constant(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null | exp.Neg)


def _group_entry(node: exp.Expr, group: exp.Group) -> str:
    """What is grouped by: `GROUP BY 1` and an alias mean an expression of the output."""
    return _referred(node, group.parent if isinstance(group.parent, exp.Select) else None)


def _order_entry(node: exp.Expr, select: exp.Select | None) -> str:
    what = node.this if isinstance(node, exp.Ordered) else node
    down = isinstance(node, exp.Ordered) and bool(node.args.get("desc"))
    return _referred(what, select) + (" desc" if down else "")


def _referred(node: exp.Expr, select: exp.Select | None) -> str:
    if select is not None:
        if isinstance(node, exp.Literal) and node.is_int and 0 < int(node.this) <= len(select.expressions):
            return text(_bare(select.expressions[int(node.this) - 1]))
        if isinstance(node, exp.Column):
            for each in select.expressions:
                if isinstance(each, exp.Alias) and each.alias.lower() == node.name.lower():
                    return text(_bare(each.this))
    return text(_bare(node))


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    """Without alias, casts and the like around it."""
    while isinstance(node, (*DRESS, exp.Alias)):
        node = node.this
    return node


def text(node: exp.Expr | None) -> str:
    """The canonical text of an expression: undressed at every depth, in lower case but for constants."""
    if node is None:
        return ""
    if isinstance(node, JSON_STEPS):
        steps = node.expression
        names = (
            [p.this for p in steps.expressions if isinstance(p, exp.JSONPathKey | exp.JSONPathSubscript)]
            if (isinstance(steps, exp.JSONPath))
            else [text(steps).strip("'")]
        )
        return "->".join([text(_bare(node.this)), *map(str, names)])
    if isinstance(node, exp.Boolean | exp.Null):
        return node.sql().lower()
    copied = node.copy().transform(lambda each: _bare(each) or each)
    for literal in copied.find_all(exp.Literal):
        if not literal.is_string and literal.this.endswith(".0"):
            literal.set("this", literal.this[:-2])
    for each in copied.find_all(exp.Identifier):
        each.set("this", each.this.lower())
        each.set("quoted", False)
    return copied.sql("postgres", normalize_functions="lower", comments=False)
