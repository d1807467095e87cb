"""SQLite's SQL into PostgreSQL's, for gold queries that are written for SQLite."""

from __future__ import annotations


def to_postgres(sql: str) -> tuple[str, str]:
    """The query for PostgreSQL and ""; or "" and why it cannot be transpiled."""
    import sqlglot  # 0.3 s
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.transpile(sql, read="sqlite", write="postgres")[0], ""
    except (SqlglotError, IndexError) as error:
        return "", f"sqlglot: {error}".splitlines()[0]
