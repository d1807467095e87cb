"""Notes on a result: what its rows do not tell by themselves, for the person and for the model.

A note never refuses a query and never fails one. Adding a kind means adding a function to `KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from okf_agent.sql import grain, query_tree
from okf_agent.sql.lexer import significant
from okf_agent.wording import listed

if TYPE_CHECKING:
    from sqlglot import exp

MAX_CHARS = 20_000
"""Longer queries are not taken apart."""
_MAY_REPEAT = re.compile(r"(?is)\b(?:sum|avg|count)\s*\(.*\bfrom\b|\bfrom\b.*\b(?:sum|avg|count)\s*\(")

TableName = tuple[str, str]
"""Schema, "" where none is written, and name."""


@dataclass(frozen=True)
class Note:
    kind: str
    """`row_security` or `repeated_rows`."""
    text: str


@dataclass(frozen=True)
class Looked:
    """A query that ran, for whatever may note something about it."""

    sql: str
    limited: Set[TableName]
    """Tables and views of which row security may keep rows from the role."""
    ask: grain.Ask

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The query as sqlglot reads it; None where it cannot, or where the query is too long."""
        return query_tree.parsed(self.sql) if len(self.sql) <= MAX_CHARS else None

    @cached_property
    def named(self) -> frozenset[TableName]:
        """The limited tables whose names stand in the query, told without a parser."""
        names = {token.name for token in significant(self.sql) if token.name} if self.limited else set()
        return frozenset(table for table in self.limited if table[1] in names)


def find(looked: Looked) -> Iterator[Note]:
    """The notes on a query, the cheapest first. Most queries have none, and are neither parsed nor measured.

    Raises:
        QueryError, psycopg.Error, Stopped: what has to be measured cannot be, or not in time.
    """
    for kind, texts in KINDS.items():
        yield from (Note(kind, text) for text in texts(looked))


def _row_security(looked: Looked) -> Iterator[str]:
    """Say that the role may see only some rows of the tables a query reads."""
    limited = looked.named
    if limited and looked.tree is not None:
        read = query_tree.tables_read(looked.tree)
        limited = frozenset((s, n) for s, n in limited if (s, n) in read or ("", n) in read)
    if limited:
        names = listed(sorted(query_tree.shown_name(schema, name) for schema, name in limited))
        yield f"Row security: of {names} only the rows that this role may see are counted and shown; there may be more."


def _repeated_rows(looked: Looked) -> Iterator[str]:
    if _MAY_REPEAT.search(looked.sql) and looked.tree is not None:
        yield from grain.repeated(looked.tree, looked.ask)


KINDS: dict[str, Callable[[Looked], Iterator[str]]] = {
    "row_security": _row_security,
    "repeated_rows": _repeated_rows,
}
