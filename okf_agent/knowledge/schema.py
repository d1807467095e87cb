"""The tables as DDL and nothing else, no meanings and no rules: the floor that other modes are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from okf_agent import prompts
from okf_agent.bundles import cards
from okf_agent.bundles.cards import ColumnCard, TableCard
from okf_agent.knowledge.model import Knowledge, Sources
from okf_agent.prompts import framing
from okf_compiler.errors import UserError
from okf_compiler.type_cell import parse_type

_NAME = r'(?:"(?:[^"]|"")+"|[^\s".=]+)'
_PAIR = re.compile(
    rf"(?P<left>{_NAME}(?:\.{_NAME})*)\.(?P<column>{_NAME}) = (?P<right>{_NAME}(?:\.{_NAME})*)\.(?P<other>{_NAME})"
)


def prepare(_question: str, sources: Sources) -> Knowledge:
    """The DDL as one section, made from the bundle's tables; no tool beside the common ones.

    Raises:
        UserError: there is no bundle, it cannot be read, or none of its tables has columns.
    """
    bundle = sources.need_bundle()
    tables = [table for table in cards.read(bundle).tables.values() if table.columns]
    if not tables:
        raise UserError(
            f"No table in the bundle {bundle} has a list of columns, so it has no schema to show. "
            "Ask with --knowledge bundle."
        )
    section = prompts.load("schema.md", schema=framing.inside("\n\n".join(map(create_table, tables))))
    return Knowledge((section,))


def create_table(table: TableCard) -> str:
    """A table as DDL, its columns and keys, without a word of what they mean."""
    lines = [*map(_column, table.columns)]
    key = [column.name for column in table.columns if parse_type(column.type).key]
    if key:
        lines.append(f"PRIMARY KEY ({', '.join(key)})")
    lines += dict.fromkeys(_foreign_keys(table))  # one that refers to its own table is a join twice
    return f"CREATE TABLE {table.name} (\n  " + ",\n  ".join(lines) + "\n);"


def _column(column: ColumnCard) -> str:
    cell = parse_type(column.type)
    parts = [column.name, f"enum ({cell.labels})" if cell.labels else cell.type.replace("USER-DEFINED", "enum")]
    if cell.is_filled:
        parts.append("NOT NULL")
    if cell.default:
        parts.append(f"DEFAULT {cell.default}")
    if cell.generated:
        parts.append(
            "GENERATED AS IDENTITY" if cell.generated == "identity" else f"GENERATED ALWAYS AS ({cell.generated})"
        )
    return " ".join(filter(None, parts))


def _foreign_keys(table: TableCard) -> Iterator[str]:
    """The joins that start from this table; the others are those of other tables."""
    for _, condition in table.joins:
        pairs = [found.groupdict() for part in condition.split(" AND ") if (found := _PAIR.fullmatch(part))]
        if pairs and all(pair["left"] == table.name for pair in pairs):
            columns, others = (", ".join(pair[side] for pair in pairs) for side in ("column", "other"))
            yield f"FOREIGN KEY ({columns}) REFERENCES {pairs[0]['right']} ({others})"
