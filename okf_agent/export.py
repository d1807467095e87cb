"""A whole result as a file: CSV, JSON or markdown, batch by batch, every value exact.

CSV as psql writes it (NULL is nothing, '' is two quotes); JSON as one array of objects, numbers with
PostgreSQL's own digits; markdown as one table.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TextIO

from okf_compiler.postgres import Row

Format = Literal["csv", "json", "markdown"]

_EMPTY = "\x00"
"""Stands for '' until the text is made: PostgreSQL's text never has a NUL."""
_LONE_NULL = "\x00\x00"
_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_NUMERIC = ("smallint", "integer", "bigint", "numeric", "real", "double precision", "oid")


def text(
    format: Format,
    columns: Sequence[str],
    types: Sequence[str],
    batches: Iterable[list[Row]],
    *,
    guard_formulas: bool = False,
) -> Iterator[str]:
    """The file's text in pieces, one or more a batch.

    `guard_formulas` puts a ' before CSV cells that a spreadsheet would run (=, +, -, @, but not numbers).
    """
    if format == "csv":
        return _csv(columns, batches, guard_formulas)
    if format == "json":
        return _json(columns, types, batches)
    return _markdown(columns, types, batches)


def write(pieces: Iterable[str], file: TextIO) -> None:
    """Write the pieces of a file; the caller opened it with newline=""."""
    for piece in pieces:
        file.write(piece)


def _csv(columns: Sequence[str], batches: Iterable[list[Row]], guard: bool) -> Iterator[str]:
    alone = len(columns) == 1
    yield _csv_text([tuple(columns)], alone)
    for batch in batches:
        yield _csv_text([_guarded(row) for row in batch] if guard else batch, alone)


def _csv_text(rows: Sequence[Row], alone: bool) -> str:
    """Lines of CSV. Python's writer cannot tell NULL from '', so '' goes in as a mark."""
    buffer = io.StringIO(newline="")
    if alone:  # a lone empty field would be quoted, and an empty line read as no row
        rows = [(_LONE_NULL,) if row[0] is None else row for row in rows]
    csv.writer(buffer, lineterminator="\n").writerows(
        tuple(_EMPTY if cell == "" else cell for cell in row) if "" in row else row for row in rows
    )
    lines = buffer.getvalue()
    if _EMPTY in lines:
        lines = lines.replace(_LONE_NULL, "").replace(_EMPTY, '""')
    return lines


def _guarded(row: Row) -> Row:
    return tuple(f"'{cell}" if cell and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell for cell in row)


def _json(columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]) -> Iterator[str]:
    keys = [json.dumps(name, ensure_ascii=False) for name in unique_names(columns)]
    casts = [json_cast(t) for t in types]
    before = "[\n"
    for batch in batches:
        objects = (
            "{" + ", ".join(f"{k}: {cast(c)}" for k, cast, c in zip(keys, casts, row, strict=True)) + "}"
            for row in batch
        )
        yield before + ",\n".join(objects)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def json_cast(type: str) -> Callable[[str | None], str]:
    """What turns a cell of a type into JSON without loss: numbers as they are printed, json as it is stored."""
    bare = type.split("(")[0]
    if bare in _NUMERIC:
        return lambda cell: "null" if cell is None else cell if _NUMBER.fullmatch(cell) else json.dumps(cell)
    if bare == "boolean":
        return lambda cell: {"t": "true", "f": "false", None: "null"}[cell]
    if bare in ("json", "jsonb"):
        return lambda cell: "null" if cell is None else cell
    return lambda cell: "null" if cell is None else json.dumps(cell, ensure_ascii=False)


def unique_names(columns: Sequence[str]) -> list[str]:
    """Names for keys: a repeated one gets its number, because an object has room for one.

    >>> unique_names(["id", "id", "x"])
    ['id', 'id (2)', 'x']
    """
    taken: dict[str, None] = {}
    for name in columns:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name} ({number})"
        taken[unique] = None
    return list(taken)


def _markdown(columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]) -> Iterator[str]:
    rules = ["---:" if t.split("(")[0] in _NUMERIC else "---" for t in types]
    yield _markdown_line(_markdown_cell(c) for c in columns) + _markdown_line(rules)
    for batch in batches:
        yield "".join(_markdown_line(_markdown_cell(cell) for cell in row) for row in batch)


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _markdown_cell(cell: str | None) -> str:
    """A cell that stays one cell: NULL in italics, '' as two quotes, everything that is markdown escaped."""
    if cell is None:
        return "*NULL*"
    if cell == "":
        return "''"
    escaped = re.sub(r"([\\`*_{}\[\]<>|#!~$&])", r"\\\1", cell)
    return escaped.replace("\r\n", "<br>").replace("\n", "<br>").replace("\r", "<br>")
