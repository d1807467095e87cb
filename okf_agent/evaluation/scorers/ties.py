"""Gold without its LIMIT and with its sort keys as columns, so that ties can be seen."""

from __future__ import annotations

from sqlglot import exp

from okf_agent.evaluation.results import fetch
from okf_agent.evaluation.scorers.lenient import Keyed
from okf_agent.evaluation.sql_shape import select_of
from okf_agent.sql.database import Database
from okf_agent.sql.query_error import QueryError

PREFIX = "okf_sort_key_"


def keyed(database: Database, sql: str) -> Keyed | None:
    """The rows and sort keys of a query that sorts; None where it does not, or cannot be read or run so."""
    query = select_of(sql)
    if query is None or not query.args.get("order") or query.args.get("distinct"):
        return None
    offset = query.args.get("offset")
    skipped = offset.expression.name if offset else "0"
    keys = _keys(query)
    if not keys or not skipped.isdigit() or any(projection.is_star for projection in query.selects):
        return None
    for clause in ("limit", "offset"):
        query.set(clause, None)
    wide = query.select(*keys)
    try:
        found = fetch(database, wide.sql(dialect="postgres"))
    except QueryError:
        return None
    width = len(found.columns) - len(keys)
    return Keyed(
        rows=tuple(row[:width] for row in found.rows),
        keys=tuple(row[width:] for row in found.rows),
        offset=int(skipped),
    )


def _keys(query: exp.Select) -> list[exp.Expr]:
    """What the query sorts by, each under a name of its own; positions and names of its columns as what they are.

    Empty where a position is not one of its columns.
    """
    aliases = {projection.alias: projection.unalias() for projection in query.selects if projection.alias}
    keys: list[exp.Expr] = []
    for number, ordering in enumerate(query.args["order"].expressions):
        key = ordering.this
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.name)
            if not 0 < place <= len(query.selects):
                return []
            key = query.selects[place - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table:
            key = aliases.get(key.name, key)
        keys.append(exp.alias_(key.copy(), f"{PREFIX}{number}"))
    return keys
