"""A data dictionary and a glossary to fill in, with what the catalogue knows of a database."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from okf_agent.setup.gaps import FEW, Gap, Labels
from okf_compiler.model import Column, Database, Table
from okf_compiler.spreadsheets import guarded
from okf_compiler.sql_names import qualified

HEADER = ("table", "column", "description", "known", "to do")
FIRST = "describe first: "
SAMPLE = 5_000
"""Rows of a table that are looked at."""
ENOUGH = 50
"""Rows from which few different values mean something."""
SAMPLED_TABLES = 300
SAMPLING_SECONDS = 20
SAMPLED_TYPES = ("text", "character", "bpchar", "smallint", "integer")
RULES_ASKED = 10
AMOUNTS_FROM = 4
"""Whole numbers with so many different values are taken for amounts."""


def count_labels(connection: psycopg.Connection[Any], database: Database) -> Labels:
    """How many different values a sample of each column holds, where its type allows labels; none for what is slow."""
    counts: dict[tuple[str, str, str], int] = {}
    end = time.monotonic() + SAMPLING_SECONDS
    for table in [t for t in database.tables if "view" not in t.kind][:SAMPLED_TABLES]:
        keys = {*table.primary_key, *(c for key in table.foreign_keys for c in key.columns)}
        columns = [c.name for c in table.columns if c.type.startswith(SAMPLED_TYPES) and c.name not in keys]
        if not columns:
            continue
        if time.monotonic() > end:
            break
        query = sql.SQL("SELECT count(*), {} FROM (SELECT * FROM {} LIMIT {}) AS sample").format(
            sql.SQL(", ").join(sql.SQL("count(DISTINCT {})").format(sql.Identifier(c)) for c in columns),
            sql.Identifier(table.schema, table.name),
            sql.SQL(str(SAMPLE)),
        )
        try:
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = '2s'")
                row = connection.execute(query).fetchone()
        except psycopg.Error:
            continue  # a table that cannot be read, or not so fast, goes without
        rows, *values = map(int, row or [0] * (1 + len(columns)))
        if rows >= ENOUGH:
            counts |= {(table.schema, table.name, c): n for c, n in zip(columns, values, strict=True)}
    return counts


def dictionary(database: Database, gaps: Sequence[Gap]) -> str:
    """Return a CSV file with a row for each table and each column; `to do` marks those without a description.

    What the catalogue holds is foreign text, so no cell is a formula for the spreadsheet that opens the file.
    """
    reasons = {(g.table.qualified_name, g.column.name): "; ".join(g.reasons) for g in gaps}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)

    def write(*cells: str | None) -> None:
        writer.writerow([guarded(cell or "") for cell in cells])

    for table in database.tables:
        name = table.qualified_name
        write(name, "", table.description, table.kind, "" if table.description else "describe the table")
        for column in table.columns:
            why = reasons.get((name, column.name))
            to_do = "" if column.meaning else FIRST + why if why else "describe"
            write(name, column.name, column.meaning, "; ".join(_known(table, column)), to_do)
    return out.getvalue()


def _known(table: Table, column: Column) -> Iterator[str]:
    yield column.type
    if column.name in table.primary_key:
        yield "primary key"
    for key in table.foreign_keys:
        if column.name in key.columns:
            target = qualified(key.ref_schema, key.ref_table)
            yield f"refers to {target}.{key.ref_columns[key.columns.index(column.name)]}"
    if not column.nullable and column.name not in table.primary_key:
        yield "never empty"
    if column.enum_labels:
        yield f"labels {', '.join(column.enum_labels)}"
    if column.generated:
        yield "generated"


def view_definitions(connection: psycopg.Connection[Any], database: Database) -> dict[str, str]:
    """The query behind each view, by qualified name: the one place where a database keeps rules."""
    rows = connection.execute(
        "SELECT n.nspname, c.relname, pg_get_viewdef(c.oid, true) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('v', 'm')"
    ).fetchall()
    queries = {(str(s), str(n)): str(q).strip().removesuffix(";") for s, n, q in rows if q}
    views = (t for t in database.tables if (t.schema, t.name) in queries)
    return {view.qualified_name: queries[view.schema, view.name] for view in views}


def glossary(database: Database, gaps: Iterable[Gap], views: Mapping[str, str]) -> str:
    """A YAML file: what views compute, as rules; an example and open questions, as comments."""
    lines = [
        f"# The business rules of {database.name}: what the words mean that people use in questions.",
        "# Write one entry for each, then: okf-compiler compile " + database.name,
        "#",
        "#  - name: Active customer",
        "#    definition: A customer who has placed an order in the last 90 days; status is not looked at.",
        "#    synonyms: [current customer]",
        "#    depends_on: []              # names of other rules that this one builds on",
        "rules:",
    ]
    tables = {table.qualified_name: table for table in database.tables}
    for name, query in views.items():
        view = tables[name]
        words = view.name.replace("_", " ")
        lines += [
            f"  - name: {json.dumps(words[:1].upper() + words[1:], ensure_ascii=False)}",
            "    type: view",
            f"    description: {json.dumps(view.description or f'What the view {name} shows.', ensure_ascii=False)}",
            "    definition: |2-",
            *(f"      {line}".rstrip() for line in query.expandtabs(4).splitlines()),
        ]
    lines += ["", "# Nobody has written down yet what these mean. Fill in, take away the #, or delete:"]
    for gap in [gap for gap in gaps if _has_labels(gap)][:RULES_ASKED]:
        labels = "; ".join(f"{label}: …" for label in gap.column.enum_labels[:FEW]) or "VALUE: …; VALUE: …"
        lines += [
            f"#  - name: {json.dumps(f'{gap.path} values', ensure_ascii=False)}",
            "#    type: value_illustration",
            f"#    definition: {json.dumps(labels, ensure_ascii=False)}",
        ]
    return "\n".join(lines) + "\n"


def _has_labels(gap: Gap) -> bool:
    """Whether its values are likely to have meanings of their own, and not to be amounts."""
    if gap.column.enum_labels:
        return True
    most = FEW if gap.column.type.startswith(("text", "character", "bpchar")) else AMOUNTS_FROM - 1
    return 1 < gap.labels <= most
