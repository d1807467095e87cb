"""SQLite's SQL into PostgreSQL's, for gold queries that are written for SQLite.

To fit a database that `sqlite_dump` converted: every name in lower case; reals are doubles; LIKE does not mind
letter case, as in SQLite. NULLs sort where SQLite sorts them. What is left differs as the two systems do.
"""

from __future__ import annotations


def to_postgres(sql: str) -> tuple[str, str]:
    """The query for PostgreSQL and ""; or "" and why it cannot be transpiled.

    >>> to_postgres("SELECT CAST(`Free Meals` AS REAL) FROM frpm WHERE Name LIKE 'a%'")[0]
    'SELECT CAST("free meals" AS DOUBLE PRECISION) FROM frpm WHERE name ILIKE \\'a%\\''
    """
    import sqlglot  # 0.3 s
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
        for node in list(tree.walk()):
            if isinstance(node, exp.Identifier):
                node.set("this", node.name.lower())
            elif isinstance(node, exp.DataType) and node.is_type(exp.DataType.Type.FLOAT):
                node.set("this", exp.DataType.Type.DOUBLE)
            elif isinstance(node, exp.Like):
                node.replace(exp.ILike(this=node.this, expression=node.expression))
        return tree.sql(dialect="postgres"), ""
    except (SqlglotError, RecursionError) as error:
        return "", f"sqlglot: {error}".splitlines()[0]
