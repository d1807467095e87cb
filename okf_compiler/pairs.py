"""Tables of documents paired with those of the database they speak of."""

from __future__ import annotations

from dataclasses import dataclass

from okf_compiler.model import Column, Database, Table


@dataclass(frozen=True)
class Pair:
    """A documented table and the one of the database, columns matched by name in any letter case."""

    documented: Table
    live: Table
    columns: tuple[tuple[Column, Column], ...]


def pair_tables(documented: Database, live: Database) -> list[Pair]:
    """Tables that both have. One documented in `public` may live in another schema, if only one has that name."""
    pairs = []
    for table in documented.tables:
        found = live.table(table.name, table.schema or "public")
        if found is None:
            others = [t for t in live.tables if t.name.lower() == table.name.lower()]
            found = others[0] if len(others) == 1 and table.schema in ("public", "") else None
        if found is not None:
            columns = tuple((c, held) for c in table.columns if (held := found.column(c.name)))
            pairs.append(Pair(table, found, columns))
    return pairs
