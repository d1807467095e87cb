"""Gold without its LIMIT and with its sort keys as columns, so that ties can be seen."""

from __future__ import annotations

from okf_agent.database import Database
from okf_agent.evaluation.results import fetch
from okf_agent.evaluation.scorers.lenient import Keyed
from okf_agent.query_error import QueryError

PREFIX = "okf_sort_key_"


def keyed(database: Database, sql: str) -> Keyed | None:
    """The rows and sort keys of a query that sorts; None where it does not, or cannot be read or run so."""
    import sqlglot  # 0.3 s
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        query = sqlglot.parse_one(sql, read="postgres")
    except SqlglotError:
        return None
    if not isinstance(query, exp.Select) or not query.args.get("order") or query.args.get("distinct"):
        return None
    limit, offset = query.args.get("limit"), query.args.get("offset")
    skipped = offset.expression if offset else None
    if skipped is not None and not (isinstance(skipped, exp.Literal) and skipped.this.isdigit()):
        return None
    aliases = {projection.alias: projection.unalias() for projection in query.selects if projection.alias}
    keys = []
    for number, ordering in enumerate(query.args["order"].expressions):
        key = ordering.this
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.this)
            if not 0 < place <= len(query.selects):
                return None
            key = query.selects[place - 1].unalias()
        elif isinstance(key, exp.Column) and not key.table:
            key = aliases.get(key.name, key)
        keys.append(exp.alias_(key.copy(), f"{PREFIX}{number}"))
    for clause in ("limit", "offset"):
        query.set(clause, None)
    if any(isinstance(projection, exp.Star) or projection.is_star for projection in query.selects):
        return None
    wide = query.select(*keys)
    try:
        found = fetch(database, wide.sql(dialect="postgres"))
    except QueryError:
        return None
    width = len(found.columns) - len(keys)
    return Keyed(
        rows=tuple(row[:width] for row in found.rows),
        keys=tuple(row[width:] for row in found.rows),
        limited=limit is not None or offset is not None,
        offset=int(skipped.this) if skipped is not None else 0,
    )
