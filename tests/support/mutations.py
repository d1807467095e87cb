"""Wrong queries made of right ones: one change each, of the kinds that models make. Deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import sqlglot
from sqlglot import exp


def mutations(sql: str, random: Random) -> Iterator[tuple[str, str]]:
    """(kind, query) for every kind of change that the query allows, in random order of kinds."""
    kinds = list(KINDS.items())
    random.shuffle(kinds)
    for kind, change in kinds:
        tree = sqlglot.parse_one(sql, read="postgres")
        if change(tree, random):
            yield kind, tree.sql(dialect="postgres")


def _one(
    tree: exp.Expression, kind: type[exp.Expression] | tuple[type[exp.Expression], ...], random: Random
) -> exp.Expression | None:
    found = list(tree.find_all(*(kind if isinstance(kind, tuple) else (kind,))))
    return random.choice(found) if found else None


def drop_condition(tree: exp.Expression, random: Random) -> bool:
    both = _one(tree, exp.And, random)
    if both:
        both.replace(random.choice([both.this, both.expression]))
        return True
    where = _one(tree, exp.Where, random)
    return bool(where and where.pop())


def change_constant(tree: exp.Expression, random: Random) -> bool:
    literals = [each for each in tree.find_all(exp.Literal) if each.find_ancestor(exp.Where, exp.Having)]
    if not literals:
        return False
    literal = random.choice(literals)
    literal.replace(
        exp.Literal.string(f"{literal.this}x") if literal.is_string else exp.Literal.number(f"({literal.this} + 7)")
    )
    return True


def turn_order(tree: exp.Expression, random: Random) -> bool:
    ordered = _one(tree, exp.Ordered, random)
    if not ordered:
        return False
    ordered.set("desc", not ordered.args.get("desc"))
    return True


def other_aggregate(tree: exp.Expression, random: Random) -> bool:
    aggregate = _one(tree, (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count), random)
    if aggregate is None or isinstance(aggregate.this, exp.Star | exp.Distinct):
        return False
    others = [kind for kind in (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count) if not isinstance(aggregate, kind)]
    aggregate.replace(random.choice(others)(this=aggregate.this.copy()))
    return True


def other_join(tree: exp.Expression, random: Random) -> bool:
    join = _one(tree, exp.Join, random)
    if not join:
        return False
    join.set("side", "" if join.side else random.choice(["LEFT", "RIGHT"]))
    join.set("kind", None)
    return True


def turn_comparison(tree: exp.Expression, random: Random) -> bool:
    turned = {exp.GT: exp.LTE, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.LTE: exp.GT, exp.EQ: exp.NEQ}
    found = [each for each in tree.find_all(*turned) if each.find_ancestor(exp.Where, exp.Having)]
    if not found:
        return False
    chosen = random.choice(found)
    chosen.replace(turned[type(chosen)](this=chosen.this.copy(), expression=chosen.expression.copy()))
    return True


def drop_column(tree: exp.Expression, _random: Random) -> bool:
    if not isinstance(tree, exp.Select) or len(tree.selects) < 2:
        return False
    tree.set("expressions", tree.selects[:-1])
    return True


def other_limit(tree: exp.Expression, random: Random) -> bool:
    limit = _one(tree, exp.Limit, random)
    if not limit:
        return False
    limit.set("expression", exp.Literal.number(int(limit.expression.name) + 2))
    return True


def scale(tree: exp.Expression, _random: Random) -> bool:
    """The first number that is calculated, times a hundred."""
    if not isinstance(tree, exp.Select):
        return False
    for projection in tree.selects:
        inner = projection.unalias()
        if isinstance(inner, exp.Div | exp.Sum | exp.Avg | exp.Round | exp.Mul):
            inner.replace(exp.paren(inner.copy()) * 100)
            return True
    return False


KINDS: dict[str, Callable[[exp.Expression, Random], bool]] = {
    each.__name__: each
    for each in (
        drop_condition, change_constant, turn_order, other_aggregate, other_join, turn_comparison, drop_column,
        other_limit, scale,
    )
}  # fmt: skip
