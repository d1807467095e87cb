"""Documents against the database they speak of: `check` finds where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from okf_compiler import catalogue_queries
from okf_compiler.hide import is_hidden
from okf_compiler.link import Links
from okf_compiler.live import described, rules, structure
from okf_compiler.live.data import Data, Place
from okf_compiler.live.finding import Finding, lines
from okf_compiler.model import Database
from okf_compiler.pairs import pair_tables
from okf_compiler.readers import catalogue

__all__ = ["Finding", "check", "lines"]

SEVERITIES = ("error", "warning", "info")


def check(
    documented: Database,
    connection: psycopg.Connection[Any],
    *,
    links: Links | None = None,
    hide: Sequence[str] = (),
    seconds: float = 60,
) -> list[Finding]:
    """Every difference between documents and database, errors first, then in the documents' order.

    Reads only: the catalogue, and of the content bounded counts within `seconds` in all. Columns that `hide` names
    (see `catalogue.read`) are never read nor mentioned. What could not be looked at is a finding of its own.

    Raises:
        psycopg.Error: the connection breaks, or the catalogue cannot be read.
    """
    with connection.transaction(force_rollback=True):
        live = catalogue.read(connection, documented.name, hide=hide)
        there = _names(connection)
        data = Data(connection, seconds)
        findings = list(_findings(documented, live, data, there, links, hide))
    return sorted(findings, key=lambda f: SEVERITIES.index(f.severity))


def _findings(
    documented: Database,
    live: Database,
    data: Data,
    there: set[tuple[str, str, str]],
    links: Links | None,
    hide: Sequence[str],
) -> Iterator[Finding]:
    def exists(schema: str, table: str, column: str) -> str | None:
        if column and is_hidden(hide, schema, table, column):
            return "hidden"
        return "unreadable" if (schema.lower(), table.lower(), column.lower()) in there else None

    for pattern in hide:
        if not any(is_hidden([pattern], *names) for names in there):
            yield Finding("unknown-hide", "warning", pattern, "is to be hidden, but is no column of the database")
    pairs = pair_tables(documented, live)
    found = list(structure.compare(documented, live, pairs, exists))
    yield from found
    missing = {f.place.lower() for f in found if f.code in ("missing-table", "missing-column")}
    yield from rules.unknown_columns(documented, live, exists)
    if links is not None:
        yield from rules.gone_columns(links, {r.id: r for r in documented.rules}, missing)
    yield from (Finding("source-problem", "warning", f"{p.file}:{p.line}" if p.line else p.file, p.message)
                for p in documented.problems)  # fmt: skip
    places: list[tuple[Place, str]] = []
    for pair in pairs:
        for column, held in pair.columns:
            place = Place(pair.live, held)
            yield from described.check_column(data, place, column, live)
            places.append((place, column.meaning or ""))
            if column.fields:
                yield from described.check_fields(data, place, column, live)
                places += [(Place(pair.live, held, f.path), f.meaning) for f in column.fields]
    yield from rules.check_values(data, places, documented)
    for reason, unanswered in data.unanswered.items():
        shown = ", ".join(unanswered[: described.SHOWN])
        yield Finding("not-checked", "info", shown, f"{len(unanswered):,} columns were not looked at: {reason}")


def _names(connection: psycopg.Connection[Any]) -> set[tuple[str, str, str]]:
    """Schema, table and column of everything there is, readable or not, in lower case; column "" is the table."""
    with catalogue_queries.catalogue_names(connection) as cursor:
        rows = cursor.execute(catalogue_queries.NAMES).fetchall()
    names = {(str(s).lower(), str(t).lower(), str(c).lower()) for s, t, c in rows}
    return names | {(schema, table, "") for schema, table, _ in names}
