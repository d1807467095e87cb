"""From a described statement to its rows: cells capped on the server, received in small pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from psycopg import generators, pq
from psycopg.adapt import Transformer

from okf_agent.sql.query_error import QueryError
from okf_agent.sql.session import Session
from okf_compiler import postgres
from okf_compiler.postgres import Row

Batches: TypeAlias = Iterator[list[Row]]

CHUNK_ROWS = 1000
PIECE_BYTES = 100_000
"""Bytes of one piece of a file."""
CHUNK_CHARS = 1_000_000
"""Characters that one piece of a capped result may have, so that a wide row travels alone."""

_SHORT = frozenset((16, 18, 19, 20, 21, 23, 24, 26, 27, 28, 29, 600, 650, 700, 701, 718, 774, 790, 829, 869)) | {
    *(1082, 1083, 1114, 1184, 1186, 1266, 2205, 2206, 2950, 3220)
}
"""Types (by oid) whose text is always short: boolean, "char", name, numbers of fixed size, dates, times, uuid,
addresses, points, regclass and its like."""
_TEXT = frozenset((25, 1043))
"""text and character varying: their own functions give what PostgreSQL prints."""
_MARK = re.compile("\\x01([0-9]+)$")
"""What a capped cell ends with: its whole length. Only cells longer than the cap have it."""


@dataclass(frozen=True)
class Shape:
    """The columns of a statement: names, printed types, and types as oids."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    oids: tuple[int, ...]


def describe(session: Session, sql: str) -> Shape:
    """The columns of one statement, which is parsed by the server and not run.

    Raises:
        psycopg.Error: PostgreSQL cannot parse it, it is more than one, or the role may not name what it names.
        QueryError: it has parameters.
    """
    session.pgconn.send_prepare(b"", sql.encode())
    session.request()
    session.pgconn.send_describe_prepared(b"")
    described = session.request()[-1]
    if described.nparams:
        raise QueryError("There are no parameters ($1): write the values into the query.")
    return _shape(session, described)


def wrapped(sql: str, shape: Shape, max_chars: int | None) -> str:
    """The statement inside a SELECT of our own, its cells no longer than `max_chars` and a mark.

    A closing comment in `sql` cannot eat the bracket: the line ends before it. `concat` prints with the type's
    own output function, where a cast to text would change char(n), boolean and inet.
    """
    if max_chars is None or not shape.columns:
        return f"SELECT {'*' if shape.columns else ''} FROM (\n{sql}\n) AS q"
    names = [f"c{i}" for i in range(len(shape.columns))]
    cells = (_capped(f"q.{n}", oid, max_chars) for n, oid in zip(names, shape.oids, strict=True))
    once = f"SELECT * FROM (\n{sql}\n) AS o OFFSET 0"  # OFFSET: each cell is computed once, not once a mention
    return f"SELECT {', '.join(cells)} FROM ({once}) AS q ({', '.join(names)})"


