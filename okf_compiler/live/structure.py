"""Tables, columns, types, keys and enum labels: documents against the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from okf_compiler.live.finding import Finding
from okf_compiler.live.type_names import differs, is_sqlite
from okf_compiler.model import Column, Database
from okf_compiler.pairs import Pair


def compare(
    documented: Database, live: Database, pairs: list[Pair], exists: Callable[[str, str, str], str | None]
) -> Iterator[Finding]:
    """Every difference of structure. `exists(schema, table, column)` says why something that is there is not shown
    ("hidden", "unreadable"), or None; an empty column asks for the table."""
    known = {id(p.documented) for p in pairs}
    for table in documented.tables:
        if id(table) in known:
            continue
        if exists(table.schema or "public", table.name, "") is None:
            text = "documented, but the database has no such table"
            yield Finding("missing-table", "error", table.qualified_name, text)
        elif not table.columns or any(
            exists(table.schema or "public", table.name, c.name) != "hidden" for c in table.columns
        ):
            text = "is there, but the role may not read it, or it is a view over hidden columns"
            yield Finding("unreadable-table", "warning", table.qualified_name, text)
    seen = {id(p.live) for p in pairs}
    for table in live.tables:
        if id(table) not in seen:
            yield Finding(
                "extra-table", "warning", table.qualified_name,
                f"a {table.kind} of {len(table.columns)} columns that no document describes",
            )  # fmt: skip
    sqlite = is_sqlite(c.type for t in documented.tables for c in t.columns)
    for pair in pairs:
        yield from _columns(pair, exists, sqlite)
        yield from _keys(pair)


def _columns(pair: Pair, exists: Callable[[str, str, str], str | None], sqlite: bool) -> Iterator[Finding]:
    name = pair.live.qualified_name
    matched = {id(d) for d, _ in pair.columns} | {id(held) for _, held in pair.columns}
    for column in pair.documented.columns:
        if id(column) not in matched:
            reason = exists(pair.live.schema, pair.live.name, column.name)
            if reason is None:
                yield Finding(
                    "missing-column", "error", f"{name}.{column.name}", "documented, but the table has no such column"
                )
            elif reason == "unreadable":
                yield Finding("unreadable-column", "warning", f"{name}.{column.name}", "the role may not read it")
    for column in pair.live.columns:
        if id(column) not in matched:
            yield Finding(
                "extra-column", "warning", f"{name}.{column.name}", f"{column.type}; no document describes it"
            )
    for column, held in pair.columns:
        yield from _column(f"{name}.{column.name}", column, held, sqlite)


def _column(place: str, documented: Column, held: Column, sqlite: bool) -> Iterator[Finding]:
    difference = differs(documented.type, held.type, labels=bool(held.enum_labels), sqlite=sqlite)
    if difference:
        code, severity = ("changed-type", "warning") if difference == "type" else (f"changed-{difference}", "info")
        yield Finding(code, severity, place, f"documented as {documented.type}, is {held.type}")  # type: ignore[arg-type]
    if documented.enum_labels and held.enum_labels and set(documented.enum_labels) != set(held.enum_labels):
        gone = [label for label in documented.enum_labels if label not in held.enum_labels]
        new = [label for label in held.enum_labels if label not in documented.enum_labels]
        parts = [f"{word}: {', '.join(map(repr, labels))}" for word, labels in (("gone", gone), ("new", new)) if labels]
        yield Finding("changed-enum", "warning", place, f"labels of the enum {held.type}; {'; '.join(parts)}")


def _keys(pair: Pair) -> Iterator[Finding]:
    name = pair.live.qualified_name
    primary = tuple(c.lower() for c in pair.documented.primary_key)
    held = tuple(c.lower() for c in pair.live.primary_key)
    if primary and pair.live.kind in ("table", "partitioned table") and set(primary) != set(held):
        is_ = f"is ({', '.join(pair.live.primary_key)})" if held else "there is none"
        yield Finding(
            "changed-key", "warning", name,
            f"documented primary key ({', '.join(pair.documented.primary_key)}); in the database {is_}",
        )  # fmt: skip
    there = [({c.lower() for c in k.columns}, k.ref_table.lower()) for k in pair.live.foreign_keys]
    for key in pair.documented.foreign_keys:
        wanted = {c.lower() for c in key.columns}  # documents may list a composite key column by column
        if not any(table == key.ref_table.lower() and wanted <= columns for columns, table in there):
            yield Finding(
                "missing-foreign-key", "warning", name,
                f"documented foreign key ({', '.join(key.columns)}) to {key.ref_table}: the database enforces none",
            )  # fmt: skip
