"""A whole result as a file: CSV, JSON, markdown or a text table, piece by piece, every value exact.

CSV as COPY writes it: NULL is nothing, '' is two quotes. JSON is one array of objects, numbers with PostgreSQL's
own digits, json as it is stored. Memory is that of one piece, whatever the number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import BinaryIO

from rich.cells import cell_len

from okf_agent.results.formats import Written
from okf_agent.sql import sql_text
from okf_agent.sql.database import Database
from okf_compiler.inert import inert, inert_json
from okf_compiler.postgres import Row
from okf_compiler.spreadsheets import guarded

_CSV = re.compile(r'[,"\r\n]')
_UNKNOWN_BYTE = re.compile(r"\\\\|\\x")
"""How a byte begins that is no UTF-8 (see postgres.any_bytes), or a backslash that JSON has escaped."""
_INTEGERS = ("smallint", "integer", "bigint", "oid")
_NUMERIC = (*_INTEGERS, "numeric", "real", "double precision")
_MARKDOWN = re.compile(r"\r\n?|[\\`*_{}\[\]<>|#!~$&\n]")


def write(
    database: Database,
    sql: str,
    how: Written,
    file: BinaryIO,
    *,
    seconds: float | None = None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the whole result of `sql` to `file` in UTF-8; the number of rows. `on_rows` hears the rows so far.

    Raises:
        QueryError: the query is refused, fails, or takes longer than `seconds`.
        OSError: the file cannot be written.
    """
    count = 0
    if how == Written("csv") and sql_text.parse(sql).kind == "query":
        with database.stream_csv(sql, seconds=seconds) as pieces:
            count = -1  # the header is a line too
            for lines, piece in pieces:
                file.write(piece)
                count += lines
                on_rows(max(count, 0))
        return count
    with database.stream(sql, seconds=seconds) as result:

        def counted() -> Iterator[list[Row]]:
            nonlocal count
            for batch in result:
                yield batch
                count += len(batch)
                on_rows(count)

        for text in pieces_of(how, result.columns, result.types, counted()):
            file.write(text.encode())
    on_rows(count)
    return count


def pieces_of(
    how: Written, columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]
) -> Iterator[str]:
    """The file's text in pieces, about one a batch."""
    match how.format:
        case "csv":
            return _csv(columns, batches, how.guard_formulas)
        case "json":
            return _json(columns, types, batches)
        case "markdown":
            return _markdown(columns, types, batches)
        case "table":
            return _table(columns, types, batches)


def _csv(columns: Sequence[str], batches: Iterable[list[Row]], guard: bool) -> Iterator[str]:
    yield _csv_text([tuple(columns)], guard)
    for batch in batches:
        yield _csv_text(batch, guard)


def _csv_text(rows: Sequence[Row], guard: bool) -> str:
    """Lines of CSV. Python's own writer knows no NULL, and leaves a lone carriage return unquoted before 3.13."""
    return "".join(
        [",".join([_csv_cell(guarded(cell) if guard and cell else cell) for cell in row]) + "\n" for row in rows]
    )


def _csv_cell(cell: str | None) -> str:
    if cell is None:
        return ""
    return '"' + cell.replace('"', '""') + '"' if not cell or _CSV.search(cell) else cell


def _json(columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]) -> Iterator[str]:
    keys = [encode_basestring(name).replace("%", "%%") for name in unique_names(columns)]
    template = "{" + ", ".join(f"{key}: %s" for key in keys) + "}"
    casts = [_json_cast(t) for t in types]
    before = "[\n"
    for batch in batches:
        cells = [[*map(cast, column)] for cast, column in zip(casts, zip(*batch, strict=True), strict=False)]
        rows = zip(*cells, strict=True) if cells else iter([()] * len(batch))
        yield inert_json(before + ",\n".join([template % row for row in rows]))
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _json_cast(type: str) -> Callable[[str | None], str]:
    """What turns a cell of a type into JSON without loss."""
    bare = type.split("(")[0]
    if bare in _INTEGERS:
        return lambda cell: "null" if cell is None else cell
    if bare in ("json", "jsonb"):
        return lambda cell: "null" if cell is None else _UNKNOWN_BYTE.sub(_json_escape, cell) if "\\x" in cell else cell
    if bare in _NUMERIC:
        return lambda cell: "null" if cell is None else f'"{cell}"' if cell[-1] in "Ny" else cell  # NaN, Infinity
    if bare == "boolean":
        return lambda cell: {"t": "true", "f": "false"}.get(cell or "", "null")
    return lambda cell: "null" if cell is None else encode_basestring(cell)


def _json_escape(match: re.Match[str]) -> str:
    return match.group() if match.group() == r"\\" else r"\\x"


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
    rules = ["---:" if _is_number(t) else "---" for t in types]
    yield _markdown_lines([tuple(columns)]) + f"| {' | '.join(rules)} |\n"
    for batch in batches:
        yield _markdown_lines(batch)


def _markdown_lines(rows: Iterable[Row]) -> str:
    return "".join([f"| {' | '.join(map(_markdown_cell, row))} |\n" for row in rows])


def _markdown_cell(cell: str | None) -> str:
    """A cell that stays one cell: NULL in italics, '' as two quotes, whatever is markdown escaped."""
    if cell is None:
        return "*NULL*"
    if not cell.strip("'"):
        return f"'{cell}'"
    return _MARKDOWN.sub(_markdown_escape, cell) if _MARKDOWN.search(cell) else cell


def _markdown_escape(match: re.Match[str]) -> str:
    character = match.group()
    return "<br>" if character[0] in "\r\n" else "\\" + character


def _table(columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]) -> Iterator[str]:
    """Aligned text. The first batch gives the widths; a wider cell in a later one moves its line."""
    right = [_is_number(t) for t in types]
    widths: list[int] | None = None
    for batch in batches:
        rows = [[*map(_table_cell, row)] for row in batch]
        if widths is None:
            names = [inert(c) for c in columns]
            widths = [max(map(_width, column)) for column in zip(names, *rows, strict=True)]
            yield _table_line(names, widths, right) + "-+-".join("-" * w for w in widths) + "\n"
        yield "".join([_table_line(row, widths, right) for row in rows])
    if widths is None:
        yield " | ".join(map(inert, columns)) + "\n"


def _table_cell(cell: str | None) -> str:
    if cell is None:
        return "NULL"
    if cell.strip("'") in ("", "NULL"):
        return f"'{cell}'"
    return cell if cell.isascii() and cell.isprintable() else inert(cell)


def _table_line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    return " | ".join(map(_padded, cells, widths, right)).rstrip() + "\n"


def _padded(cell: str, width: int, to_right: bool) -> str:
    width += len(cell) - _width(cell)
    return cell.rjust(width) if to_right else cell.ljust(width)


def _width(cell: str) -> int:
    """Cells of a terminal that an inert text takes; rich knows it for every character, and is slow."""
    return len(cell) if cell.isascii() else cell_len(cell)


def _is_number(type: str) -> bool:
    return type.split("(")[0] in _NUMERIC
