"""Which paths the JSON columns of a table hold, found in the data itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from psycopg import sql

from okf_compiler.postgres import Row
from okf_compiler.profiling.targets import Target, path_target

DEEPEST = 8
MOST = 200
"""Paths of one column that are measured: where keys are data (a number for each day), there is no end of them."""

Path = tuple[str, ...]


def query(column: str, source: sql.Composable) -> sql.Composed:
    """Every path of objects in a JSON column, the kinds of values there, and in how many rows."""
    return sql.SQL(
        """WITH RECURSIVE walk(path, node) AS (
               SELECT ARRAY[]::text[], {column}::jsonb FROM {source} WHERE {column} IS NOT NULL
               UNION ALL
               SELECT w.path || e.key, e.value
               FROM walk w, jsonb_each(CASE jsonb_typeof(w.node) WHEN 'object' THEN w.node END) e
               WHERE cardinality(w.path) < {deepest})
           SELECT to_json(path)::text, jsonb_typeof(node), count(*)::text FROM walk GROUP BY path, jsonb_typeof(node)"""
    ).format(column=sql.Identifier(column), source=source, deepest=sql.SQL(str(DEEPEST)))


def targets(column: str, found: Sequence[Row], documented: Iterable[Path]) -> tuple[list[Target], int]:
    """What to measure inside a JSON column: documented paths in their order, then the others that hold something; and
    how many paths were left out because there are too many."""
    kinds: dict[Path, dict[str, int]] = {}
    for path, kind, rows in found:
        kinds.setdefault(tuple(json.loads(path or "[]")), {})[kind or ""] = int(rows or 0)
    parents = {path[:-1] for path in kinds if path}
    named = list(dict.fromkeys(documented))
    others = [
        path
        for path in kinds
        if path and path not in named and (set(kinds[path]) - {"object"} - {"null"} or path not in parents)
    ]
    others.sort(key=lambda path: (-sum(kinds[path].values()), path))
    kept = sorted(others[: max(0, MOST - len(named))])
    return [path_target(column, path, kinds.get(path, ())) for path in (*named, *kept)], len(others) - len(kept)
