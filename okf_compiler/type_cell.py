"""The cell of a column's type in a bundle: how it is written, and read back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from okf_compiler.model import Column, Table

PART_OF_KEY = "primary key (part)"
WHOLE_KEY = "primary key"
_BEHIND = re.compile(r", (?:default |generated: )")
_LABELS = re.compile(r".*?'(?=\Z|, (?:primary key|not null|default |generated: ))", re.DOTALL)
"""From behind the first quote: a label may hold quotes and commas itself."""


@dataclass(frozen=True, slots=True)
class TypeCell:
    """What a type cell says; "" for what it does not say."""

    type: str
    labels: str = ""
    """An enum's: `'open', 'shut'`."""
    key: str = ""
    """PART_OF_KEY or WHOLE_KEY."""
    is_filled: bool = False
    """It says `not null`, which a primary key does not repeat."""
    default: str = ""
    generated: str = ""


def type_cell(table: Table, column: Column) -> str:
    """The cell of a column."""
    parts = [column.type] if column.type else []
    if column.enum_labels:
        parts.append("one of " + ", ".join(f"'{label}'" for label in column.enum_labels))
    if column.name in table.primary_key:
        parts.append(WHOLE_KEY if len(table.primary_key) == 1 else PART_OF_KEY)
    elif not column.nullable:
        parts.append("not null")
    if column.default is not None:
        parts.append(f"default {column.default}")
    if column.generated:
        parts.append(f"generated: {column.generated}")
    return ", ".join(parts)


def parse_type(cell: str) -> TypeCell:
    """What a cell says. One of another form, which people wrote, is a type as a whole.

    >>> parse_type("mood, one of 'fine', 'sad', not null, default 'fine'")
    TypeCell(type='mood', labels="'fine', 'sad'", key='', is_filled=True, default="'fine'", generated='')
    """
    name, labels, rest = _labelled(cell)
    rest, _, generated = rest.partition(", generated: ")
    rest, _, default = rest.partition(", default ")
    without = rest.removesuffix(", not null")
    key = next((key for key in (PART_OF_KEY, WHOLE_KEY) if without.endswith(f", {key}")), "")
    name += without.removesuffix(f", {key}") if key else without
    return TypeCell(name, labels, key, without != rest, default, generated)


def _labelled(cell: str) -> tuple[str, str, str]:
    """The type of an enum, its labels, and what follows; of another type ("", "", cell)."""
    name, found, rest = cell.partition(", one of '")
    labels = _LABELS.match(rest) if found and not _BEHIND.search(name) else None
    return (name, f"'{labels[0]}", rest[labels.end() :]) if labels else ("", "", cell)
