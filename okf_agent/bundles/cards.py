"""A bundle as cards: its tables and rules with their parts in reach, read from the concepts' sections.

What the compiler wrote and what people corrected are read alike. A concept that is not a table is a rule; one
without the compiler's sections gives its whole body, as a rule's definition or as what a table has to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from okf_compiler import markdown
from okf_compiler.bundle import Bundle, Concept
from okf_compiler.headings import COLUMNS_USED, DEFINITION, DEPENDS_ON, JOINS, JSON_FIELDS, SCHEMA
from okf_compiler.loaded import derived
from okf_compiler.sql_names import name_parts, sql_name


@dataclass(frozen=True)
class ColumnCard:
    """A column, or a field inside a JSON column."""

    name: str
    """As a query writes it, in double quotes where it needs them; for a field `data->'a'->>'b'`."""
    type: str
    """With `primary key`, `not null` and an enum's labels, as the concept has it; "" for a field."""
    meaning: str


@dataclass(frozen=True)
class TableCard:
    path: str
    title: str
    """The name as the catalogue has it: `Orders`, `sales.Orders`; profiles are kept by it."""
    name: str
    """As a query writes it."""
    description: str
    columns: tuple[ColumnCard, ...]
    fields: tuple[ColumnCard, ...]
    joins: tuple[tuple[str, str], ...]
    """(path of the other table, condition in SQL)."""
    text: str = ""
    """What the concept says, where it has no list of columns."""


@dataclass(frozen=True)
class RuleCard:
    path: str
    title: str
    description: str
    definition: str
    tables: Mapping[str, tuple[str, ...]]
    """Path of a table -> the columns of it that the rule uses."""
    depends_on: tuple[str, ...]
    """Paths of the rules it builds on."""


@dataclass(frozen=True)
class Cards:
    """Everything by path, in the bundle's order."""

    tables: Mapping[str, TableCard]
    rules: Mapping[str, RuleCard]


def read(root: Path) -> Cards:
    """The cards of a bundle.

    Raises:
        UserError: it is not there or cannot be read.
    """
    return derived(root, _cards)


def _cards(bundle: Bundle) -> Cards:
    return Cards({each.path: _table(each) for each in bundle.tables}, {each.path: _rule(each) for each in bundle.rules})


def _table(concept: Concept) -> TableCard:
    parts = concept.sections
    columns = [ColumnCard(sql_name(markdown.uncode(n)), t, m) for n, t, m in _rows(parts.get(SCHEMA, ""))]
    fields = [ColumnCard(markdown.uncode(sql), "", meaning) for _, sql, meaning in _rows(parts.get(JSON_FIELDS, ""))]
    joins = []
    for line in parts.get(JOINS, "").splitlines():
        link, conditions = markdown.first_link(line), markdown.codes(line)
        if link and conditions:
            joins.append((link["path"], conditions[0]))
    return TableCard(
        path=concept.path,
        title=concept.title,
        name=".".join(map(sql_name, name_parts(concept.title))),
        description=concept.description,
        columns=tuple(columns),
        fields=tuple(fields),
        joins=tuple(joins),
        text="" if columns else concept.body.strip(),
    )


def _rule(concept: Concept) -> RuleCard:
    parts = concept.sections
    tables: dict[str, list[str]] = {}
    for line in parts.get(COLUMNS_USED, "").splitlines():
        if link := markdown.first_link(line):
            columns = tables.setdefault(link["path"], [])
            for group in line[link.end() :].split("; "):
                used = group.partition(" (")[0]  # why they are linked follows in brackets
                columns.extend(markdown.codes(used))
    return RuleCard(
        path=concept.path,
        title=concept.title,
        description=concept.description,
        definition=markdown.unverbatim(parts.get(DEFINITION, concept.body.strip())),
        tables={path: tuple(names) for path, names in tables.items()},
        depends_on=tuple(concept.links(DEPENDS_ON)),
    )


def _rows(table: str) -> Iterator[tuple[str, str, str]]:
    """The first three cells of each row of a markdown table, below its header."""
    for cells in markdown.rows(table):
        if len(cells) >= 3:
            yield markdown.uncell(cells[0]), markdown.uncell(cells[1]), markdown.uncell(cells[2])