def receive(session: Session, shape: Shape | None, max_chars: int | None) -> tuple[Shape, Batches]:
    """The rows of what was just sent, in batches; `shape` None means the one the result has.

    Raises:
        psycopg.Error: the server's error, at once if it comes before any row, else while iterating.
    """
    rows = CHUNK_ROWS
    if max_chars is not None:
        width = len(shape.columns) if shape else 1
        rows = max(1, min(100, CHUNK_CHARS // (max_chars * max(1, width))))
    session.pgconn.set_chunked_rows_mode(rows)
    session.wait(generators.send(session.pgconn))
    first = session.fetch()
    assert first is not None, "a query that was sent has a result"
    if shape is None:
        shape = _shape_of(first)
    return shape, _batches(session, first)


def copied(session: Session, sql: str) -> Iterator[tuple[int, bytes]]:
    """The whole result as CSV in UTF-8, header first: (lines, bytes), PostgreSQL's own quoting.

    The statement must have been described: only then are the brackets around it sure to hold it.

    Raises:
        psycopg.Error: the server's error.
    """
    query = f"COPY (SELECT * FROM (\n{sql}\n) AS q) TO STDOUT (FORMAT csv, HEADER)"
    session.pgconn.send_query_params(query.encode(), None)
    session.wait(generators.send(session.pgconn))
    session.fetch()
    lines: list[bytes] = []
    size = 0
    unsure = postgres.any_bytes(session)
    while (line := session.copy_line()) is not None:
        if unsure:  # nobody has converted it: the rest of the file is UTF-8
            line = line.decode("utf-8", "backslashreplace").encode()
        lines.append(line)
        size += len(line)
        if size > PIECE_BYTES:
            yield len(lines), b"".join(lines)
            lines, size = [], 0
    yield len(lines), b"".join(lines)


def cut_cells(
    rows: list[Row], max_chars: int, *, in_bytes: bool = False
) -> tuple[list[Row], dict[tuple[int, int], int]]:
    """The rows without the marks of capped cells, and the whole length of each capped cell.

    `in_bytes`: the server counts bytes, not characters.
    """
    lengths: dict[tuple[int, int], int] = {}
    kept = []
    for r, row in enumerate(rows):
        cells = list(row)
        for c, cell in enumerate(row):
            if cell is None or (len(cell.encode()) if in_bytes else len(cell)) <= max_chars:
                continue
            mark = _MARK.search(cell)  # EXPLAIN and SHOW come without: they are cut here
            lengths[r, c] = int(mark.group(1)) if mark else len(cell)
            cells[c] = cell[: mark.start() if mark else max_chars]
        kept.append(tuple(cells))
    return kept, lengths


def _capped(column: str, oid: int, max_chars: int) -> str:
    """An expression that gives a column's text, or its first characters, \\x01 and its whole length."""
    if oid in _SHORT:
        return column
    text = column if oid in _TEXT else f"pg_catalog.concat({column})"
    null = "" if oid in _TEXT else f"WHEN pg_catalog.num_nulls({column}) OPERATOR(pg_catalog.=) 1 THEN NULL "
    length = f"pg_catalog.length({text})"
    return (
        f"CASE {null}WHEN pg_catalog.octet_length({text}) OPERATOR(pg_catalog.<=) {max_chars} THEN {text} "
        f"WHEN {length} OPERATOR(pg_catalog.>) {max_chars} "
        f"THEN pg_catalog.concat(pg_catalog.left({text}, {max_chars}), pg_catalog.chr(1), {length}) "
        f"ELSE {text} END"
    )


def _batches(session: Session, first: pq.abc.PGresult) -> Batches:
    """Lists of rows, until the server says that it is done.

    Raises:
        psycopg.Error: the server's error.
    """
    reader = Transformer(postgres.exact_text(session))
    reader.set_pgresult(first)
    result: pq.abc.PGresult | None = first
    while result is not None:
        if result.ntuples:
            reader.set_pgresult(result, set_loaders=False)
            yield reader.load_rows(0, result.ntuples, tuple)
        result = session.fetch()


def _shape_of(result: pq.abc.PGresult) -> Shape:
    """The shape of a result whose columns are all text, as EXPLAIN's and SHOW's are."""
    oids = tuple(result.ftype(i) for i in range(result.nfields))
    return Shape(_names(result), tuple("json" if oid == 114 else "text" for oid in oids), oids)


def _names(result: pq.abc.PGresult) -> tuple[str, ...]:
    return tuple((result.fname(i) or b"").decode("utf-8", "backslashreplace") for i in range(result.nfields))


def _shape(session: Session, result: pq.abc.PGresult) -> Shape:
    """The columns a described statement has, types named by the server."""
    oids = tuple(result.ftype(i) for i in range(result.nfields))
    pairs = [(oid, result.fmod(i)) for i, oid in enumerate(oids)]
    return Shape(_names(result), _type_names(session, pairs), oids)


def _type_names(session: Session, pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    """`numeric(12,2)` for each (oid, modifier)."""
    asked = [p for p in dict.fromkeys(pairs) if p not in _KNOWN]
    if asked:
        values = ", ".join(f"({oid}::oid, {modifier})" for oid, modifier in asked)
        query = f"SELECT pg_catalog.format_type(o, m) FROM (VALUES {values}) AS t(o, m)"
        found = dict(zip(asked, (row[0] for row in session.execute(query)), strict=True))
    else:
        found = {}
    return tuple(_KNOWN.get(p) or found[p] for p in pairs)


_KNOWN: dict[tuple[int, int], str] = {
    (16, -1): "boolean",
    (20, -1): "bigint",
    (21, -1): "smallint",
    (23, -1): "integer",
    (25, -1): "text",
    (700, -1): "real",
    (701, -1): "double precision",
    (1043, -1): "character varying",
    (1082, -1): "date",
    (1114, -1): "timestamp without time zone",
    (1184, -1): "timestamp with time zone",
    (1700, -1): "numeric",
    (2950, -1): "uuid",
    (3802, -1): "jsonb",
}
