"""`<db>_schema.txt` of the LiveSQLBench format: CREATE TABLE statements, each with a few sample rows below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from okf_compiler.ddl import parse_create_table
from okf_compiler.model import Problem, Table

# One database's files quote the first word of every clause, keywords included.
_QUOTED_KEYWORD = re.compile(
    r'^([ \t]*)"(CREATE|PRIMARY|FOREIGN|UNIQUE|CONSTRAINT|CHECK|First)"(?=[ \t]+(?:TABLE|KEY|\d)\b|[ \t]*\()',
    re.IGNORECASE | re.MULTILINE,
)
_CREATE = re.compile(r"^[ \t]*CREATE\b", re.IGNORECASE)
_ROWS = re.compile(r"^[ \t]*(?:First \d+ rows?:|No data available)", re.IGNORECASE)
_END_OF_ROWS = "..."


@dataclass
class _Chunk:
    """Lines from a CREATE to its sample rows; `line` is the 1-based line of the first one."""

    line: int
    lines: list[str] = field(default_factory=list)


def read_tables(text: str, file: Path, problems: list[Problem]) -> list[Table]:
    """The tables of a schema file's text; what cannot be read is added to the problems."""
    tables: dict[tuple[str, str], Table] = {}
    for chunk in _chunks(_QUOTED_KEYWORD.sub(r"\1\2", text), file, problems):
        table, unread = parse_create_table("\n".join(chunk.lines))
        problems += [Problem(u.message, str(file), chunk.line + u.line - 1) for u in unread]
        if table is None:
            continue
        key = (table.schema, table.name)
        if key in tables:
            problems.append(Problem(f"table {table.qualified_name} is created twice", str(file), chunk.line))
        tables.setdefault(key, table)
    return list(tables.values())


def _chunks(text: str, file: Path, problems: list[Problem]) -> Iterator[_Chunk]:
    chunk: _Chunk | None = None
    in_rows = False
    for number, line in enumerate(text.split("\n"), 1):
        if _CREATE.match(line):
            if chunk:
                yield chunk
            chunk, in_rows = _Chunk(number), False
        elif _ROWS.match(line):
            in_rows = True
        elif in_rows:
            # A cell may hold line breaks, so rows end at their own mark and not at an empty line.
            if line.strip() == _END_OF_ROWS:
                if chunk:
                    yield chunk
                chunk, in_rows = None, False
            continue
        if chunk and not in_rows:
            chunk.lines.append(line)
        elif line.strip() and not in_rows and line.strip() != _END_OF_ROWS and not line.startswith("--"):
            problems.append(Problem(f"belongs to no statement: {line.strip()[:80]}", str(file), number))
    if chunk:
        yield chunk
