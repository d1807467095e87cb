"""Names as a query writes them: in double quotes where PostgreSQL would read a bare one as something else."""

from __future__ import annotations

import re

_SIMPLE = re.compile(r"[a-z_][a-z0-9_$]*")
_PART = re.compile(r'"((?:[^"]|"")*+)"(?=\.|\Z)|[^.]*')
_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema
    current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for
    foreign freeze from full grant group having ilike in initially inner intersect into is isnull join lateral
    leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer overlaps
    placing primary references returning right select session_user similar some symmetric system_user table
    tablesample then to trailing true union unique user using variadic verbose when where window with
"""
_RESERVED = frozenset(_WORDS.split())
"""Kinds R and T of `pg_get_keywords()`, PostgreSQL 14 to 18. Some fail where they are a column's bare name, and some,
such as `user` and `localtime`, silently give another value."""


def needs_quotes(name: str) -> bool:
    """Whether a bare name would be read as another one, or not at all.

    >>> needs_quotes("order_id"), needs_quotes("orderId"), needs_quotes("user")
    (False, True, True)
    """
    return _SIMPLE.fullmatch(name) is None or name in _RESERVED


def sql_name(name: str) -> str:
    """The name as SQL has it.

    >>> sql_name("order_id"), sql_name('the "first" one')
    ('order_id', '"the ""first"" one"')
    """
    return quoted(name) if needs_quotes(name) else name


def quoted(name: str) -> str:
    """The name in quotes, which every SQL takes as it stands."""
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, table: str) -> str:
    """Return the one name of a table: bare inside `public`, else with its schema.

    A part that holds a dot, or begins with a quote, stands in quotes, so that no two tables share a name.

    >>> qualified("public", "orders"), qualified("sales", "2024"), qualified("public", "sales.2024")
    ('orders', 'sales.2024', '"sales.2024"')
    """
    if schema in ("public", ""):
        return _part(table)
    return f"{_part(schema)}.{_part(table)}"


def _part(name: str) -> str:
    return quoted(name) if "." in name or name[:1] == '"' else name


def name_parts(name: str) -> list[str]:
    """Return the parts of a dotted name; what stands in quotes is one part, whatever it holds.

    >>> name_parts("sales.2024"), name_parts('"sales.2024".id'), name_parts("")
    (['sales', '2024'], ['sales.2024', 'id'], [''])
    """
    parts: list[str] = []
    at = 0
    while at <= len(name):
        found = _PART.match(name, at)
        assert found is not None
        parts.append(found[0] if found[1] is None else found[1].replace('""', '"'))
        at = found.end() + 1
    return parts


def schema_and_table(name: str) -> tuple[str, str]:
    """Return the schema, "" if there is none, and the table that a qualified name names."""
    *before, table = name_parts(name)
    return before[-1] if before else "", table


def sql_table(schema: str, table: str) -> str:
    """The table as SQL has it, with its schema where that is not `public`.

    >>> sql_table("public", "a.b"), sql_table("sales", "Order")
    ('"a.b"', 'sales."Order"')
    """
    names = (table,) if schema in ("public", "") else (schema, table)
    return ".".join(map(sql_name, names))
